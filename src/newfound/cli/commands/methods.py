"""`newfound methods`: list the methods, or the settings of one."""

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from newfound.cli.flags import Commands, add_output_flags, new_command
from newfound.cli.output import Output, pairs
from newfound.config import describe_type, settings_of

if TYPE_CHECKING:
    from newfound.methods import Method


def add_parser(commands: Commands) -> None:
    """Add the command."""
    command = new_command(commands, "methods", run, "list the methods, or the settings of one")
    command.add_argument(
        "name",
        metavar="NAME",
        nargs="?",
        default=argparse.SUPPRESS,
        help="list the settings of this method (default: list the methods)",
    )
    add_output_flags(command, works=False)


def run(options: argparse.Namespace) -> None:
    """Print all methods, or one method with its settings."""
    from newfound.methods import METHODS, find_method

    output, name = Output(options), getattr(options, "name", None)
    if name is None:
        value: dict[str, Any] = {"methods": [_value(n, method) for n, method in METHODS.items()]}
        lines = [line for n, method in METHODS.items() for line in _summary_lines(n, method)]
    else:
        value = _value(name, find_method(name))
        lines = list(_settings_lines(name, find_method(name)))
    output.result(value, "\n".join(lines))


def _value(name: str, method: "Method") -> dict[str, Any]:
    """Return a method as a JSON-serialisable dict."""
    return {
        "name": name,
        "summary": method.summary,
        "reference": method.reference,
        "uses_labels": method.uses_labels,
        "settings": [
            {"name": setting, "type": describe_type(kind), "default": default, "help": help}
            for setting, kind, default, help in settings_of(method.config)
        ],
        "efforts": {effort: dict(changes) for effort, changes in method.efforts.items()},
    }


def _summary_lines(name: str, method: "Method") -> Iterator[str]:
    ignores = "" if method.uses_labels else " (ignores labels)"
    yield f"{name:<16} {method.summary}{ignores}"
    yield f"{'':<16} {method.reference}"


def _settings_lines(name: str, method: "Method") -> Iterator[str]:
    yield f"{name}: {method.summary}\n{method.reference}\n"
    for setting, kind, default, help in settings_of(method.config):
        yield f"  {setting}={default}  ({describe_type(kind)})\n      {help}"
    for effort, changes in method.efforts.items():
        yield f"\n  effort {effort}: {pairs(changes) or 'the defaults'}"
