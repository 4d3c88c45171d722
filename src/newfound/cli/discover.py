"""`newfound discover`: from tables of texts to a run folder."""

import argparse
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

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
    read_corpus,
    read_validation,
    run_config,
)
from newfound.cli.output import Output, category_table, run_value
from newfound.wording import plural

if TYPE_CHECKING:
    import numpy as np

    from newfound.data.corpus import Corpus


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
    from newfound.describing.renaming import chosen_endpoint, rename_novel
    from newfound.discovery import Discovery
    from newfound.report import write_report
    from newfound.storage.run_folder import new_run, summary, write_run

    begun = time.perf_counter()
    endpoint = chosen_endpoint(options)
    config = run_config(options)
    discoverer = Discovery(
        **asdict(config),
        settings=method_settings(options),
        verbose=False if output.quiet else None,
    )
    held, more = read_validation(options, corpus) or (None, [])
    more += encoder_notes(config.encoder)
    output.notes(more)
    notes = notes + more
    # The folder is opened before the long work: a place that cannot be written fails at once.
    with new_run(options.out, force) as folder:
        discoverer.fit(
            corpus.texts,
            corpus.labels,
            ids=corpus.ids,
            validation=None if held is None else (held.texts, held.labels),
        )
        if endpoint is not None:
            rename_novel(discoverer, endpoint)
        output.notes(discoverer.notes_)
        scores = None if truth is None else _scores(discoverer.predicted_, truth, corpus)
        write_run(
            folder,
            discoverer,
            corpus,
            table_format=options.format,
            notes=notes,
            scores=scores,
            command=options.command_line,
        )
        write_report(folder, name=str(options.out))
    about = summary(discoverer, corpus, notes, scores, options.command_line)
    output.settings(about["settings"])
    for stage, seconds in discoverer.seconds_.items():
        output.detail(f"{stage}: {seconds:.1f} s")
    value = run_value(options.out, about, discoverer.category_list_)
    output.result(value, _text(value, discoverer.category_list_, time.perf_counter() - begun))


def _scores(predicted: "np.ndarray", truth: "np.ndarray", corpus: "Corpus") -> dict[str, float]:
    """Return how well the categories of the unlabelled texts agree with the truth."""
    from newfound.clustering.metrics import accuracy

    hidden = corpus.targets < 0
    return accuracy(predicted[hidden], truth[hidden], set(corpus.known)).to_dict()


def _text(value: dict, categories: list, seconds: float) -> str:
    """Return the result for people."""
    estimated = " (estimated)" if value["estimate"] else ""
    lines = [
        category_table(categories),
        f"{plural(value['n_categories'], 'category', 'categories')}{estimated}: "
        f"{value['n_known']:,} known, {value['n_novel']:,} novel; {seconds:.0f} s",
        f"Open {value['report']}; everything is in {value['run']}/",
    ]
    if scores := value["scores"]:
        lines.append(
            f"Recovered of the hidden truth (unlabelled messages): all {scores['all']:.1f}%, "
            f"known {scores['known']:.1f}%, novel {scores['novel']:.1f}%"
        )
    return "\n".join(lines)
