"""Ctrl-C and SIGTERM end a command, wherever they arrive."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.commands import put_task
from support.small_texts import SmallTask

from newfound.cli.main import command
from newfound.errors import InputError

NUMBERS = [signal.SIGINT, signal.SIGTERM]


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., int]]:
    """Run the command `newfound methods` with another body, and return its exit code."""
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
    handlers, hook = [signal.getsignal(each) for each in signals], sys.unraisablehook
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it

    def run(body: Callable[[object], None]) -> int:
        monkeypatch.setattr("newfound.cli.commands.methods.run", body)
        monkeypatch.setattr(sys, "argv", ["newfound", "methods"])
        with pytest.raises(SystemExit) as caught:
            command()
        return int(caught.value.code or 0)

    yield run
    signal.setitimer(signal.ITIMER_REAL, 0)
    sys.unraisablehook = hook
    for each, handler in zip(signals, handlers, strict=True):
        signal.signal(each, handler)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("error", [ValueError("odd"), InputError("odd")])
def test_interrupt_that_a_library_turns_into_an_error_is_still_an_interrupt(
    ended: Callable[..., int],
    number: signal.Signals,
    error: Exception,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run(options: object) -> None:
        try:
            os.kill(os.getpid(), number)
            time.sleep(5)
        except BaseException:
            raise error from None

    assert ended(run) == 128 + number
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("number", NUMBERS)
def test_interrupt_while_an_object_is_destroyed_is_not_lost(
    ended: Callable[..., int], number: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    class Destroyed:
        def __del__(self) -> None:
            os.kill(os.getpid(), number)
            time.sleep(0.5)

    def run(options: object) -> None:
        Destroyed()
        time.sleep(5)
        raise AssertionError("the signal was lost")

    begun = time.monotonic()
    assert ended(run) == 128 + number
    assert time.monotonic() - begun < 4
    assert "Traceback" not in capsys.readouterr().err


WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("late", ["exchanged", "checkpoints", "printed"])
def test_late_interrupt_says_that_the_run_was_written(
    number: signal.Signals, late: str, task: SmallTask, flags: list[str], tmp_path: Path
) -> None:
    table, out = put_task(tmp_path / "t.csv", task), tmp_path / "run"
    done = subprocess.run(
        [sys.executable, "-c", LATE, late, str(int(number)), "discover", table, "-o", out, *flags],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 128 + number
    assert done.stderr.splitlines()[-1] == f"newfound: {WORDS[number]}; {out} was written"
    assert (out / "run.json").is_file()
    assert {path.name for path in tmp_path.iterdir()} == {"t.csv", "run"}


# The command in a process that sends itself a signal once its run is in its place.
LATE = """
import os, sys
from newfound.checkpoints import Checkpoints, checkpoints
from newfound.cli import main
from newfound.cli.output import Output
from newfound.files import swapping

checkpoints.WORTH = checkpoints.LOSS = 0.0
checkpoints.SHARE = 1e9
places = {
    "exchanged": (swapping, "swap"),
    "checkpoints": (Checkpoints, "close"),
    "printed": (Output, "result"),
}
late, number = sys.argv.pop(1), int(sys.argv.pop(1))
owner, name = places[late]
original = getattr(owner, name)

def and_then_stop(*arguments, **options):
    found = original(*arguments, **options)
    if late != "exchanged" or arguments[0].name == "run":
        os.kill(os.getpid(), number)
    return found

setattr(owner, name, and_then_stop)
main.command()
"""
