"""Decide what is kept of a run and when, and find it again."""

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from newfound.checkpoints.pieces import (
    Kept,
    read_piece,
    set_random_state,
    with_random_state,
    write_piece,
)
from newfound.checkpoints.progress import PROGRESS, Position, read_unfinished, write_progress
from newfound.errors import DamagedFileError
from newfound.files.leftovers import remove

if TYPE_CHECKING:
    from torch import Tensor

SHARE = 0.03  # of the time that may be spent on keeping
WORTH = 1.0  # seconds of work that are worth keeping
LOSS = 0.01  # of the time that a fault may cost: a long run keeps its work less often
SPEED = 100e6  # bytes per second: a cautious guess before the first measurement
MEASURABLE = 1_000_000  # bytes from which on a write shows the speed of the disk
OURS = (PROGRESS, "*.checkpoint", "*.safetensors", "*.part")  # what may be deleted


class Checkpoints:
    """Keeps pieces of work in a folder and loads them again.

    It keeps nothing before `open` is called, nor without a folder.

    Parameters
    ----------
    folder : Path, optional
        Folder of the unfinished work; by default, nothing is kept.
    command : str, optional
        Command line that `newfound info` shows.
    resume : bool, default True
        Whether to load the work of an earlier command; otherwise it is discarded.
    note : callable, optional
        Called with one sentence for the user.
    clock : callable, optional
        Returns the time in seconds.

    Attributes
    ----------
    holds_work : bool
        Whether the folder holds any work.
    spent : float
        Seconds spent on keeping.

    Examples
    --------
    >>> from newfound.checkpoints import Checkpoints, Kept
    >>> Checkpoints().compute("counting", lambda: Kept(3)).value
    3
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        command: str | None = None,
        resume: bool = True,
        note: Callable[[str], None] = lambda sentence: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.folder, self.command, self.resume = folder, command, resume
        self.note, self.clock = note, clock
        self.begun, self.spent = clock(), 0.0
        self.holds_work = False
        self._open = False
        self._inside = False  # a piece of work that is kept as a whole
        self._fingerprint: dict[str, str] = {}
        self._numbers: Counter[str] = Counter()  # of the pieces under each name
        self._waiting: list[tuple[str, Kept]] = []  # done, not yet kept
        self._waiting_since = 0.0
        self._position = Position("preparing", 0, None)
        self._progress_at = float("-inf")
        self._speed = SPEED

    @property
    def active(self) -> bool:
        """Whether work is kept now."""
        return self._open and not self._inside

    def open(self, fingerprint: Mapping[str, str]) -> None:
        """Begin to keep work, and find the work of an earlier command.

        Parameters
        ----------
        fingerprint : mapping of str to str
            Digests of everything that the work depends on; a note names those that changed.
        """
        if self.folder is None:
            return
        self._fingerprint = dict(fingerprint)
        try:
            if self.folder.is_symlink():  # somebody else's: not to be followed
                self.folder.unlink()
            self.folder.mkdir(parents=True, exist_ok=True)
            self._open = True
            self._check_earlier(self.folder)
        except OSError as error:
            self._give_up(error)
        self._write_progress()

    def _check_earlier(self, folder: Path) -> None:
        """Announce the work of an earlier command, or discard it."""
        earlier = read_unfinished(folder) if self.resume else None
        if earlier is None:
            _delete_work(folder)
            return
        names = {*self._fingerprint, *earlier.fingerprint}
        other = [n for n in names if self._fingerprint.get(n) != earlier.fingerprint.get(n)]
        if other:
            _delete_work(folder)
            self.note(
                "the unfinished work of an earlier command is discarded, because it is from other "
                + " and other ".join(sorted(other))
            )
        elif any(folder.glob("*.checkpoint")):
            self.holds_work = True
            self._position = earlier.position
            self.note(f"going on from unfinished work ({earlier.position})")

    def close(self, *, complete: bool) -> None:
        """Stop keeping; delete the work if the run is complete, or nothing was worth keeping."""
        self._inside = False
        if not complete and self._waiting and self.clock() - self._waiting_since >= WORTH:
            self._save_waiting()
        if complete or not self.holds_work:
            self._remove()
        else:
            self._write_progress()
        self._open = False

    def key(self, name: str) -> str:
        """Return the key of the next piece of work under a name; pieces come in a fixed order."""
        key = f"{name.replace(' ', '-')}-{self._numbers[name]}"
        self._numbers[name] += self.active
        return key

    def compute(self, name: str, work: Callable[[], Kept]) -> Kept:
        """Return the result of `work`, loaded if an earlier command kept it.

        The result is kept as a whole: nothing inside `work` is kept by itself.
        """
        if not self.active:
            return work()
        key = self.key(name)
        found = self.load(key)
        if found is not None:
            return found
        if not self._waiting:
            self._waiting_since = self.clock()
        self._inside = True
        try:
            result = work()
        finally:
            self._inside = False
        self._waiting.append((key, with_random_state(result)))
        self._save_waiting_if_due()
        return result

    def compute_tensor(self, name: str, work: "Callable[[], Tensor]") -> "Tensor":
        """Return the tensor of `work`, as `compute` does; a loaded one is on the CPU."""
        return self.compute(name, lambda: Kept(tensors={"found": work()})).tensors["found"]

    def due(self, since: float, size: int) -> bool:
        """Return whether to keep work of `size` bytes that began at `since`."""
        now = self.clock()
        passed = now - self.begun
        worth = self.active and now - since >= max(WORTH, LOSS * passed)
        return worth and self.spent + size / self._speed <= SHARE * passed

    def save(self, key: str, kept: Kept) -> None:
        """Keep a piece of work under a key, in place of an earlier one.

        If the folder cannot be written, its work is deleted, to leave space for the run itself, and
        nothing more is kept.
        """
        if not self.active or self.folder is None:
            return
        begun = self.clock()
        try:
            write_piece(self.folder, key, kept, _digest(self._fingerprint))
        except OSError as error:
            self._give_up(error)
            return
        passed = self.clock() - begun
        self.holds_work = True
        self.spent += passed
        if kept.size >= MEASURABLE and passed > 0:
            self._speed = kept.size / passed
        self._write_progress()

    def load(self, key: str) -> Kept | None:
        """Return the work under a key and set torch's random state; None if none is usable."""
        if not self.active or self.folder is None or not self.holds_work:
            return None
        try:
            found = read_piece(self.folder, key, _digest(self._fingerprint))
        except DamagedFileError as error:
            self.note(f"some unfinished work is damaged and is repeated ({error})")
            return None
        return None if found is None else set_random_state(found)

    def at(self, stage: str, done: int, total: int | None) -> None:
        """Record how far the run came."""
        if not self._open:
            return
        self._position = Position(stage, done, total)
        self._save_waiting_if_due()
        if self.clock() - self._progress_at >= WORTH:
            self._write_progress()

    def _save_waiting_if_due(self) -> None:
        """Keep the results that wait, once they are worth it."""
        size = sum(kept.size for _, kept in self._waiting)
        if self._waiting and self.due(self._waiting_since, size):
            self._save_waiting()

    def _save_waiting(self) -> None:
        """Keep the results that wait."""
        waiting, self._waiting = self._waiting, []
        for key, kept in waiting:
            self.save(key, kept)

    def _write_progress(self) -> None:
        """Write what `newfound info` shows."""
        if not self._open or self.folder is None:
            return
        begun = self.clock()
        try:
            write_progress(self.folder, self._fingerprint, self.command, self._position)
        except OSError as error:
            self._give_up(error)
            return
        self._progress_at = self.clock()
        self.spent += self._progress_at - begun

    def _give_up(self, error: OSError) -> None:
        """Keep nothing from now on."""
        self.note(
            f"unfinished work is not kept ({error.strerror or error}), so a fault would lose it"
        )
        self._remove()
        self._open = self.holds_work = False

    def _remove(self) -> None:
        """Remove the folder of the work, as far as it is ours."""
        if self._open and self.folder is not None:
            with suppress(OSError):
                _delete_work(self.folder)
                self.folder.rmdir()


def _delete_work(folder: Path) -> None:
    """Delete the files of unfinished work, and no others."""
    for pattern in OURS:
        for path in folder.glob(pattern):
            remove(path)


def _digest(fingerprint: Mapping[str, str]) -> str:
    """Return one digest of a fingerprint."""
    return hashlib.sha256(json.dumps(dict(fingerprint), sort_keys=True).encode()).hexdigest()
