"""`newfound bench`: repeat the benchmarks of the paper and of this project.

`newfound.bench.cli` has the parsers of its commands, `newfound.bench.commands` and
`newfound.bench.wild.command` run them.
"""

import argparse

from newfound.bench.cli import add_commands
from newfound.cli.flags import Commands, HelpFormatter, add_output_flags, new_command
from newfound.cli.output import Output

QUICK = ("table",)  # commands without progress and notes


def add_parser(commands: Commands) -> None:
    """Add the command and its subcommands."""
    group = new_command(
        commands,
        "bench",
        run,
        "repeat benchmarks: data sets, runs, splits and speed",
    )
    add_commands(group)
    for action in group._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                command.set_defaults(run=run, measure=command.get_default("run"))
                command.formatter_class = HelpFormatter
                add_output_flags(command, works=name not in QUICK)


def run(options: argparse.Namespace) -> int | None:
    """Run a subcommand of `newfound bench`."""
    try:
        code: int | None = options.measure(options, Output(options))
        return code
    except KeyboardInterrupt:  # result lines are written one by one
        raise KeyboardInterrupt("results of finished runs are kept") from None
