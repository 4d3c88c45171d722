"""Every `newfound` command that a page shows is one that the real parser accepts."""

import argparse
import re
import shlex

import pytest
from support.documents import PAGES, blocks, code_spans, read

from newfound.cli.main import build_parser


def in_blocks(page: str) -> list[str]:
    """Return the commands in the fenced blocks of a page, without comments."""
    commands = []
    for block in blocks(read(page)):
        if block.language not in ("", "bash", "console"):
            continue
        for line in re.sub(r"\\\n\s*", " ", block.text).splitlines():
            found = re.match(r"(?:.*\| *|\$ *)?(newfound +[a-z-].*)", line)
            if found and not line.startswith("#"):
                commands.append(re.sub(r"\s+#\s.*", "", found[1]))
    return commands


def in_text(page: str) -> list[str]:
    """Return the commands that the text of a page mentions; they may lack arguments."""
    return [span for span in code_spans(read(page)) if re.match(r"newfound +[a-z-]", span)]


def parses(command: str, *, whole: bool) -> bool:
    """Return True if the parser accepts a command; an incomplete one may lack arguments."""
    parser = build_parser()
    if not whole:
        require_nothing(parser)
    try:
        parser.parse_args(shlex.split(command)[1:])
    except SystemExit as end:
        return end.code == 0
    return True


def require_nothing(parser: argparse.ArgumentParser) -> None:
    """Let a parser, and those of its commands, accept commands that lack arguments."""
    # A positional that takes any number of words would take the name of the subcommand.
    nested = any(isinstance(action, argparse._SubParsersAction) for action in parser._actions)
    for action in parser._actions:
        action.required = False
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                require_nothing(command)
        elif not action.option_strings:
            action.nargs = "?" if nested else "*"


@pytest.mark.parametrize("page", PAGES)
def test_commands_parse(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    refused = [command for command in in_blocks(page) if not parses(command, whole=True)]
    # A run folder that may be missing would swallow the action of `newfound decide RUN ACTION`.
    refused += [
        command
        for command in in_text(page)
        if not parses(command, whole=True) and not parses(command, whole=False)
    ]
    assert not refused, capsys.readouterr().err


def test_pages_show_commands() -> None:
    assert len(in_blocks("README.md")) > 4
    assert "newfound demo" in in_blocks("docs/quick-start.md")
    assert "newfound methods" in in_text("README.md")


@pytest.mark.parametrize(
    ("command", "whole"),
    [
        ("newfound discover table.csv --outt run", True),
        ("newfound export run", True),
        ("newfound discver", False),
        ("newfound discover --efort fast", False),
    ],
)
def test_invalid_commands_are_rejected(command: str, whole: bool) -> None:
    assert not parses(command, whole=whole)
