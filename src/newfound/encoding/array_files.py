"""Arrays of the feature cache on disk, whose damage is found before they are used.

A file has a header of 64 bytes, which holds the sha256 of the values, and the values in half
precision. Their shape is known to the reader. The space is reserved before the values are computed:
a full disk is then an error at once, while writing into a memory map of a file with holes would end
the process by a signal.
"""

import errno
import hashlib
import mmap
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from newfound.errors import DamagedFileError, InputError
from newfound.files import open_regular, write_atomically

MAGIC = b"newfound features 1".ljust(32, b"\0")
HEADER = 64  # bytes: what the file is, and the sha256 of its values
CHUNK = 2**20  # bytes
_UNSUPPORTED = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)

Note = Callable[[str], None]


def read_array(
    path: Path, shape: tuple[int, int], *, in_memory: bool, note: Note | None = None
) -> np.ndarray | None:
    """Read an array that `new_array` wrote.

    Parameters
    ----------
    path : Path
    shape : tuple of int
        Shape that the array must have.
    in_memory : bool
        Whether to read the values; otherwise they are memory-mapped, and changes stay in memory.
    note : callable, optional
        Called with a sentence if the file is damaged.

    Returns
    -------
    ndarray of float16, or None
        None if there is no such file, or if it is damaged.
    """
    try:
        with open_regular(path) as file:
            return _read(file, shape, in_memory)
    except FileNotFoundError:
        return None
    except (DamagedFileError, OSError) as error:
        if note is not None:
            note(f"{path} is damaged ({error}), so the texts are encoded again")
        return None


def _read(file: IO[bytes], shape: tuple[int, int], in_memory: bool) -> np.ndarray:
    """Return the values of an open file, or raise DamagedFileError."""
    expected, found = HEADER + 2 * shape[0] * shape[1], os.fstat(file.fileno()).st_size
    if found != expected:
        raise DamagedFileError(f"it has {found:,} bytes, not {expected:,}")
    header = file.read(HEADER)
    if not header.startswith(MAGIC):
        raise DamagedFileError("it is not a file of the feature cache")
    if in_memory:
        values = np.fromfile(file, np.float16, shape[0] * shape[1])
    else:
        values = np.memmap(file, np.float16, "c", offset=HEADER, shape=shape)
    if values.size != shape[0] * shape[1] or _digest(values) != header[len(MAGIC) :]:
        raise DamagedFileError("its checksum does not match")
    return values.reshape(shape)


@contextmanager
def new_array(path: Path, shape: tuple[int, int], *, in_memory: bool) -> Iterator[np.ndarray]:
    """Yield an array to fill; the file at `path` appears when the block succeeds.

    Parameters
    ----------
    path : Path
    shape : tuple of int
    in_memory : bool
        Whether the array is held in memory and written at the end; otherwise it is a memory map.

    Yields
    ------
    ndarray of float16

    Raises
    ------
    InputError
        If there is not enough space.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with write_atomically(path) as temporary, temporary.open("wb+") as file:
        reserve(file, HEADER + 2 * shape[0] * shape[1])
        if in_memory:
            values = np.empty(shape, np.float16)
        else:
            values = np.memmap(file, np.float16, "r+", offset=HEADER, shape=shape)
        yield values
        if isinstance(values, np.memmap):
            values.flush()
        else:
            file.seek(HEADER)
            file.write(values.data)
        file.seek(0)
        file.write(MAGIC + _digest(values))


def scratch_array(shape: tuple[int, int]) -> np.ndarray:
    """Return a memory-mapped array in an unnamed file, which is deleted with the array."""
    import tempfile

    try:
        with tempfile.TemporaryFile(prefix="newfound-") as file:
            reserve(file, 2 * shape[0] * shape[1])
            return np.memmap(file, np.float16, "r+", shape=shape)
    except OSError as error:
        raise InputError(
            f"cannot write a temporary file of {2e-9 * shape[0] * shape[1]:.1f} GB in "
            f"{tempfile.gettempdir()}: {error.strerror or error}; free space, or name another "
            "folder in the environment variable TMPDIR"
        ) from error


def release(values: np.ndarray) -> None:
    """Free the memory that a memory-mapped array takes; the next access reads its file again.

    The system would do so, too, if memory became scarce, but counts it as memory of the process
    until then. Nothing is done to other arrays.
    """
    held: Any = values
    while isinstance(held, np.ndarray):
        held = held.base
    if isinstance(held, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):  # a POSIX system
        held.madvise(mmap.MADV_DONTNEED)


def reserve(file: IO[bytes], size: int) -> None:
    """Give an empty file its size and all of its space on disk; raise OSError if there is none."""
    try:
        os.posix_fallocate(file.fileno(), 0, max(1, size))
    except (AttributeError, OSError) as error:  # AttributeError: not on this system
        if isinstance(error, OSError) and error.errno not in _UNSUPPORTED:
            raise
        for start in range(0, size, CHUNK):
            file.write(bytes(min(CHUNK, size - start)))
        file.flush()


def _digest(values: np.ndarray) -> bytes:
    """Return the sha256 of the values."""
    return hashlib.sha256(values.data).digest()
