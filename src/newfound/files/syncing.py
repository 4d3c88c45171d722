"""Flush files and folders to disk, so that a name never stands for content that is not there."""

import errno
import os
from contextlib import suppress
from pathlib import Path

# Some file systems, such as those of a network, cannot flush; that is no error of the user.
_UNSUPPORTED = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)


def sync_file(path: Path) -> None:
    """Flush a file to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to disk, where the system can."""
    with suppress(OSError):
        sync_file(folder)


def sync_tree(folder: Path) -> None:
    """Flush all files and folders under a folder, and the folder itself."""
    for place, _, names in os.walk(folder):
        for name in names:
            sync_file(Path(place, name))
        sync_folder(Path(place))
