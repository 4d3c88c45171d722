"""Locks that the kernel releases when their process ends, however it ends."""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from newfound.errors import InputError

# A file system without locks; writing goes on without one.
_UNSUPPORTED = (errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP)


def try_lock(handle: int) -> bool | None:
    """Return whether this process now holds the lock of an open file; None if it has no locks."""
    try:
        import fcntl
    except ImportError:  # not a POSIX system
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            return None
        raise
    return True


def same_file(handle: int, path: Path) -> bool:
    """Return whether `path` still names the open file."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path, follow_symlinks=False))
    except OSError:
        return False


def lock_path(folder: Path, inside: bool) -> Path:
    """Return the lock file of a folder, beside it or inside it."""
    return (folder if inside else folder.parent) / f".{folder.name}.lock"


@contextmanager
def writer_lock(path: Path, folder: Path) -> Iterator[bool]:
    """Hold the lock of a folder's only writer.

    The lock is on a file of its own, because the folder is replaced while it is held. The file is
    empty. It is removed when the lock is released; after a crash it stays, and the next writer
    takes and removes it.

    Parameters
    ----------
    path : Path
        The lock file, from `lock_path`.
    folder : Path
        The folder, as the user named it.

    Yields
    ------
    bool
        Whether the lock is held; False where the file system has no locks.

    Raises
    ------
    InputError
        If another writer holds the lock.
    """
    file: IO[bytes] | None = None
    held: bool | None = False
    try:
        while True:
            file = open(path, "ab", opener=_open_new)  # noqa: SIM115
            held = try_lock(file.fileno())
            if held is False:
                raise InputError(
                    f"another process is writing {folder}; wait until it ends or choose another "
                    "name"
                )
            if held is None or same_file(file.fileno(), path):
                break
            file.close()  # the writer before this one has removed the file
        yield bool(held)
    finally:
        if file is None:  # an interrupt may have come right after the file was created
            with suppress(OSError):
                file = open(path, "rb+", opener=_open_new)  # noqa: SIM115
                held = try_lock(file.fileno())
        if file is not None:
            opened, own = file, held is not False
            undisturbed(lambda: _release(opened, path, own))


def _release(file: IO[bytes], path: Path, own: bool) -> None:
    """Remove a lock file that is ours, and close it."""
    if file.closed:
        return
    found = os.fstat(file.fileno())
    if own and stat.S_ISREG(found.st_mode) and not found.st_size:
        with suppress(OSError):
            path.unlink()
    file.close()


def undisturbed(step: Callable[[], None]) -> None:
    """Take a step that can be taken twice, and take it again if an interrupt comes meanwhile."""
    try:
        step()
    except BaseException:
        step()
        raise


def _open_new(path: str, flags: int) -> int:
    """Open a lock file, without waiting for the other end of a pipe and without following links."""
    for name in ("O_NONBLOCK", "O_NOFOLLOW"):  # neither is on Windows
        flags |= getattr(os, name, 0)
    return os.open(path, flags, 0o666)


@contextmanager
def folder_lock(folder: Path) -> Iterator[bool | None]:
    """Yield whether the lock of a folder is held: False if another process holds it or removed it.

    None where folders have no locks, as on Windows and on some network drives.
    """
    if os.name == "nt":
        yield None
        return
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:  # removed by another process before it could be opened
        yield False
        return
    try:
        held = try_lock(handle)
        yield held if held is None else held and same_file(handle, folder)
    finally:
        os.close(handle)
