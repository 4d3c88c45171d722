"""Space is estimated before the work begins."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.commands import Refuse, put_task
from support.small_texts import QUICK_FLAGS, SmallTask

from newfound import pipeline
from newfound.config import RunConfig
from newfound.data.corpus import Corpus
from newfound.errors import InputError
from newfound.files.space import check_free_space
from newfound.storage.space import FIXED, estimate_bytes


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Set the free space of all disks."""

    def leave(free: int, total: int = 10**12) -> None:
        found = SimpleNamespace(total=total, used=total - free, free=free)
        monkeypatch.setattr(shutil, "disk_usage", lambda path: found)

    return leave


@pytest.mark.parametrize("cache", [False, True])
def test_full_disk_is_refused_before_the_work_begins(
    refuse: Refuse,
    disk: Any,
    task: SmallTask,
    flags: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cache: bool,
) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("the work has begun")

    monkeypatch.setattr(pipeline, "discover", never)
    table = put_task(tmp_path / "t.csv", task)
    disk(10_000)
    more = ["--cache", tmp_path / "cache"] if cache else []
    said = refuse("discover", table, "-o", tmp_path / "new" / "run", *flags, *more)
    assert said.startswith("the run needs about 0.")
    assert "has only 0.0 MB left; free space or choose another place" in said


@pytest.mark.parametrize("name", ["refit", "update"])
def test_full_disk_is_refused_before_a_run_is_continued(
    refuse: Refuse,
    disk: Any,
    small_run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("the work has begun")

    monkeypatch.setattr("newfound.decisions.refitting.discover", never)
    monkeypatch.setattr("newfound.updating.updating.estimate", never)
    (tmp_path / "new.csv").write_text("text\nmy hotel trip please\n")
    disk(10_000)
    tables = [] if name == "refit" else [tmp_path / "new.csv"]
    said = refuse(name, small_run, *tables, "-o", tmp_path / "next")
    assert said.startswith("the run needs about 0.")


def test_estimate_is_close_to_what_a_run_takes(
    small_run: Path, task: SmallTask, tiny_encoder: str
) -> None:
    corpus = Corpus.from_lists(task.texts, task.labels)
    run, cache = estimate_bytes(corpus, RunConfig("dpn", tiny_encoder))
    taken = sum(path.stat().st_size for path in small_run.rglob("*") if path.is_file())
    assert taken < run < taken + FIXED
    assert cache == 2 * 32 * len(corpus)
    without, _ = estimate_bytes(corpus, RunConfig("sae", tiny_encoder))
    assert without < run


def test_odd_weights_are_not_reported_by_the_estimate(
    refuse: Refuse, task: SmallTask, tiny_encoder: str, tmp_path: Path
) -> None:
    encoder = shutil.copytree(tiny_encoder, tmp_path / "encoder")
    (encoder / "model.safetensors").write_bytes(b"\xff" * 100)
    table = put_task(tmp_path / "t.csv", task)
    said = refuse("discover", table, "-o", tmp_path / "run", "--encoder", encoder, *QUICK_FLAGS)
    assert "model.safetensors is damaged" in said


def test_disk_of_unknown_size_is_accepted(disk: Any, tmp_path: Path) -> None:
    disk(0, total=0)
    check_free_space(tmp_path / "run", 10**15, "the run")
    disk(10)
    check_free_space(tmp_path / "run", 10, "the run")
    with pytest.raises(InputError, match=r"the run needs about 0\.0 MB"):
        check_free_space(tmp_path / "run", 11, "the run")
