"""The commands of `newfound bench`.

Each takes its options and the `Output` that prints its result and its messages. `run` and `count`
import neither rich nor matplotlib, so that they run with the packages for training alone.
"""

import argparse
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from newfound.bench.datasets import DataSet, data_folder, make_split, read_data_set
from newfound.bench.lines import (
    RESULTS,
    SEARCH,
    Line,
    append_line,
    key_of,
    read_lines,
    without_repeats,
)
from newfound.bench.measuring import Job, Measured, conclude, measure, pending
from newfound.bench.planning import caches, data_sets, make_plans, names, split_name
from newfound.bench.planning import splits as asked_splits
from newfound.bench.published import read_published
from newfound.bench.rows import NONE
from newfound.errors import InputError
from newfound.wording import plural

LEAST_SCALING = 20  # texts of a table of `bench speed`
if TYPE_CHECKING:
    from newfound.bench.runner import Plan
    from newfound.cli.output import Output

# Makes one run; returns its result line and a message.
Measure = Callable[["Plan", DataSet, Path | None], tuple[Line, str]]


def run(options: argparse.Namespace, output: "Output") -> int:
    """Run `newfound bench run`: methods on data sets."""
    from newfound.bench.runner import Plan
    from newfound.bench.runner import run as run_one

    def measure_one(plan: Plan, data: DataSet, cache: Path | None) -> tuple[Line, str]:
        line, fitted, split = run_one(
            plan, data, device=_device(options), cache=cache, stages=output.stages()
        )
        if hasattr(options, "artefacts"):
            from newfound.bench.artefacts import write_artefact

            write_artefact(options.artefacts, line, fitted, split)
        return line, _scores(line)

    methods = names(options.method, "--method")
    return _measure_all(options, output, methods, Plan.line, measure_one)


def count(options: argparse.Namespace, output: "Output") -> int:
    """Run `newfound bench count`: estimate the number of categories on Semi-KM's features."""
    from newfound.bench.runner import Plan, count_plan
    from newfound.bench.runner import count as count_one

    def measure_one(plan: Plan, data: DataSet, cache: Path | None) -> tuple[Line, str]:
        line = count_one(plan, data, device=_device(options), cache=cache, stages=output.stages())
        starts = ", ".join(f"{k} from {m} x truth" for m, k in line["overclustering"].items())
        number = plural(line["estimated"], "category", "categories")
        return line, f"{number}, truth {line['truth']}; {starts}"

    return _measure_all(options, output, ["semi-km"], count_plan, measure_one)


def _measure_all(
    options: argparse.Namespace,
    output: "Output",
    methods: Sequence[str],
    head: Callable[["Plan"], Line],
    measure_one: Measure,
) -> int:
    """Make every run that has no result line yet; return 1 if one of them failed."""
    place = SEARCH if getattr(options, "search", False) else RESULTS
    name = "published" if getattr(options, "published", False) else "{plan.data_set}"
    jobs = [  # settings are checked here, before any work
        Job(
            plan,
            _title(plan),
            head(plan),
            getattr(options, "out", place / f"{name.format(plan=plan)}.jsonl"),
        )
        for plan in make_plans(options, methods)
    ]
    todo, done = pending(jobs, output), Measured()
    if todo:
        folder = data_folder(getattr(options, "data", None))
        read = read_published if getattr(options, "published", False) else read_data_set
        data = {name: read(folder, name) for name in {job.plan.data_set for job in todo}}
        shared = [split_name(job.plan) for job in todo]
        with caches(getattr(options, "cache", None), shared) as cache_of:
            done = measure(
                todo,
                lambda plan: measure_one(plan, data[plan.data_set], cache_of(split_name(plan))),
                output,
            )
    return conclude(jobs, done, output)


def _title(plan: "Plan") -> str:
    """Return the name of a run in messages."""
    return f"{plan.data_set}, {plan.method}, seed {plan.seed}, known {plan.known_ratio:g}"


def _scores(line: Line) -> str:
    """Return the accuracies of a run as a message."""

    def cells(scores: dict[str, float]) -> str:  # without labels there is no known score
        values = (scores[part] for part in ("all", "known", "novel"))
        return " / ".join(NONE if math.isnan(value) else f"{value:.1f}" for value in values)

    parts = [
        f"{title} {cells(line['scores'][by])}"
        for by, title in (("kmeans", "k-means"), ("prototype", "prototype"))
    ]
    return f"{', '.join(parts)}, {plural(line['categories']['used'], 'category', 'categories')}"


def wild(options: argparse.Namespace, output: "Output") -> int:
    """Run `newfound bench wild`: methods and peers on tables cut from data sets."""
    from newfound.bench.wild.command import run_grid

    return run_grid(options, output)


def splits(options: argparse.Namespace, output: "Output") -> None:
    """Run `newfound bench splits`: count the texts of every part of a split."""
    there = {key_of(line) for line in read_lines(options.out)}
    folder = data_folder(getattr(options, "data", None))
    lines, shown = [], []
    for data_set in data_sets(options.data_set):
        data = read_data_set(folder, data_set)
        for seed, known, labelled in asked_splits(options):
            split = make_split(data, known_ratio=known, labelled_ratio=labelled, seed=seed)
            line: dict[str, Any] = {
                "kind": "split",
                "data_set": data_set,
                "seed": seed,
                "known_ratio": known,
                "labelled_ratio": labelled,
            }
            counts = split.counts()
            lines.append({**line, **counts})
            if key_of(line) not in there:
                append_line(options.out, lines[-1])
            parts = ", ".join(f"{value} {name}" for name, value in counts.items())
            shown.append(f"{data_set}, seed {seed}: {parts}")
    output.result({"file": str(options.out), "lines": lines}, "\n".join(shown))


def fetch(options: argparse.Namespace, output: "Output") -> None:
    """Run `newfound bench fetch`: download the data sets."""
    from newfound.bench.fetch import HOME
    from newfound.bench.fetch import fetch as fetch_all

    folder = Path(getattr(options, "data", None) or os.environ.get("NEWFOUND_DATA") or "data")
    tell: Callable[[str], None] | None = (lambda text: None) if output.quiet else None
    files = fetch_all(folder, home=getattr(options, "home", HOME), tell=tell)
    text = f"The data sets are in {folder}; give this folder with --data or NEWFOUND_DATA."
    output.result({"folder": str(folder), "files": files}, text)


def speed(options: argparse.Namespace, output: "Output") -> None:
    """Run `newfound bench speed`: append one line per section and print the tables."""
    from newfound.bench.speed.sections import SpeedOptions, chosen_sections
    from newfound.bench.speed.sections import measure as measure_sections
    from newfound.bench.speed.table import section_tables
    from newfound.config import EFFORTS

    sections = chosen_sections(getattr(options, "only", None))
    efforts = tuple(names(options.efforts, "--efforts"))
    if not set(efforts) <= set(EFFORTS):
        raise InputError(f"--efforts takes some of {', '.join(EFFORTS)}, not {options.efforts!r}")
    least = {"texts": 1, "repeats": 1, "prediction_texts": 1, "growth_texts": 8}
    for name, low in least.items():
        if getattr(options, name) < low:
            flag = f"--{name.replace('_', '-')}"
            raise InputError(f"{flag} must be at least {low}, not {getattr(options, name)}")
    sizes = names(options.scaling_texts, "--scaling-texts")
    if not all(size.isdecimal() and int(size) >= LEAST_SCALING for size in sizes):
        raise InputError(
            f"--scaling-texts takes numbers from {LEAST_SCALING} on, such as 5000,20000; not "
            f"{options.scaling_texts!r}"
        )
    folder = data_folder(getattr(options, "data", None))
    chosen = SpeedOptions(
        read_data_set(folder, "banking"),
        folder,
        texts=options.texts,
        repeats=options.repeats,
        encoder=options.encoder,
        efforts=efforts,
        prediction_texts=options.prediction_texts,
        growth_texts=options.growth_texts,
        scaling_texts=tuple(sorted({int(size) for size in sizes})),
    )
    lines = measure_sections(chosen, sections, options.out, output)
    value = {"file": str(options.out), "lines": lines}
    output.result(value, section_tables(lines).rstrip("\n"))


def table(options: argparse.Namespace, output: "Output") -> None:
    """Run `newfound bench table`: print result lines as Markdown."""
    from newfound.bench.table import result_table

    for path in options.files:
        if not path.is_file():
            raise InputError(f"{path} is not a file; name files of result lines (.jsonl)")
    lines = without_repeats([line for path in options.files for line in read_lines(path)])
    output.result({"lines": lines}, result_table(lines).rstrip("\n"))


def _device(options: argparse.Namespace) -> str | None:
    """Return the device given by --device, or None."""
    return getattr(options, "device", None)
