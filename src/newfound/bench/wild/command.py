"""`newfound bench wild`: run methods and peers on every cell of a grid of tables."""

import argparse
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from newfound.bench.datasets import data_folder
from newfound.bench.lines import Line
from newfound.bench.measuring import Job, Measured, conclude, measure, pending
from newfound.bench.planning import caches, names, numbers, ratios, setting
from newfound.bench.rows import NONE
from newfound.bench.wild.peers import PEERS
from newfound.bench.wild.runner import Plan, check_method, run
from newfound.bench.wild.sources import (
    Source,
    check_sources,
    read_out_of_scope,
    read_source,
    source_names,
)
from newfound.bench.wild.tables import DESIGNS, SIZES, Cell, cut_table
from newfound.errors import InputError
from newfound.wording import plural, suggestion

if TYPE_CHECKING:
    from newfound.cli.output import Output

LEAST = 20  # minimum of --limit, in texts


def run_grid(options: argparse.Namespace, output: "Output") -> int:
    """Make every run of the grid that has no result line yet; return 1 if one of them failed."""
    folder = data_folder(getattr(options, "data", None))
    data_sets = source_names(folder) if options.data_set == "all" else None
    data_sets = data_sets or names(options.data_set, "--data-set")
    check_sources(folder, data_sets)
    plans, notes = make_plans(options, data_sets)
    output.notes(notes)
    jobs = [Job(plan, plan.title, plan.line(), options.out) for plan in plans]
    todo, done = pending(jobs, output), Measured()
    device = getattr(options, "device", None)

    @cache
    def source(name: str) -> Source:
        return read_source(folder, name)

    @cache
    def out_of_scope() -> list[str]:
        return read_out_of_scope(folder)

    def run_one(plan: Plan) -> tuple[Line, str]:
        cell = plan.cell
        table = cut_table(source(cell.data_set), cell, out_of_scope() if cell.noise else ())
        kept = cache_of(shared_name(plan))
        line = run(plan, table, device=device, cache=kept, stages=output.stages())
        return line, summary(line)

    given: Path | None = getattr(options, "cache", None)
    if todo:
        with caches(given, [shared_name(job.plan) for job in todo]) as cache_of:
            done = measure(todo, run_one, output)
    return conclude(jobs, done, output)


def make_plans(options: argparse.Namespace, data_sets: list[str]) -> tuple[list[Plan], list[str]]:
    """Return the runs of the grid, with runs on the same texts next to each other, and notes.

    Parameters
    ----------
    options : argparse.Namespace
        The parsed options.
    data_sets : list of str
        Names of data sets.

    Returns
    -------
    plans : list of Plan
    notes : list of str
        One note per peer whose runs are skipped because it is not installed.
    """
    methods = names(options.methods, "--methods")
    for method in methods:
        check_method(method)
    missing = [name for name in methods if name in PEERS and not PEERS[name].installed]
    notes = [
        f"{name} is not installed, so its runs are skipped; install it with "
        "pip install 'newfound[peers]'"
        for name in missing
    ]
    if options.limit < LEAST:
        raise InputError(f"--limit must be at least {LEAST}, not {options.limit}")
    known = ratios(options.known_ratio, "--known-ratio")
    cells = [
        Cell(data_set, design, sizes, noise, seed, known_ratio, options.limit)
        for data_set in data_sets
        for seed in numbers(options.seeds)
        for known_ratio in known
        for sizes in _chosen(options.sizes, SIZES, "--sizes")
        for noise in _noise(options.noise)
        for design in _chosen(options.designs, DESIGNS, "--designs")
    ]
    plans = [
        Plan(
            cell,
            method,
            encoder=options.encoder,
            effort=options.effort,
            max_tokens=options.max_tokens,
            given_k=categories == "given",
            settings=None if method in PEERS else dict(map(setting, options.settings)),
        )
        for cell in cells
        for categories in _chosen(options.categories, ("given", "auto"), "--categories")
        for method in methods
        if method not in missing and not _without_labels(cell, method)
    ]
    return plans, notes


def shared_name(plan: Plan) -> str:
    """Return a name for the cache of runs on the same texts; `absent` uses a part of them."""
    cell = plan.cell
    return f"{cell.data_set} {cell.seed} {cell.known_ratio} {cell.sizes} {cell.noise}"


def summary(line: Line) -> str:
    """Return the scores of a run as a message."""
    scores, categories = line["scores"], line["categories"]

    def shown(name: str, digits: int = 1) -> str:
        return NONE if scores[name] is None else f"{scores[name]:.{digits}f}"

    if scores["all"] is None:
        return f"exact known {shown('exact_known')}"
    parts = [
        " / ".join(shown(name) for name in ("all", "known", "novel")),
        f"exact known {shown('exact_known')}",
        f"{plural(categories['used'], 'category', 'categories')}, truth {categories['true']}",
    ]
    parts += [] if scores["auroc"] is None else [f"AUROC {shown('auroc', 2)}"]
    return ", ".join(parts)


def _without_labels(cell: Cell, method: str) -> bool:
    """Return whether a method is a peer that needs labels, in a cell without labels."""
    return cell.design == "none" and method in PEERS and PEERS[method].needs_labels


def _chosen(text: str, there: Collection[str], flag: str) -> list[str]:
    """Return the names in a comma-separated list; raise InputError for an unknown one."""
    chosen = names(text, flag)
    for name in chosen:
        if name not in there:
            advice = suggestion(name, there, f"choose some of {', '.join(there)}")
            raise InputError(f"{flag} has no {name!r}; {advice}")
    return chosen


def _noise(text: str) -> list[float]:
    """Return the shares in a comma-separated list; raise InputError for one that is not below 1."""
    found = ratios(text, "--noise", none=True)
    if max(found) >= 1:
        raise InputError(f"--noise takes shares below 1 such as 0,0.1,0.3, not {text!r}")
    return found
