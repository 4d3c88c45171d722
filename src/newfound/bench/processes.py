"""Run a command as a user would, and say how long it took and how much memory it held."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from newfound.errors import InputError


@dataclass(frozen=True)
class Finished:
    """A process that has ended well."""

    seconds: float
    peak_mb: float  # the most memory that it held
    output: str


def run_process(
    command: Sequence[str], *, environment: Mapping[str, str] | None = None
) -> Finished:
    """Run a command to its end; its own peak of memory, not that of other children, is read."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        begun = time.perf_counter()
        process = subprocess.Popen(
            list(command), stdout=out, stderr=err, env={**os.environ, **(environment or {})}
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if process.returncode:
            told = " ".join(err.read().split())[-500:]
            raise InputError(f"{' '.join(command[:5])} ... failed ({process.returncode}): {told}")
        scale = 2**20 if sys.platform == "darwin" else 2**10  # bytes there, kilobytes elsewhere
        return Finished(seconds, usage.ru_maxrss / scale, out.read())


def newfound_command(*arguments: str) -> list[str]:
    """The command line of this very newfound."""
    return [sys.executable, "-m", "newfound.cli", *arguments]
