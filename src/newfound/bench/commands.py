"""What the commands below `newfound bench` do, once their options are parsed.

`run` and `count` import neither rich nor matplotlib: they work where only the training path is
installed.
"""

import argparse
import math
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from newfound.bench.cli import RESULTS, SEARCH
from newfound.bench.datasets import DataSet, data_folder, make_split, read_data_set
from newfound.bench.lines import Line, append_line, key_of, read_lines
from newfound.bench.planning import caches, data_sets, make_plans, names
from newfound.bench.planning import splits as asked_splits
from newfound.bench.rows import NONE
from newfound.errors import InputError

if TYPE_CHECKING:
    from newfound.bench.runner import Plan

# Makes one run: its line and what to tell of it.
Measure = Callable[["Plan", DataSet, Path | None], tuple[Line, str]]


def run(options: argparse.Namespace) -> int:
    """newfound bench run: methods on data sets."""
    from newfound.bench.runner import Plan
    from newfound.bench.runner import run as run_one

    def measure(plan: Plan, data: DataSet, cache: Path | None) -> tuple[Line, str]:
        line, fitted, split = run_one(plan, data, device=_device(options), cache=cache)
        if hasattr(options, "artefacts"):
            from newfound.bench.artefacts import write_artefact

            write_artefact(options.artefacts, line, fitted, split)
        return line, _told(line)

    return _measure_all(options, names(options.method, "--method"), Plan.line, measure)


def count(options: argparse.Namespace) -> int:
    """newfound bench count: on the features after pretraining, which are Semi-KM's."""
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
    """Measure every plan that has no line yet; 1 if one of them failed."""
    plans = make_plans(options, methods)
    keys = [key_of(head(plan)) for plan in plans]  # settings are checked here, before any work
    place = SEARCH if getattr(options, "search", False) else RESULTS
    outs = [getattr(options, "out", place / f"{plan.data_set}.jsonl") for plan in plans]
    there = {key_of(line) for out in set(outs) for line in read_lines(out)}
    todo = [(p, out) for p, key, out in zip(plans, keys, outs, strict=True) if key not in there]
    _say(f"{len(plans)} runs; {len(plans) - len(todo)} are there already")
    if not todo:
        return 0
    folder = data_folder(getattr(options, "data", None))
    data = {name: read_data_set(folder, name) for name in {plan.data_set for plan, _ in todo}}
    failed = 0
    with caches(getattr(options, "cache", None), [plan for plan, _ in todo]) as cache_of:
        for number, (plan, out) in enumerate(todo, 1):
            title = f"[{number}/{len(todo)}] {_title(plan)}"
            _say(f"{title} ...")
            try:
                line, told = measure(plan, data[plan.data_set], cache_of(plan))
                append_line(out, line)
            except KeyboardInterrupt:
                _say("interrupted; finished runs are kept, the same command makes the others")
                return 130
            except InputError as error:
                failed += 1
                _say(f"{title} failed: {error}")
            except Exception:  # one run must not take the others with it
                failed += 1
                traceback.print_exc()
                _say(f"{title} failed")
            else:
                _say(f"{title}: {told} ({line['seconds']['total']:.0f} s)")
    if failed:
        _say(f"{failed} of {len(todo)} runs failed; the same command tries them again")
    return 1 if failed else 0


def _title(plan: "Plan") -> str:
    return f"{plan.data_set}, {plan.method}, seed {plan.seed}, known {plan.known_ratio:g}"


def _told(line: Line) -> str:
    def cells(scores: dict[str, float]) -> str:  # without labels nothing is known
        values = (scores[part] for part in ("all", "known", "novel"))
        return " / ".join(NONE if math.isnan(value) else f"{value:.1f}" for value in values)

    parts = [
        f"{title} {cells(line['scores'][by])}"
        for by, title in (("kmeans", "k-means"), ("prototype", "prototype"))
    ]
    return f"{', '.join(parts)}, {line['categories']['used']} categories"


def splits(options: argparse.Namespace) -> None:
    """newfound bench splits: what the protocol gives a method."""
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
            told = ", ".join(f"{value} {name}" for name, value in counts.items())
            print(f"{data_set}, seed {seed}: {told}")


def fetch(options: argparse.Namespace) -> None:
    """newfound bench fetch: the data sets from their public home."""
    from newfound.bench.fetch import HOME
    from newfound.bench.fetch import fetch as fetch_all

    folder = Path(getattr(options, "data", None) or os.environ.get("NEWFOUND_DATA") or "data")
    fetch_all(folder, home=getattr(options, "home", HOME))
    print(f"The data sets are in {folder}; name it with --data or NEWFOUND_DATA.")


def speed(options: argparse.Namespace) -> None:
    """newfound bench speed: medians and ratios of what takes time."""
    from newfound.bench.speed import Asked, chosen_sections, measure
    from newfound.bench.speed_table import speed_table
    from newfound.config import EFFORTS

    sections = chosen_sections(getattr(options, "only", None))
    efforts = tuple(names(options.efforts, "--efforts"))
    if not set(efforts) <= set(EFFORTS):
        raise InputError(f"--efforts takes some of {', '.join(EFFORTS)}, not {options.efforts!r}")
    for flag, value in (("--texts", options.texts), ("--repeats", options.repeats)):
        if value < 1:
            raise InputError(f"{flag} must be at least 1, not {value}")
    if options.growth_texts < 8:
        raise InputError(f"--growth-texts must be at least 8, not {options.growth_texts}")
    folder = data_folder(getattr(options, "data", None))
    asked = Asked(
        read_data_set(folder, "banking"),
        folder,
        texts=options.texts,
        repeats=options.repeats,
        encoder=options.encoder,
        efforts=efforts,
        growth_texts=options.growth_texts,
    )
    print(speed_table(measure(asked, sections, options.out)))


def tables(options: argparse.Namespace) -> None:
    """newfound bench tables: Markdown from result lines."""
    from newfound.bench.tables import write_tables

    for path in write_tables(options.results, options.out):
        print(path)


def figures(options: argparse.Namespace) -> None:
    """newfound bench figures: pictures from result lines and artefacts."""
    from newfound.bench.figures import draw_all

    written, missing = draw_all(options.results, options.artefacts, options.out)
    for path in written:
        print(path)
    for name in missing:
        _say(f"{name}: nothing was measured for it yet")


def _device(options: argparse.Namespace) -> str | None:
    return getattr(options, "device", None)


def _say(text: str) -> None:
    """Progress, line by line, for a terminal and a log alike."""
    print(text, file=sys.stderr, flush=True)
