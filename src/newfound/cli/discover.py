"""`newfound discover`: from tables of texts to a run folder."""

import argparse
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from newfound.cli.flags import (
    Commands,
    add_force,
    add_naming,
    add_output_flags,
    add_run_flags,
    add_tables,
    new_command,
)
from newfound.cli.inputs import (
    encoder_notes,
    method_settings,
    naming_endpoint,
    read_corpus,
    read_validation,
    run_config,
)
from newfound.cli.output import Output, category_table, run_value
from newfound.wording import plural

if TYPE_CHECKING:
    import numpy as np

    from newfound.data.corpus import Corpus
    from newfound.result import Category


def add_parser(commands: Commands) -> None:
    """Add the command."""
    command = new_command(
        commands,
        "discover",
        run,
        "find the categories of the texts in a table",
        "Read tables of texts (CSV, TSV, JSONL or Parquet; some texts with a label), find the "
        "category of every text, and write a run folder with assignments, categories, a report "
        "and a model for new texts.",
    )
    add_tables(command)
    command.add_argument(
        "-o", "--out", metavar="RUN", type=Path, required=True, help="run folder to write"
    )
    add_force(command, "an existing run folder")
    command.add_argument(
        "--format", choices=("csv", "parquet"), default="csv", help="format of the assignments"
    )
    command.add_argument(
        "--validation",
        metavar="TABLE",
        type=Path,
        default=argparse.SUPPRESS,
        help="labelled texts that decide when training stops (default: a part of those in TABLE)",
    )
    add_run_flags(command)
    add_naming(command)
    add_output_flags(command)


def run(options: argparse.Namespace) -> None:
    """Discover the categories of tables and write the run folder."""
    from newfound.storage.run_folder import check_run_folder

    output = Output(options)
    check_run_folder(options.out, options.force)
    run_config(options)  # a wrong flag is reported before the tables are read
    corpus, notes = read_corpus(options)
    output.notes(notes)
    discover_corpus(options, output, corpus, notes, force=options.force)


def discover_corpus(
    options: argparse.Namespace,
    output: Output,
    corpus: "Corpus",
    notes: list[str],
    *,
    force: bool,
    truth: "np.ndarray | None" = None,
) -> None:
    """Discover the categories of a corpus, write the run folder and print the result.

    With the `truth` of every text the result has scores on the unlabelled ones.
    """
    from newfound import pipeline
    from newfound.report import write_report
    from newfound.storage.run_folder import new_run, write_run

    begun = time.perf_counter()
    endpoint = naming_endpoint(options)
    config, settings = run_config(options), method_settings(options)
    held, more = read_validation(options, corpus) or (None, [])
    more += encoder_notes(config.encoder)
    output.notes(more)
    stages = output.stages()
    # The folder is opened before the long work: a place that cannot be written fails at once.
    with new_run(options.out, force) as folder:
        result = pipeline.discover(
            corpus, config, settings=settings, validation=held, stages=stages
        )
        if endpoint is not None:
            result = pipeline.name_novel(result, endpoint, stages=stages)
        output.notes(result.notes)
        output.settings(result.config)
        result = replace(
            result,
            notes=(*notes, *more, *result.notes),
            scores=None if truth is None else _scores(result.predicted, truth, corpus),
            command=options.command_line,
        )
        with stages.stage("writing the run"):
            write_run(result, folder, table_format=options.format)
            write_report(result, folder / "report.html", name=str(options.out))
    value = run_value(options.out, result)
    output.result(value, _text(value, result.categories, time.perf_counter() - begun))


def _scores(predicted: "np.ndarray", truth: "np.ndarray", corpus: "Corpus") -> dict[str, float]:
    """Return how well the categories of the unlabelled texts agree with the truth."""
    from newfound.clustering.metrics import accuracy

    hidden = corpus.targets < 0
    return accuracy(predicted[hidden], truth[hidden], set(corpus.known)).to_dict()


def _text(value: dict[str, Any], categories: Iterable["Category"], seconds: float) -> str:
    """Return the result for people."""
    estimated = " (estimated)" if value["estimate"] else ""
    lines = [
        category_table(categories),
        f"{plural(value['n_categories'], 'category', 'categories')}{estimated}: "
        f"{value['n_known']:,} known, {value['n_novel']:,} novel; {seconds:.0f} s",
        f"Open {value['report']}; everything is in {value['run']}/",
    ]
    if value["fits_nowhere"] is not None:
        lines.insert(2, f"{plural(value['fits_nowhere'], 'text fits', 'texts fit')} nowhere")
    if scores := value["scores"]:
        lines.append(
            f"Recovered of the hidden truth (unlabelled messages): all {scores['all']:.1f}%, "
            f"known {scores['known']:.1f}%, novel {scores['novel']:.1f}%"
        )
    return "\n".join(lines)
