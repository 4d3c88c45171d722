"""Files and folders appear whole or not at all."""

import errno
import itertools
import json
import math
import os
import shutil
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from support.small_texts import everything_under

from newfound.errors import InputError
from newfound.files import atomic, swapping, write_atomically, write_folder, write_json, write_text
from newfound.files.leftovers import is_free, make_temporary
from newfound.files.swapping import is_empty


def full_disk() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def half_a_file(path: Path, error: BaseException) -> None:
    with write_atomically(path) as temporary:
        temporary.write_text("half")
        raise error


def half_a_folder(folder: Path, error: BaseException) -> None:
    with write_folder(folder, "done") as new:
        (new / "done").write_text("half")
        raise error


def test_text_is_written_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "né\n")
    write_text(path, "schön \U0001f600\n")
    assert path.read_bytes() == "schön \U0001f600\n".encode()
    assert everything_under(tmp_path) == {"a.txt"}


def test_new_file_has_default_permissions(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "a.txt", "x")
        with write_folder(tmp_path / "folder", "done"):
            pass
        assert os.umask(0o027) == 0o027  # it was only looked at
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o750


def test_failed_write_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "old")
    with pytest.raises(KeyError):
        half_a_file(path, KeyError())
    with pytest.raises(InputError, match=r"cannot write .*a\.txt: No space left on device"):
        half_a_file(path, full_disk())
    assert path.read_text() == "old"
    assert everything_under(tmp_path) == {"a.txt"}


def test_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot write .*b\.txt: No such file or directory"):
        write_text(tmp_path / "a" / "b.txt", "x")


def test_nan_is_written_as_null(tmp_path: Path) -> None:
    value = {"a": [1.5, math.nan, (math.inf, "é")], "b": None}
    write_json(tmp_path / "a.json", value)
    text = (tmp_path / "a.json").read_text(encoding="utf-8")
    assert json.loads(text) == {"a": [1.5, None, [None, "é"]], "b": None}
    assert "é" in text


def test_write_folder_replaces_the_old_folder(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "run"
    for content in ("one", "two"):
        with write_folder(folder, "done") as new:
            (new / content).write_text(content)
            (new / "done").write_text(content)
    assert everything_under(tmp_path) == {"deep", "deep/run", "deep/run/two", "deep/run/done"}


def test_failed_write_folder_keeps_the_old_folder(tmp_path: Path) -> None:
    with write_folder(tmp_path / "run", "done") as new:
        (new / "done").write_text("old")
    before = everything_under(tmp_path)
    for error in (full_disk(), InputError("no"), KeyboardInterrupt()):
        for place in ("run", "some/new/place"):
            with pytest.raises((InputError, KeyboardInterrupt)):
                half_a_folder(tmp_path / place, error)
            assert everything_under(tmp_path) == before
    assert (tmp_path / "run" / "done").read_text() == "old"


@pytest.fixture(params=["exchange", "two renames"])
def swap(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Replace folders as Linux does, and as other systems do."""
    if request.param == "two renames":
        monkeypatch.setattr(swapping, "exchange", lambda one, other: False)
    return str(request.param)


def whole(folder: Path) -> str | None:
    """Return the content of a folder with two files that must be equal; None without a folder."""
    if not folder.exists():
        return None
    found = {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}
    assert len(found) == 2, found
    assert len(set(found.values())) == 1, found
    return next(iter(found.values()))


def check_whole(folder: Path) -> None:
    """Refuse folders that are not of this kind, as those of runs and models are refused."""
    if not is_empty(folder) and not is_free(folder) and not (folder / "done").exists():
        raise InputError("not such a folder")


def write_whole(folder: Path, content: str) -> None:
    with write_folder(folder, "done", check_whole) as new:
        (new / f"file of {content}").write_text(content)
        (new / "done").write_text(content)


@pytest.mark.parametrize("where", ["beside", "inside"])
def test_interrupt_at_any_line_loses_nothing(
    swap: str, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Raise at every line that swaps folders and deletes the old one, one line per trial."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # slow
    folder = tmp_path / "run"
    modules = {atomic.__file__, swapping.__file__, shutil.__file__}
    if where == "inside":
        folder.mkdir()
        monkeypatch.chdir(folder)
    outcomes = set()
    for number in itertools.count(1):
        write_whole(folder, "old")
        lines = itertools.count(1)

        def trace(
            frame: Any, event: str, argument: Any, lines: Any = lines, number: int = number
        ) -> Any:
            if frame.f_code.co_filename not in modules:
                return None
            if event == "line" and next(lines) == number:
                sys.settrace(None)
                raise KeyboardInterrupt
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            write_whole(folder, "new")
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        interrupted = next(lines) >= number
        found = whole(folder)
        assert found is not None, number
        outcomes.add(found)
        write_whole(folder, "next")  # and nothing stays behind for good
        expected = {"done", "file of next"}
        if where == "beside":
            expected = {"run", *(f"run/{name}" for name in expected)}
        assert everything_under(folder if where == "inside" else tmp_path) == expected, number
        if not interrupted:
            break
    assert outcomes == {"old", "new"}
    assert number > 40


def test_old_folder_is_restored_if_renaming_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(swapping, "exchange", lambda one, other: False)
    folder, rename = tmp_path / "run", os.rename
    write_whole(folder, "old")

    def fail_for_the_new(old: Path, target: Path) -> None:
        if target == folder and (old / "file of new").exists():
            raise full_disk()
        rename(old, target)

    monkeypatch.setattr(os, "rename", fail_for_the_new)
    with pytest.raises(InputError, match="No space left"):
        write_whole(folder, "new")
    assert everything_under(tmp_path) == {"run", "run/done", "run/file of old"}


def test_process_killed_between_two_renames_is_recovered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed process cannot clean up: no finally block runs."""
    monkeypatch.setattr(swapping, "exchange", lambda one, other: False)
    write_whole(tmp_path / "run", "old")
    (tmp_path / "run").rename(tmp_path / ".run.abcdefgh.newfound-old")
    (tmp_path / ".run.abcdefgh.newfound").mkdir()
    with pytest.raises(InputError, match="no"):
        half_a_folder(tmp_path / "run", InputError("no"))
    assert whole(tmp_path / "run") == "old"
    assert everything_under(tmp_path) == {"run", "run/done", "run/file of old"}


def refuse_thesis(folder: Path) -> None:
    if (folder / "thesis").exists():
        raise InputError("this is a thesis")


def write_beside_a_thesis(folder: Path) -> None:
    """Write a folder while another program creates one with this name."""
    with write_folder(folder, "done", refuse_thesis) as new:
        (new / "done").write_text("new")
        folder.mkdir(exist_ok=True)
        (folder / "thesis").write_text("years of work")


def test_file_of_another_program_is_never_deleted(swap: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with pytest.raises(InputError, match=r"changed by another program.* are in .*run-2$"):
        write_beside_a_thesis(folder)
    assert everything_under(tmp_path) == {"run", "run/thesis", "run-2", "run-2/done"}


def test_file_created_during_the_swap_is_never_deleted(
    swap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    write_whole(folder, "old")
    original = swapping.swap

    def late(place: Path, new: Path) -> Path | None:
        (folder / "thesis").write_text("years of work")  # after the last look at the place
        return original(place, new)

    monkeypatch.setattr(swapping, "swap", late)
    with (
        pytest.raises(InputError, match="changed by another program"),
        write_folder(folder, "done", refuse_thesis) as new,
    ):
        (new / "done").write_text("new")
    kept = {"run", "run/thesis", "run/done", "run/file of old", "run-2", "run-2/done"}
    assert everything_under(tmp_path) == kept


def test_file_created_in_a_mount_point_meanwhile_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="changed by another program"):
        write_beside_a_thesis(Path("."))
    assert everything_under(tmp_path) == {"thesis", f"{tmp_path.name}-2", f"{tmp_path.name}-2/done"}


def test_folder_is_never_missing_while_it_is_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    write_whole(folder, "0")
    if not swapping.exchange(folder, folder):
        pytest.skip("the system cannot exchange two names")
    ended, missed = threading.Event(), []

    def watch() -> None:
        while not ended.is_set():
            if not (folder / "done").exists():
                missed.append(1)

    watcher = threading.Thread(target=watch)
    watcher.start()
    for number in range(40):
        write_whole(folder, str(number))
    ended.set()
    watcher.join()
    assert not missed


# Two writers, and what dead ones left.


def test_second_writer_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with write_folder(folder, "done") as new:
        (new / "done").write_text("first")
        with pytest.raises(InputError, match=r"another process is writing .*run; wait until"):
            write_whole(folder, "second")
        write_whole(tmp_path / "other", "other")
    assert (folder / "done").read_text() == "first"
    assert not list(tmp_path.glob(".*"))
    write_whole(folder, "third")


@pytest.mark.parametrize("name", ["run", "r" * 200, "\U0001f600" * 50])
def test_writers_of_similar_names_do_not_disturb_each_other(tmp_path: Path, name: str) -> None:
    with write_folder(tmp_path / f"{name}1", "done") as new:
        (new / "done").write_text("first")
        for other in (f"{name}2", name, f"{name}1.1"):
            write_whole(tmp_path / other, "other")
            write_text(tmp_path / f"{other}.txt", "other")
        assert (new / "done").exists()
    assert (tmp_path / f"{name}1" / "done").read_text() == "first"
    assert not list(tmp_path.glob(".*"))


def test_lock_of_a_dead_process_is_taken_and_removed(tmp_path: Path) -> None:
    (tmp_path / ".run.lock").touch()
    write_whole(tmp_path / "run", "new")
    assert not list(tmp_path.glob(".*"))


def test_file_with_the_name_of_the_lock_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / ".run.lock").write_text("mine")
    write_whole(tmp_path / "run", "new")
    assert (tmp_path / ".run.lock").read_text() == "mine"
    os.mkfifo(tmp_path / ".pipe.lock")
    with pytest.raises(InputError, match="cannot write"):
        write_whole(tmp_path / "pipe", "new")
    assert (tmp_path / ".pipe.lock").is_fifo()


HANG = """
import sys, time
from pathlib import Path
from newfound.files import atomic, swapping
from newfound.files import write_atomically, write_folder
with write_folder(Path(sys.argv[1]) / "run", "done") as new:
    (new / "half").write_text("half of a run")
    with write_atomically(Path(sys.argv[1]) / "a.csv") as path:
        path.write_text("half of a file")
        print("ready", flush=True)
        time.sleep(60)
"""


@pytest.mark.parametrize("dead", [True, False])
def test_only_left_overs_of_dead_processes_are_removed(dead: bool, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HANG, str(tmp_path)], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        if dead:
            process.kill()
            process.wait(30)
        before = everything_under(tmp_path)
        assert len(before) == 5  # the lock, and two folders with a file each
        theirs = {".run.unfinished", ".run.abcdefgh.tmp", ".a.csv.abcdefgh.csv"}
        for name in theirs:
            (tmp_path / name).mkdir()
        write_text(tmp_path / "a.csv", "whole")
        if dead:
            write_whole(tmp_path / "run", "new")
            whole_run = {"run", "run/done", "run/file of new"}
            assert everything_under(tmp_path) == theirs | whole_run | {"a.csv"}
        else:
            with pytest.raises(InputError, match="another process is writing"):
                write_whole(tmp_path / "run", "new")
            assert everything_under(tmp_path) == before | theirs | {"a.csv"}
            process.kill()


def test_files_are_flushed_before_they_are_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[tuple[str, str]] = []
    fsync, replaced, rename, exchanged = os.fsync, os.replace, os.rename, swapping.exchange

    def flush(handle: int) -> None:
        events.append(("flush", Path(os.readlink(f"/proc/self/fd/{handle}")).name))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", flush)
    monkeypatch.setattr(
        os, "replace", lambda a, b: (events.append(("name", Path(b).name)), replaced(a, b))
    )
    monkeypatch.setattr(
        os, "rename", lambda a, b: (events.append(("name", Path(b).name)), rename(a, b))
    )
    monkeypatch.setattr(
        swapping, "exchange", lambda a, b: (events.append(("name", b.name)), exchanged(a, b))[1]
    )
    write_text(tmp_path / "a.txt", "x")
    flushed = ("flush", "a.txt"), ("name", "a.txt"), ("flush", tmp_path.name)
    assert tuple(events) == flushed
    for _ in range(2):
        events.clear()
        write_whole(tmp_path / "run", "new")
        named = events.index(("name", "run"))
        assert {("flush", "done"), ("flush", "file of new")} <= set(events[:named])
        assert any(name.endswith(".newfound") for _, name in events[:named])
        assert ("flush", tmp_path.name) in events[named:]


def test_content_of_the_working_directory_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for content in ("one", "two"):
        with write_folder(Path("."), "done") as new:
            (new / "model").mkdir()
            (new / "model" / content).write_text(content)
            (new / "done").write_text(content)
        assert everything_under(Path(".")) == {"model", f"model/{content}", "done"}
    with pytest.raises(InputError):
        half_a_folder(Path("."), full_disk())
    assert Path("done").read_text() == "two"
    assert everything_under(Path(".")) == {"model", "model/two", "done"}


def test_content_of_a_mount_point_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "volume"
    folder.mkdir()
    monkeypatch.setattr(os.path, "ismount", lambda path: Path(path) == folder)
    number = folder.stat().st_ino
    with write_folder(folder, "done") as new:
        (new / "done").write_text("x")
    assert folder.stat().st_ino == number  # the same folder, not another in its place
    assert everything_under(tmp_path) == {"volume", "volume/done"}


def test_errors_name_the_folder_that_the_user_gave(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught, write_folder(tmp_path / "run", "done") as new:
        write_text(new / "no" / "file", "x")
    assert str(caught.value).startswith(f"cannot write {tmp_path}/run/no/file: No such file")


def test_temporary_folder_that_another_process_removed_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Path] = []

    def make(*arguments: Any) -> Path:
        # A process that looks for left-overs finds a new folder before its owner has locked it.
        made.append(make_temporary(*arguments))
        if len(made) == 1:
            made[0].rmdir()
        return made[-1]

    monkeypatch.setattr("newfound.files.leftovers.make_temporary", make)
    write_text(tmp_path / "file.txt", "whole")
    assert (tmp_path / "file.txt").read_text() == "whole"
    assert len(made) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["file.txt"]
