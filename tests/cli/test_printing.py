"""No command prints a control character of the user's data."""

import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.commands import Command
from support.small_texts import QUICK_FLAGS, SmallTask

from newfound.cli.main import main
from newfound.cli.printing import printable, printable_json, printable_lines

pytestmark = pytest.mark.usefixtures("quick_newfound")

# Colour, title of the window, C1 control sequence, bidirectional override, zero-width space, tag.
EVIL = "\x1b[31m\x1b]0;title\x07\x9b2J\u202eevil\u200b\u2066\U000e0041\x7f\x08"
HARMLESS = {"\n"}  # ends a line of ours


def is_harmless(text: str) -> bool:
    """Return whether a terminal prints every character as it is."""
    return not any(
        unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c not in HARMLESS
        for c in text.replace("\u200d", "").replace("\u200c", "")
    )


@given(st.text())
def test_printable_text_has_no_control_characters(text: str) -> None:
    shown = printable(text)
    assert is_harmless(shown)
    assert "\n" not in shown
    if text.isprintable():
        assert shown == text
    assert is_harmless(printable_lines(text))


@given(st.text())
def test_printable_json_has_the_same_value(text: str) -> None:
    shown = printable_json(json.dumps({"text": text}, ensure_ascii=False))
    assert json.loads(shown) == {"text": text}
    assert is_harmless(shown)
    assert "\n" not in shown


def test_emoji_and_other_scripts_are_printed_as_they_are() -> None:
    for text in ("\U0001f469\u200d\U0001f4bb", "می\u200cرم", "日本\u3000語", "naïve\xa0é"):
        assert printable(text) == text


@pytest.fixture(scope="module")
def evil_run(tiny_encoder: str, task: SmallTask, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder whose labels hold escape sequences."""
    folder = tmp_path_factory.mktemp("evil")
    rows = [
        json.dumps({"text": text, "label": label and f"{label}{EVIL}\nsecond line"})
        for text, label in zip(task.texts, task.labels, strict=True)
    ]
    (folder / "table.jsonl").write_text("\n".join(rows))
    flags = ["--categories", "4", "--encoder", tiny_encoder, *QUICK_FLAGS, "--quiet"]
    out = folder / f"run{EVIL.replace('/', '')}"
    assert main(["discover", str(folder / "table.jsonl"), "-o", str(out), *flags]) == 0
    return out


@pytest.mark.parametrize("json_flag", [[], ["--json"]])
def test_commands_print_no_control_characters(
    command: Command,
    evil_run: Path,
    flags: list[str],
    tmp_path: Path,
    json_flag: list[str],
) -> None:
    table = next(evil_run.parent.glob("table.jsonl"))
    out = tmp_path / f"out{EVIL}"
    again = [*flags, "--categories", "4", "--verbose", *json_flag]
    for arguments in (
        ["discover", table, "-o", out, *again],
        ["info", evil_run, *json_flag],
        ["estimate", table, "--encoder", flags[1], *json_flag],
        ["report", evil_run, "-o", tmp_path / f"{EVIL}.html", *json_flag],
        ["export", evil_run, "--to", "labelstudio", "-o", tmp_path / f"{EVIL}.json", *json_flag],
        ["predict", evil_run, table, "-o", tmp_path / f"{EVIL}.csv", *json_flag],
    ):
        done = command(*arguments)
        assert done.code == 0, done.err
        assert is_harmless(done.out), (arguments, done.out)
        assert is_harmless(done.err), (arguments, done.err)
    text = json.dumps({"text": EVIL, "id": EVIL})
    done = command("predict", evil_run, "-", stdin=text)
    assert is_harmless(done.out)
    assert json.loads(done.out)["text"] == EVIL


def test_a_line_feed_in_a_label_starts_no_line_in_the_output(
    command: Command, evil_run: Path
) -> None:
    done = command("info", evil_run)
    assert not any(line.lstrip().startswith("second line") for line in done.out.splitlines())
    assert "\\x1b" in done.out


@pytest.mark.parametrize(
    "arguments",
    [
        ["info", f"missing{EVIL}"],
        ["discover", f"missing{EVIL}.csv", "-o", "x"],
        ["discover", "t.csv", "-o", "x", f"--{EVIL}"],
        ["discover", "t.csv", "-o", "x", "--effort", EVIL],
        ["discover", "t.csv", "-o", "x", "--set", EVIL],
        ["discover", "t.csv", "-o", "x", "--device", EVIL],
        ["discover", "t.csv", "-o", "x", "--text-column", EVIL],
        ["discover", "bad.csv", "-o", "x"],
        ["discover", "t.csv", "-o", "x", "--encoder", EVIL],
        ["methods", EVIL],
        [EVIL],
    ],
)
def test_errors_print_no_control_characters(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("text,label\na,b\nc,d\n")
    (tmp_path / "bad.csv").write_text(f"{EVIL}1,{EVIL}2\na,b\nc,d\n")
    done = command(*arguments)
    assert done.code == 2
    assert is_harmless(done.out + done.err), done.err
