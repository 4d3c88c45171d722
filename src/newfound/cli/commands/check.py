"""`newfound check`: measure the accuracy of a discovery on the user's own table."""

import argparse
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from newfound.cli.flags import (
    Commands,
    add_force,
    add_output_flags,
    add_run_flags,
    add_tables,
    new_command,
)
from newfound.cli.inputs import method_settings, read_corpus, run_config
from newfound.cli.output import Output
from newfound.errors import InputError
from newfound.wording import plural

if TYPE_CHECKING:
    from newfound.checking.check import Check, MethodCheck
    from newfound.checking.scores import DrawScores

METHODS = "methods to compare, separated by commas; `newfound methods` lists them"
WIDTH = 13  # characters per column
EXPECTED = ("All", "Known", "Novel", "Categories")


def add_parser(commands: Commands) -> None:
    """Add the command."""
    command = new_command(
        commands,
        "check",
        run,
        "measure the accuracy of a discovery on your own table",
        "Measure the accuracy to expect of `newfound discover` on these tables, for one method or "
        "several. Each draw hides the labels of a quarter of the known categories and a quarter of "
        "the other labels, runs a discovery with the remaining labels, and scores the texts whose "
        "labels were hidden. One more discovery has all labels; its probabilities, corrected by "
        "the draws, give the accuracy to expect on the whole table.",
    )
    add_tables(command)
    command.add_argument(
        "-o",
        "--out",
        metavar="FILE",
        type=Path,
        default=argparse.SUPPRESS,
        help="JSON file to write; if it is check.json in a run folder, `newfound report` shows it "
        "(default: no file)",
    )
    add_force(command, "an existing FILE")
    command.add_argument(
        "--draws", metavar="N", default="4", help="number of draws; each hides other categories"
    )
    add_run_flags(command, helps={"method": METHODS})
    add_output_flags(command)


def run(options: argparse.Namespace) -> None:
    """Check one method or several on tables."""
    output = Output(options)
    out: Path | None = getattr(options, "out", None)
    _check_file(out, options.force)
    config, draws = run_config(options), _draws(options.draws)
    methods = [name.strip() for name in config.method.split(",") if name.strip()]
    if method_settings(options) and len(methods) > 1:
        raise InputError("--set applies to one method, and --method names several; name one")
    corpus, notes = read_corpus(options)
    output.notes(notes)

    from newfound.checking.runner import check

    def tell(method: str, draw: int, scores: "DrawScores") -> None:
        output.detail(
            f"{method}, draw {draw + 1} of {draws}: all {scores.all:.1f}%, known "
            f"{scores.known:.1f}%, novel {scores.novel:.1f}%, "
            f"{plural(scores.n_categories, 'category', 'categories')}"
        )

    stages = output.stages()
    found = check(
        corpus,
        config,
        methods=methods,
        draws=draws,
        settings=method_settings(options),
        stages=stages,
        tell=tell,
    )
    notes += stages.notes
    if out is not None:
        from newfound.storage.check_file import write_check

        write_check(found, out, command=options.command_line)
        output.written(out)
    value: dict[str, Any] = {
        **found.to_dict(),
        "out": None if out is None else str(out),
        "notes": notes,
    }
    output.result(value, "\n".join(_lines(found, out)))


def _check_file(out: Path | None, force: bool) -> None:
    """Raise InputError if the file cannot be written or must not be replaced."""
    if out is None:
        return
    if out.is_dir():
        raise InputError(f"{out} is a folder; name a file, such as {out / 'check.json'}")
    if out.exists() and not force:
        raise InputError(f"{out} exists; replace it with --force or choose another name")
    if not out.parent.is_dir():
        raise InputError(f"cannot write {out}: the folder {out.parent} does not exist; create it")


def _draws(given: str) -> int:
    """Return the number of draws."""
    if not given.isdecimal() or int(given) < 1:
        raise InputError(f"--draws must be a whole number of at least 1, not {given!r}")
    return int(given)


def _expected(method: "MethodCheck") -> list[str]:
    """Return the cells of a method in the table of what to expect."""
    expected, whole = method.forecast, method.whole
    if expected is None or whole is None:
        return ["-"] * len(EXPECTED)
    shown = [
        "-" if math.isnan(value) else f"{value:.0f}%"
        for value in (expected.all, expected.known, expected.novel)
    ]
    return [*shown, f"{whole.n_categories:,}"]


def _lines(found: "Check", out: Path | None) -> Iterator[str]:
    """Yield the result as lines of text."""
    from newfound.checking.check import MEASURES

    yield "To expect on the unlabelled texts of the whole table:\n"
    names = max(len("method"), *(len(each.method) for each in found.methods))
    yield "method".ljust(names) + "".join(f"{name:>{WIDTH}}" for name in EXPECTED)
    for each in found.methods:
        yield each.method.ljust(names) + "".join(f"{cell:>{WIDTH}}" for cell in _expected(each))
    first = found.methods[0]
    known, novel = round(first.mean("known_texts")), round(first.mean("novel_texts"))
    yield (
        f"\n{plural(len(first.draws), 'draw')}; each hides {first.mean('n_hidden'):,.0f} of "
        f"{found.n_known:,} known categories and scores {plural(known, 'text')} of known and "
        f"{novel:,} of hidden categories. Mean and standard deviation over draws, in percent:\n"
    )
    headings = (heading for heading, _ in MEASURES.values())
    yield "method".ljust(names) + "".join(f"{heading:>{WIDTH}}" for heading in headings)
    for each in found.methods:
        cells = (each.shown(measure) for measure in MEASURES)
        yield each.method.ljust(names) + "".join(f"{cell:>{WIDTH}}" for cell in cells)
    yield ""
    for heading, meaning in MEASURES.values():
        yield f"{heading:<{WIDTH}}{meaning}"
    if out is not None:
        shown = out.name == "check.json" and (out.parent / "run.json").is_file()
        report = f"; `newfound report {out.parent}` shows it" if shown else ""
        yield f"\nWritten to {out}{report}"
