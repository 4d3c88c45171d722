"""Replace a folder by another one so that at every moment one of the two is whole.

Where the kernel can, the names of the two folders are exchanged in one step (Linux: `renameat2`).
Elsewhere, the old folder is moved aside and back again if the new one cannot take its place. A
folder that cannot be renamed, such as a mount point, gets its content replaced entry by entry, and
the old content is kept aside until the new one is complete.

Whoever is interrupted at any point finds out from the names on disk what is left to do; `recover`
does so for a process that has been killed.
"""

import errno
import functools
import os
from collections.abc import Callable
from pathlib import Path

from newfound.files.leftovers import OLD, find_temporary, is_beside, remove

AT_FDCWD = -100
RENAME_EXCHANGE = 2
# What the kernel answers where it or the file system has no such call.
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM)
Identity = tuple[int, int]


def identity(folder: Path) -> Identity | None:
    """Return what stays the same when a folder is renamed; None if there is no such folder."""
    try:
        found = folder.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


@functools.cache
def _renameat2() -> Callable[..., int] | None:
    """Return the C function, None on systems without it."""
    import ctypes  # not needed by commands that only read

    try:
        function = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):  # TypeError: no C library to look into
        return None
    function.argtypes = [
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_uint,
    ]

    def rename(one: bytes, other: bytes) -> int:
        failed = function(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE)
        return ctypes.get_errno() if failed else 0

    return rename


def exchange(one: Path, other: Path) -> bool:
    """Exchange the names of two folders in one step; return False where the system cannot."""
    rename = _renameat2()
    if rename is None:
        return False
    number = rename(os.fsencode(one), os.fsencode(other))
    if number in _UNSUPPORTED:
        return False
    if number:
        raise OSError(number, os.strerror(number), str(other))
    return True


def aside_of(new: Path) -> Path:
    """Return the place that the old folder is moved to while `new` takes its name."""
    return new.with_name(new.name + OLD)


def is_empty(folder: Path) -> bool:
    """Return whether nothing is at this place, or a folder without anything in it."""
    if not os.path.lexists(folder):
        return True
    return folder.is_dir() and not any(folder.iterdir())


def swap(place: Path, new: Path) -> Path | None:
    """Give `new` the name `place`; return where the old folder is now, None if there was none."""
    if is_empty(place):
        try:
            os.rename(new, place)
            return None
        except OSError as error:  # something has appeared there
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
    if not place.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(place))
    if exchange(new, place):
        return new
    aside = aside_of(new)
    os.rename(place, aside)
    os.rename(new, place)
    return aside


def swap_back(place: Path, new: Path, own: Identity) -> None:
    """Undo `swap`, however far it came: the folder with the identity `own` is `new` again."""
    aside = aside_of(new)
    if identity(place) == own:
        if identity(new) is not None:
            exchange(new, place)
            return
        os.rename(place, new)
    if identity(aside) is not None and identity(place) is None:
        os.rename(aside, place)


def swap_content(place: Path, new: Path, marker: str) -> Path:
    """Move the content of `new` into `place`, the marker last; return where the old one is now."""
    aside = aside_of(new)
    aside.mkdir()
    entries = [e for e in place.iterdir() if not is_beside(e.name, place.name)]
    for entry in sorted(entries, key=lambda entry: entry.name != marker):
        os.rename(entry, aside / entry.name)
    for entry in sorted(new.iterdir(), key=lambda entry: entry.name == marker):
        os.rename(entry, place / entry.name)
    return aside


def content_swapped(place: Path, new: Path, marker: str) -> bool:
    """Return whether `swap_content` came to its end."""
    return not os.path.lexists(new / marker) and os.path.lexists(place / marker)


def swap_content_back(place: Path, new: Path, names: set[str]) -> None:
    """Undo `swap_content`, however far it came; `names` are the entries of the new folder."""
    aside = aside_of(new)
    if not aside.is_dir():
        return
    # An entry of the old folder with such a name is either still in its place or aside.
    for name in names:
        if os.path.lexists(place / name) and not os.path.lexists(new / name):
            os.rename(place / name, new / name)
    for entry in aside.iterdir():
        os.rename(entry, place / entry.name)
    aside.rmdir()


def recover(place: Path, inside: bool, marker: str) -> None:
    """Put back an old folder that a killed process had moved aside, and remove its left-overs.

    The caller holds the writer's lock of `place`, so nobody else owns what is found.
    """
    where = place if inside else place.parent
    for aside in find_temporary(place.name, where, OLD):
        if inside and not os.path.lexists(place / marker):
            for entry in aside.iterdir():
                remove(place / entry.name)
                os.rename(entry, place / entry.name)
        elif not inside and not os.path.lexists(place):
            os.rename(aside, place)
        remove(aside)
    remove_new(place, inside)


def remove_new(place: Path, inside: bool) -> None:
    """Remove all folders that would have been `place`; the caller holds the writer's lock."""
    for left in find_temporary(place.name, place if inside else place.parent):
        remove(left)
