"""The parsers of `newfound bench ...`; `newfound.bench.commands` runs the commands."""

import argparse
from pathlib import Path
from typing import Any

from newfound.bench.lines import RESULTS, SEARCH


def add_commands(bench: argparse.ArgumentParser) -> None:
    """Add the commands of `newfound bench` to its parser."""

    def no_command(options: argparse.Namespace) -> int:
        bench.print_help()
        return 2

    bench.set_defaults(run=no_command)
    commands = bench.add_subparsers(title="commands", metavar="COMMAND")

    def add(name: str, help: str) -> argparse.ArgumentParser:
        command = commands.add_parser(
            name,
            help=help,
            description=f"{help[0].upper()}{help[1:]}.",
            formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        )
        command.set_defaults(run=_lazy(name))
        return command

    _add_fetch(add("fetch", "download the data sets of the paper"))
    _add_run(add("run", "run methods on data sets; append one result line per run"))
    _add_plan(
        add(
            "count",
            "estimate the number of categories; append one result line per data set and seed",
        )
    )
    _add_splits(add("splits", "count the labelled, unlabelled and test texts of splits"))
    _add_wild(
        add("wild", "run methods on tables with few labels, uneven sizes or out-of-scope texts")
    )
    _add_speed(add("speed", "time encoding, training, k-means, whole commands and other packages"))
    _add_table(add("table", "print result lines as a Markdown table"))


def _lazy(name: str) -> Any:
    """Return a command whose module is imported when it runs, so that --help stays fast."""

    def run(options: argparse.Namespace, output: Any) -> int | None:
        from newfound.bench import commands

        code: int | None = getattr(commands, name)(options, output)
        return code

    return run


def _add_fetch(command: argparse.ArgumentParser) -> None:
    _add_data(command, "the environment variable NEWFOUND_DATA, else data")
    command.add_argument(
        "--from",
        dest="home",
        metavar="URL",
        default=argparse.SUPPRESS,
        help="base URL of the files (default: the repository of the paper's authors)",
    )


def _add_run(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--method",
        default="dpn",
        metavar="NAME[,..]",
        help="methods (`newfound methods` lists them), dpn-coupled, or ablations of dpn "
        "(dpn-no-ce, ...)",
    )
    _add_plan(command)
    command.add_argument(
        "--categories",
        choices=("given", "auto"),
        default="given",
        help="given: the method gets the true number of categories; auto: it is estimated",
    )
    command.add_argument(
        "--search",
        action="store_true",
        help="choose settings without test labels: hide a quarter of the known categories and "
        f"score dev texts; lines are appended to {SEARCH}/DATA_SET.jsonl",
    )
    command.add_argument(
        "--published",
        action="store_true",
        help="run on the published splits of hwu64, banking and clinc, with known ratios 0.25, 0.5 "
        f"and 0.75; lines are appended to {RESULTS}/published.jsonl",
    )
    command.add_argument(
        "--artefacts",
        metavar="FOLDER",
        type=Path,
        default=argparse.SUPPRESS,
        help="folder for prototype distances, a 2-D map and training curves, one file per run",
    )


def _add_splits(command: argparse.ArgumentParser) -> None:
    _add_split(command)
    command.add_argument(
        "-o",
        "--out",
        metavar="FILE",
        type=Path,
        default=RESULTS / "table1.jsonl",
        help="file that lines are appended to",
    )


def _add_speed(command: argparse.ArgumentParser) -> None:
    _add_data(command)
    command.add_argument(
        "--texts", metavar="N", type=int, default=4000, help="texts per sample of BANKING"
    )
    command.add_argument(
        "--repeats",
        metavar="N",
        type=int,
        default=3,
        help="number of runs whose median is reported",
    )
    command.add_argument(
        "--only",
        metavar="PART[,..]",
        default=argparse.SUPPRESS,
        help="sections to measure: encoding, training, kmeans, discover, prediction, imports, "
        "growth, scaling, epochs, runs (default: all except the last four)",
    )
    command.add_argument(
        "--encoder", metavar="NAME", default="minilm", help="short name, folder or Hub id"
    )
    command.add_argument(
        "--efforts",
        metavar="EFFORT[,..]",
        default="fast,balanced",
        help="efforts of `discover` to measure",
    )
    command.add_argument(
        "--prediction-texts",
        metavar="N",
        type=int,
        default=20_000,
        help="number of distinct texts in the section prediction",
    )
    command.add_argument(
        "--growth-texts",
        metavar="N",
        type=int,
        default=200_000,
        help="number of texts of the largest table in the section growth",
    )
    command.add_argument(
        "--scaling-texts",
        metavar="N[,..]",
        default="5000,20000,60000,200000",
        help="number of texts of each table in the section scaling",
    )
    command.add_argument(
        "-o",
        "--out",
        metavar="FILE",
        type=Path,
        default=RESULTS / "speed.jsonl",
        help="file that lines are appended to",
    )


def _add_table(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        type=Path,
        help="result lines of `bench run` or `bench speed`",
    )


def _add_data(
    command: argparse.ArgumentParser, default: str = "the environment variable NEWFOUND_DATA"
) -> None:
    command.add_argument(
        "--data",
        metavar="FOLDER",
        default=argparse.SUPPRESS,
        help=f"folder of the data sets (default: {default})",
    )


def _add_split(command: argparse.ArgumentParser) -> None:
    _add_data(command)
    command.add_argument(
        "--data-set",
        default="all",
        metavar="NAME[,..]",
        help="banking, stackoverflow, clinc, or all",
    )
    command.add_argument(
        "--seeds", default="0-4", metavar="N-N|N[,..]", help="random seeds, such as 0-4 or 0,2"
    )
    command.add_argument(
        "--known-ratio",
        default="0.75",
        metavar="R[,..]",
        help="share of the categories that are known; 0 means no labels",
    )
    command.add_argument(
        "--labelled-ratio",
        default="0.1",
        metavar="R[,..]",
        help="share of the known categories' texts that are labelled",
    )


def _add_wild(command: argparse.ArgumentParser) -> None:
    _add_data(command)
    command.add_argument(
        "--data-set",
        default="all",
        metavar="NAME[,..]",
        help="banking, stackoverflow, clinc, hwu64, the NAME of a file wild/NAME.tsv, or all data "
        "sets in the folder",
    )
    command.add_argument(
        "--methods",
        default="newfound,semi-km,bert,script,oracle",
        metavar="NAME[,..]",
        help="methods (`newfound methods` lists them) and peers: script (logistic regression, and "
        "k-means on texts below a threshold), oracle (logistic regression, scored on texts of "
        "known categories), hdbscan, bertopic",
    )
    command.add_argument(
        "--designs",
        default="tenth,ten,archive,absent,none",
        metavar="NAME[,..]",
        help="labelled texts of each known category: a tenth, ten, 60%% (archive), ten while a "
        "third of the known categories is absent from the unlabelled texts (absent), or none",
    )
    command.add_argument(
        "--sizes",
        default="natural",
        metavar="NAME[,..]",
        help="sizes of the categories: natural (those of the data set), even, tail10 or tail100 "
        "(exponential, the largest 10 or 100 times the smallest)",
    )
    command.add_argument(
        "--noise",
        default="0",
        metavar="R[,..]",
        help="share of the unlabelled texts that are out of scope, drawn from "
        "wild/out_of_scope.tsv",
    )
    command.add_argument(
        "--categories",
        default="given",
        metavar="given|auto[,..]",
        help="given: the method gets the true number of categories; auto: it is estimated",
    )
    command.add_argument(
        "--seeds", default="0", metavar="N-N|N[,..]", help="random seeds, such as 0-4 or 0,2"
    )
    command.add_argument(
        "--known-ratio",
        default="0.75",
        metavar="R[,..]",
        help="share of the categories that are known",
    )
    command.add_argument(
        "--limit",
        type=int,
        default=2000,
        metavar="N",
        help="maximum number of texts of a table, without out-of-scope texts",
    )
    _add_method_flags(command, effort="fast")
    command.add_argument(
        "-o",
        "--out",
        metavar="FILE",
        type=Path,
        default=RESULTS / "wild.jsonl",
        help="file that lines are appended to; a run that already has a line in it is skipped",
    )


def _add_plan(command: argparse.ArgumentParser) -> None:
    _add_split(command)
    _add_method_flags(command, effort="best")
    command.add_argument(
        "-o",
        "--out",
        metavar="FILE",
        type=Path,
        default=argparse.SUPPRESS,
        help=f"file that lines are appended to (default: {RESULTS}/DATA_SET.jsonl); a run that "
        "already has a line in it is skipped",
    )


def _add_method_flags(command: argparse.ArgumentParser, effort: str) -> None:
    command.add_argument(
        "--encoder", metavar="NAME", default="minilm", help="short name, folder or Hub id"
    )
    command.add_argument(
        "--effort",
        choices=("fast", "balanced", "best"),
        default=effort,
        help="effort of the method; best follows the publications",
    )
    command.add_argument(
        "--max-tokens",
        metavar="N",
        type=int,
        default=128,
        help="longer texts are truncated to this many tokens",
    )
    command.add_argument(
        "--device",
        metavar="NAME",
        default=argparse.SUPPRESS,
        help="cpu, cuda or cuda:N (default: cuda if available)",
    )
    command.add_argument(
        "--cache",
        metavar="FOLDER",
        type=Path,
        default=argparse.SUPPRESS,
        help="folder of the feature cache and of pretrained encoders, kept for later commands "
        "(default: a temporary folder that consecutive runs share)",
    )
    command.add_argument(
        "--set",
        dest="settings",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="hyper-parameter of the method, can be repeated; `newfound methods NAME` lists them",
    )
