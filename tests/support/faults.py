"""Faults at chosen moments of a run, and a clock that tests set."""

import subprocess
import sys
from pathlib import Path

from newfound.checkpoints import Checkpoints


class FakeClock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class FaultError(Exception):
    """A fault that a test causes."""


class FaultyCheckpoints(Checkpoints):
    """Checkpoints that raise `error` when the run records its place for the `limit`th time.

    A run records its place when a stage begins, after every batch that is encoded and after every
    epoch.
    """

    limit: float = float("inf")
    error: type[BaseException] = FaultError

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)  # type: ignore[arg-type]
        self.recorded = 0

    def at(self, stage: str, done: int, total: int | None) -> None:
        if self._open:
            self.recorded += 1
            if self.recorded >= self.limit:
                raise self.error
        super().at(stage, done, total)


# The command in a process that sends itself a signal when it records its place for the nth time.
PROGRAM = """
import os
from newfound.checkpoints import checkpoints
from newfound.cli.main import command

checkpoints.WORTH = checkpoints.LOSS = 0.0
checkpoints.SHARE = 1e9
record, places = checkpoints.Checkpoints.at, []

def at(self, *place):
    record(self, *place)
    places.append(place)
    if len(places) == {moment}:
        os.kill(os.getpid(), {signal})

checkpoints.Checkpoints.at = at
command()
"""


def run_until_signal(
    moment: int, signal: int, *arguments: str | Path
) -> subprocess.CompletedProcess[str]:
    """Run the command in another process until a signal at a moment, or until it ends."""
    program = PROGRAM.format(moment=moment, signal=int(signal))
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
