"""`newfound discover --name-with` an endpoint that misbehaves: in time, and without secrets."""

import functools
import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.torture.endpoints import BEHAVIOURS, misbehaving
from benchmarks.torture.ground import Ground, problem_of
from benchmarks.torture.processes import run
from benchmarks.torture.tallies import Tally

SECONDS = 1.0  # limit on each request
TRIES = 2
MORE = 10.0  # seconds for the pauses between tries, on cores that others may use
SECRETS = ("PASSWORD", "APIKEY")


def naming(ground: Ground, trials: int, seed: int) -> Tally:
    """Ask every kind of endpoint for names, with a password and a key in its address."""
    tally = Tally()
    folder = ground.family(f"naming-{seed}")
    for name in list(BEHAVIOURS)[:trials]:
        with _served(name) as url:
            address = url.replace("http://", "http://user:PASSWORD@") + "?api_key=APIKEY"
            out = folder / name
            flags = ["--name-with", address, "--name-model", "m"]
            done = run(ground.discover(out, *flags), prepare=_quick)
        tally.trials += 1
        if done.hung:
            tally.fail("hangs", f"{name}: {done.seconds:.1f} s: {done.err[-400:]}")
        elif done.crashed or done.code:
            tally.fail("tracebacks", f"{name}: exit code {done.code}: {done.err[-400:]}")
        elif problem := problem_of(out):
            tally.fail("broken", f"{name}: {problem}")
        elif (seconds := _seconds(out)) > TRIES * SECONDS + MORE:
            tally.fail("hangs", f"{name}: naming took {seconds:.1f} s of {done.seconds:.1f} s")
        printed = (done.out + done.err).encode()
        files = [path.read_bytes() for path in out.rglob("*") if path.is_file()]
        for secret in SECRETS:
            if any(secret.encode() in data for data in (printed, *files)):
                tally.fail("broken", f"{name}: {secret} is stored or printed")
        if b"\x1b" in printed or "\x9b" in done.out + done.err:
            tally.fail("broken", f"{name}: an escape sequence is printed")
    return tally


def _seconds(run_folder: Path) -> float:
    """Return how long a run waited for names; the discovery itself may share its cores."""
    seconds: float = json.loads((run_folder / "run.json").read_text("utf-8"))["seconds"]["naming"]
    return seconds


def _quick() -> None:
    """Lower the limit on each request, in the process of the command."""
    from newfound import pipeline
    from newfound.describing.llm_names import names_from_endpoint

    quick = functools.partial(names_from_endpoint, timeout=SECONDS)
    pipeline.names_from_endpoint = quick
    os.environ["no_proxy"] = "127.0.0.1"


@contextmanager
def _served(name: str) -> Iterator[str]:
    """Serve a behaviour from a process of its own; yield the address."""
    # Not from threads of this process: a fork would copy their locks.
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            with misbehaving(BEHAVIOURS[name]) as url:
                os.write(writing, url.encode())
                os.close(writing)
                signal.pause()
        finally:
            os._exit(0)
    os.close(writing)
    try:
        yield os.read(reading, 1000).decode()
    finally:
        os.close(reading)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
