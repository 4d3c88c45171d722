"""The one check of a file's format, shared by everything that reads a run folder or a model."""

from pathlib import Path
from typing import Any

from newfound.errors import DamagedFileError, InputError
from newfound.files import read_json

AGAIN = "run `newfound discover` again"


def read_with_format(path: Path, newest: int) -> dict[str, Any]:
    """Return the JSON object in `path`, whose format this version can read.

    Parameters
    ----------
    path : Path
        A file that newfound wrote.
    newest : int
        The highest format that is read; formats count from 1.

    Returns
    -------
    dict
        The whole object, "format" included.
    """
    try:
        value: dict[str, Any] = read_json(path, dict)
    except DamagedFileError as error:
        raise InputError(f"{path} is damaged ({error}); {AGAIN}") from error
    if "format" not in value:
        raise InputError(f"{path} was not written by newfound: it names no format")
    number = value["format"]
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise InputError(f"{path} is damaged (its format is {str(number)[:40]!r}); {AGAIN}")
    if number > newest:
        raise InputError(
            f"{path} has format {number}, this newfound reads up to {newest}: "
            "install a newer newfound"
        )
    return value
