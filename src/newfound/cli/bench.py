"""`newfound bench`: repeat the numbers of the paper and of this project.

The parsers of its commands are in `newfound.bench.cli`, what they do in `newfound.bench.commands`.
"""

import argparse

from newfound.bench.cli import add_commands
from newfound.cli.flags import Commands, HelpFormatter, new_command


def add_parser(commands: Commands) -> None:
    """Add the command with those below it."""
    group = new_command(
        commands, "bench", run, "reproduce the paper: data, runs, tables and figures"
    )
    group.set_defaults(group=group)
    below = group.add_subparsers(title="commands", metavar="COMMAND")
    add_commands(below)
    for command in below.choices.values():
        command.formatter_class = HelpFormatter


def run(options: argparse.Namespace) -> int | None:
    """Run a command below `newfound bench`, or print what there is."""
    if not hasattr(options, "measure"):
        options.group.print_help()
        return 2
    try:
        code: int | None = options.measure(options)
        return code
    except KeyboardInterrupt:
        raise KeyboardInterrupt("what was finished is kept") from None
