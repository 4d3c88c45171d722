"""The parser of all commands: help, suggestions, exit codes."""

import argparse
import os
from pathlib import Path
from typing import Any

import pytest
from support.commands import Command, Done, Refuse

import newfound
from newfound.cli.main import build_parser, main
from newfound.config import RunConfig, flag_of, settings_of


def test_version_is_printed(command: Command) -> None:
    assert command("--version") == Done(0, f"newfound {newfound.__version__}\n", "")


def test_help_is_shown_without_a_command(command: Command) -> None:
    done = command()
    assert done.code == 2
    assert "discover" in done.out


def test_every_field_of_the_configuration_is_a_flag_of_discover(command: Command) -> None:
    shown = " ".join(command("discover", "--help").out.split())
    for name, _, default, help in settings_of(RunConfig):
        place = shown.index(flag_of(name) + " ", shown.index("options:"))
        text = shown[place : place + 600]
        assert " ".join(help.split()) in text
        if default is False:  # a switch
            assert "default" not in help
            continue
        assert f"(default: {default})" in text if default is not None else "default: " in help


def parsers() -> dict[str, argparse.ArgumentParser]:
    """Return the parser of every command by its words, such as `bench run`."""
    found: dict[str, argparse.ArgumentParser] = {}
    waiting = [("", build_parser())]
    while waiting:
        words, parser = waiting.pop()
        found[words] = parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                waiting += [(f"{words} {name}".strip(), p) for name, p in action.choices.items()]
    return found


@pytest.mark.parametrize("name", sorted(parsers()))
def test_every_flag_is_explained_with_its_default_or_as_required(name: str) -> None:
    parser = parsers()[name]
    formatter = parser._get_formatter()
    for action in parser._actions:
        if not action.option_strings or action.dest in ("help", "version"):
            assert action.help or isinstance(action, argparse._SubParsersAction)
            continue
        text = formatter._expand_help(action)
        assert len(text) > 5, action.option_strings
        if action.required:
            assert text.endswith(" (required)"), action.option_strings
        elif action.nargs == 0:  # a switch
            assert "default" not in text, action.option_strings
        elif not name.startswith("bench"):
            said = ("default: ", "default with", "required with")
            assert any(part in text for part in said), action.option_strings


def test_required_flags_are_marked_in_the_help(command: Command) -> None:
    assert "run folder to write (required)" in command("discover", "--help").out
    shown = " ".join(command("export", "--help").out.split())
    assert "target format (required)" in shown
    assert ".csv for CSV (required)" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dicover"], "invalid choice: 'dicover'; did you mean 'discover'? see `newfound --help`"),
        (["bench", "spilts"], "did you mean 'splits'? see `newfound bench --help`"),
        (["export", "r", "--to", "labelstudo", "-o", "o"], "did you mean 'labelstudio'?"),
        (["estimate", "t.csv", "--sed", "3"], "--sed 3; did you mean --seed? see `newfound est"),
        (["discover", "t.csv", "-o", "r", "--efort=fast"], "did you mean --effort?"),
        (["discover", "t.csv", "-o", "r", "--method", "newfond"], "did you mean 'newfound'?"),
        (["discover", "t.csv", "-o", "r", "--text-column", "txt"], "did you mean 'text'?"),
        (["methods", "dnp"], "did you mean 'dpn'?"),
        (["completion", "bsh"], "did you mean 'bash'?"),
        (["discover", "-q", "-v", "t.csv", "-o", "r"], "not allowed with argument -q/--quiet"),
    ],
)
def test_misspelt_words_get_a_suggestion(
    refuse: Refuse, put: Any, monkeypatch: Any, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(put("t.csv", "text\na\nb\n").parent)
    assert message in refuse(*arguments)


@pytest.mark.parametrize(
    ("content", "threads"),
    [("150000 100000\n", "2"), ("50000 100000\n", "1"), ("max 100000\n", None), ("", None)],
)
def test_threads_follow_the_cpu_limit_of_a_container(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str, threads: str | None
) -> None:
    (tmp_path / "cpu.max").write_text(content)
    monkeypatch.setattr("newfound.cli.main.CPU_LIMIT", tmp_path / "cpu.max")
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    monkeypatch.setenv("OMP_NUM_THREADS", "")  # restored afterwards
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert main(["methods", "newfound"]) == 0
    assert os.environ.get("OMP_NUM_THREADS") == threads
