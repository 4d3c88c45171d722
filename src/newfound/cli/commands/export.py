"""`newfound export`: export categories and texts to Label Studio, Rasa or a spreadsheet."""

import argparse
from pathlib import Path

from newfound.cli.flags import (
    Commands,
    add_force,
    add_output_flags,
    add_raw_cells,
    add_run_folder,
    new_command,
)
from newfound.cli.output import Output
from newfound.wording import plural


def add_parser(commands: Commands) -> None:
    """Add the command."""
    command = new_command(
        commands,
        "export",
        run,
        "export categories and texts to Label Studio, Rasa or a spreadsheet",
        "Export the categories of a run with the texts that a person decided on or the model is "
        "sure of: as Label Studio tasks (with a labelling "
        "configuration as .xml), as Rasa NLU training data, or as a CSV table with the "
        "columns text and label.",
    )
    add_run_folder(command)
    command.add_argument(
        "--to", choices=("labelstudio", "rasa", "csv"), required=True, help="target format"
    )
    command.add_argument(
        "-o",
        "--out",
        metavar="OUT",
        type=Path,
        required=True,
        help="file to write: .json for Label Studio, .yml for Rasa, .csv for CSV",
    )
    command.add_argument(
        "--categories",
        metavar="NAME",
        nargs="+",
        action="extend",
        default=argparse.SUPPRESS,
        help="export only these categories (default: all)",
    )
    command.add_argument(
        "--kind",
        choices=("all", "known", "novel"),
        default="all",
        help="export only categories of this kind",
    )
    command.add_argument(
        "--min-probability",
        metavar="P",
        type=float,
        default=0.8,
        help="omit texts with a lower probability; texts that you labelled, or of categories that "
        "you accepted, are always exported",
    )
    command.add_argument(
        "--all",
        action="store_true",
        help="export also texts that the model is not sure of, because their probability or their "
        "fit score is low",
    )
    command.add_argument(
        "--level",
        metavar="N",
        type=int,
        default=0,
        help="export groups of look-alikes (1) or groups of these (2) in place of categories (0)",
    )
    command.add_argument(
        "--with-outside",
        action="store_true",
        help="export also texts that are marked as fitting nowhere, which are left out otherwise",
    )
    add_raw_cells(command)
    add_force(command, "existing files")
    add_output_flags(command)


def run(options: argparse.Namespace) -> None:
    """Export the selected categories of a run."""
    from newfound.decisions import read_decided
    from newfound.storage.export import export_result

    output = Output(options)
    stages = output.stages()
    with stages.stage("reading the run"):
        result, _, problems = read_decided(options.folder)
    output.notes(map(str, problems))
    with stages.stage("exporting"):
        paths, chosen, notes = export_result(
            result,
            options.out,
            options.to,
            categories=getattr(options, "categories", ()),
            kind=options.kind,
            min_probability=None if options.all else options.min_probability,
            level=options.level,
            with_outside=options.with_outside,
            raw_cells=options.raw_cells,
            force=options.force,
        )
    output.written(options.out)
    output.notes(notes)
    texts = plural(len(chosen.texts), "text")
    categories = plural(len(chosen.names), "category", "categories")
    output.result(
        {
            "files": [str(path) for path in paths],
            "texts": len(chosen.texts),
            "categories": chosen.names,
            "fits_nowhere": chosen.outside,
            "unsure": chosen.unsure,
            "notes": notes,
        },
        f"{texts} of {categories}: {' and '.join(map(str, paths))}",
    )
