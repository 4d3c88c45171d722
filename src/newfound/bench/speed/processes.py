"""Run a command in its own process and measure its time and peak memory."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from newfound.errors import InputError


@dataclass(frozen=True)
class Finished:
    """A process that ended without an error."""

    seconds: float
    peak_mb: float
    output: str


# The peak of a child includes the memory of its parent, so a small process is in between.
BETWEEN = """
import json, os, subprocess, sys, time
begun = time.perf_counter()
process = subprocess.Popen(sys.argv[2:])
_, status, usage = os.wait4(process.pid, 0)
found = [time.perf_counter() - begun, usage.ru_maxrss, os.waitstatus_to_exitcode(status)]
with open(sys.argv[1], "w") as file:
    json.dump(found, file)
"""


def run_process(command: Sequence[str]) -> Finished:
    """Run a command to its end; raise InputError if it fails."""
    with tempfile.TemporaryDirectory(prefix="newfound-") as folder:
        report = Path(folder) / "report.json"
        between = [sys.executable, "-I", "-S", "-c", BETWEEN, str(report)]
        done = subprocess.run([*between, *command], capture_output=True, text=True, check=False)
        if not report.is_file():
            raise InputError(f"{command[0]} could not be run: {_end(done.stderr)}")
        seconds, peak, code = json.loads(report.read_text())
    if code:
        raise InputError(f"{' '.join(command[:5])} ... failed ({code}): {_end(done.stderr)}")
    scale = 2**20 if sys.platform == "darwin" else 2**10  # bytes there, kilobytes elsewhere
    return Finished(seconds, peak / scale, done.stdout)


def _end(text: str) -> str:
    """Return the last 500 characters of a message as one line."""
    return " ".join(text.split())[-500:]


def newfound_command(*arguments: str) -> list[str]:
    """Return the command line of the installed newfound."""
    return [sys.executable, "-m", "newfound", *arguments]
