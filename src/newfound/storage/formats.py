"""The format check that all readers of run folders, models and checks share."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from newfound.errors import DamagedFileError, InputError
from newfound.files import CheckedFolder, read_json, read_steadily
from newfound.files.manifest import MANIFEST, read_manifest

RUN_FORMAT = 3  # of run.json, which stands for the whole run folder
MODEL_FORMAT = 3  # of model.json
CHECK_FORMAT = 1  # of check.json
MANIFEST_SINCE = 2  # format of runs and models from which on they have a manifest
MODEL_MANIFEST = "model/manifest.json"  # in a run folder, whose own manifest lists it
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
    _check_format(value, path, newest, again)
    return value


def _check_format(value: dict[str, Any], path: Path, newest: int, again: str) -> None:
    """Raise InputError if this version cannot read the format of a file's content."""
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


def open_checked(
    folder: Path, main: str, newest: int, digests: Mapping[str, str] | None = None
) -> tuple[CheckedFolder, dict[str, Any]]:
    """Open the files of a run or a model, and read its main file.

    Parameters
    ----------
    folder : Path
        Folder of a run or a model.
    main : str
        The file with the format number: run.json or model.json.
    newest : int
        The highest format that is read.
    digests : mapping of str to str, optional
        The manifest, if the caller has read it.

    Returns
    -------
    files : CheckedFolder
        To be closed by the caller.
    value : dict
        Content of the main file.
    """
    path = folder / main
    with ExitStack() as stack:
        with damage_reported(path):
            digests = read_manifest(folder) if digests is None else digests
            files = stack.enter_context(CheckedFolder(folder, digests))
            value: dict[str, Any] = files.json(main, dict)
        _check_format(value, path, newest, AGAIN)
        if digests is None and value["format"] >= MANIFEST_SINCE:
            raise InputError(f"{path} is damaged (its {MANIFEST} is missing); {AGAIN}")
        stack.pop_all()  # stays open
    return files, value


def open_run(folder: Path) -> tuple[CheckedFolder, dict[str, Any]]:
    """Open the files of a run folder, and read its run.json if this version can."""
    if not folder.exists():
        raise InputError(
            f"the run {folder} does not exist; give the folder that `newfound discover` wrote"
        )
    if not (folder / "run.json").is_file():
        raise InputError(
            f"{folder} is not a run folder (no run.json); "
            "give the folder that `newfound discover` wrote"
        )
    return open_checked(folder, "run.json", RUN_FORMAT)


def read_records(folder: Path) -> dict[str, Any]:
    """Return the run.json of a run folder if this version can read its format."""

    def read() -> dict[str, Any]:
        files, records = open_run(folder)
        with files:
            return records

    return read_steadily(folder, read)
