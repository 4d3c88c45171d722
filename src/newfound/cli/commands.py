"""What each command does, once its options are parsed."""

import argparse
import json
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from newfound.config import RunConfig, describe_type, flag_of, override, settings_of
from newfound.data.corpus import Corpus, check_corpus
from newfound.data.tables import read_tables
from newfound.errors import InputError
from newfound.result import Result
from newfound.storage.run_folder import check_run_folder, new_run, read_run, write_run

DEMO = "newfound demo"  # how the command of a demo's run begins


def discover(options: argparse.Namespace) -> None:
    """newfound discover: tables to a run folder."""
    check_run_folder(options.out, options.force)
    _run_config(options)
    corpus, notes = _read_corpus(options)
    tell(notes)
    _run_discovery(options, corpus, notes, force=options.force)


def demo(options: argparse.Namespace) -> None:
    """newfound demo: the built-in data, with the truth to compare with."""
    from newfound.data import demo as built_in

    _check_demo_folder(options.out)
    table = built_in.load()
    corpus = Corpus.from_lists(table["text"], table["label"])
    options.format, options.command_line = "csv", f"{DEMO} -o {options.out}"
    truth = table["truth"].to_numpy()
    print(
        f"Demo: {len(corpus.texts)} help-desk messages, {int((corpus.targets >= 0).sum())} of them "
        f"labelled with {len(corpus.known)} categories; {len(set(truth) - set(corpus.known))} more "
        "categories are hidden among the others."
    )
    scores = _run_discovery(options, corpus, [], force=True, truth=truth)
    assert scores is not None
    print(
        f"Recovered of the hidden truth (unlabelled messages): all {scores['all']:.1f}%, "
        f"known {scores['known']:.1f}%, novel {scores['novel']:.1f}%"
    )


def _check_demo_folder(folder: Path) -> None:
    """A demo replaces an earlier demo, but nothing else."""
    check_run_folder(folder, force=True)
    if (folder / "run.json").is_file() and not str(read_run(folder).command).startswith(DEMO):
        raise InputError(f"{folder} holds a run that is no demo; choose another name with -o")


def _run_discovery(
    options: argparse.Namespace,
    corpus: Corpus,
    notes: list[str],
    *,
    force: bool,
    truth: np.ndarray | None = None,
) -> dict[str, float] | None:
    from newfound import pipeline
    from newfound.cli.endpoint import chosen_endpoint
    from newfound.report import write_report

    begun = time.perf_counter()
    endpoint = chosen_endpoint(options)
    config, settings = _run_config(options), _settings(options)
    validation = None
    if getattr(options, "validation", None):
        validation, more = _read_validation(options, corpus)
        tell(more)
        notes += more
    # Opened before the long work, so that a place that cannot be written is said at once.
    with new_run(options.out, force) as folder:
        result = pipeline.discover(
            corpus, config, settings=settings, validation=validation, verbose=None
        )
        if endpoint is not None:
            result = pipeline.name_novel(result, endpoint, verbose=None)
        tell(result.notes)
        scores = None if truth is None else _scores(result.predicted, truth, corpus)
        result = replace(
            result,
            notes=(*notes, *result.notes),
            scores=scores,
            command=options.command_line,
        )
        write_run(result, folder, table_format=options.format)
        write_report(result, folder / "report.html", name=str(options.out))
    _print_categories(result.categories)
    estimated = " (estimated)" if result.estimate else ""
    known = int(result.is_known.sum())
    print(
        f"{len(result.categories)} categories{estimated}: {known} known, "
        f"{len(result.categories) - known} novel; {time.perf_counter() - begun:.0f} s"
    )
    print(f"Open {options.out / 'report.html'}; everything is in {options.out}/")
    return scores


def _scores(predicted: np.ndarray, truth: np.ndarray, corpus: Corpus) -> dict[str, float]:
    """How well the unlabelled texts' truth was recovered."""
    from newfound.clustering.metrics import accuracy

    hidden = corpus.targets < 0
    return accuracy(predicted[hidden], truth[hidden], set(corpus.known)).to_dict()


def estimate(options: argparse.Namespace) -> None:
    """newfound estimate: the number of categories and the curve behind it."""
    from newfound import pipeline

    config = _run_config(options)
    corpus, notes = _read_corpus(options)
    tell(notes)
    tell(check_corpus(corpus, None))
    found = pipeline.estimate(corpus, config, verbose=None)
    if options.json:
        print(json.dumps(found.to_dict()))
        return
    print(
        f"About {found.n_categories} categories ({found.low} to {found.high}), "
        f"{len(corpus.known)} of them known."
    )
    print(found.how)
    _print_curve(found.candidates, found.scores, found.n_categories)


def _print_curve(candidates: Sequence[int], scores: Sequence[float], chosen: int) -> None:
    """A bar a candidate; the chosen one is marked."""
    low, high = min(scores), max(scores)
    for k, score in zip(candidates, scores, strict=True):
        bar = "#" * round(1 + 40 * (score - low) / ((high - low) or 1))
        mark = " <" if k == min(candidates, key=lambda c: abs(c - chosen)) else ""
        print(f"{k:>6}  {score:8.4f}  {bar}{mark}")


def info(options: argparse.Namespace) -> None:
    """newfound info: what a run found, from what, with which settings."""
    result = read_run(options.folder)
    _print_categories(result.categories)
    print("\n".join(_info_lines(result)))


def _info_lines(result: Result) -> Iterable[str]:
    given = "estimated" if result.config.get("n_categories", "auto") == "auto" else "given"
    known, total = int(result.is_known.sum()), len(result.categories)
    seconds = {"total": sum(result.seconds.values()), **result.seconds}
    yield f"texts       {len(result.corpus)}, {int(result.labelled.sum())} labelled"
    yield f"categories  {total} ({given}): {known} known, {total - known} novel"
    yield (
        f"made by     newfound {result.versions.get('newfound', '?')} on {result.device}, "
        f"seed {result.config.get('seed')}"
    )
    yield f"command     {result.command}"
    yield "seconds     " + ", ".join(f"{name} {value:.1f}" for name, value in seconds.items())
    chosen = ", ".join(f"{k}={v}" for k, v in result.config.items() if k != "settings")
    yield f"settings    {chosen}"
    own = dict(result.config.get("settings") or {})
    yield "            " + ", ".join(f"{k}={v}" for k, v in own.items())
    for note in result.notes:
        yield f"note        {note}"


def methods(options: argparse.Namespace) -> None:
    """newfound methods: what there is to choose from."""
    from newfound.methods import METHODS, find_method

    if options.name is None:
        for name, method in METHODS.items():
            ignores = "" if method.uses_labels else " (ignores labels)"
            print(f"{name:<16} {method.summary}{ignores}")
            print(f"{'':<16} {method.reference}")
        return
    method = find_method(options.name)
    print(f"{options.name}: {method.summary}\n{method.reference}\n")
    for name, kind, default, help in settings_of(method.config):
        print(f"  {name}={default}  ({describe_type(kind)})\n      {help}")
    for effort, changes in method.efforts.items():
        text = ", ".join(f"{k}={v}" for k, v in changes.items()) or "the defaults"
        print(f"\n  effort {effort}: {text}")


# --- options and printing ----------------------------------------------------------------------


def _read_corpus(options: argparse.Namespace) -> tuple[Corpus, list[str]]:
    read = read_tables(
        options.tables,
        text_column=getattr(options, "text_column", None),
        label_column=getattr(options, "label_column", None),
        id_column=getattr(options, "id_column", None),
    )
    return read.corpus, list(read.notes)


def _read_validation(options: argparse.Namespace, corpus: Corpus) -> tuple[Corpus, list[str]]:
    read = read_tables(
        [options.validation],
        text_column=getattr(options, "text_column", None),
        label_column=getattr(options, "label_column", None),
    )
    if not set(read.corpus.known) & set(corpus.known):
        raise InputError(
            f"{options.validation}: no text has a label that also stands in the tables to discover "
            "in: give labelled texts of known categories, or leave --validation out"
        )
    return read.corpus, list(read.notes)


def _run_config(options: argparse.Namespace) -> RunConfig:
    """What the flags say; those that were not given keep their default."""
    names = [f.name for f in fields(RunConfig) if hasattr(options, f.name)]
    given = {name: getattr(options, name) for name in names}
    return override(RunConfig(), given, "the command", spelt=flag_of)


def _settings(options: argparse.Namespace) -> dict[str, str]:
    chosen = {}
    for pair in getattr(options, "settings", []):
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise InputError(f"--set takes NAME=VALUE (such as epochs=3), not {pair!r}")
        chosen[name.strip()] = value.strip()
    return chosen


def tell(notes: Sequence[str]) -> None:
    """Say what the user should know, where it does not mix with the output."""
    for note in notes:
        print(f"note: {note}", file=sys.stderr)


def _print_categories(categories: Sequence[Any]) -> None:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("kind", "size", "name", "keywords"):
        table.add_column(title, justify="right" if title == "size" else "left", overflow="fold")
    for category in sorted(categories, key=lambda c: (c.kind, -c.size)):
        words = ", ".join(category.keywords[:5])
        # Text, not markup: a label may hold square brackets.
        table.add_row(*map(_plain, (category.kind, str(category.size), category.name, words)))
    Console(width=None if sys.stdout.isatty() else 110).print(table)


def _plain(text: str) -> Any:
    from rich.text import Text

    return Text(text)
