"""Result lines: one JSON object per run, with functions that identify, read and write them."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from newfound.errors import InputError
from newfound.files import without_nan

Line = dict[str, Any]

# Default folders of result lines.
RESULTS = Path("benchmarks/results")
SEARCH = Path("benchmarks/search")

# The fields that identify a run: settings, no measurements.
CHOSEN = (
    "kind",
    "data_set",
    "method",
    "encoder",
    "seed",
    "known_ratio",
    "labelled_ratio",
    "table",
    "strategy",
    "answers",
    "config",
)
# Environment variable with the commit, for a package outside of its repository.
COMMIT_VARIABLE = "NEWFOUND_COMMIT"


def key_of(line: Mapping[str, Any]) -> str:
    """Return the key that identifies a run; a plan has the same key as its result line."""
    return json.dumps([line.get(name) for name in CHOSEN], sort_keys=True)


def read_lines(path: Path) -> list[Line]:
    """Return the result lines of a file; incomplete lines of interrupted runs are skipped."""
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
    """Return the result lines of a folder's files, in the order of their names.

    Parameters
    ----------
    folder : Path
        A folder of ``.jsonl`` files.

    Returns
    -------
    list of dict
        The lines; see `without_repeats`.
    """
    if not folder.is_dir():
        raise InputError(
            f"the results folder {folder} does not exist; `newfound bench run` creates it"
        )
    paths = sorted(folder.glob("*.jsonl"))
    return without_repeats([line for path in paths for line in read_lines(path)])


def without_repeats(lines: Sequence[Line]) -> list[Line]:
    """Return the last, and so newest, line of every run, in the order of the lines."""
    found: dict[str, Line] = {}
    for line in lines:
        found.pop(key_of(line), None)
        found[key_of(line)] = line
    return list(found.values())


def append_line(path: Path, line: Mapping[str, Any]) -> None:
    """Append one result line and flush it to disk."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":  # the file ends with an incomplete line
                    file.write(b"\n")
            file.write(json.dumps(without_nan(line), allow_nan=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror or error}; free space or choose another place"
        ) from error


def commit() -> str | None:
    """Return the commit of the code, from the environment or git; +changes if files differ."""
    given = os.environ.get(COMMIT_VARIABLE)
    if given:
        return given
    here = Path(__file__).parents[1]
    # The package may be installed inside another repository, which does not track it.
    tracked = _git("ls-files", "--error-unmatch", "__init__.py", folder=here)
    found = _git("rev-parse", "HEAD", folder=here) if tracked else None
    if not found:
        return None
    return found + ("+changes" if _git("status", "--porcelain", "--", ".", folder=here) else "")


def _git(*arguments: str, folder: Path) -> str | None:
    """Return what a git command prints, or None if it fails."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=folder, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
