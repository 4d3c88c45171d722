"""`newfound discover --name-with` an endpoint that misbehaves: in time, and without secrets."""

import functools
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.torture.endpoints import BEHAVIOURS, misbehaving
from benchmarks.torture.ground import Ground, problem_of
from benchmarks.torture.processes import run
from benchmarks.torture.tallies import Tally

SECONDS = 1.0  # limit on each request
TRIES = 2
MORE = (
    15.0  # seconds for the discovery itself, which may share its cores, and the pause between tries
)
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
            limit = ground.seconds + TRIES * SECONDS + MORE
            done = run(ground.discover(out, *flags), prepare=_quick, limit=2 * limit)
        tally.trials += 1
        if done.hung or done.seconds > limit:
            tally.fail("hangs", f"{name}: {done.seconds:.1f} s at a limit of {limit:.1f} s")
        elif done.crashed or done.code:
            tally.fail("tracebacks", f"{name}: exit code {done.code}: {done.err[-400:]}")
        elif problem := problem_of(out):
            tally.fail("broken", f"{name}: {problem}")
        printed = (done.out + done.err).encode()
        files = [path.read_bytes() for path in out.rglob("*") if path.is_file()]
        for secret in SECRETS:
            if any(secret.encode() in data for data in (printed, *files)):
                tally.fail("broken", f"{name}: {secret} is stored or printed")
        if b"\x1b" in printed or "\x9b" in done.out + done.err:
            tally.fail("broken", f"{name}: an escape sequence is printed")
    return tally


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
