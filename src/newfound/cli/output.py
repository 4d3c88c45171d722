"""Printing of results, notes and progress.

Results go to standard output, as text or (--json) as one JSON object. Everything else goes to
standard error.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from newfound.cli.printing import printable, printable_json, printable_lines
from newfound.files import without_nan
from newfound.progress import Stages

if TYPE_CHECKING:
    from newfound.category import Category
    from newfound.result import Result


LONGEST = 400  # characters of a cell in a table


class Output:
    """Prints as --quiet, --verbose and --json require."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.quiet: bool = getattr(options, "quiet", False)
        self.verbose: bool = getattr(options, "verbose", False)
        self.json: bool = getattr(options, "json", False)
        self._options = options

    def written(self, path: Path) -> None:
        """Remember what is complete; the message of an interrupt from now on says so."""
        self._options.written = path

    def notes(self, notes: Iterable[str]) -> None:
        """Print notes, unless --quiet is given."""
        if not self.quiet:
            for note in notes:
                print(printable(f"note: {note}"), file=sys.stderr)

    def progress(self, text: str) -> None:
        """Print a line on the progress, unless --quiet is given."""
        if not self.quiet:
            print(printable_lines(text), file=sys.stderr, flush=True)

    def problem(self, text: str) -> None:
        """Print a line on a failure, also if --quiet is given."""
        print(printable_lines(text), file=sys.stderr, flush=True)

    def detail(self, text: str) -> None:
        """Print a line if --verbose is given."""
        if self.verbose:
            print(printable_lines(text), file=sys.stderr, flush=True)

    def settings(self, settings: Mapping[str, Any]) -> None:
        """Print settings if --verbose is given, those of the method last."""
        own = settings.get("settings", {})
        for chosen in ({k: v for k, v in settings.items() if k != "settings"}, own):
            if chosen:
                self.detail("settings: " + pairs(chosen))

    def stages(self) -> Stages:
        """Return the object that times stages and shows their progress."""
        return Stages(
            False if self.quiet else None,
            self.detail if self.verbose else None,
            tell=lambda note: self.notes([note]),
        )

    def introduction(self, text: str) -> None:
        """Print an introduction before the result, unless --quiet is given."""
        if not self.quiet:
            stream = sys.stderr if self.json else sys.stdout
            print(printable_lines(text), file=stream, flush=True)

    def result(self, value: Mapping[str, Any], text: str) -> None:
        """Print the result, as JSON or as text.

        Line feeds in `text` end lines; one that comes from the user's data must be escaped before.
        """
        print(json_line(value) if self.json else printable_lines(text))


def pairs(settings: Mapping[str, Any]) -> str:
    """Return settings as `name=value, name=value`."""
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def json_line(value: Mapping[str, Any]) -> str:
    """Return a value as one line of JSON that standard output can print."""
    # Characters that standard output cannot encode are escaped, as JSON allows.
    escape = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    # So are control characters that JSON allows, such as DEL and C1, because terminals obey them.
    return printable_json(json.dumps(without_nan(value), ensure_ascii=escape))


def category_table(categories: Iterable["Category"]) -> str:
    """Return the categories as a text table: known before novel, then by size."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="", pad_edge=False)
    for title in ("id", "kind", "size", "name", "keywords"):
        table.add_column(title, justify="right" if title == "size" else "left", overflow="fold")
    for category in sorted(categories, key=lambda c: (c.kind, -c.size)):
        decided = category.status in ("accepted", "rejected")
        cells = (
            category.id,
            f"{category.kind}, {category.status}" if decided else category.kind,
            f"{category.size:,}",
            category.name,
            ", ".join(category.keywords[:5]),
        )
        # Text, not markup: a label may hold square brackets. Cut, because rich is slow at wrapping.
        cut = (cell if len(cell) <= LONGEST else cell[:LONGEST] + "\u2026" for cell in cells)
        table.add_row(*(Text(printable(cell)) for cell in cut))
    console = Console(width=None if sys.stdout.isatty() else 110, color_system=None)
    with console.capture() as captured:
        console.print(table)
    return captured.get().rstrip("\n")


def run_value(folder: Path, result: "Result") -> dict[str, Any]:
    """Return the value that --json prints for a run."""
    known = int(result.is_known.sum())
    return {
        "run": str(folder),
        "report": str(folder / "report.html"),
        "texts": len(result.corpus),
        "labelled": int(result.labelled.sum()),
        "n_categories": len(result.categories),
        "n_known": known,
        "n_novel": len(result.categories) - known,
        "categories": [asdict(category) for category in result.categories],
        "estimate": None if result.estimate is None else result.estimate.to_dict(),
        "scores": result.scores,
        "fits_nowhere": None if result.fits_nowhere is None else int(result.fits_nowhere.sum()),
        "languages": None if result.languages is None else result.languages.to_dict(),
        "long_texts": result.long_texts,
        "seconds": {"total": round(sum(result.seconds.values()), 3), **result.seconds},
        "settings": result.config,
        "device": result.device,
        "environment": dict(result.environment),
        "command": result.command,
        "notes": result.notes,
    }
