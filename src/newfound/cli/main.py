"""The command `newfound`: its parser, its errors and its exit codes.

Exit codes: 0 success, 1 some runs of a benchmark or some shards failed, 2 invalid input,
3 an alarm of `newfound predict --alarm`, 130 interrupted, 143 terminated.
"""

import argparse
import io
import os
import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import newfound
from newfound.cli.commands import (
    bench,
    check,
    completion,
    decide,
    demo,
    discover,
    estimate,
    export,
    info,
    methods,
    predict,
    refit,
    report,
    review,
    serve,
    update,
)
from newfound.cli.interrupts import catch_signals
from newfound.cli.printing import printable
from newfound.encoding.vectors.address import is_address
from newfound.errors import InputError
from newfound.redaction import redacted
from newfound.wording import closest

# In the order in which --help lists them.
COMMANDS = (
    discover,
    predict,
    serve,
    estimate,
    check,
    demo,
    info,
    report,
    review,
    decide,
    refit,
    update,
    export,
    methods,
    bench,
    completion,
)

TERMINATED = 128 + signal.SIGTERM  # exit code


class Parser(argparse.ArgumentParser):
    """A parser that reports errors in one line and suggests a name for a misspelt one."""

    def error(self, message: str) -> NoReturn:
        stop = "" if message.endswith("?") else ";"
        _complain(f"{message}{stop} see `{self.prog} --help`")
        sys.exit(2)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as argparse does, but let each command reject its own unknown flags."""
        options, rest = super().parse_known_args(args, namespace)
        if rest:
            names = [word.partition("=")[0] for word in rest if word.startswith("--")]
            flags = [flag for flag in self._option_string_actions if flag.startswith("--")]
            close = closest(names[0], flags) if names else None
            advice = "" if close is None else f"; did you mean {close}?"
            self.error(f"unrecognized arguments: {' '.join(rest)}{advice}")
        return options, rest

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError:
            close = closest(str(value), map(str, action.choices or ()))
            if close is None:
                raise
            message = f"invalid choice: {value!r}; did you mean {close!r}?"
            raise argparse.ArgumentError(action, message) from None


def command() -> NoReturn:
    """Run the command `newfound` and end the process with its exit code."""
    received = catch_signals()
    try:
        code = main()
    except Exception:
        if not received:
            raise
        # Compiled code may replace the interrupt by an error of its own.
        _complain("interrupted" if received[0] == signal.SIGINT else "terminated")
        code = 2
    sys.exit(128 + received[0] if received and code == 2 else code)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    arguments : sequence of str, optional
        Arguments after `newfound`; by default those of this process.

    Returns
    -------
    int
        The exit code.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal may not support all characters
            stream.reconfigure(errors="backslashreplace")
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    parser = build_parser()
    options = parser.parse_args(arguments)
    if not hasattr(options, "run"):
        parser.print_help()
        return 2
    options.command_line = "newfound " + " ".join(map(shlex.quote, _without_keys(arguments)))
    if options.run is not bench.run:  # benchmarks measure the library without these settings
        _prepare_process()
    try:
        code = int(options.run(options) or 0)
        sys.stdout.flush()
        return code
    except InputError as error:
        _complain(str(error))
        return 2
    except BrokenPipeError:  # the reader of the pipe has closed it
        _drop_output()
        return 0
    except OSError as error:  # for example a full disk
        what = f"{error.filename}: " if error.filename else ""
        _complain(f"{what}{error.strerror or error}")
        _drop_output()
        return 2
    except KeyboardInterrupt as interrupt:
        _complain(f"interrupted; {_written(options, interrupt) or 'nothing was written'}")
        return 130
    except SystemExit as stop:
        if stop.code == TERMINATED:
            _complain("; ".join(filter(None, ("terminated", _written(options, stop)))))
        raise


def _written(options: argparse.Namespace, interrupt: BaseException) -> str:
    """Return what an interrupted command wrote, as far as it is known."""
    if hasattr(options, "written"):
        return f"{options.written} was written"
    message = str(interrupt) if isinstance(interrupt, KeyboardInterrupt) else ""
    return message or "; ".join(getattr(interrupt, "__notes__", ()))


def _without_keys(arguments: Sequence[str]) -> Iterator[str]:
    """Yield arguments as they are stored in the run: a key in an address is left out.

    The address of an embedding service holds no key, and its model must not be hidden.
    """
    for before, argument in zip(["", *arguments], arguments, strict=False):
        flag, _, value = argument.partition("=")
        service = value if flag == "--encoder" else argument if before == "--encoder" else ""
        if is_address(service) and not set("@?") & set(service):
            yield argument
        else:
            yield redacted(argument)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = Parser(
        prog="newfound",
        description="Discover known and novel categories in texts.",
        epilog="Start with `newfound demo`, then `newfound discover my.csv -o my-run`.",
    )
    parser.add_argument("--version", action="version", version=f"newfound {newfound.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for module in COMMANDS:
        module.add_parser(commands)
    return parser


SPINS = "2000"  # about the time of a small matrix product
CPU_LIMIT = Path("/sys/fs/cgroup/cpu.max")  # of a container on Linux


def _prepare_process() -> None:
    """Set environment variables that speed up torch and numpy."""
    # Torch's threads spin while they wait. Long spinning is slow if another program needs the
    # core; no spinning is slow for small operations. Torch reads the value when it is imported.
    os.environ.setdefault("GOMP_SPINCOUNT", SPINS)
    # numpy's matrices are small here, and its threads would spin.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Torch counts the cores of the machine; more threads than a container may use are stopped.
    limit = _cpu_limit()
    if limit is not None:
        os.environ.setdefault("OMP_NUM_THREADS", str(limit))


def _cpu_limit() -> int | None:
    """Return how many cores a container may use, None without a limit below those it has."""
    try:
        quota, period = map(int, CPU_LIMIT.read_text().split())
    except (OSError, ValueError):  # no such file; "max" stands for no limit
        return None
    limit = max(1, -(-quota // period))
    return limit if limit < (os.cpu_count() or 1) else None


def _drop_output() -> None:
    """Discard pending output, so that the interpreter can exit without an error."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # the output is captured, not a real file
        return


def _complain(message: str) -> None:
    """Print an error on one line, without credentials and control characters."""
    one_line = " ".join(redacted(message).split())
    print(f"newfound: {printable(one_line)}", file=sys.stderr)
