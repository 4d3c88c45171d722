"""`newfound check`: what to expect, printed, written, and shown in a report."""

import json
import re
import shutil
from pathlib import Path

import pytest
from support.commands import Command, Refuse, put_task
from support.small_texts import SmallTask

pytestmark = pytest.mark.usefixtures("quick_newfound")


@pytest.fixture
def table(task: SmallTask, tmp_path: Path) -> Path:
    """Texts of four categories, each second one labelled."""
    half = [str(name) if at % 2 else None for at, name in enumerate(task.truth)]
    return put_task(tmp_path / "t.csv", SmallTask(task.texts, half, task.truth))


@pytest.fixture
def quick(tiny_encoder: str) -> list[str]:
    return ["--encoder", tiny_encoder, "--device", "cpu", "--effort", "fast", "--draws", "2"]


def test_methods_side_by_side(command: Command, table: Path, quick: list[str]) -> None:
    done = command("check", table, *quick, "--method", "bert, newfound", "--categories", "4")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0] == "To expect on the unlabelled texts of the whole table:"
    assert lines[2].split() == ["method", "All", "Known", "Novel", "Categories"]
    assert [line.split()[0] for line in lines[3:5]] == ["bert", "newfound"]
    assert re.fullmatch(r"bert +\d+% +\d+% +(\d+%|-) +4", lines[3])
    assert lines[6].startswith("2 draws; each hides 1 of 4 known categories and scores ")
    assert lines[8].split()[:4] == ["method", "All", "Known", "Novel"]
    assert [line.split()[0] for line in lines[9:11]] == ["bert", "newfound"]
    assert "\u00b1" in lines[9]


def test_check_as_json_and_verbose(command: Command, table: Path, quick: list[str]) -> None:
    done = command("check", table, *quick, "--method", "bert", "--json", "--verbose")
    value = json.loads(done.out)
    (method,) = value["methods"]
    assert len(method["draws"]) == 2
    assert set(method["mean"]) == set(method["draws"][0])
    assert value["out"] is None
    assert value["n_known"] == 4
    assert "bert, draw 2 of 2: all " in done.err


def test_the_report_of_a_run_shows_its_check(
    command: Command, table: Path, quick: list[str], small_run: Path, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(small_run, tmp_path / "run"))
    done = command("check", table, *quick, "--method", "bert", "-o", run / "check.json")
    assert done.code == 0, done.err
    assert f"`newfound report {run}` shows it" in done.out
    assert command("report", run).code == 0
    assert "hid 1 of 4 known categories" in (run / "report.html").read_text()


def test_a_damaged_check_is_named(refuse: Refuse, small_run: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(small_run, tmp_path / "run"))
    (run / "check.json").write_text('{"format": 1}')
    assert "check.json is damaged" in refuse("report", run)


def test_what_cannot_be_written_or_read_is_refused_first(
    refuse: Refuse, task: SmallTask, table: Path, tmp_path: Path
) -> None:
    assert "is a folder; name a file" in refuse("check", table, "-o", tmp_path)
    assert "does not exist" in refuse("check", table, "-o", tmp_path / "no" / "check.json")
    (tmp_path / "mine.json").write_text("mine")
    assert "--force" in refuse("check", table, "-o", tmp_path / "mine.json")
    assert "--draws must be a whole number" in refuse("check", table, "--draws", "no")
    assert "--draws must be a whole number" in refuse("check", table, "--draws", "0")
    assert "did you mean 'newfound'" in refuse("check", table, "--method", "bert,newfond")
    assert "--set applies to one method" in refuse(
        "check", table, "--method", "bert,dpn", "--set", "epochs=1"
    )
    few = put_task(tmp_path / "few.csv", task)
    assert "2 categories are known, but a check" in refuse("check", few)
