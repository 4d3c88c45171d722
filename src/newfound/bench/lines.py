"""Result lines: one JSON object a run; how they are told apart, read and written."""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from newfound.errors import InputError
from newfound.files import without_nan

Line = dict[str, Any]

# Everything chosen, nothing measured.
CHOSEN = (
    "kind",
    "data_set",
    "method",
    "encoder",
    "seed",
    "known_ratio",
    "labelled_ratio",
    "config",
)
# Where the commit stands when the package was copied out of its checkout.
COMMIT_VARIABLE = "NEWFOUND_COMMIT"


def key_of(line: Mapping[str, Any]) -> str:
    """What makes two lines the same run; a line of a plan has the same key as its result."""
    return json.dumps([line.get(name) for name in CHOSEN], sort_keys=True)


def read_lines(path: Path) -> list[Line]:
    """The result lines of a file; an incomplete line (an interrupted run) is left out."""
    if not path.is_file():
        return []
    lines = []
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict):
            lines.append(line)
    return lines


def read_results(folder: Path) -> list[Line]:
    """All result lines of a folder, in the order of file names; of equal runs the last one.

    It stands where it was written, so that the last line of a kind is the newest.
    """
    if not folder.is_dir():
        raise InputError(
            f"the results folder {folder} does not exist; `newfound bench run` makes it"
        )
    lines = [line for path in sorted(folder.glob("*.jsonl")) for line in read_lines(path)]
    found: dict[Any, Line] = {}
    for line in lines:
        found.pop(key_of(line), None)
        found[key_of(line)] = line
    return list(found.values())


def append_line(path: Path, line: Mapping[str, Any]) -> None:
    """Append one result line; it is on the disk when this returns."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":  # an interrupted line must not swallow this one
                    file.write(b"\n")
            file.write(json.dumps(without_nan(line), allow_nan=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror or error}; free space or choose another place"
        ) from error


def commit() -> str | None:
    """The code's commit, from the environment or the checkout; +changes if the files differ."""
    given = os.environ.get(COMMIT_VARIABLE)
    if given:
        return given
    here = Path(__file__).parents[1]
    # Installed below somebody else's repository, the code is not tracked by it.
    tracked = _git("ls-files", "--error-unmatch", "__init__.py", folder=here)
    found = _git("rev-parse", "HEAD", folder=here) if tracked else None
    if not found:
        return None
    return found + ("+changes" if _git("status", "--porcelain", "--", ".", folder=here) else "")


def _git(*arguments: str, folder: Path) -> str | None:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=folder, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
