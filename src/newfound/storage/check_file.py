"""A `Check` on disk: one JSON file, called check.json in a run folder."""

from pathlib import Path

from newfound.checking.check import Check
from newfound.files import write_json
from newfound.storage.formats import CHECK_FORMAT, damage_reported, read_with_format

NAME = "check.json"  # in a run folder, where the report finds it
AGAIN = "run `newfound check` again"


def write_check(check: Check, path: Path, *, command: str | None = None) -> None:
    """Write a check as JSON.

    Parameters
    ----------
    check : Check
        Returned by `newfound.checking.runner.check`.
    path : Path
        File to write; the report of a run shows `check.json` in the run folder.
    command : str, optional
        The command line of the check.
    """
    write_json(path, {"format": CHECK_FORMAT, "command": command, **check.to_dict()})


def read_check(path: Path) -> Check:
    """Read a check.

    Parameters
    ----------
    path : Path
        Written by `newfound check` or `write_check`.

    Returns
    -------
    Check
    """
    value = read_with_format(path, CHECK_FORMAT, AGAIN)
    with damage_reported(path, AGAIN):
        return Check.from_dict(value, path.name)
