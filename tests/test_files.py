"""Files and folders appear whole or not at all."""

import errno
import json
import math
import os
import stat
from pathlib import Path

import pytest
from support.small_texts import everything_under

from newfound import files
from newfound.errors import InputError
from newfound.files import write_atomically, write_folder, write_json, write_text


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


def test_old_folder_is_restored_if_renaming_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    with write_folder(folder, "done") as new:
        (new / "done").write_text("old")
    rename = Path.rename

    def fail_for_the_new(self: Path, target: Path) -> Path:
        if target == folder and (self / "new").exists():
            raise full_disk()
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail_for_the_new)
    with pytest.raises(InputError, match="No space left"), write_folder(folder, "done") as new:
        (new / "new").write_text("x")
    assert everything_under(tmp_path) == {"run", "run/done"}


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
    monkeypatch.setattr(files.os.path, "ismount", lambda path: Path(path) == folder)
    number = folder.stat().st_ino
    with write_folder(folder, "done") as new:
        (new / "done").write_text("x")
    assert folder.stat().st_ino == number  # the same folder, not another in its place
    assert everything_under(tmp_path) == {"volume", "volume/done"}


def test_errors_name_the_folder_that_the_user_gave(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught, write_folder(tmp_path / "run", "done") as new:
        write_text(new / "no" / "file", "x")
    assert str(caught.value).startswith(f"cannot write {tmp_path}/run/no/file: No such file")
