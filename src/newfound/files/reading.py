"""Read regular files: a pipe, a device or a folder in place of a file is an error, not a hang."""

import os
import stat
from pathlib import Path

from newfound.errors import DamagedFileError


def read_regular(path: Path) -> bytes:
    """Return the content of a regular file.

    Parameters
    ----------
    path : Path
        A link to a regular file is followed.

    Returns
    -------
    bytes

    Raises
    ------
    FileNotFoundError
        If nothing has this name.
    DamagedFileError
        If the file cannot be read, or is not a regular file.
    """
    try:
        # Without O_NONBLOCK, opening a named pipe waits for a writer.
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise DamagedFileError(f"{path.name} is not a regular file")
            return file.read()
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the name
        why = getattr(error, "strerror", None) or str(error)
        raise DamagedFileError(f"{path.name} cannot be read: {why}") from error
