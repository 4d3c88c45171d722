"""Checkpoints: what is kept, for how long, and when it is not used."""

import errno
import json
from pathlib import Path

import pytest
import torch
from support.faults import FakeClock
from torch import Tensor

from newfound.checkpoints import (
    Checkpoints,
    Kept,
    checkpoints,
    pieces,
    read_unfinished,
    unfinished_folder,
)
from newfound.progress import Stages

SAME = {"texts": "a", "settings": "b"}


def opened(folder: Path, fingerprint: dict[str, str] = SAME, **options: object) -> Checkpoints:
    """Return open checkpoints; what they note is in their attribute `noted`."""
    noted: list[str] = []
    found = Checkpoints(folder, note=noted.append, **options)  # type: ignore[arg-type]
    found.noted = noted  # type: ignore[attr-defined]
    found.open(fingerprint)
    return found


def counted(calls: list[int], value: int) -> Kept:
    """Return a piece of work that draws a random number, and count the call."""
    calls.append(value)
    return Kept({"value": value}, {"drawn": torch.rand(3)})


def test_work_is_loaded_with_the_random_state_after_it(tmp_path: Path, keeping: None) -> None:
    calls: list[int] = []
    drawn: list[Tensor] = []
    for _ in range(2):
        torch.manual_seed(0)
        kept = opened(tmp_path / "u")
        found = [kept.compute("count", lambda: counted(calls, 1)) for _ in range(2)]
        assert [piece.value for piece in found] == [{"value": 1}] * 2
        assert not torch.equal(found[0].tensors["drawn"], found[1].tensors["drawn"])
        drawn.append(torch.cat([found[1].tensors["drawn"], torch.rand(2)]))
        kept.close(complete=False)
    assert len(calls) == 2  # the second command loaded both pieces
    assert torch.equal(*drawn)


def test_work_inside_other_work_is_not_kept_by_itself(tmp_path: Path, keeping: None) -> None:
    kept = opened(tmp_path / "u")

    def outer() -> Kept:
        return kept.compute("inner", lambda: Kept(1))

    assert kept.compute("outer", outer).value == 1
    assert [path.name for path in (tmp_path / "u").glob("*.checkpoint")] == ["outer-0.checkpoint"]


@pytest.mark.parametrize("changed", ["texts", "settings"])
def test_work_with_another_fingerprint_is_discarded_with_a_note(
    tmp_path: Path, keeping: None, changed: str
) -> None:
    kept = opened(tmp_path / "u")
    kept.compute("count", lambda: Kept(1))
    kept.close(complete=False)
    kept = opened(tmp_path / "u", {**SAME, changed: "other"})
    assert kept.compute("count", lambda: Kept(2)).value == 2
    (note,) = kept.noted  # type: ignore[attr-defined]
    assert note.endswith(f"is discarded, because it is from other {changed}")


def test_piece_of_another_fingerprint_is_not_loaded(tmp_path: Path, keeping: None) -> None:
    """Another process may have written it after the folder was checked."""
    kept = opened(tmp_path / "u")
    kept.compute("count", lambda: Kept(1))
    again = opened(tmp_path / "u")
    for path in (tmp_path / "u").glob("*"):
        path.unlink()
    other = opened(tmp_path / "u", {**SAME, "texts": "other"})
    other.compute("count", lambda: Kept(2))
    assert again.compute("count", lambda: Kept(3)).value == 3
    assert "belongs to another run" in again.noted[-1]  # type: ignore[attr-defined]


def test_no_resume_discards_earlier_work(tmp_path: Path, keeping: None) -> None:
    kept = opened(tmp_path / "u")
    kept.compute("count", lambda: Kept(1))
    kept.close(complete=False)
    assert opened(tmp_path / "u", resume=False).compute("count", lambda: Kept(2)).value == 2


@pytest.mark.parametrize("ending", ["checkpoint", "safetensors"])
@pytest.mark.parametrize("damage", ["truncated", "changed", "deleted"])
def test_damaged_work_is_repeated(tmp_path: Path, keeping: None, ending: str, damage: str) -> None:
    kept = opened(tmp_path / "u")
    kept.compute("count", lambda: Kept(1, {"some": torch.arange(100)}))
    kept.close(complete=False)
    (path,) = (tmp_path / "u").glob(f"*.{ending}")
    content = path.read_bytes()
    if damage == "deleted":
        path.unlink()
    else:
        middle = len(content) // 2
        rest = bytes([content[middle] ^ 1]) + content[middle + 1 :]
        path.write_bytes(content[:middle] + (rest if damage == "changed" else b""))
    kept = opened(tmp_path / "u")
    assert kept.compute("count", lambda: Kept(2)).value == 2


def test_damaged_progress_discards_the_work(tmp_path: Path, keeping: None) -> None:
    kept = opened(tmp_path / "u")
    kept.compute("count", lambda: Kept(1))
    kept.close(complete=False)
    (tmp_path / "u" / "progress.json").write_text("{")
    assert read_unfinished(tmp_path / "u") is None
    assert opened(tmp_path / "u").compute("count", lambda: Kept(2)).value == 2


def test_new_work_replaces_the_old_in_its_files(tmp_path: Path, keeping: None) -> None:
    kept = opened(tmp_path / "u")
    for number in range(3):
        kept.save("epochs", Kept(number, {"some": torch.full((4,), number)}))
    names = sorted(path.name.partition("-")[0] for path in (tmp_path / "u").iterdir())
    assert names == ["epochs", "epochs.checkpoint", "progress.json"]
    found = kept.load("epochs")
    assert found is not None
    assert (found.value, found.tensors["some"].tolist()) == (2, [2] * 4)


def test_fault_while_writing_leaves_the_work_before(
    tmp_path: Path, keeping: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = opened(tmp_path / "u")
    kept.save("epochs", Kept(1, {"some": torch.ones(4)}))

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(pieces, "replace_file", killed)  # after the tensors were written
        with pytest.raises(KeyboardInterrupt):
            kept.save("epochs", Kept(2, {"some": torch.zeros(4)}))
    found = opened(tmp_path / "u").load("epochs")
    assert found is not None
    assert (found.value, found.tensors["some"].tolist()) == (1, [1] * 4)


def test_kill_while_tensors_are_written_leaves_nothing_after_the_next_run(
    tmp_path: Path, keeping: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(tensors: dict[str, Tensor], path: Path) -> None:
        # safetensors writes under a name of its own, which nobody removes.
        path.with_name(".tmpa1b2c3").write_bytes(b"half")
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr("safetensors.torch.save_file", killed)
        with pytest.raises(SystemExit):
            opened(tmp_path / "u").compute("count", lambda: counted([], 1))
    assert list((tmp_path / "u").rglob(".tmp*"))
    after = opened(tmp_path / "u")
    after.compute("count", lambda: counted([], 1))
    after.close(complete=True)
    assert not (tmp_path / "u").exists()


def test_complete_run_leaves_nothing_but_files_of_others(tmp_path: Path, keeping: None) -> None:
    for name in ("empty", "shared"):
        kept = opened(tmp_path / name)
        if name == "shared":
            (tmp_path / name / "mine.txt").write_text("mine")
        kept.compute("count", lambda: Kept(1))
        kept.close(complete=True)
    assert [str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*")] == [
        "shared",
        "shared/mine.txt",
    ]


def test_folder_without_work_is_removed_after_a_fault(tmp_path: Path) -> None:
    kept = opened(tmp_path / "u")
    assert (tmp_path / "u").is_dir()
    kept.compute("count", lambda: Kept(1))  # too short to be worth keeping
    kept.close(complete=False)
    assert not (tmp_path / "u").exists()


def test_full_disk_stops_keeping_but_not_the_work(
    tmp_path: Path, keeping: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = opened(tmp_path / "u")
    kept.compute("count", lambda: Kept(1))

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(checkpoints, "write_piece", full)
    assert kept.compute("count", lambda: Kept(2)).value == 2
    assert not (tmp_path / "u").exists()  # its space is for the run
    assert not kept.active
    assert kept.noted == [  # type: ignore[attr-defined]
        "unfinished work is not kept (No space left on device), so a fault would lose it"
    ]


def test_folder_that_cannot_be_made_stops_keeping(tmp_path: Path) -> None:
    (tmp_path / "u").write_text("a file")
    kept = opened(tmp_path / "u")
    assert not kept.active
    assert len(kept.noted) == 1  # type: ignore[attr-defined]
    assert (tmp_path / "u").read_text() == "a file"


# --- the time rule -------------------------------------------------------------------------------


@pytest.mark.parametrize("cost", [0.001, 0.1, 3.0])
@pytest.mark.parametrize("epoch", [0.05, 2.0, 60.0])
def test_keeping_takes_less_than_a_twentieth_of_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cost: float, epoch: float
) -> None:
    clock = FakeClock()
    saved: list[float] = []

    def slow(*_: object) -> None:
        clock.now += cost
        saved.append(clock.now)

    monkeypatch.setattr(checkpoints, "write_piece", slow)
    kept = opened(tmp_path / "u", clock=clock)
    state, since = Kept(0, {"weights": torch.zeros(500_000)}), clock.now
    while clock.now < 3600:
        clock.now += epoch
        if kept.due(since, state.size):
            kept.save("epochs", state)
            since = clock.now
        if clock.now > 120:  # by then the first write has paid off
            assert kept.spent <= 0.05 * clock.now
    assert saved
    # After a fault an hour later, little is to be repeated: a hundredth, or what keeping allows.
    assert clock.now - saved[-1] <= max(0.01 * clock.now, 40 * cost) + 2 * epoch


def test_short_work_is_kept_together_once_it_is_worth_it(tmp_path: Path) -> None:
    clock = FakeClock()
    kept = opened(tmp_path / "u", clock=clock)

    def work() -> Kept:
        clock.now += 0.3
        return Kept(1)

    numbers = []
    for _ in range(8):
        kept.compute("round", work)
        numbers.append(len(list((tmp_path / "u").glob("*.checkpoint"))))
    assert numbers == [0, 0, 0, 4, 4, 4, 4, 8]


# --- progress ------------------------------------------------------------------------------------


def test_progress_records_stage_share_and_command(tmp_path: Path, keeping: None) -> None:
    folder = unfinished_folder(tmp_path / "run")
    assert folder == tmp_path / ".run.unfinished"
    stages = Stages(False, checkpoints=opened(folder, command="newfound discover t.csv"))
    with stages.stage("encoding", 40) as advance:
        advance(10)
        found = read_unfinished(folder)
        assert found is not None
        assert found.to_dict() == {
            "stage": "encoding",
            "share": 0.25,
            "written": json.loads((folder / "progress.json").read_text())["written"],
            "command": "newfound discover t.csv",
        }
        assert str(found.position) == "encoding, 25%"


def test_progress_is_written_at_most_once_per_second(tmp_path: Path) -> None:
    clock = FakeClock()
    stages = Stages(False, checkpoints=opened(tmp_path / "u", clock=clock))
    shares = set()
    with stages.stage("encoding", 40) as advance:
        for _ in range(40):
            clock.now += 0.25
            advance(1)
            found = read_unfinished(tmp_path / "u")
            assert found is not None
            shares.add(found.position.share)
    assert len(shares) == 1 + 10


def test_link_in_place_of_the_folder_is_not_followed(tmp_path: Path, keeping: None) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "a.checkpoint").write_text("mine")
    (tmp_path / "u").symlink_to(theirs)
    kept = opened(tmp_path / "u")
    kept.compute("count", lambda: Kept(1))
    assert not (tmp_path / "u").is_symlink()
    assert [path.name for path in theirs.iterdir()] == ["a.checkpoint"]
    kept.close(complete=True)
    assert [path.name for path in tmp_path.iterdir()] == ["theirs"]


def test_half_removed_work_is_removed(tmp_path: Path, keeping: None) -> None:
    kept = opened(tmp_path / "u")
    kept.compute("count", lambda: Kept(1, {"drawn": torch.rand(3)}))
    (tmp_path / "u" / "progress.json").unlink()  # an interrupt came while the work was removed
    again = opened(tmp_path / "u")
    again.close(complete=True)
    assert list(tmp_path.iterdir()) == []
