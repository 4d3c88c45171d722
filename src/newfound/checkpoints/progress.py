"""How far an unfinished run came: the file progress.json, which `newfound info` reads."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from newfound.checkpoints.pieces import replace_file
from newfound.errors import DamagedFileError
from newfound.files import check_fields, read_json

FORMAT = 1
PROGRESS = "progress.json"
# The fields of progress.json.
FIELDS: dict[str, type | tuple[type, ...]] = {
    "format": int,
    "fingerprint": dict,
    "command": (str, type(None)),
    "stage": str,
    "done": int,
    "total": (int, type(None)),
    "written": str,
}


def unfinished_folder(run: Path) -> Path:
    """Return the folder for the unfinished work of a run folder.

    Examples
    --------
    >>> unfinished_folder(Path("/data/my-run")).name
    '.my-run.unfinished'
    """
    place = run.resolve()
    return place.parent / f".{place.name}.unfinished"


@dataclass(frozen=True)
class Position:
    """A place in a run: a stage, and how much of its work is done.

    Examples
    --------
    >>> str(Position("encoding", 300, 1000)), str(Position("clustering", 0, None))
    ('encoding, 30%', 'clustering')
    """

    stage: str
    done: int
    total: int | None  # None: unknown

    @property
    def share(self) -> float | None:
        """Share of the stage that is done, from 0 to 1, if known."""
        return min(1.0, self.done / self.total) if self.total else None

    def __str__(self) -> str:
        return self.stage if self.share is None else f"{self.stage}, {self.share:.0%}"


@dataclass(frozen=True)
class Unfinished:
    """What progress.json records of an unfinished run.

    Attributes
    ----------
    fingerprint : mapping of str to str
        Digests of everything that the work depends on.
    command : str or None
        Command line that goes on from the work.
    position : Position
    written : str
        Date and time of the last write, in ISO 8601.
    """

    fingerprint: Mapping[str, str]
    command: str | None
    position: Position
    written: str

    def to_dict(self) -> dict[str, Any]:
        """Return the fields without the fingerprint, for `newfound info --json`."""
        return {
            "stage": self.position.stage,
            "share": self.position.share,
            "written": self.written,
            "command": self.command,
        }


def write_progress(
    folder: Path, fingerprint: Mapping[str, str], command: str | None, position: Position
) -> None:
    """Write progress.json with the present time."""
    value = {
        "format": FORMAT,
        "fingerprint": dict(fingerprint),
        "command": command,
        "stage": position.stage,
        "done": position.done,
        "total": position.total,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    replace_file(folder / PROGRESS, json.dumps(value, indent=2).encode())


def read_unfinished(folder: Path) -> Unfinished | None:
    """Return how far an unfinished run came.

    Parameters
    ----------
    folder : Path
        From `unfinished_folder`.

    Returns
    -------
    Unfinished or None
        None if there is no unfinished work, or none that this version can read.
    """
    try:
        value = read_json(folder / PROGRESS, dict)
        check_fields(value, FIELDS, PROGRESS)
    except DamagedFileError:
        return None
    if value["format"] != FORMAT:
        return None
    position = Position(value["stage"], value["done"], value["total"])
    return Unfinished(value["fingerprint"], value["command"], position, value["written"])
