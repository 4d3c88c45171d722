"""The format check that all readers of run folders, models and checks share."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from newfound.errors import DamagedFileError, InputError
from newfound.files import read_json

RUN_FORMAT = 1  # of run.json, which stands for the whole run folder
MODEL_FORMAT = 1  # of model.json
CHECK_FORMAT = 1  # of check.json
AGAIN = "run `newfound discover` again"


@contextmanager
def damage_reported(path: Path, again: str = AGAIN) -> Iterator[None]:
    """Turn a DamagedFileError of the block into an InputError with advice."""
    try:
        yield
    except DamagedFileError as error:
        raise InputError(f"{path} is damaged ({error}); {again}") from error


def read_with_format(path: Path, newest: int, again: str = AGAIN) -> dict[str, Any]:
    """Return the JSON object in `path`, whose format this version can read.

    Parameters
    ----------
    path : Path
        A file written by newfound.
    newest : int
        The highest format that is read; formats count from 1.
    again : str, optional
        Advice on how to write the file again if it is damaged.

    Returns
    -------
    dict
        The whole object, "format" included.
    """
    with damage_reported(path, again):
        value: dict[str, Any] = read_json(path, dict)
    if "format" not in value:
        raise InputError(f"{path} was not written by newfound: it has no format number")
    number = value["format"]
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise InputError(f"{path} is damaged (its format is {str(number)[:40]!r}); {again}")
    if number > newest:
        raise InputError(
            f"{path} has format {number}, but this version of newfound reads formats up to "
            f"{newest}; install a newer version"
        )
    return value


def read_records(folder: Path) -> dict[str, Any]:
    """Return the run.json of a run folder if this version can read its format."""
    if not folder.exists():
        raise InputError(
            f"the run {folder} does not exist; give the folder that `newfound discover` wrote"
        )
    if not (folder / "run.json").is_file():
        raise InputError(
            f"{folder} is not a run folder (no run.json); "
            "give the folder that `newfound discover` wrote"
        )
    return read_with_format(folder / "run.json", RUN_FORMAT)
