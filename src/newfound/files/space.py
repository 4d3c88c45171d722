"""Free space on a disk, looked at before long work begins."""

import shutil
from pathlib import Path

from newfound.errors import InputError


def existing(path: Path) -> Path:
    """Return the path, or the nearest folder above it that exists."""
    return next((each for each in (path, *path.absolute().parents) if each.exists()), Path("/"))


def check_free_space(path: Path, needed: int, what: str) -> None:
    """Raise InputError if a disk has too little space.

    Parameters
    ----------
    path : Path
        File or folder that will be written; it need not exist.
    needed : int
        Bytes.
    what : str
        What will be written, for the message.
    """
    try:
        disk = shutil.disk_usage(existing(path))
    except OSError:  # the error of writing there says more
        return
    # Some network file systems report a total of zero.
    if disk.total and disk.free < needed:
        raise InputError(
            f"{what} needs about {_megabytes(needed)}, but the disk of {path} has only "
            f"{_megabytes(disk.free)} left; free space or choose another place"
        )


def _megabytes(size: int) -> str:
    """Return a number of bytes in MB."""
    return f"{max(size, 0) / 1e6:,.1f} MB"
