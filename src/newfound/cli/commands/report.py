"""`newfound report`: write the HTML report of a run again, or to another file."""

import argparse
from pathlib import Path

from newfound.cli.flags import (
    Commands,
    add_force,
    add_output_flags,
    add_run_folder,
    new_command,
)
from newfound.cli.output import Output
from newfound.errors import InputError
from newfound.files import write_atomically


def add_parser(commands: Commands) -> None:
    """Add the command."""
    command = new_command(
        commands,
        "report",
        run,
        "write the HTML report of a run again, or to another file",
        "Write the HTML report of a run, after all decisions, again or to another file.",
    )
    add_run_folder(command)
    command.add_argument(
        "-o",
        "--out",
        metavar="FILE",
        type=Path,
        default=argparse.SUPPRESS,
        help="file to write (default: RUN/report.html)",
    )
    add_force(command, "an existing FILE")
    add_output_flags(command)


def run(options: argparse.Namespace) -> None:
    """Write the report of a run."""
    from newfound.decisions import read_decided, read_log
    from newfound.report import write_report
    from newfound.storage.check_file import NAME, read_check

    output = Output(options)
    out: Path | None = getattr(options, "out", None)
    if out is not None and out.exists() and not options.force:
        raise InputError(f"{out} exists; replace it with --force or choose another name")
    path = options.folder / "report.html" if out is None else out
    stages = output.stages()
    with stages.stage("reading the run"):
        result, log, problems = read_decided(options.folder)
        kept = options.folder / NAME
        check = read_check(kept) if kept.is_file() else None
    output.notes(map(str, problems))
    with stages.stage("writing the report"), write_atomically(path) as temporary:
        write_report(result, temporary, name=str(options.folder), check=check)
        if out is None and read_log(options.folder).run != log.run:
            raise InputError(
                f"{options.folder} was replaced while its report was made; run the command again"
            )
    output.written(path)
    output.result({"run": str(options.folder), "report": str(path)}, f"Open {path}")
