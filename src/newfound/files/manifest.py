"""The manifest of a folder: the sha256 of its files, checked whenever one of them is read.

A file that was changed, and a file of another run or model, is refused. The files of a folder are
all opened before the first is read, so that a reader gets the old folder whole when the folder is
replaced meanwhile; `read_steadily` reads again if it was replaced in the moment of opening.
"""

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Any, TypeVar

from newfound.errors import DamagedFileError, InputError
from newfound.files.json_files import check_fields, parse_json, write_json
from newfound.files.leftovers import OLD, find_temporary
from newfound.files.reading import open_regular, read_regular

MANIFEST = "manifest.json"
FORMAT = 1
ATTEMPTS = 20  # to read a folder that is replaced again and again
PAUSE = 0.005  # seconds between them
Found = TypeVar("Found")


def sha256_of(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the sha256 of the named files of a folder."""
    digests = {}
    for name in sorted(names):
        with (folder / name).open("rb") as file:
            digests[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return digests


def write_manifest(folder: Path, names: Iterable[str]) -> None:
    """Write the sha256 of the named files of a folder into its manifest.json."""
    write_json(folder / MANIFEST, {"format": FORMAT, "sha256": sha256_of(folder, names)})


def read_manifest(folder: Path) -> dict[str, str] | None:
    """Return the sha256 of each file by name; None without a manifest."""
    try:
        content = read_regular(folder / MANIFEST)
    except FileNotFoundError:
        return None
    return parse_manifest(content)


def parse_manifest(content: bytes) -> dict[str, str]:
    """Return the sha256 of each file by name from the content of a manifest."""
    value = parse_json(content, dict, MANIFEST)
    check_fields(value, {"format": int, "sha256": dict}, MANIFEST)
    check_fields(value["sha256"], dict.fromkeys(value["sha256"], str), MANIFEST)
    digests: dict[str, str] = value["sha256"]
    return digests


class CheckedFolder:
    """The files of a folder; each is compared with the manifest when it is read.

    Use it as a context manager, which closes the files.

    Parameters
    ----------
    folder : Path
    digests : mapping of str to str, optional
        The sha256 of each file by name. Without it, as in folders of earlier versions, any content
        is accepted.
    """

    def __init__(self, folder: Path, digests: Mapping[str, str] | None = None) -> None:
        self.folder, self.digests = folder, digests
        self._stack = ExitStack()
        self._opened: dict[str, IO[bytes] | DamagedFileError] = {}
        for name in digests or ():
            try:
                self._opened[name] = self._stack.enter_context(open_regular(folder / name))
            except FileNotFoundError:
                self._opened[name] = DamagedFileError(f"{name} is missing")
            except DamagedFileError as error:
                self._opened[name] = error

    def __enter__(self) -> "CheckedFolder":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def has(self, name: str) -> bool:
        """Return whether the folder has such a file, or the manifest lists it."""
        return (self.folder / name).is_file() if self.digests is None else name in self.digests

    def read(self, name: str) -> bytes:
        """Return the content of a file, or raise DamagedFileError."""
        if self.digests is None:
            try:
                return read_regular(self.folder / name)
            except FileNotFoundError as error:
                raise DamagedFileError(f"{name} is missing") from error
        if name not in self.digests:
            raise DamagedFileError(f"the sha256 of {name} is not recorded")
        opened = self._opened[name]
        if isinstance(opened, DamagedFileError):
            raise opened
        try:
            opened.seek(0)
            content = opened.read()
        except OSError as error:
            raise DamagedFileError(f"{name} cannot be read: {error.strerror}") from error
        if hashlib.sha256(content).hexdigest() != self.digests[name]:
            raise DamagedFileError(
                f"{name} does not have its recorded sha256: it was changed, or it belongs to "
                "another run or model"
            )
        return content

    def json(self, name: str, kind: type) -> Any:
        """Return the JSON value in a file, or raise DamagedFileError if it is not a `kind`."""
        return parse_json(self.read(name), kind, name)


def read_steadily(folder: Path, read: Callable[[], Found], *, unchanged: bool = False) -> Found:
    """Return what `read` returns, and call it again if the folder was replaced meanwhile.

    Parameters
    ----------
    folder : Path
    read : callable
        Reads the folder.
    unchanged : bool, default False
        Whether the folder must still be the same after reading; needed if `read` opens it twice.

    Returns
    -------
    Any
    """
    for _ in range(ATTEMPTS):
        before = _stamp(folder)
        try:
            found = read()
        except (InputError, DamagedFileError):
            if _stamp(folder) == before and not _is_aside(folder):
                raise
            time.sleep(PAUSE)
            continue
        if not unchanged or _stamp(folder) == before:
            return found
    return read()


def _is_aside(folder: Path) -> bool:
    """Return whether a folder is missing because it is being replaced in two steps."""
    if folder.exists() or not folder.parent.is_dir():
        return False
    return bool(find_temporary(folder.name, folder.parent, OLD))


def _stamp(folder: Path) -> list[tuple[int, ...]]:
    """Return what changes when a folder or its model is replaced, or decisions are added."""
    stamp: list[tuple[int, ...]] = []
    for name in ("", "model", MANIFEST, "run.json", "model.json", "decisions.jsonl"):
        try:
            found = os.stat(folder / name)
        except OSError:
            stamp.append((0,))
            continue
        # Other files may be written into the folder, which changes its time. Not the time of the
        # last write: a copy can have that of the original, and its inode may be used again.
        changed = found.st_ctime_ns if "." in name else 0
        stamp.append((found.st_dev, found.st_ino, changed))
    return stamp
