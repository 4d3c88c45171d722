"""Read regular files: a pipe, a device or a folder in place of a file is an error, not a hang."""

import os
import stat
from pathlib import Path
from typing import IO

from newfound.errors import DamagedFileError


def open_regular(path: Path) -> IO[bytes]:
    """Open a regular file for reading.

    Parameters
    ----------
    path : Path
        A link to a regular file is followed.

    Returns
    -------
    binary file

    Raises
    ------
    FileNotFoundError
        If nothing has this name.
    DamagedFileError
        If the file cannot be opened, or is not a regular file.
    """
    try:
        # Without O_NONBLOCK in `_open`, opening a named pipe waits for a writer.
        file = open(path, "rb", opener=_open)  # noqa: SIM115
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the name
        raise _unreadable(path, error) from error
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise DamagedFileError(f"{path.name} is not a regular file")
    return file


def read_regular(path: Path) -> bytes:
    """Return the content of a regular file; the errors are those of `open_regular`."""
    with open_regular(path) as file:
        try:
            return file.read()
        except OSError as error:
            raise _unreadable(path, error) from error


def _open(path: str, flags: int) -> int:
    """Open a file without waiting."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # not on Windows


def _unreadable(path: Path, error: OSError | ValueError) -> DamagedFileError:
    """Return the error of a file that cannot be read."""
    why = getattr(error, "strerror", None) or str(error)
    return DamagedFileError(f"{path.name} cannot be read: {why}")
