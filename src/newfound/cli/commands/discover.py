"""`newfound discover`: discover the categories of tables and write a run folder."""

import argparse
import shlex
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from newfound.checkpoints import Checkpoints, unfinished_folder
from newfound.cli.flags import (
    NO_RESUME,
    Commands,
    add_force,
    add_naming,
    add_no_resume,
    add_output_flags,
    add_run_flags,
    add_tables,
    add_time_column,
    new_command,
)
from newfound.cli.inputs import (
    method_settings,
    naming_endpoint,
    read_corpus,
    read_validation,
    run_config,
)
from newfound.cli.output import Output, category_table, run_value
from newfound.errors import InputError, PlaceTakenError
from newfound.files.locks import undisturbed
from newfound.wording import plural

if TYPE_CHECKING:
    import numpy as np

    from newfound.category import Category
    from newfound.data.corpus import Corpus
    from newfound.large.sharing import Engine


def add_parser(commands: Commands) -> None:
    """Add the command."""
    command = new_command(
        commands,
        "discover",
        run,
        "discover the categories of the texts in a table",
        "Discover the known and the novel categories of texts. The tables are CSV, JSON Lines, "
        "Parquet or Excel files, databases or folders in which some texts have a label. The run "
        "folder holds the category of every text, a description of each category, a report and a "
        "model for new texts.",
    )
    add_tables(command)
    add_time_column(command)
    command.add_argument(
        "-o", "--out", metavar="RUN", type=Path, required=True, help="run folder to write"
    )
    add_force(command, "an existing run folder")
    add_no_resume(command)
    command.add_argument(
        "--format", choices=("csv", "parquet"), default="csv", help="format of the assignments"
    )
    command.add_argument(
        "--validation",
        metavar="TABLE",
        type=Path,
        default=argparse.SUPPRESS,
        help="labelled texts that decide when training stops (default: a share of those in TABLE)",
    )
    add_run_flags(command)
    command.add_argument(
        "--engine",
        choices=("ray",),
        default=argparse.SUPPRESS,
        help="share the encoding of a large table (--fit-texts) among worker processes of Ray, on "
        "this machine or on the cluster in RAY_ADDRESS; needs the extra ray (default: this "
        "process encodes)",
    )
    command.add_argument(
        "--workers",
        metavar="N",
        type=int,
        default=argparse.SUPPRESS,
        help="worker processes of --engine ray (default: one per GPU, or else per core)",
    )
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

    If the true categories are given as `truth`, the result has scores for the unlabelled texts.
    """
    from newfound import pipeline
    from newfound.report import write_report
    from newfound.storage.run_folder import new_run, write_run
    from newfound.storage.space import check_run_space

    begun = time.perf_counter()
    endpoint = naming_endpoint(options)
    config, settings = run_config(options), method_settings(options)
    engine = _engine(options)
    held, more = read_validation(options, corpus) or (None, [])
    output.notes(more)
    stages = output.stages()
    check_run_space(options.out, corpus, config)
    stages.checkpoints = checkpoints = Checkpoints(
        unfinished_folder(options.out),
        command=_going_on(options.command_line),
        resume=not options.no_resume,
        note=lambda note: output.notes([note]),
    )
    written = partial(output.written, options.out)
    # The folder is created first, so that a place that cannot be written to fails at once.
    with _kept_until_complete(checkpoints, written), new_run(options.out, force) as folder:
        result = pipeline.discover(
            corpus, config, settings=settings, validation=held, stages=stages, engine=engine
        )
        if endpoint is not None:
            result = pipeline.name_novel(result, endpoint, stages=stages)
        output.notes(note for note in result.notes if note not in stages.notes)
        output.settings(result.config)
        result = replace(
            result,
            notes=(*notes, *more, *result.notes),
            scores=None if truth is None else _scores(result.predicted, truth, corpus),
            command=options.command_line,
        )
        with stages.stage("writing the run"):
            write_run(result, folder, table_format=options.format, raw_cells=options.raw_cells)
            write_report(result, folder / "report.html", name=str(options.out))
    value = run_value(options.out, result)
    output.result(value, _text(value, result.categories, time.perf_counter() - begun))


def _engine(options: argparse.Namespace) -> "Engine | None":
    """Return what shares the encoding among workers, None if this process encodes."""
    workers: int | None = getattr(options, "workers", None)
    if not hasattr(options, "engine"):
        if workers is not None:
            raise InputError("--workers is for --engine ray; add --engine ray, or omit --workers")
        return None
    if workers is not None and workers < 1:
        raise InputError(f"--workers must be at least 1, not {workers}")
    from newfound.sharding.ray_workers import call_on_ray, check_ray

    check_ray()
    device: str | None = getattr(options, "device", None)
    gpu = None if device is None else device.startswith("cuda")
    return partial(call_on_ray, workers=workers, gpu=gpu)


@contextmanager
def _kept_until_complete(checkpoints: Checkpoints, written: Callable[[], None]) -> Iterator[None]:
    """Delete unfinished work when the block is complete; otherwise keep it and say so."""
    place = checkpoints.folder
    made = [] if place is None else [parent for parent in place.parents if not parent.exists()]
    finished = partial(checkpoints.close, complete=True)
    try:
        yield
    except PlaceTakenError:
        undisturbed(finished)
        raise
    except BaseException as error:
        # An interrupt has a note if the run was in its place by then.
        stopped = isinstance(error, KeyboardInterrupt | SystemExit)
        complete = stopped and bool(getattr(error, "__notes__", ()))
        checkpoints.close(complete=complete)
        for parent in made:  # the run folder leaves them while they hold unfinished work
            with suppress(OSError):
                parent.rmdir()
        if checkpoints.holds_work and not complete:
            without = "" if checkpoints.resume else " without --no-resume"
            error.add_note(f"the same command{without} goes on from where it stopped")
        raise
    written()
    undisturbed(finished)


def _going_on(command: str) -> str:
    """Return the command line that goes on from unfinished work."""
    return shlex.join(word for word in shlex.split(command) if word != NO_RESUME)


def _scores(predicted: "np.ndarray", truth: "np.ndarray", corpus: "Corpus") -> dict[str, float]:
    """Return the accuracy on the unlabelled texts."""
    from newfound.clustering.metrics import accuracy

    hidden = corpus.targets < 0
    return accuracy(predicted[hidden], truth[hidden], set(corpus.known)).to_dict()


def _text(value: dict[str, Any], categories: Iterable["Category"], seconds: float) -> str:
    """Return the result as text."""
    estimated = " (estimated)" if value["estimate"] else ""
    lines = [
        category_table(categories),
        f"{plural(value['n_categories'], 'category', 'categories')}{estimated}: "
        f"{value['n_known']:,} known, {value['n_novel']:,} novel; {seconds:.0f} s",
        f"Open {value['report']}; all files are in {value['run']}/",
    ]
    if value["fits_nowhere"] is not None:
        lines.insert(2, f"{plural(value['fits_nowhere'], 'text fits', 'texts fit')} nowhere")
    if scores := value["scores"]:
        lines.append(
            f"Accuracy on the unlabelled messages: all {scores['all']:.1f}%, "
            f"known {scores['known']:.1f}%, novel {scores['novel']:.1f}%"
        )
    return "\n".join(lines)
