"""Measure what reading whole texts is worth, on newsgroup posts with a few labels.

    python -m benchmarks.long_texts --data DATA --cache CACHE

7 of the 10 groups of wild/newsgroups_a.tsv are known, with 12 labelled posts each; K is given.
`newfound discover --effort fast` runs with the texts truncated (`--max-tokens`), and whole. One
result line is appended per limit and seed, from which `make tables` renders the table of
``docs/long-texts.md``.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from newfound.bench.datasets import data_folder
from newfound.bench.lines import append_line, commit
from newfound.bench.wild.scoring import Answer, score
from newfound.bench.wild.sources import Source, read_source
from newfound.bench.wild.tables import Table
from newfound.config import RunConfig
from newfound.data.corpus import Corpus
from newfound.pipeline import discover
from newfound.versions import versions

LINES = Path("benchmarks/results/long_texts.jsonl")
DATA_SET = "newsgroups_a"
KNOWN, LABELLED = 7, 12  # categories, and texts of each
LIMITS = (128, None)  # tokens; None: whole texts


def draw_labels(source: Source, seed: int) -> Table:
    """Return all texts with labels for LABELLED texts of each of KNOWN categories."""
    rng = np.random.default_rng(seed)
    truth = np.array(source.labels, object)
    known = sorted(rng.choice(sorted(set(source.labels)), KNOWN, replace=False).tolist())
    labels: list[str | None] = [None] * len(truth)
    for category in known:
        for row in rng.permutation(np.flatnonzero(truth == category))[:LABELLED]:
            labels[row] = category
    return Table(source.texts, labels, list(source.labels), known)


def measure(table: Table, config: RunConfig) -> dict[str, Any]:
    """Discover and return the scores on the unlabelled texts."""
    result = discover(Corpus.from_lists(table.texts, table.labels), config)
    answer = Answer(result.predicted, len(result.categories), result.probability, fit=result.fit)
    scores = score(answer, table)
    return {
        "scores": {name: scores[name] for name in ("all", "known", "novel", "exact_known")},
        "texts": len(table.texts),
        "long_texts": result.long_texts,
        "seconds": dict(result.seconds),
        "device": result.device,
    }


def main(arguments: list[str] | None = None) -> None:
    """Measure every limit and seed, and append a line for each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.long_texts")
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--cache", help="folder of the feature cache")
    parser.add_argument("-o", "--out", type=Path, default=LINES)
    options = parser.parse_args(arguments)
    source = read_source(data_folder(options.data), DATA_SET)
    for limit in LIMITS:
        for seed in options.seeds:
            table = draw_labels(source, seed)
            config = RunConfig(
                n_categories=table.n_categories,
                effort="fast",
                seed=seed,
                max_tokens=limit,
                cache=options.cache,
                device="cpu",
            )
            line = {
                "kind": "long_texts",
                "data_set": DATA_SET,
                "encoder": config.encoder,
                "seed": seed,
                "config": {
                    "effort": config.effort,
                    "max_tokens": limit,
                    "known": KNOWN,
                    "labelled": LABELLED,
                },
                **measure(table, config),
                "versions": versions(),
                "commit": commit(),
            }
            append_line(options.out, line)
            print(f"{limit or 'whole texts'}, seed {seed}: {line['scores']}", flush=True)


if __name__ == "__main__":
    main()
