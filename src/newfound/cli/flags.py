"""The flags that several commands share, and how help texts show flags."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from newfound.config import RunConfig, describe_type, flag_of, settings_of

# What `add_subparsers` returns; argparse keeps its class private.
Commands = Any


class HelpFormatter(argparse.ArgumentDefaultsHelpFormatter):
    """Shows the default of a flag that takes a value, and which flags are required."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        if action.option_strings and action.required:
            return f"{action.help} (required)"
        if action.nargs == 0:  # a switch is off unless it is given
            return action.help
        return super()._get_help_string(action)


def new_command(
    commands: Commands,
    name: str,
    run: Callable[[argparse.Namespace], int | None],
    help: str,
    description: str | None = None,
) -> argparse.ArgumentParser:
    """Add a command that calls `run` with its options; return its parser.

    `help` is its line in the list of commands, `description` the beginning of its own help.
    """
    command: argparse.ArgumentParser = commands.add_parser(
        name, help=help, description=description or _sentence(help), formatter_class=HelpFormatter
    )
    command.set_defaults(run=run)
    return command


def _sentence(help: str) -> str:
    return f"{help[0].upper()}{help[1:]}."


def add_output_flags(
    command: argparse.ArgumentParser, *, works: bool = True, result: bool = True
) -> None:
    """Add --quiet and --verbose to a command that `works` for a while, --json for its `result`."""
    if works:
        amount = command.add_mutually_exclusive_group()
        amount.add_argument(
            "-q",
            "--quiet",
            action="store_true",
            help="print results and errors only, neither progress nor notes",
        )
        amount.add_argument(
            "-v",
            "--verbose",
            action="store_true",
            help="also print each stage with its seconds, and the settings",
        )
    if result:
        command.add_argument(
            "--json",
            action="store_true",
            help="print the result as one JSON object to standard output; everything else goes to "
            "standard error",
        )


def add_run_folder(command: argparse.ArgumentParser, help: str = "run folder") -> None:
    """Add the run folder that a command reads."""
    command.add_argument("folder", metavar="RUN", type=Path, help=help)


def add_force(command: argparse.ArgumentParser, what: str) -> None:
    """Add --force, without which no file or folder is replaced."""
    command.add_argument("--force", action="store_true", help=f"replace {what}")


def add_columns(command: argparse.ArgumentParser, roles: Sequence[str]) -> None:
    """Add the flags that name the columns of a table."""
    for role in roles:
        command.add_argument(
            f"--{role}-column",
            metavar="NAME",
            default=argparse.SUPPRESS,
            help=f"column of the {role}s (default: guessed from its name, with a note)",
        )


def add_tables(command: argparse.ArgumentParser) -> None:
    """Add the tables to read and the flags that name their columns."""
    command.add_argument("tables", metavar="TABLE", nargs="+", type=Path, help="file with texts")
    add_columns(command, ("text", "label", "id"))


def add_run_flags(
    command: argparse.ArgumentParser,
    leave_out: Sequence[str] = (),
    helps: Mapping[str, str] | None = None,
) -> None:
    """Add one flag per field of RunConfig; with the method also --set for its own settings.

    `helps` has other help texts by field.
    """
    for name, kind, default, help in settings_of(RunConfig):
        if name in leave_out:
            continue
        command.add_argument(
            flag_of(name),
            dest=name,
            metavar=_metavar(kind),
            help=(helps or {}).get(name, help),
            # Where no value can be the default, the help text states what happens.
            default=argparse.SUPPRESS if default is None else default,
        )
    if "method" not in leave_out:
        command.add_argument(
            "--set",
            dest="settings",
            metavar="NAME=VALUE",
            action="append",
            default=argparse.SUPPRESS,
            help="a hyper-parameter of the method; `newfound methods NAME` lists them; repeatable "
            "(default: what --effort chooses)",
        )


def _metavar(kind: Any) -> str:
    """Return what stands for the value of a flag in its help: `auto|N`."""
    names = {"int": "N", "float": "X", "str": "NAME"}
    return "|".join(names.get(part, part) for part in describe_type(kind).split("|"))


def add_naming(command: argparse.ArgumentParser) -> None:
    """Add the flags of the endpoint that names novel categories."""
    command.add_argument(
        "--name-with",
        metavar="URL",
        default=argparse.SUPPRESS,
        help="OpenAI-compatible endpoint that names the novel categories; their keywords and "
        "typical texts are sent there, with the key in NEWFOUND_API_KEY or OPENAI_API_KEY "
        "(default: names come from keywords and nothing is sent)",
    )
    command.add_argument(
        "--name-model",
        metavar="MODEL",
        default=argparse.SUPPRESS,
        help="model to ask there (required with --name-with)",
    )


def add_marking(command: argparse.ArgumentParser) -> None:
    """Add the flags that mark texts that fit nowhere to a command without the flags of a run."""
    command.add_argument(
        "--outside",
        metavar="SHARE",
        default=argparse.SUPPRESS,
        help="mark texts as fitting nowhere whose fit score is as low as that of this share of the "
        "run's unlabelled texts, from 0 to 1 (default: as in the run)",
    )
    command.add_argument(
        "--false-alarms",
        metavar="RATE",
        default=argparse.SUPPRESS,
        help="in place of --outside: share of the texts of known categories that may be marked, "
        "from 0 to 1 (default: as in the run)",
    )


def add_device(command: argparse.ArgumentParser) -> None:
    """Add --device to a command without the other flags of a run."""
    command.add_argument(
        "--device",
        default=argparse.SUPPRESS,
        help="cpu, cuda or cuda:N (default: cuda where there is one)",
    )
