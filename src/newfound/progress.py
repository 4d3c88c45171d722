"""Time the stages of a run, show their progress and carry its checkpoints."""

import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from newfound.checkpoints import Checkpoints

Advance = Callable[[int], None]


class Stages:
    """Measures named stages and shows their progress.

    Parameters
    ----------
    show : bool, optional
        Whether to show a progress bar with the time left; by default, if standard error is a
        terminal and rich is installed.
    log : callable, optional
        Called with one line of text when a stage ends: its name and its duration in seconds.
    checkpoints : Checkpoints, optional
        Keeps the work of the stages; by default, nothing is kept.
    tell : callable, optional
        Called with each note at once, because a run may take hours.

    Attributes
    ----------
    checkpoints : Checkpoints
    seconds : dict of str to float
        Duration of each stage, in the order in which the stages began.
    notes : list of str
        What the user should know about the stages, such as a damaged cache.
    long_texts : int or None
        Texts that are longer than the encoder reads at once; None if none was tokenised.

    Examples
    --------
    >>> stages = Stages(show=False)
    >>> with stages.stage("encoding", total=3) as advance:
    ...     advance(3)
    >>> list(stages.seconds)
    ['encoding']
    """

    def __init__(
        self,
        show: bool | None = None,
        log: Callable[[str], None] | None = None,
        checkpoints: Checkpoints | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self.show = _can_show() if show is None else show
        self.log, self.tell = log, tell
        self.checkpoints = checkpoints or Checkpoints()
        self.seconds: dict[str, float] = {}
        self.notes: list[str] = []
        self.long_texts: int | None = None

    def note(self, text: str) -> None:
        """Keep a sentence for the user, which the result of the run will hold, once."""
        if text in self.notes:
            return
        self.notes.append(text)
        if self.tell is not None:
            self.tell(text)

    @contextmanager
    def stage(self, name: str, total: int | None = None) -> Iterator[Advance]:
        """Time a block under `name`; call the yielded function with the amount of work done."""
        begun = time.perf_counter()
        done = 0

        def recorded(show: Advance) -> Advance:
            def advance(amount: int) -> None:
                nonlocal done
                done += amount
                self.checkpoints.at(name, done, total)
                show(amount)

            return advance

        try:
            self.checkpoints.at(name, 0, total)
            if self.show:
                with self._bar(name, total) as advance:
                    yield recorded(advance)
            else:
                yield recorded(_ignore)
        finally:
            passed = time.perf_counter() - begun
            self.seconds[name] = self.seconds.get(name, 0.0) + passed
            if self.log is not None:
                self.log(f"{name}: {passed:.1f} s")

    @contextmanager
    def _bar(self, name: str, total: int | None) -> Iterator[Advance]:
        """Show a progress bar on standard error."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.description:<22}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeRemainingColumn(elapsed_when_finished=True),
        )
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task(name, total=total)
            yield lambda amount: progress.update(task, advance=amount)


def _can_show() -> bool:
    """Return whether progress bars can be shown; a benchmark may run without rich."""
    return sys.stderr.isatty() and importlib.util.find_spec("rich") is not None


def _ignore(amount: int) -> None:
    """Ignore progress that is not shown."""
