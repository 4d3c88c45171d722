"""Temporary names, and the removal of what dead processes left under them.

A temporary name tells what it belongs to and that it is ours: `.NAME.xxxxxxxx.newfound` is a folder
that will be NAME, the same with `-old` a folder that was NAME, and with `-file` a folder in which
the file NAME is written. The owner of a folder for a file holds a lock on it, and all folders of
NAME belong to the one who holds the writer's lock of NAME. What nobody holds belongs to nobody.
"""

import functools
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from newfound.files.locks import folder_lock, undisturbed

MARK = ".newfound"
OLD = "-old"  # of a folder that is being replaced
FILE = "-file"  # of a folder in which one file is written
LONGEST = 100  # bytes of a name that its temporary name repeats; of longer ones it has a hash


def _stem(name: str) -> str:
    """Return what temporary names have in place of a name: itself, unless it is too long."""
    encoded = os.fsencode(name)
    return name if len(encoded) <= LONGEST else hashlib.sha256(encoded).hexdigest()[:32]


def _pattern(name: str, ending: str) -> re.Pattern[str]:
    """Return the pattern of temporary names with this ending; "" stands for all names."""
    start = re.escape(_stem(name)) if name else ".+"
    return re.compile(rf"\.{start}\.[a-z0-9_]{{8}}{re.escape(MARK + ending)}", re.DOTALL)


def is_beside(entry: str, name: str) -> bool:
    """Return whether `entry` is the name of something that this package keeps for `name`."""
    if entry in (f".{name}.lock", f".{name}.unfinished"):
        return True
    return any(_pattern(name, ending).fullmatch(entry) for ending in ("", OLD))


def is_temporary_file(entry: str) -> bool:
    """Return whether `entry` is the name of a folder in which this package writes a file."""
    return _pattern("", FILE).fullmatch(entry) is not None


def is_free(folder: Path) -> bool:
    """Return whether a folder has no entries but those that this package keeps for it."""
    name = folder.resolve().name
    return all(is_beside(entry, name) for entry in os.listdir(folder))


def make_temporary(name: str, folder: Path, ending: str = "") -> Path:
    """Create a folder with a temporary name."""
    return Path(tempfile.mkdtemp(prefix=f".{_stem(name)}.", suffix=MARK + ending, dir=folder))


def find_temporary(name: str, folder: Path, ending: str = "") -> list[Path]:
    """Return the folders with a temporary name of `name` (all names if empty), newest first."""
    pattern = _pattern(name, ending)
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if pattern.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                with suppress(FileNotFoundError):  # its owner may remove it meanwhile
                    found.append((entry.stat(follow_symlinks=False).st_mtime_ns, Path(entry)))
    return [path for _, path in sorted(found, reverse=True)]


@contextmanager
def temporary_for_file(path: Path) -> Iterator[Path]:
    """Yield a new locked folder beside `path`, and remove it afterwards.

    Left-overs of dead processes in the same place are removed first.
    """
    _remove_dead(path.parent)
    while True:
        folder = make_temporary(path.name, path.parent, FILE)
        try:
            with folder_lock(folder) as held:
                # Another process may take the folder for a left-over before it is locked.
                if held is False:
                    continue
                yield folder
                return
        finally:
            undisturbed(functools.partial(remove, folder))


def _remove_dead(place: Path) -> None:
    """Remove folders for files whose owner has ended."""
    for folder in find_temporary("", place, FILE):
        with suppress(OSError), folder_lock(folder) as held:  # OSError: removed meanwhile
            if held:
                remove(folder)


def remove(path: Path) -> None:
    """Remove a file or a folder as far as possible."""
    if path.is_dir() and not path.is_symlink():
        try:
            shutil.rmtree(path, ignore_errors=True)
        except OSError as error:
            # An interrupt while rmtree closes a folder becomes the error of closing it twice.
            if error.__context__ is not None and not isinstance(error.__context__, Exception):
                raise error.__context__ from None
    else:
        path.unlink(missing_ok=True)
