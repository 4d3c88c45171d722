"""The commands that pass a run on: its report, and its categories for other tools."""

import argparse
import sys
from pathlib import Path
from typing import Any

from newfound.errors import InputError


def add_report(command: Any) -> None:
    """The flags of `newfound report`."""
    command.add_argument("folder", metavar="RUN", type=Path, help="run folder")
    command.add_argument(
        "-o",
        "--out",
        metavar="FILE",
        type=Path,
        default=argparse.SUPPRESS,
        help="file to write (default: RUN/report.html)",
    )
    command.add_argument("--force", action="store_true", help="replace an existing FILE")
    command.set_defaults(run=report)


def report(options: argparse.Namespace) -> None:
    """newfound report: write a run's report again, or elsewhere."""
    from newfound.report import write_report
    from newfound.storage.run_folder import read_run

    out: Path | None = getattr(options, "out", None)
    if out is not None and out.exists() and not options.force:
        raise InputError(f"{out} exists; replace it with --force or choose another name")
    result = read_run(options.folder)
    path = options.folder / "report.html" if out is None else out
    print(f"Open {write_report(result, path, name=str(options.folder))}")


def add_export(command: Any) -> None:
    """The flags of `newfound export`."""
    command.add_argument("folder", metavar="RUN", type=Path, help="run folder")
    command.add_argument(
        "--to",
        choices=("labelstudio", "rasa", "csv"),
        required=True,
        default=argparse.SUPPRESS,
        help="tool to write for",
    )
    command.add_argument(
        "-o",
        "--out",
        metavar="OUT",
        type=Path,
        required=True,
        default=argparse.SUPPRESS,
        help="file to write: .json for Label Studio, .yml for Rasa, .csv",
    )
    command.add_argument(
        "--categories",
        metavar="NAME",
        nargs="+",
        action="extend",
        default=argparse.SUPPRESS,
        help="only these categories (default: all)",
    )
    command.add_argument(
        "--kind", choices=("all", "known", "novel"), default="all", help="only categories like this"
    )
    command.add_argument(
        "--min-probability",
        metavar="P",
        type=float,
        default=0.0,
        help="leave out texts that the model is less sure of; those you labelled stay",
    )
    command.add_argument("--force", action="store_true", help="replace existing files")
    command.set_defaults(run=export)


def export(options: argparse.Namespace) -> None:
    """newfound export: categories and their texts for Label Studio, Rasa or a spreadsheet."""
    from newfound.storage.export import export_result
    from newfound.storage.run_folder import read_run

    paths, chosen, notes = export_result(
        read_run(options.folder),
        options.out,
        options.to,
        categories=getattr(options, "categories", ()),
        kind=options.kind,
        min_probability=options.min_probability,
        force=options.force,
    )
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    files = " and ".join(map(str, paths))
    print(f"{len(chosen.texts)} texts of {len(chosen.names)} categories: {files}")
