"""SIGKILL, SIGTERM and Ctrl-C at random moments of `newfound discover`, and the same again."""

import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.torture.ground import Ground, contents, left_in, problem_of
from benchmarks.torture.processes import Installed, Running, run
from benchmarks.torture.tallies import Tally

SIGNALS = {"SIGKILL": signal.SIGKILL, "SIGTERM": signal.SIGTERM, "Ctrl-C": signal.SIGINT}
CODES = {signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGINT: 130}
INSTALLED = 0.05  # share of the trials with the installed command
STARTING = 3.0  # seconds that the installed command takes to import its packages


def signals(ground: Ground, name: str, trials: int, seed: int) -> Tally:
    """Send a signal at random moments; then repeat the command and compare the run.

    Half of the trials replace an old run, and half of them keep every piece of unfinished work.
    """
    tally = Tally()
    draw = random.Random(f"{seed} {name}")
    folder = ground.family(f"signals-{name}-{seed}")
    expected = {"old": contents(ground.old), "new": contents(ground.new)}
    for trial in range(trials):
        place = folder / str(trial)
        place.mkdir()
        _trial(ground, place, SIGNALS[name], draw, tally, expected)
        shutil.rmtree(place)
    return tally


def keep_everything() -> None:
    """Let `discover` keep every piece of unfinished work, however quick it was."""
    from newfound.checkpoints import checkpoints

    checkpoints.WORTH = checkpoints.LOSS = 0.0
    checkpoints.SHARE = 1e9


def _trial(
    ground: Ground,
    place: Path,
    number: signal.Signals,
    draw: random.Random,
    tally: Tally,
    expected: dict[str, dict[str, Any]],
) -> None:
    """Interrupt one command, look at what is there, and repeat the command."""
    out = place / "run"
    replaces, keeps = draw.random() < 0.5, draw.random() < 0.5
    installed = draw.random() < INSTALLED
    if replaces:
        shutil.copytree(ground.old, out)
    command = ground.discover(out, "--force")
    moment = draw.random() * 1.1 * ground.seconds + (STARTING * draw.random() if installed else 0)
    what = f"after {moment:.3f} s of {ground.seconds:.3f}, replaces={replaces}, keeps={keeps}"
    tally.trials += 1
    running = Installed(command) if installed else Running(command, prepare=_keeping(keeps))
    time.sleep(moment)
    running.send(number)
    done = running.wait()
    if done.hung:
        tally.fail("hangs", what)
    # While the interpreter starts or ends, a signal has its usual effect.
    if done.crashed or done.code not in (0, CODES[number], -number):
        tally.fail("tracebacks", f"{what}: exit code {done.code}: {done.err[-400:]}")
    if out.exists():
        problem = problem_of(out)
        if problem is not None:
            tally.fail("broken", f"{what}: {problem}")
        elif contents(out) not in (expected["old"], expected["new"]):
            tally.fail("broken", f"{what}: neither the old nor the new run")
    elif replaces:
        tally.fail("lost", f"{what}: {left_in(place, [])}")
    again = run(command, prepare=_keeping(keeps))
    if again.crashed or again.code:
        tally.fail("tracebacks", f"{what}, again: exit code {again.code}: {again.err[-400:]}")
    elif contents(out) != expected["new"]:
        tally.fail("broken", f"{what}: the command gave another run when it was repeated")
    if left := left_in(place, ["run"]):
        tally.fail("leftovers", f"{what}: {left}")


def _keeping(keeps: bool) -> Callable[[], None] | None:
    """Return what a process does before the command."""
    return keep_everything if keeps else None
