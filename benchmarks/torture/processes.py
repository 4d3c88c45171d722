"""Run the command `newfound` in processes that can be killed, starved and timed.

Importing torch takes seconds, and there are more than a thousand runs. So most of them run in a
fork of this process, in which everything is imported already; signals, limits and exit codes are
those of a process of its own. A sample runs the installed command.
"""

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

Arguments = list[str | Path]  # of the command `newfound`
LIMIT = 120.0  # seconds after which a process counts as hanging
TICK = 0.002  # seconds between looks at a process
WAITING = (signal.SIGINT, signal.SIGTERM)  # signals that a new process is not ready for


@dataclass(frozen=True)
class Outcome:
    """How a process ended."""

    code: int  # exit code, or minus the number of the signal that ended it
    out: str
    err: str
    seconds: float
    hung: bool

    @property
    def crashed(self) -> bool:
        """Whether it ended with a traceback, or by a signal that nobody sent."""
        faults = (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL)
        return (
            "Traceback (most recent call last)" in self.err
            or "Exception ignored" in self.err
            or -self.code in faults
        )

    @property
    def refused(self) -> bool:
        """Whether it ended with exit code 2 and one sentence after its notes."""
        lines = [line for line in self.err.splitlines() if not line.startswith("note: ")]
        return self.code == 2 and len(lines) == 1 and lines[0].startswith("newfound: ")


class Running:
    """A command in a forked process.

    Parameters
    ----------
    arguments : sequence of str or Path
        Arguments of `newfound`.
    prepare : callable, optional
        Called in the new process before the command.
    memory : int, optional
        Limit on its data, in bytes.
    file_size : int, optional
        Limit on the size of each file that it writes, in bytes.
    """

    def __init__(
        self,
        arguments: Sequence[str | Path],
        *,
        prepare: Callable[[], None] | None = None,
        memory: int | None = None,
        file_size: int | None = None,
        cwd: Path | None = None,
    ) -> None:
        self._streams = [tempfile.TemporaryFile() for _ in range(2)]  # noqa: SIM115
        self.begun = time.monotonic()
        self._code: int | None = None
        sys.stdout.flush()
        sys.stderr.flush()
        signal.pthread_sigmask(signal.SIG_BLOCK, WAITING)  # until the new process is ready
        self.pid = os.fork()
        if self.pid == 0:
            self._become(arguments, prepare, memory, file_size, cwd)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, WAITING)

    def _become(
        self,
        arguments: Sequence[str | Path],
        prepare: Callable[[], None] | None,
        memory: int | None,
        file_size: int | None,
        cwd: Path | None,
    ) -> None:
        """Run the command in this new process, and end it."""
        code = 1
        try:
            code = self._run(arguments, prepare, memory, file_size, cwd)
        except (KeyboardInterrupt, SystemExit) as late:  # a signal after the end of the command
            code = late.code if isinstance(late, SystemExit) and isinstance(late.code, int) else 130
        finally:
            os._exit(code)

    def _run(
        self,
        arguments: Sequence[str | Path],
        prepare: Callable[[], None] | None,
        memory: int | None,
        file_size: int | None,
        cwd: Path | None,
    ) -> int:
        """Run the command in this new process, and return its exit code."""
        code = 1
        try:
            for number, stream in zip((1, 2), self._streams, strict=True):
                os.dup2(stream.fileno(), number)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            sys.stdin = os.fdopen(0, closefd=False)
            sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
            sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
            os.setpgid(0, 0)
            if cwd is not None:
                os.chdir(cwd)
            if memory is not None:
                resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
            if file_size is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))
            signal.signal(signal.SIGINT, signal.default_int_handler)
            from newfound.cli import main

            if prepare is not None:
                prepare()
            sys.argv = ["newfound", *map(str, arguments)]
            signal.pthread_sigmask(signal.SIG_UNBLOCK, WAITING)
            main.command()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except KeyboardInterrupt:
            code = 130  # before or after the command, as the interpreter does
        except BaseException:
            traceback.print_exc()
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except OSError:
            code = code or 1
        return code

    def poll(self) -> bool:
        """Return whether the process has ended."""
        if self._code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._code = os.waitstatus_to_exitcode(status)
        return self._code is not None

    def send(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if not self.poll():
            os.kill(self.pid, number)

    def wait(self, limit: float = LIMIT) -> Outcome:
        """Wait for the end of the process; kill it after so many seconds."""
        hung = False
        while not self.poll():
            if time.monotonic() - self.begun > limit and not hung:
                hung = True
                os.kill(self.pid, signal.SIGKILL)
            time.sleep(TICK)
        seconds = time.monotonic() - self.begun
        texts = []
        for stream in self._streams:
            stream.seek(0)
            texts.append(stream.read().decode("utf-8", "replace"))
            stream.close()
        assert self._code is not None
        return Outcome(self._code, texts[0], texts[1], seconds, hung)


def run(
    arguments: Sequence[str | Path],
    *,
    limit: float = LIMIT,
    prepare: Callable[[], None] | None = None,
    memory: int | None = None,
    file_size: int | None = None,
    cwd: Path | None = None,
) -> Outcome:
    """Run a command to its end."""
    running = Running(arguments, prepare=prepare, memory=memory, file_size=file_size, cwd=cwd)
    return running.wait(limit)


class Installed(Running):
    """The installed command in a process of its own."""

    def __init__(self, arguments: Sequence[str | Path]) -> None:
        self._streams = [tempfile.TemporaryFile() for _ in range(2)]  # noqa: SIM115
        self.begun = time.monotonic()
        self._code = None
        out, err = self._streams
        command = [sys.executable, "-m", "newfound", *map(str, arguments)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
        )
        self.pid = self._process.pid

    def poll(self) -> bool:
        self._code = self._process.poll()
        return self._code is not None


def run_installed(arguments: Sequence[str | Path], limit: float = LIMIT) -> Outcome:
    """Run the installed command to its end."""
    return Installed(arguments).wait(limit)


def import_everything() -> None:
    """Import what the command imports, so that forks start at once."""
    import torch

    torch.set_num_threads(1)  # threads of OpenMP do not survive a fork
    import newfound.cli.main
    import newfound.data.tables
    import newfound.data.tables.parquet
    import newfound.pipeline
    import newfound.report
    import newfound.storage.export
    import newfound.storage.model_files
    import newfound.storage.run_folder  # noqa: F401
