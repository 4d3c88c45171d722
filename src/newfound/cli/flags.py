"""Flags that several commands share, and the format of help texts."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from newfound.config import RunConfig, describe_type, flag_of, settings_of

# The type that `add_subparsers` returns, which is private in argparse.
Commands = Any

NO_RESUME = "--no-resume"


class HelpFormatter(argparse.ArgumentDefaultsHelpFormatter):
    """Shows the defaults of flags that take a value, and marks required flags."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        if action.option_strings and action.required:
            return f"{action.help} (required)"
        if action.nargs == 0 or action.default == []:  # off or empty by default
            return action.help
        return super()._get_help_string(action)


def new_command(
    commands: Commands,
    name: str,
    run: Callable[[argparse.Namespace], int | None],
    help: str,
    description: str | None = None,
) -> argparse.ArgumentParser:
    """Add a command that calls `run` with its options, and return its parser.

    `help` is shown in the list of commands, `description` at the top of the command's own help.
    """
    command: argparse.ArgumentParser = commands.add_parser(
        name, help=help, description=description or _sentence(help), formatter_class=HelpFormatter
    )
    command.set_defaults(run=run)
    return command


def _sentence(help: str) -> str:
    return f"{help[0].upper()}{help[1:]}."


def add_output_flags(
    command: argparse.ArgumentParser, *, works: bool = True, result: bool = True
) -> None:
    """Add --quiet and --verbose if the command `works` for a while, --json if it has a `result`."""
    if works:
        amount = command.add_mutually_exclusive_group()
        amount.add_argument(
            "-q",
            "--quiet",
            action="store_true",
            help="print only results and errors",
        )
        amount.add_argument(
            "-v",
            "--verbose",
            action="store_true",
            help="also print the settings and the seconds of each stage",
        )
    if result:
        command.add_argument(
            "--json",
            action="store_true",
            help="print the result as one JSON object; everything else goes to standard error",
        )


def add_run_folder(command: argparse.ArgumentParser, help: str = "run folder") -> None:
    """Add the argument for the run folder."""
    command.add_argument("folder", metavar="RUN", type=Path, help=help)


def add_force(command: argparse.ArgumentParser, what: str) -> None:
    """Add --force, which is required to replace a file or folder."""
    command.add_argument("--force", action="store_true", help=f"replace {what}")


def add_no_resume(command: argparse.ArgumentParser) -> None:
    """Add --no-resume, which discards the unfinished work of an earlier command."""
    command.add_argument(
        NO_RESUME,
        action="store_true",
        help="discard what an earlier command kept beside the run folder, and start anew; without "
        "this flag, the same command goes on after a fault. The new work is kept in either case",
    )


def add_columns(command: argparse.ArgumentParser, roles: Sequence[str]) -> None:
    """Add the flags for column names."""
    for role in roles:
        several = ", can be repeated to join several columns" if role == "text" else ""
        command.add_argument(
            f"--{role}-column",
            metavar="NAME",
            action="append" if role == "text" else "store",
            default=argparse.SUPPRESS,
            help=f"column with the {role}s{several} (default: found by its name, with a note)",
        )


def add_time_column(command: argparse.ArgumentParser) -> None:
    """Add --time-column."""
    command.add_argument(
        "--time-column",
        metavar="NAME",
        default=argparse.SUPPRESS,
        help="column with the date of each text, such as 2024-05-31: the report and the "
        "categories then show volume over time (default: none)",
    )


TABLES = (
    "table of texts: CSV, TSV, JSON Lines (also .gz and .zst), Parquet, Arrow or Excel file, "
    "DuckDB or SQLite database, Hugging Face dataset, folder of .txt files, or a quoted pattern "
    "such as 'tickets/*.csv'"
)


def add_tables(command: argparse.ArgumentParser) -> None:
    """Add the tables to read and the flags for their columns and cells."""
    command.add_argument("tables", metavar="TABLE", nargs="+", type=Path, help=TABLES)
    add_columns(command, ("text", "label", "id"))
    add_vectors(command)
    add_parts(command)
    add_raw_cells(command)


def add_vectors(command: argparse.ArgumentParser, *, several: bool = True) -> None:
    """Add --vectors and --vector-column, for vectors that the user computed."""
    rows = "one row per row of the tables, in their order" if several else "one row per row"
    one = command.add_mutually_exclusive_group()
    one.add_argument(
        "--vectors",
        metavar="FILE",
        type=Path,
        default=argparse.SUPPRESS,
        help=f"vectors of the texts that you computed: a .npy file with {rows} (default: the "
        "encoder computes them)",
    )
    one.add_argument(
        "--vector-column",
        metavar="NAME",
        default=argparse.SUPPRESS,
        help="instead of --vectors: column of a Parquet table with a list of numbers per text "
        "(default: none)",
    )


def add_parts(command: argparse.ArgumentParser) -> None:
    """Add the flags that choose a part of a workbook or a database."""
    command.add_argument(
        "--sheet",
        metavar="NAME",
        default=argparse.SUPPRESS,
        help="sheet of an Excel workbook (default: the first one, with a note); needs the extra "
        "excel",
    )
    command.add_argument(
        "--query",
        metavar="SQL",
        default=argparse.SUPPRESS,
        help="SELECT statement on a DuckDB or SQLite database; DuckDB needs the extra sql "
        "(required with a database)",
    )


def add_raw_cells(command: argparse.ArgumentParser) -> None:
    """Add --raw-cells to a command that reads or writes CSV files."""
    command.add_argument(
        "--raw-cells",
        action="store_true",
        help="leave the cells of CSV and TSV files as they are; without it, an apostrophe is "
        "written before a cell that a spreadsheet would run as a formula, and removed when the "
        "cell is read",
    )


def add_run_flags(
    command: argparse.ArgumentParser,
    leave_out: Sequence[str] = (),
    helps: Mapping[str, str] | None = None,
) -> None:
    """Add one flag per field of RunConfig; with the method also --set for its own settings.

    `helps` replaces help texts, by field.
    """
    for name, kind, default, help in settings_of(RunConfig):
        if name in leave_out:
            continue
        if kind is bool:
            command.add_argument(
                flag_of(name), dest=name, action="store_true", help=(helps or {}).get(name, help)
            )
            continue
        command.add_argument(
            flag_of(name),
            dest=name,
            metavar=_metavar(kind),
            help=(helps or {}).get(name, help),
            # The help text of a flag without a default value describes what happens without it.
            default=argparse.SUPPRESS if default is None else default,
        )
    if "method" not in leave_out:
        command.add_argument(
            "--set",
            dest="settings",
            metavar="NAME=VALUE",
            action="append",
            default=argparse.SUPPRESS,
            help="hyper-parameter of the method, can be repeated; `newfound methods NAME` lists "
            "them (default: set by --effort)",
        )


def _metavar(kind: Any) -> str:
    """Return the placeholder of a value in help texts, such as `auto|N`."""
    names = {"int": "N", "float": "X", "str": "NAME"}
    return "|".join(names.get(part, part) for part in describe_type(kind).split("|"))


def add_naming(command: argparse.ArgumentParser) -> None:
    """Add the flags for naming novel categories with a language model."""
    command.add_argument(
        "--name-with",
        metavar="URL",
        default=argparse.SUPPRESS,
        help="name novel categories with a language model at this OpenAI-compatible URL; their "
        "keywords and typical texts are sent there, with the API key in NEWFOUND_API_KEY or "
        "OPENAI_API_KEY (default: names come from keywords, and nothing is sent)",
    )
    command.add_argument(
        "--name-model",
        metavar="MODEL",
        default=argparse.SUPPRESS,
        help="name of the language model (required with --name-with)",
    )


def add_marking(command: argparse.ArgumentParser) -> None:
    """Add --outside and --false-alarms to a command that has no other flags of a run."""
    command.add_argument(
        "--outside",
        metavar="SHARE",
        default=argparse.SUPPRESS,
        help="mark texts as fitting nowhere if their fit score is below a threshold; this share of "
        "the run's unlabelled texts is below it, from 0 to 1 (default: as in the run)",
    )
    command.add_argument(
        "--false-alarms",
        metavar="RATE",
        default=argparse.SUPPRESS,
        help="instead of --outside: share of texts of known categories that may be marked by "
        "mistake, from 0 to 1 (default: as in the run)",
    )


def add_device(command: argparse.ArgumentParser) -> None:
    """Add --device to a command that has no other flags of a run."""
    command.add_argument(
        "--device",
        metavar="NAME",
        default=argparse.SUPPRESS,
        help="cpu, cuda or cuda:N (default: cuda if available)",
    )


def add_model_flags(command: argparse.ArgumentParser) -> None:
    """Add the flags for the model that predicts."""
    add_marking(command)
    add_device(command)
    command.add_argument(
        "--trust-remote-code",
        action="store_true",
        help="run code that comes with the encoder of the run; only if you trust its author",
    )
    precision = command.add_mutually_exclusive_group()
    precision.add_argument(
        "--int8",
        action="store_const",
        const=True,
        help="encode in int8, on many CPUs several times as fast; the model is calibrated once on "
        "texts of the run and kept there, and its agreement with full precision and its speed are "
        "printed; needs the extra openvino",
    )
    precision.add_argument(
        "--fp32",
        dest="int8",
        action="store_const",
        const=False,
        help="encode in full precision, also if the run holds an int8 model that agrees with it "
        "and is faster; without this flag, such a model is used, with a note",
    )
    precision.add_argument(
        "--static",
        action="store_true",
        help="put static vectors in place of the encoder, so that no layer runs; they are fitted "
        "once to texts of the run. Some texts get another category than from the full model: their "
        "share is measured on held-out texts and printed",
    )
