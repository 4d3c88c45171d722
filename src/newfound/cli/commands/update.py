"""`newfound update`: let new texts join a run, whose categories keep their ids and names."""

import argparse
from dataclasses import replace
from pathlib import Path

from newfound.cli.flags import (
    TABLES,
    Commands,
    add_columns,
    add_device,
    add_force,
    add_output_flags,
    add_parts,
    add_raw_cells,
    add_run_folder,
    add_time_column,
    new_command,
)
from newfound.cli.inputs import read_corpus
from newfound.cli.output import Output, category_table, run_value
from newfound.cli.printing import printable
from newfound.errors import InputError
from newfound.wording import plural


def add_parser(commands: Commands) -> None:
    """Add the command."""
    command = new_command(
        commands,
        "update",
        run,
        "let new texts join a run, whose categories keep their ids and names",
        "Assign new texts to the categories of a run, after its decisions (`newfound decide`), and "
        "propose new categories from what does not fit. Categories keep their ids, names and, "
        "except for texts that fit badly, their texts. Prints which categories are new, growing "
        "or fading. The time grows with the new texts, not with those of the run.",
    )
    add_run_folder(command)
    command.add_argument("tables", metavar="NEW", nargs="+", type=Path, help=TABLES)
    command.add_argument(
        "-o", "--out", metavar="RUN2", type=Path, required=True, help="run folder to write"
    )
    add_force(command, "an existing run folder")
    command.add_argument(
        "--format", choices=("csv", "parquet"), default="csv", help="format of the assignments"
    )
    add_columns(command, ("text", "label", "id"))
    add_time_column(command)
    add_parts(command)
    add_raw_cells(command)
    add_device(command)
    add_output_flags(command)


def run(options: argparse.Namespace) -> None:
    """Update a run and write the new run folder."""
    from newfound.decisions import read_decided
    from newfound.decisions.carrying_over import carry_over
    from newfound.report import write_report
    from newfound.storage.run_folder import check_run_folder, new_run, write_run
    from newfound.storage.space import check_run_space
    from newfound.updating import describe_changes, planned, update

    output = Output(options)
    if options.out.resolve() == options.folder.resolve():
        raise InputError(f"{options.out} is the run itself; choose another name for the new run")
    check_run_folder(options.out, options.force)
    result, log, problems = read_decided(options.folder)
    new, notes = read_corpus(options)
    if hasattr(options, "device"):
        result = replace(result, config={**result.config, "device": options.device})
    notes = [*map(str, problems), *notes]
    output.notes(notes)
    check_run_space(options.out, *planned(result, new))
    stages = output.stages()
    with new_run(options.out, options.force) as folder:
        updated = update(result, new, stages=stages)
        output.notes(note for note in updated.notes if note not in stages.notes)
        updated = replace(updated, notes=(*notes, *updated.notes), command=options.command_line)
        with stages.stage("writing the run"):
            write_run(updated, folder, table_format=options.format, raw_cells=options.raw_cells)
            write_report(updated, folder / "report.html", name=str(options.out))
    output.written(options.out)
    late = carry_over(options.folder, log, result, options.out, updated, close=False)
    output.notes(late)
    updated = replace(updated, notes=(*updated.notes, *late))
    value = {**run_value(options.out, updated), "changes": updated.changes}
    lines = [
        category_table(updated.categories),
        *map(printable, describe_changes(updated)),
        f"{plural(len(updated.categories), 'category', 'categories')}; open "
        f"{options.out / 'report.html'}",
    ]
    output.result(value, "\n".join(lines))
