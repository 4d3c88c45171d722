"""`newfound decide`: each decision from the command line, and what other commands then show."""

import csv
import json
from pathlib import Path

import pytest
from support.commands import Command
from support.decided import small_result

from newfound.decisions import NAME, read_log
from newfound.storage.run_folder import write_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    write_run(small_result(), folder)
    return folder


def test_each_decision_is_recorded(command: Command, run: Path) -> None:
    for words in (
        ["accept", "c3", "--texts", "12", "13"],
        ["rename", "c3", "Loud music"],
        ["split", "c4", "--part", "18", "19", "--part", "20", "--name", "Drizzle"],
        ["merge", "c5", "--into", "c3"],
        ["move", "0", "--into", "c2"],
        ["nowhere", "21"],
        ["note", "ask Bob", "--category", "c3"],
        ["reject", "c4"],
    ):
        done = command("decide", run, *words, "--author", "Ada")
        assert done.code == 0, done.err
    assert "split (c6, c7)" not in done.out
    undone = command("decide", run, "undo")
    assert undone.out.startswith("line 9: undo; 8 decisions, 1 of them undone")
    log = read_log(run)
    assert len(log.entries) == 9
    assert log.undone == {8}
    first = json.loads((run / NAME).read_text().splitlines()[0])
    assert first["author"] == "Ada"
    assert first["time"]
    listed = command("decide", run, "list").out.splitlines()
    assert len(listed) == 10
    assert "merge c5 into c3" in listed[3]
    assert listed[7].endswith("reject c4 (undone)")
    value = json.loads(command("decide", run, "list", "--json").out)
    assert [each["number"] for each in value["decisions"]] == list(range(1, 10))


def test_split_prints_the_new_ids(command: Command, run: Path) -> None:
    done = command("decide", run, "split", "c4", "--part", "18", "--part", "19")
    assert "split (c6, c7)" in done.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["accept", "c99"], "there is no category 'c99'; nothing was recorded"),
        (["reject", "c1"], "known from your labels"),
        (["merge", "c3", "--into", "c3"], "cannot be merged into itself"),
        (["move", "99", "--into", "c3"], "no text with the id '99'"),
        (["split", "c3", "--part", "12", "--name", "a", "--name", "b"], "more --name than --part"),
        (["undo"], "there is no decision"),
        (["undo", "4"], "line 4 is not an earlier decision"),
        (["rename", "c3", " "], "'name' must be a text"),
    ],
)
def test_decision_that_cannot_be_applied_is_refused(
    command: Command, run: Path, words: list[str], message: str
) -> None:
    done = command("decide", run, *words)
    assert done.code == 2
    assert message in done.err
    assert done.err.count("\n") == 1
    assert not (run / NAME).exists()


def test_other_commands_show_the_run_after_decisions(
    command: Command, run: Path, tmp_path: Path
) -> None:
    command("decide", run, "rename", "c3", "Loud music")
    command("decide", run, "merge", "c4", "--into", "c3")
    with (run / NAME).open("a") as file:
        file.write("nonsense\n")
    info = command("info", run)
    assert "Loud music" in info.out
    assert "novel, accepted" in info.out
    assert "note        line 3 of decisions.jsonl is not applied: it is not JSON" in info.out
    value = json.loads(command("info", run, "--json").out)
    assert value["problems"] == [{"line": 3, "reason": "it is not JSON"}]
    assert [c["id"] for c in value["categories"]] == ["c1", "c2", "c3", "c5"]
    report = command("report", run)
    assert "line 3" in report.err
    assert "Loud music" in (run / "report.html").read_text(encoding="utf-8")
    out = tmp_path / "out.csv"
    assert command("export", run, "-o", out, "--to", "csv").code == 0
    with out.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert sum(row["category_id"] == "c3" for row in rows) == 12


def test_decide_on_something_else_is_refused(command: Command, tmp_path: Path) -> None:
    done = command("decide", tmp_path, "accept", "c1")
    assert done.code == 2
    assert "is not a run folder" in done.err
