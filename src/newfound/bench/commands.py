"""The commands of `newfound bench`.

`run` and `count` import neither rich nor matplotlib, so that they work with only the packages for
training installed.
"""

import argparse
import math
import os
import sys
import traceback
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
from newfound.bench.planning import caches, data_sets, make_plans, names
from newfound.bench.planning import splits as asked_splits
from newfound.bench.rows import NONE
from newfound.errors import InputError

if TYPE_CHECKING:
    from newfound.bench.runner import Plan

# Makes one run; returns its result line and a message.
Measure = Callable[["Plan", DataSet, Path | None], tuple[Line, str]]


def run(options: argparse.Namespace) -> int:
    """Run `newfound bench run`: methods on data sets."""
    from newfound.bench.runner import Plan
    from newfound.bench.runner import run as run_one

    def measure(plan: Plan, data: DataSet, cache: Path | None) -> tuple[Line, str]:
        line, fitted, split = run_one(plan, data, device=_device(options), cache=cache)
        if hasattr(options, "artefacts"):
            from newfound.bench.artefacts import write_artefact

            write_artefact(options.artefacts, line, fitted, split)
        return line, _scores(line)

    return _measure_all(options, names(options.method, "--method"), Plan.line, measure)


def count(options: argparse.Namespace) -> int:
    """Run `newfound bench count`: on pretrained features, which are those of Semi-KM."""
    from newfound.bench.runner import Plan, count_plan
    from newfound.bench.runner import count as count_one

    def measure(plan: Plan, data: DataSet, cache: Path | None) -> tuple[Line, str]:
        line = count_one(plan, data, device=_device(options), cache=cache)
        starts = ", ".join(f"{k} from {m} x truth" for m, k in line["overclustering"].items())
        return line, f"{line['estimated']} categories, truth {line['truth']}; {starts}"

    return _measure_all(options, ["semi-km"], count_plan, measure)


def _measure_all(
    options: argparse.Namespace,
    methods: Sequence[str],
    head: Callable[["Plan"], Line],
    measure: Measure,
) -> int:
    """Run every plan that has no line yet; return 1 if a run failed."""
    plans = make_plans(options, methods)
    keys = [key_of(head(plan)) for plan in plans]  # checks the settings before any work
    place = SEARCH if getattr(options, "search", False) else RESULTS
    outs = [getattr(options, "out", place / f"{plan.data_set}.jsonl") for plan in plans]
    there = {key_of(line) for out in set(outs) for line in read_lines(out)}
    todo = [(p, out) for p, key, out in zip(plans, keys, outs, strict=True) if key not in there]
    _report(f"{len(plans)} runs; {len(plans) - len(todo)} already have a result line")
    if not todo:
        return 0
    folder = data_folder(getattr(options, "data", None))
    data = {name: read_data_set(folder, name) for name in {plan.data_set for plan, _ in todo}}
    failed = 0
    with caches(getattr(options, "cache", None), [plan for plan, _ in todo]) as cache_of:
        for number, (plan, out) in enumerate(todo, 1):
            title = f"[{number}/{len(todo)}] {_title(plan)}"
            _report(f"{title} ...")
            try:
                line, message = measure(plan, data[plan.data_set], cache_of(plan))
                append_line(out, line)
            except KeyboardInterrupt:
                _report("interrupted; finished runs are kept, run the same command for the others")
                return 130
            except InputError as error:
                failed += 1
                _report(f"{title} failed: {error}")
            except Exception:  # one failed run must not stop the others
                failed += 1
                traceback.print_exc()
                _report(f"{title} failed")
            else:
                _report(f"{title}: {message} ({line['seconds']['total']:.0f} s)")
    if failed:
        _report(f"{failed} of {len(todo)} runs failed; run the same command to repeat them")
    return 1 if failed else 0


def _title(plan: "Plan") -> str:
    """Return the name of a run in messages."""
    return f"{plan.data_set}, {plan.method}, seed {plan.seed}, known {plan.known_ratio:g}"


def _scores(line: Line) -> str:
    """Return a run's accuracies as a message."""

    def cells(scores: dict[str, float]) -> str:  # without labels there is no known score
        values = (scores[part] for part in ("all", "known", "novel"))
        return " / ".join(NONE if math.isnan(value) else f"{value:.1f}" for value in values)

    parts = [
        f"{title} {cells(line['scores'][by])}"
        for by, title in (("kmeans", "k-means"), ("prototype", "prototype"))
    ]
    return f"{', '.join(parts)}, {line['categories']['used']} categories"


def splits(options: argparse.Namespace) -> None:
    """Run `newfound bench splits`: count the texts of every part of the splits."""
    there = {key_of(line) for line in read_lines(options.out)}
    folder = data_folder(getattr(options, "data", None))
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
            if key_of(line) not in there:
                append_line(options.out, {**line, **counts})
            parts = ", ".join(f"{value} {name}" for name, value in counts.items())
            print(f"{data_set}, seed {seed}: {parts}")


def fetch(options: argparse.Namespace) -> None:
    """Run `newfound bench fetch`: download the data sets."""
    from newfound.bench.fetch import HOME
    from newfound.bench.fetch import fetch as fetch_all

    folder = Path(getattr(options, "data", None) or os.environ.get("NEWFOUND_DATA") or "data")
    fetch_all(folder, home=getattr(options, "home", HOME))
    print(f"The data sets are in {folder}; name that folder with --data or NEWFOUND_DATA.")


def speed(options: argparse.Namespace) -> None:
    """Run `newfound bench speed`: append one line per section and print the tables."""
    from newfound.bench.speed.sections import SpeedOptions, chosen_sections, measure
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
    )
    print(section_tables(measure(chosen, sections, options.out)), end="")


def table(options: argparse.Namespace) -> None:
    """Run `newfound bench table`: print result lines as Markdown."""
    from newfound.bench.table import result_table

    for path in options.files:
        if not path.is_file():
            raise InputError(f"{path} is not a file; name files of result lines (.jsonl)")
    lines = [line for path in options.files for line in read_lines(path)]
    print(result_table(without_repeats(lines)), end="")


def _device(options: argparse.Namespace) -> str | None:
    """Return the device given by --device, or None."""
    return getattr(options, "device", None)


def _report(text: str) -> None:
    """Print progress to standard error, line by line."""
    print(text, file=sys.stderr, flush=True)
