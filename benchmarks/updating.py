"""Measure updates: batches of texts join a run, and novel categories appear over time.

    python -m benchmarks.updating --data DATA --cache CACHE

Half of the categories of a data set are known, with ten labelled texts each. Their other texts come
in five batches. Each of the other categories appears in one of the batches and goes on from there.
The first batch is discovered; the others join by `newfound.updating.update`. After each batch, the
run is compared with a discovery from scratch on all texts so far. The number of categories is
estimated throughout.

| measured | of |
|---|---|
| All | the unlabelled texts so far, after the update and from scratch |
| kept | earlier texts that keep their category in the update |
| proposed | novel categories with at least ten texts so far: those that are most of a found one |
| in time | of those with at least ten texts one batch ago: those that are most of a found one |
| proposed wrongly | categories that an update proposed, though the run had that category |
| seconds | of the update and of the discovery |

One result line is appended per batch.
"""

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.rendering.tables.updating import updating_table
from newfound.bench.datasets import data_folder
from newfound.bench.lines import Line, append_line, commit
from newfound.bench.wild.sources import Source, read_source
from newfound.clustering.metrics import accuracy
from newfound.config import RunConfig
from newfound.data.corpus import Corpus
from newfound.devices import describe_environment, find_device
from newfound.pipeline import discover
from newfound.result import Result
from newfound.updating import update

LINES = Path("benchmarks/results/updating.jsonl")
DATA_SETS = ("banking", "clinc", "massive")
LIMIT = 3000  # texts of a data set
BATCHES = 5
LABELS = 10  # of each known category
LEAST = 20  # texts of a category that is kept in the sample
ENOUGH = 10  # texts from which a novel category should be proposed


@dataclass(frozen=True)
class Stream:
    """Texts in the order of their batches."""

    corpus: Corpus
    truth: np.ndarray  # of str [N]
    batch: np.ndarray  # of int [N], ascending
    known: list[str]


def make_stream(source: Source, limit: int, seed: int) -> Stream:
    """Cut a sample of a data set into batches in which novel categories appear over time."""
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(len(source.texts))[:limit])
    truth = np.array([source.labels[row] for row in rows], object)
    names, counts = np.unique(truth.astype(str), return_counts=True)
    drawn = rng.permutation(names[counts >= LEAST]).tolist()
    known, novel = sorted(drawn[: len(drawn) // 2]), drawn[len(drawn) // 2 :]
    batch = np.full(len(rows), -1)
    labels: list[str | None] = [None] * len(rows)
    for at, name in enumerate([*known, *novel]):
        members = rng.permutation(np.flatnonzero(truth == name))
        first = 0
        if at < len(known):
            for row in members[:LABELS].tolist():
                labels[row] = name
            batch[members[:LABELS]] = 0
            members = members[LABELS:]
        else:
            first = (at - len(known)) * BATCHES // len(novel)
        batch[members] = first + np.arange(len(members)) % (BATCHES - first)
    order = np.argsort(batch, kind="stable")
    order = order[batch[order] >= 0]
    corpus = Corpus.from_lists(
        [source.texts[rows[at]] for at in order], [labels[at] for at in order]
    )
    return Stream(corpus, truth[order], batch[order], known)


def scores_of(result: Result, stream: Stream) -> dict[str, float]:
    """Return the accuracy on the unlabelled texts of a result, the first ones of the stream."""
    free = ~result.labelled
    truth = stream.truth[: len(result.corpus)]
    found = accuracy(result.assigned[free], truth[free], set(stream.known)).to_dict()
    return {name: round(found[name], 2) for name in ("all", "known", "novel")}


def proposals(result: Result, stream: Stream, texts: int | None = None) -> dict[str, int]:
    """Count the novel categories that the run should have by its first texts, and that it has."""
    truth = stream.truth[: len(result.corpus)].astype(str)
    names, counts = np.unique(truth[:texts], return_counts=True)
    wanted = {
        n for n, c in zip(names, counts, strict=True) if n not in stream.known and c >= ENOUGH
    }
    found = {_mostly(result, truth, int(at)) for at in np.flatnonzero(~result.is_known)}
    return {"wanted": len(wanted), "found": len(wanted & found)}


def _mostly(result: Result, truth: np.ndarray, at: int) -> str | None:
    """Return the true category of more than half of a category's texts."""
    names, counts = np.unique(truth[result.assigned == at], return_counts=True)
    return str(names[counts.argmax()]) if len(names) and 2 * counts.max() > counts.sum() else None


def wrongly(before: Result, after: Result, stream: Stream) -> int:
    """Count the categories that an update proposed though the run had that category."""
    truth = stream.truth[: len(after.corpus)].astype(str)
    there = {
        _mostly(after, truth, at)
        for at, c in enumerate(after.categories)
        if c.id in before.position
    }
    new = [at for at, c in enumerate(after.categories) if c.id not in before.position]
    return sum(_mostly(after, truth, at) in there for at in new)


def measure(stream: Stream, config: RunConfig, *, scratch: bool) -> list[dict[str, Any]]:
    """Return the measurements of each batch."""
    entries: list[dict[str, Any]] = []
    run: Result | None = None
    for number in range(BATCHES):
        so_far = stream.corpus.take(np.flatnonzero(stream.batch <= number))
        entry: dict[str, Any] = {"batch": number + 1, "texts": len(so_far)}
        begun = time.perf_counter()
        if run is None:
            run = discover(so_far, config)
        else:
            new = stream.corpus.take(np.flatnonzero(stream.batch == number))
            before, run = run, update(run, new)
            entry["new_texts"] = len(new)
            assert run.changes is not None
            entry["kept"] = round(100 * (1 - run.changes["texts"] / len(before.corpus)), 2)
            entry["proposed_wrongly"] = wrongly(before, run, stream)
            entry["proposed_in_time"] = proposals(run, stream, len(before.corpus))
        entry["seconds"] = {"update": round(time.perf_counter() - begun, 1)}
        entry["update"] = scores_of(run, stream)
        entry["categories"] = {
            "true": len(set(stream.truth[: len(so_far)])),
            "update": len(run.categories),
        }
        entry["proposed"] = proposals(run, stream)
        if number == 0:
            entry["scratch"] = entry["update"]
        elif scratch:
            begun = time.perf_counter()
            whole = discover(so_far, config)
            entry["seconds"]["scratch"] = round(time.perf_counter() - begun, 1)
            entry["scratch"] = scores_of(whole, stream)
            entry["categories"]["scratch"] = len(whole.categories)
            entry["proposed_by_scratch"] = proposals(whole, stream)
        entries.append(entry)
        print(entry, flush=True)
    return entries


def main() -> None:
    """Measure each data set, and append a line for each batch."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", help="folder of the data sets (default: NEWFOUND_DATA)")
    parser.add_argument("--data-set", nargs="+", default=list(DATA_SETS))
    parser.add_argument("--limit", type=int, default=LIMIT, help="most texts of a data set")
    parser.add_argument("--effort", default="fast")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device")
    parser.add_argument("--cache", help="folder for the output of frozen layers")
    parser.add_argument("--no-scratch", action="store_true", help="do not discover from scratch")
    parser.add_argument("--out", type=Path, default=LINES)
    options = parser.parse_args()
    folder = data_folder(options.data)
    lines: list[Line] = []
    for name in options.data_set:
        stream = make_stream(read_source(folder, name), options.limit, options.seed)
        config = RunConfig(
            effort=options.effort, seed=options.seed, device=options.device, cache=options.cache
        )
        for entry in measure(stream, config, scratch=not options.no_scratch):
            line: Line = {
                "kind": "updating",
                "data_set": name,
                "method": config.method,
                "encoder": config.encoder,
                "seed": options.seed,
                "table": {"limit": options.limit, "batch": entry.pop("batch")},
                "config": {"effort": options.effort},
                **entry,
                "environment": describe_environment(find_device(options.device)),
                "commit": commit(),
            }
            append_line(options.out, line)
            lines.append(line)
    print(updating_table(lines))


if __name__ == "__main__":
    main()
