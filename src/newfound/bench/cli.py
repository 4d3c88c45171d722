"""The parsers of the commands below `newfound bench`; what they do stands in bench/commands.py."""

import argparse
from pathlib import Path
from typing import Any

RESULTS = Path("benchmarks/results")
SEARCH = Path("benchmarks/search")
ARTEFACTS = Path("benchmarks/artefacts")


def add_commands(bench: argparse.ArgumentParser) -> None:
    """Add every command below `newfound bench`."""

    def no_command(options: argparse.Namespace) -> int:
        bench.print_help()
        return 2

    bench.set_defaults(run=no_command)
    commands = bench.add_subparsers(title="commands", metavar="COMMAND")

    def add(name: str, help: str) -> argparse.ArgumentParser:
        command = commands.add_parser(
            name,
            help=help,
            description=help,
            formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        )
        command.set_defaults(run=_lazy(name))
        return command

    _add_fetch(add("fetch", "download the paper's data sets"))
    _add_run(add("run", "run methods on data sets: one result line a run"))
    _add_plan(
        add("count", "estimate the number of categories (Table 4): one line a data set, seed")
    )
    _add_splits(add("splits", "count what the protocol gives a method (Table 1)"))
    _add_speed(add("speed", "measure encoding, training, k-means and whole commands beside peers"))
    _add_tables(add("tables", "render the paper's tables as Markdown from the result lines"))
    _add_figures(add("figures", "draw the paper's figures from result lines and artefacts"))


def _lazy(name: str) -> Any:
    """A command whose module is imported when it runs, so that --help stays quick."""

    def run(options: argparse.Namespace) -> int | None:
        from newfound.bench import commands

        return getattr(commands, name)(options)

    return run


def _add_fetch(command: argparse.ArgumentParser) -> None:
    _add_data(command, "the environment variable NEWFOUND_DATA, else data")
    command.add_argument(
        "--from",
        dest="home",
        metavar="URL",
        default=argparse.SUPPRESS,
        help="where the files are (default: the repository of the paper's authors)",
    )


def _add_run(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--method",
        default="dpn",
        metavar="NAME[,..]",
        help="methods, dpn-coupled, semi-km or the ablations of dpn",
    )
    _add_plan(command)
    command.add_argument(
        "--categories",
        choices=("given", "auto"),
        default="given",
        help="whether the true number of categories is given or estimated",
    )
    command.add_argument(
        "--search",
        action="store_true",
        help="to choose settings by: hide a quarter of the known categories, score dev texts; "
        f"lines go to {SEARCH}/DATA_SET.jsonl",
    )
    command.add_argument(
        "--artefacts",
        metavar="FOLDER",
        type=Path,
        default=argparse.SUPPRESS,
        help=f"keep what figures need there, one small file a run (figures read {ARTEFACTS})",
    )


def _add_splits(command: argparse.ArgumentParser) -> None:
    _add_split(command)
    command.add_argument(
        "-o",
        "--out",
        metavar="FILE",
        type=Path,
        default=RESULTS / "table1.jsonl",
        help="result lines",
    )


def _add_speed(command: argparse.ArgumentParser) -> None:
    _add_data(command)
    command.add_argument("--texts", type=int, default=4000, help="texts of BANKING to work on")
    command.add_argument("--repeats", type=int, default=3, help="medians are over so many")
    command.add_argument(
        "--only",
        metavar="PART[,..]",
        default=argparse.SUPPRESS,
        help="encoding, training, kmeans, discover, imports, growth, epochs, runs (default: not "
        "the last three)",
    )
    command.add_argument("--encoder", default="minilm", help="short name, folder or Hub id")
    command.add_argument(
        "--efforts", metavar="EFFORT[,..]", default="fast,balanced", help="of `discover`"
    )
    command.add_argument(
        "--growth-texts",
        type=int,
        default=200_000,
        help="the largest table that growth predicts; a million takes a while",
    )
    command.add_argument(
        "-o",
        "--out",
        metavar="FILE",
        type=Path,
        default=RESULTS / "speed.jsonl",
        help="file that lines are appended to",
    )


def _add_tables(command: argparse.ArgumentParser) -> None:
    _add_results(command)
    command.add_argument(
        "--out",
        metavar="FOLDER",
        type=Path,
        default=Path("benchmarks"),
        help="where the tables go; the pages that show some are filled, too",
    )


def _add_figures(command: argparse.ArgumentParser) -> None:
    _add_results(command)
    command.add_argument(
        "--artefacts",
        metavar="FOLDER",
        type=Path,
        default=ARTEFACTS,
        help="what `bench run --artefacts` kept",
    )
    command.add_argument(
        "--out",
        metavar="FOLDER",
        type=Path,
        default=Path("benchmarks/figures"),
        help="where the pictures go",
    )


def _add_results(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--results", metavar="FOLDER", type=Path, default=RESULTS, help="folder of result lines"
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
        help="banking, stackoverflow, clinc, or all of them",
    )
    command.add_argument("--seeds", default="0-4", metavar="N-N|N[,..]", help="such as 0-4 or 0,2")
    command.add_argument(
        "--known-ratio",
        default="0.75",
        metavar="R[,..]",
        help="share of categories that are known; 0: no labels at all",
    )
    command.add_argument(
        "--labelled-ratio",
        default="0.1",
        metavar="R[,..]",
        help="share of the known categories' texts that are labelled",
    )


def _add_plan(command: argparse.ArgumentParser) -> None:
    _add_split(command)
    command.add_argument("--encoder", default="minilm", help="short name, folder or Hub id")
    command.add_argument(
        "--effort",
        choices=("fast", "balanced", "best"),
        default="best",
        help="best is as published",
    )
    command.add_argument(
        "--max-tokens", type=int, default=128, help="longer texts are cut after so many tokens"
    )
    command.add_argument(
        "--device", default=argparse.SUPPRESS, help="cpu, cuda or cuda:N (default: the best)"
    )
    command.add_argument(
        "--cache",
        metavar="FOLDER",
        type=Path,
        default=argparse.SUPPRESS,
        help="keeps pretrainings for later commands (default: while runs in a row share one)",
    )
    command.add_argument(
        "--set",
        dest="settings",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a hyper-parameter of the method; `newfound methods NAME` lists them; repeatable",
    )
    command.add_argument(
        "-o",
        "--out",
        metavar="FILE",
        type=Path,
        default=argparse.SUPPRESS,
        help=f"file that lines are appended to (default: {RESULTS}/DATA_SET.jsonl); a run that has "
        "its line there is not run again",
    )
