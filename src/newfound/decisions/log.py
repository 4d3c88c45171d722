"""decisions.jsonl in a run folder: one decision per line, only ever appended to.

A line is written under a lock and flushed to disk before `append` returns. If it cannot be written
whole, the file is cut back to what it was. The file is not listed in the manifest of the run, which
never changes; readers apply its lines to the result of the run.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from newfound.decisions.decision import Decision, parse_line
from newfound.errors import DamagedFileError, InputError
from newfound.files.atomic import cannot_write
from newfound.files.locks import same_file, try_lock
from newfound.files.manifest import MANIFEST
from newfound.files.reading import read_regular
from newfound.files.syncing import sync_folder
from newfound.storage.contents import DECISIONS
from newfound.wording import plural

NAME = DECISIONS
PATIENCE = 10.0  # seconds to wait for another writer, who holds the lock for a moment only
PAUSE = 0.01  # seconds between attempts


class StaleError(InputError):
    """Decisions were added, or the run was replaced, since the log was read."""


@dataclass(frozen=True)
class Problem:
    """A line that cannot be applied; the others hold.

    Attributes
    ----------
    line : int
        Its number, from 1.
    reason : str
    """

    line: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.line} of {NAME} is not applied: {self.reason}"


Entry = Decision | Problem | None  # None for a blank line


@dataclass(frozen=True)
class Log:
    """The decisions on a run.

    Attributes
    ----------
    entries : tuple of Decision, Problem or None
        One per line: a decision, the reason why the line cannot be read, or None if it is blank.
    digest : str
        Changes whenever a line is added and whenever the run is replaced.
    run : str
        Changes whenever the run is replaced.
    """

    entries: tuple[Entry, ...] = ()
    digest: str = ""
    run: str = ""

    @property
    def undone(self) -> frozenset[int]:
        """Numbers of the lines that are undone."""
        return undone_lines(self.entries)

    @property
    def refit(self) -> tuple[int, Decision] | None:
        """The line that says that the run was refitted, with its number; None if it was not."""
        found = [
            (number, entry)
            for number, entry in enumerate(self.entries, start=1)
            if isinstance(entry, Decision) and entry.action == "refit" and number not in self.undone
        ]
        return found[-1] if found else None

    @property
    def last(self) -> int | None:
        """Number of the last decision in force, which an undo without a number takes back."""
        for number in range(len(self.entries), 0, -1):
            entry = self.entries[number - 1]
            if isinstance(entry, Decision) and entry.action != "undo" and number not in self.undone:
                return number
        return None


def undone_lines(entries: Sequence[Entry]) -> frozenset[int]:
    """Return the numbers of undone lines; the undo of an undo puts a decision in force again."""
    undone: set[int] = set()
    for number in range(len(entries), 0, -1):  # an undo refers to an earlier line
        entry = entries[number - 1]
        if not isinstance(entry, Decision) or entry.action != "undo" or number in undone:
            continue
        if entry.line is not None and entry.line < number:
            undone.add(entry.line)
    return frozenset(undone)


def read_log(folder: Path) -> Log:
    """Read the decisions on a run.

    Parameters
    ----------
    folder : Path
        Run folder; without a decisions.jsonl, there are no decisions.

    Returns
    -------
    Log
    """
    path = folder / NAME
    try:
        content = read_regular(path)
    except FileNotFoundError:
        content = b""
    except (OSError, DamagedFileError) as error:
        raise InputError(f"{path} cannot be read ({error}); check the file") from error
    return _log(folder, content)


def append(folder: Path, decisions: Sequence[Decision], *, expected: str | None = None) -> Log:
    """Add decisions to a run; they are on disk when this function returns.

    Parameters
    ----------
    folder : Path
        Run folder.
    decisions : sequence of Decision
        All are written, or none.
    expected : str, optional
        Digest of the log that the person saw. If other decisions were added since, or the run was
        replaced, nothing is written. By default, the decisions are added to whatever is there.

    Returns
    -------
    Log
        All decisions on the run.

    Raises
    ------
    StaleError
        If the log is not the expected one.
    InputError
        If the file cannot be written; it is then as before.
    """
    path = folder / NAME
    if not (folder / "run.json").is_file():
        raise InputError(
            f"{folder} is not a run folder (no run.json); give the folder that `newfound discover` "
            "wrote"
        )
    lines = "".join(json.dumps(each.to_dict(), ensure_ascii=False) + "\n" for each in decisions)
    try:
        with _locked(path) as handle:
            before = _content(handle)
            log = _log(folder, before)
            if expected is not None and expected != log.digest:
                raise StaleError(
                    f"the decisions on {folder} have changed since they were read, or the run was "
                    "replaced; read them again and decide again"
                )
            _check_not_refitted(folder, log, decisions)
            # A line written by hand may lack its end.
            gap = "\n" if before and not before.endswith(b"\n") else ""
            added = (gap + lines).encode("utf-8", "replace")
            _write(handle, added, len(before))
            return _log(folder, before + added)
    except OSError as error:
        raise InputError(cannot_write(path, error)) from error


def _check_not_refitted(folder: Path, log: Log, decisions: Sequence[Decision]) -> None:
    """Raise InputError for decisions on a run that a later one has replaced."""
    if log.refit is None or all(each.action in ("undo", "note", "refit") for each in decisions):
        return
    number, refit = log.refit
    raise InputError(
        f"{folder} was refitted into {refit.run}, which does not have later decisions on this run; "
        f"decide there, or undo line {number} of {NAME} first"
    )


def _log(folder: Path, content: bytes) -> Log:
    """Return the log in the content of the file."""
    entries: list[Entry] = []
    lines = content.decode("utf-8", "replace").split("\n")
    for number, line in enumerate(lines[:-1] if lines[-1] == "" else lines, start=1):
        try:
            entries.append(parse_line(line) if line.strip() else None)
        except InputError as error:
            entries.append(Problem(number, str(error)))
    run = _run_digest(folder)
    return Log(tuple(entries), hashlib.sha256(content + run).hexdigest()[:32], run.hex()[:32])


def _run_digest(folder: Path) -> bytes:
    """Return what changes with the run."""
    for name in (MANIFEST, "run.json"):  # runs of the first format have no manifest
        with suppress(OSError, DamagedFileError):
            return hashlib.sha256(read_regular(folder / name)).digest()
    return b""


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """Yield a handle of the file, which is created if missing, while its lock is held."""
    begun = time.monotonic()
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
    while True:
        new = not path.exists()
        handle = os.open(path, flags, 0o666)
        try:
            held = try_lock(handle)
            if held is None or (held and same_file(handle, path)):
                yield handle
                if new:
                    sync_folder(path.parent)
                return
        finally:
            os.close(handle)
        if time.monotonic() - begun > PATIENCE:
            raise InputError(f"another program is writing {path}; wait until it ends")
        time.sleep(PAUSE)


def _content(handle: int) -> bytes:
    """Return the whole content of an open file."""
    size = os.fstat(handle).st_size
    os.lseek(handle, 0, os.SEEK_SET)
    parts = []
    while size > 0 and (part := os.read(handle, size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _write(handle: int, added: bytes, size: int) -> None:
    """Append bytes and flush them to disk; if that fails, cut the file back to its size."""
    try:
        left = added
        while left:
            left = left[os.write(handle, left) :]
        os.fsync(handle)
    except BaseException:
        with suppress(OSError):
            os.ftruncate(handle, size)
        raise


def describe_log(log: Log) -> str:
    """Return how many decisions there are, as text."""
    counted = [
        e for e in log.entries if isinstance(e, Decision) and e.action not in ("undo", "refit")
    ]
    undone = sum(
        isinstance(log.entries[number - 1], Decision) and log.entries[number - 1].action != "undo"  # type: ignore[union-attr]
        for number in log.undone
        if number <= len(log.entries)
    )
    taken_back = f", {undone:,} of them undone" if undone else ""
    return f"{plural(len(counted), 'decision')}{taken_back}"
