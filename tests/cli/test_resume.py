"""`newfound discover` goes on after a fault, and `newfound info` shows how far it came."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from support.commands import Command, put_task
from support.faults import FaultyCheckpoints, run_until_signal
from support.small_texts import SmallTask

from newfound.cli.commands import discover
from newfound.errors import InputError
from newfound.storage import run_folder

AGAIN = "the same command goes on from where it stopped"


@pytest.fixture
def arguments(task: SmallTask, flags: list[str], tmp_path: Path) -> list[str]:
    """A command of which every stage is short, without the run folder."""
    table = put_task(tmp_path / "t.csv", task)
    return ["discover", str(table), "--categories", "4", *flags, "--set", "epochs=5", "-o"]


def contents(run: Path) -> dict[str, Any]:
    """Return the contents of a run folder, without what holds timings and the command."""
    timed = {"run.json", "manifest.json", "report.html"}  # the manifest has a digest of run.json
    files = {
        str(path.relative_to(run)): path.read_bytes()
        for path in sorted(run.rglob("*"))
        if path.is_file() and str(path.relative_to(run)) not in timed
    }
    records = json.loads((run / "run.json").read_text())
    return {**files, "run.json": {k: records[k] for k in records.keys() - {"seconds", "command"}}}


def stop_at(
    monkeypatch: pytest.MonkeyPatch, moment: float, error: type[BaseException] = KeyboardInterrupt
) -> None:
    """Let the next commands raise an error when they record their place for the nth time."""

    class Stopping(FaultyCheckpoints):
        pass

    Stopping.limit, Stopping.error = moment, error
    monkeypatch.setattr(discover, "Checkpoints", Stopping)


def test_killed_command_goes_on_and_gives_the_same_run(
    command: Command, arguments: list[str], tmp_path: Path, keeping: None
) -> None:
    for moment in (6, 10):  # in pretraining, then in training
        done = run_until_signal(moment, signal.SIGKILL, *arguments, tmp_path / "run")
        assert done.returncode == -signal.SIGKILL
        assert not (tmp_path / "run").exists()
        assert list((tmp_path / ".run.unfinished").glob("*.checkpoint"))
    done = command(*arguments, tmp_path / "run")
    assert done.code == 0, done.err
    assert "note: going on from unfinished work (training, " in done.err
    assert {path.name for path in tmp_path.iterdir()} == {"t.csv", "run"}  # nothing is left over
    assert command(*arguments, tmp_path / "unbroken").code == 0
    assert contents(tmp_path / "run") == contents(tmp_path / "unbroken")


def test_termination_leaves_the_work_and_says_so(
    command: Command, arguments: list[str], tmp_path: Path
) -> None:
    done = run_until_signal(6, signal.SIGTERM, *arguments, tmp_path / "run")
    assert done.returncode == 128 + signal.SIGTERM
    assert done.stderr.splitlines()[-1] == f"newfound: terminated; {AGAIN}"
    assert {path.name for path in tmp_path.iterdir()} == {"t.csv", ".run.unfinished"}
    assert "unfinished  pretraining, 100% done" in command("info", tmp_path / "run").out


@pytest.mark.parametrize("moment", [4, 6, 9, 11, 14, 16])
def test_interrupted_command_goes_on(
    command: Command,
    arguments: list[str],
    tmp_path: Path,
    keeping: None,
    monkeypatch: pytest.MonkeyPatch,
    moment: int,
) -> None:
    with monkeypatch.context() as patch:
        stop_at(patch, moment)
        done = command(*arguments, tmp_path / "run")
    assert done.code == 130
    assert done.err.splitlines()[-1] == f"newfound: interrupted; {AGAIN}"
    done = command(*arguments, tmp_path / "run")
    assert done.code == 0, done.err
    assert command(*arguments, tmp_path / "unbroken").code == 0
    assert contents(tmp_path / "run") == contents(tmp_path / "unbroken")


def test_interrupt_before_any_work_leaves_nothing(
    command: Command, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_at(monkeypatch, 5)  # by then no work was worth keeping
    done = command(*arguments, tmp_path / "run")
    assert done.code == 130
    assert done.err.splitlines()[-1] == "newfound: interrupted; nothing was written"
    assert {path.name for path in tmp_path.iterdir()} == {"t.csv"}


@pytest.fixture
def unfinished(
    command: Command,
    arguments: list[str],
    tmp_path: Path,
    keeping: None,
    monkeypatch: pytest.MonkeyPatch,
) -> list[str]:
    """A command that was interrupted in training, with its run folder."""
    whole = [*arguments, str(tmp_path / "run")]
    with monkeypatch.context() as patch:
        stop_at(patch, 11)
        assert command(*whole).code == 130
    return whole


def test_no_resume_starts_anew(command: Command, unfinished: list[str], tmp_path: Path) -> None:
    done = command(*unfinished, "--no-resume")
    assert done.code == 0, done.err
    assert "unfinished" not in done.err
    assert not (tmp_path / ".run.unfinished").exists()


def test_no_resume_keeps_new_work_and_tells_how_to_go_on(
    command: Command, unfinished: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        stop_at(patch, 9)  # earlier than the work before
        done = command(*unfinished, "--no-resume")
    assert done.code == 130
    assert "going on" not in done.err
    advice = "the same command without --no-resume goes on from where it stopped"
    assert done.err.splitlines()[-1] == f"newfound: interrupted; {advice}"
    assert f"command     newfound {' '.join(unfinished)}\n" in command("info", tmp_path / "run").out
    done = command(*unfinished)
    assert done.code == 0, done.err
    assert "going on from unfinished work" in done.err


def test_changed_table_discards_the_work(
    command: Command, unfinished: list[str], arguments: list[str], tmp_path: Path
) -> None:
    table = tmp_path / "t.csv"
    table.write_text("\n".join(table.read_text().splitlines()[:-1]) + "\n")
    done = command(*unfinished)
    assert done.code == 0, done.err
    assert "discarded, because it is from other labels and other texts" in done.err
    assert command(*arguments, tmp_path / "unbroken").code == 0
    assert contents(tmp_path / "run") == contents(tmp_path / "unbroken")


def test_work_goes_on_with_the_rows_in_another_order(
    command: Command, unfinished: list[str], arguments: list[str], tmp_path: Path
) -> None:
    table = tmp_path / "t.csv"
    lines = table.read_text().splitlines()
    table.write_text("\n".join([lines[0], *lines[:0:-1]]) + "\n")
    done = command(*unfinished)
    assert done.code == 0, done.err
    assert "discarded" not in done.err
    assert command(*arguments, tmp_path / "unbroken").code == 0
    assert contents(tmp_path / "run") == contents(tmp_path / "unbroken")


@pytest.mark.parametrize(
    ("flags_", "part"), [(["--seed", "1"], "settings"), (["--set", "epochs=4"], "settings")]
)
def test_changed_settings_discard_the_work(
    command: Command, unfinished: list[str], flags_: list[str], part: str
) -> None:
    assert f"discarded, because it is from other {part}\n" in command(*unfinished, *flags_).err


def test_damaged_work_is_repeated(
    command: Command, unfinished: list[str], arguments: list[str], tmp_path: Path
) -> None:
    for path in (tmp_path / ".run.unfinished").glob("*.safetensors"):
        path.write_bytes(path.read_bytes()[:-1])
    done = command(*unfinished)
    assert done.code == 0, done.err
    assert "some unfinished work is damaged and is repeated" in done.err
    assert command(*arguments, tmp_path / "unbroken").code == 0
    assert contents(tmp_path / "run") == contents(tmp_path / "unbroken")


def test_run_that_cannot_be_written_keeps_the_work(
    command: Command,
    arguments: list[str],
    tmp_path: Path,
    keeping: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise InputError("cannot write the run: No space left on device; free space")

    with monkeypatch.context() as patch:
        patch.setattr(run_folder, "write_run", full)
        assert command(*arguments, tmp_path / "run").code == 2
    done = command(*arguments, tmp_path / "run")
    assert done.code == 0
    assert "going on from unfinished work (writing the run)" in done.err


def test_info_shows_how_far_an_unfinished_run_came(
    command: Command, unfinished: list[str], tmp_path: Path
) -> None:
    lines = command("info", tmp_path / "run").out.splitlines()
    assert lines[0] == "unfinished  training, 40% done"
    assert lines[1].startswith("written     20")
    assert lines[2] == f"command     newfound {' '.join(unfinished)}"
    assert lines[3] == "The same command goes on from there; with --no-resume it starts anew."
    value = json.loads(command("info", tmp_path / "run", "--json").out)
    assert value["unfinished"]["stage"] == "training"
    assert value["unfinished"]["share"] == 0.4


def test_info_shows_the_run_and_a_later_unfinished_one(
    command: Command,
    arguments: list[str],
    tmp_path: Path,
    keeping: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert command(*arguments, tmp_path / "run").code == 0
    with monkeypatch.context() as patch:
        stop_at(patch, 11)
        assert command(*arguments, tmp_path / "run", "--force", "--seed", "1").code == 130
    shown = command("info", tmp_path / "run").out
    assert "texts       64, 12 labelled" in shown
    assert "A later run into this folder is not finished:\nunfinished  training, 40% done" in shown
