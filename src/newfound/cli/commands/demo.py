"""`newfound demo`: a discovery on built-in messages whose true categories are known."""

import argparse
from pathlib import Path

from newfound.cli.commands.discover import discover_corpus
from newfound.cli.flags import (
    Commands,
    add_naming,
    add_no_resume,
    add_output_flags,
    add_run_flags,
    new_command,
)
from newfound.cli.output import Output
from newfound.errors import InputError
from newfound.wording import plural

DEMO = "newfound demo"  # start of the command line that a demo records


def add_parser(commands: Commands) -> None:
    """Add the command."""
    command = new_command(
        commands,
        "demo",
        run,
        "discover the categories of built-in help-desk messages",
        "Discover the categories of built-in help-desk messages and print the accuracy. The true "
        "categories are known, but hidden from the discovery.",
    )
    command.add_argument(
        "-o",
        "--out",
        metavar="RUN",
        type=Path,
        default=Path("demo-run"),
        help="run folder to write",
    )
    add_no_resume(command)
    add_run_flags(command)
    add_naming(command)
    add_output_flags(command)


def run(options: argparse.Namespace) -> None:
    """Discover the categories of the built-in messages and compare them with the true ones."""
    from newfound.data import demo
    from newfound.data.corpus import Corpus

    output = Output(options)
    _check_folder(options.out)
    table = demo.load()
    corpus = Corpus.from_lists(table["text"], table["label"])
    truth = table["truth"].to_numpy()
    labelled, hidden = sum(corpus.targets >= 0), len(set(truth) - set(corpus.known))
    output.introduction(
        f"Demo: {plural(len(corpus), 'help-desk message')}, {labelled:,} of them labelled with "
        f"{plural(len(corpus.known), 'category', 'categories')}; "
        f"{plural(hidden, 'more category is', 'more categories are')} hidden among the others."
    )
    options.format, options.raw_cells = "csv", False
    options.command_line = f"{DEMO} -o {options.out}"
    discover_corpus(options, output, corpus, [], force=True, truth=truth)


def _check_folder(folder: Path) -> None:
    """Raise InputError if the folder has other contents than an earlier demo."""
    from newfound.storage.formats import read_records
    from newfound.storage.run_folder import check_run_folder

    check_run_folder(folder, force=True)
    if (folder / "run.json").is_file():
        command = str(read_records(folder).get("command"))
        if not command.startswith(DEMO):
            raise InputError(
                f"{folder} holds a run that is not a demo; choose another folder with -o"
            )
