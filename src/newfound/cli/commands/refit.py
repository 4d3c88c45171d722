"""`newfound refit`: discover the categories of a run again, with what a person decided."""

import argparse
from dataclasses import replace
from pathlib import Path

from newfound.cli.flags import (
    Commands,
    add_device,
    add_force,
    add_output_flags,
    add_run_folder,
    new_command,
)
from newfound.cli.output import Output, category_table, run_value
from newfound.cli.printing import printable
from newfound.errors import InputError
from newfound.wording import plural


def add_parser(commands: Commands) -> None:
    """Add the command."""
    command = new_command(
        commands,
        "refit",
        run,
        "discover the categories of a run again, with what you decided",
        "Discover the categories of a run again and learn from its decisions (`newfound decide`). "
        "Accepted, merged and split categories are known from now on, rejected ones do not come "
        "back, and moved texts stay. Ids and names persist; what changed is printed.",
    )
    add_run_folder(command)
    command.add_argument(
        "-o", "--out", metavar="RUN2", type=Path, required=True, help="run folder to write"
    )
    add_force(command, "an existing run folder")
    command.add_argument(
        "--format", choices=("csv", "parquet"), default="csv", help="format of the assignments"
    )
    command.add_argument(
        "--vectors",
        metavar="FILE",
        type=Path,
        default=argparse.SUPPRESS,
        help="vectors of the texts, one row per row of the assignments, as a .npy file; required "
        "if the run was made with vectors that you computed (default: the encoder computes them)",
    )
    add_device(command)
    add_output_flags(command)


def run(options: argparse.Namespace) -> None:
    """Refit a run and write the new run folder."""
    from newfound.decisions import apply, read_log
    from newfound.decisions.carrying_over import carry_over
    from newfound.decisions.refitting import change_lines, config_of, refit
    from newfound.files import read_steadily
    from newfound.report import write_report
    from newfound.storage.run_folder import check_run_folder, new_run, read_run, write_run
    from newfound.storage.space import check_run_space

    output = Output(options)
    if options.out.resolve() == options.folder.resolve():
        raise InputError(f"{options.out} is the run itself; choose another name for the new run")
    check_run_folder(options.out, options.force)
    result, log = read_steadily(
        options.folder,
        lambda: (read_run(options.folder), read_log(options.folder)),
        unchanged=True,
    )
    if hasattr(options, "vectors"):
        from newfound.data.tables.vectors import table_vectors

        rows = range(1, len(result.corpus) + 1)
        found = table_vectors([options.folder], [len(rows)], rows, file=options.vectors)
        result = replace(result, corpus=replace(result.corpus, vectors=found))
    if hasattr(options, "device"):
        result = replace(result, config={**result.config, "device": options.device})
    if log.refit is not None:
        output.notes([f"{options.folder} was refitted before, into {log.refit[1].run}"])
    decided, _ = apply(result, log.entries)
    check_run_space(options.out, result.corpus, config_of(decided, result.corpus)[0])
    stages = output.stages()
    with new_run(options.out, options.force) as folder:
        refitted, problems = refit(result, log.entries, stages=stages)
        notes = [*map(str, problems), *refitted.notes]
        output.notes(note for note in notes if note not in stages.notes)
        refitted = replace(refitted, notes=tuple(notes), command=options.command_line)
        with stages.stage("writing the run"):
            write_run(refitted, folder, table_format=options.format)
            write_report(refitted, folder / "report.html", name=str(options.out))
    output.written(options.out)
    late = carry_over(options.folder, log, decided, options.out, refitted, close=True)
    output.notes(late)
    refitted = replace(refitted, notes=(*refitted.notes, *late))
    value = {**run_value(options.out, refitted), "changes": refitted.changes}
    lines = [
        category_table(refitted.categories),
        *map(printable, change_lines(decided, refitted)),
        f"{plural(len(refitted.categories), 'category', 'categories')}; open "
        f"{options.out / 'report.html'}",
    ]
    output.result(value, "\n".join(lines))
