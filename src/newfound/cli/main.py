"""The command line. Heavy modules are imported by the command that needs them."""

import argparse
import importlib
import io
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import newfound
from newfound.cli.handover import add_export, add_report
from newfound.config import RunConfig, describe_type, flag_of, settings_of
from newfound.errors import InputError


class Parser(argparse.ArgumentParser):
    """A parser that says what is wrong in one line, as the commands do."""

    def error(self, message: str) -> NoReturn:
        print(f"newfound: {_one_line(message)}; see `{self.prog} --help`", file=sys.stderr)
        sys.exit(2)


def command() -> NoReturn:
    """Run the command `newfound` and end the process with its exit code."""
    signal.signal(signal.SIGTERM, _terminated)
    sys.exit(main())


def _terminated(number: int, frame: object) -> NoReturn:
    """End as by Ctrl-C: on the way out what was begun is put away."""
    raise SystemExit(128 + number)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 if it worked, 2 if the input cannot be used."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal may lack a text's characters
            stream.reconfigure(errors="backslashreplace")
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    parser = build_parser()
    options = parser.parse_args(arguments)
    if not hasattr(options, "run"):
        parser.print_help()
        return 2
    options.command_line = "newfound " + " ".join(map(_quoted, arguments))
    try:
        code = int(options.run(options) or 0)
        sys.stdout.flush()
        return code
    except InputError as error:
        print(f"newfound: {_one_line(str(error))}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of a pipe went away: not our error
        _drop_output()
        return 0
    except OSError as error:  # a full disk behind standard output, say
        what = f"{error.filename}: " if error.filename else ""
        print(f"newfound: {what}{_one_line(error.strerror or str(error))}", file=sys.stderr)
        _drop_output()
        return 2
    except KeyboardInterrupt:
        print("newfound: interrupted; nothing was written", file=sys.stderr)
        return 130


def _drop_output() -> None:
    """Send what is still to be written nowhere, so that the interpreter's end does not fail."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # not a real file: somebody captures the output
        return


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = Parser(
        prog="newfound",
        description="Find the known and the new categories in a pile of texts.",
        epilog="Start with `newfound demo`, then `newfound discover my.csv -o my-run`.",
    )
    parser.add_argument("--version", action="version", version=f"newfound {newfound.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    _add_discover(commands)
    _add_predict(commands)
    _add_estimate(commands)
    _add_demo(commands)
    _add_info(commands)
    add_report(_command(commands, "report", "write the HTML report of a run again, or elsewhere"))
    add_export(
        _command(
            commands,
            "export",
            "hand categories and their texts to Label Studio, Rasa or a spreadsheet",
            "Write categories of a run and their texts as Label Studio tasks (beside them the "
            "labelling configuration as .xml), as Rasa NLU training data, or as a table with the "
            "columns text and label.",
        )
    )
    _add_methods(commands)
    _add_bench(commands)
    return parser


def _command(commands: Any, name: str, help: str, description: str | None = None) -> Any:
    return commands.add_parser(
        name,
        help=help,
        description=description or help,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )


def _add_discover(commands: Any) -> None:
    command = _command(
        commands,
        "discover",
        "find the categories of a table's texts",
        "Read tables of texts (CSV, TSV, JSONL or Parquet; some texts with a label), find the "
        "category of every text, and write a run folder with assignments, categories, a report "
        "and a model for the next texts.",
    )
    _add_tables(command)
    command.add_argument("-o", "--out", metavar="RUN", type=Path, required=True, help="run folder")
    command.add_argument("--force", action="store_true", help="replace an existing run folder")
    command.add_argument(
        "--format", choices=("csv", "parquet"), default="csv", help="format of the assignments"
    )
    command.add_argument(
        "--validation",
        metavar="TABLE",
        type=Path,
        default=argparse.SUPPRESS,
        help="labelled texts that say when to stop (default: a part of the labelled ones)",
    )
    add_run_flags(command)
    _add_naming(command)
    command.set_defaults(run=_lazy("discover"))


def _add_tables(command: Any) -> None:
    command.add_argument("tables", metavar="TABLE", nargs="+", type=Path, help="file with texts")
    for role, example in (("text", "text"), ("label", "label"), ("id", "id")):
        command.add_argument(
            f"--{role}-column",
            metavar="NAME",
            default=argparse.SUPPRESS,
            help=f"column of the {example} (default: guessed from its name, and said)",
        )


def add_run_flags(command: Any, leave_out: Sequence[str] = ()) -> None:
    """One flag for each field of RunConfig; with the method, --set for its own settings."""
    for name, kind, default, help in settings_of(RunConfig):
        if name in leave_out:
            continue
        command.add_argument(
            flag_of(name),
            dest=name,
            metavar=describe_type(kind),
            help=help,
            # The help says what happens by default where no value can.
            default=argparse.SUPPRESS if default is None else default,
        )
    if "method" in leave_out:
        return
    command.add_argument(
        "--set",
        dest="settings",
        metavar="NAME=VALUE",
        action="append",
        default=argparse.SUPPRESS,
        help="a hyper-parameter of the method; `newfound methods NAME` lists them; repeatable "
        "(default: what --effort picks)",
    )


def _add_naming(command: Any) -> None:
    command.add_argument(
        "--name-with",
        metavar="URL",
        default=argparse.SUPPRESS,
        help="OpenAI-compatible endpoint that names the novel categories; their keywords and "
        "typical texts are sent there, with the key in NEWFOUND_API_KEY or OPENAI_API_KEY "
        "(default: names come from keywords and nothing is sent)",
    )
    command.add_argument(
        "--name-model",
        metavar="MODEL",
        default=argparse.SUPPRESS,
        help="the model to ask there; needed with --name-with",
    )


def _add_predict(commands: Any) -> None:
    command = _command(
        commands,
        "predict",
        "give new texts a category with a run's model",
        "Give each new text its category, whether that is known or novel, and a probability. "
        "With - as the table, lines are read from standard input and JSON lines written to "
        "standard output.",
    )
    command.add_argument("folder", metavar="RUN", type=Path, help="run folder (or a saved model)")
    command.add_argument("table", metavar="TABLE", help="file with texts, or - for standard input")
    command.add_argument(
        "-o",
        "--out",
        metavar="OUT",
        type=Path,
        default=argparse.SUPPRESS,
        help="table to write: .csv, .tsv, .jsonl or .parquet (default with -: standard output)",
    )
    command.add_argument("--force", action="store_true", help="replace an existing table")
    for role in ("text", "id"):
        command.add_argument(
            f"--{role}-column",
            metavar="NAME",
            default=argparse.SUPPRESS,
            help=f"column of the {role} (default: guessed from its name, and said)",
        )
    command.add_argument(
        "--device", default=argparse.SUPPRESS, help="cpu, cuda or cuda:N (default: the best)"
    )
    command.add_argument(
        "--int8",
        action="store_true",
        help="encode in int8, several times as fast on a CPU; calibrated once on the run's texts, "
        "and its agreement with full precision is said; needs newfound[openvino]",
    )
    command.set_defaults(run=_lazy("predict", "newfound.cli.predict"))


def _add_estimate(commands: Any) -> None:
    command = _command(
        commands,
        "estimate",
        "say how many categories there seem to be",
        "Estimate the number of categories in the texts and show the curve behind it.",
    )
    _add_tables(command)
    # Counting trains nothing: what is about training says nothing here.
    add_run_flags(command, leave_out=("method", "n_categories", "effort", "validation_share"))
    command.add_argument("--json", action="store_true", help="print the result as JSON")
    command.set_defaults(run=_lazy("estimate"))


def _add_demo(commands: Any) -> None:
    command = _command(
        commands,
        "demo",
        "discover the categories of the built-in help-desk messages",
        "Run a discovery on the built-in data, whose truth is known, and show how well it went.",
    )
    command.add_argument(
        "-o", "--out", metavar="RUN", type=Path, default=Path("demo-run"), help="run folder"
    )
    add_run_flags(command)
    _add_naming(command)
    command.set_defaults(run=_lazy("demo"))


def _add_info(commands: Any) -> None:
    command = _command(commands, "info", "show what a run found and how")
    command.add_argument("folder", metavar="RUN", type=Path, help="run folder")
    command.set_defaults(run=_lazy("info"))


def _add_methods(commands: Any) -> None:
    command = _command(commands, "methods", "list the methods, or one method's settings")
    command.add_argument("name", metavar="NAME", nargs="?", help="a method, to see its settings")
    command.set_defaults(run=_lazy("methods"))


def _add_bench(commands: Any) -> None:
    from newfound.bench.cli import add_commands

    add_commands(_command(commands, "bench", "reproduce the paper: data, runs, tables and figures"))


SPINS = "2000"  # about as long as a small matrix product takes


def _lazy(name: str, module: str = "newfound.cli.commands") -> Any:
    """A command whose module is imported when it runs, so that --help stays quick."""

    def run(options: argparse.Namespace) -> int | None:
        # Torch's threads spin while they wait, which is slow as soon as another program wants a
        # core; not spinning at all is slow where they wait for each other often. So they spin
        # shortly. It is read when torch is loaded, so it is said before.
        os.environ.setdefault("GOMP_SPINCOUNT", SPINS)
        # numpy's linear algebra is small here, and its threads cannot be told not to spin.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        code: int | None = getattr(importlib.import_module(module), name)(options)
        return code

    return run


def _one_line(message: str) -> str:
    return " ".join(message.split())


def _quoted(word: str) -> str:
    import shlex

    return shlex.quote(word)
