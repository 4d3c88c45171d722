"""Measure fit scores and probabilities: how well they tell what belongs nowhere, and what is right.

    python -m benchmarks.fits_nowhere --data DATA --data-set clinc --task noise

A task is a table of texts, of which a tenth of each known category is labelled; K is given.

| task | what differs | measured |
|---|---|---|
| plain | nothing | AUROC of out-of-scope texts that come only to `predict` |
| noise | a tenth of out-of-scope texts is added to the table | AUROC of those |
| unseen | a fifth of the categories is left out | AUROC of their texts in `predict` |

Every task also gives the expected calibration error of the unlabelled texts. One result line is
appended per run. The file of out-of-scope texts is `wild/out_of_scope.tsv` in the data folder.
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import roc_auc_score

from newfound.bench.datasets import DataSet, data_folder, read_data_set
from newfound.bench.lines import append_line, commit
from newfound.clustering.metrics import bins_of_equal_width, calibration_error
from newfound.config import RunConfig
from newfound.data.corpus import Corpus
from newfound.data.tables import read_tables
from newfound.pipeline import discover
from newfound.result import Result

TASKS = ("plain", "noise", "unseen")
LINES = Path("benchmarks/fits-nowhere.jsonl")
NOISE = 0.1  # of the texts, out-of-scope texts added to them
UNSEEN = 0.2  # of the categories, left out
KNOWN, LABELLED = 0.75, 0.1
BINS = 15  # of the calibration error


@dataclass(frozen=True)
class Table:
    """What is given to a discovery, and the new texts; an out-of-scope text has the truth None."""

    corpus: Corpus
    truth: list[str | None]
    n_categories: int
    new_texts: list[str]
    new_truth: list[str | None]


def make_table(
    data: DataSet, noise: Sequence[str], task: str, *, texts: int, noise_share: float, seed: int
) -> Table:
    """Draw so many texts of a data set, and labels for a tenth of each known category."""
    rng = np.random.default_rng(seed)
    categories = data.categories
    known = set(rng.permutation(categories)[: round(KNOWN * len(categories))])
    left_out: set[str] = set()
    if task == "unseen":
        left_out = set(rng.permutation(categories)[: round(UNSEEN * len(categories))])
    rows = [i for i, label in enumerate(data.labels["train"]) if label not in left_out]
    chosen = rng.permutation(rows)[:texts]
    strange = [noise[i] for i in rng.permutation(len(noise))]
    added = strange[: round(noise_share * texts)] if task == "noise" else []
    truth: list[str | None] = [data.labels["train"][i] for i in chosen]
    truth += [None] * len(added)
    labels: list[str | None] = [None] * len(truth)
    for category in sorted(known - left_out):
        own = [i for i, label in enumerate(truth) if label == category]
        for i in rng.permutation(own)[: max(1, round(LABELLED * len(own)))]:
            labels[i] = category
    rest = strange[len(added) :]
    return Table(
        Corpus.from_lists([*(data.texts["train"][i] for i in chosen), *added], labels),
        truth,
        len(categories) - len(left_out),
        [*data.texts["test"], *rest],
        [*data.labels["test"], *[None] * len(rest)],
    )


def right_answers(result: Result, truth: Sequence[str | None]) -> tuple[np.ndarray, np.ndarray]:
    """Return which texts have the right category, and which are of a known one, bool [N] each.

    A known category is right by name; novel ones are matched one to one with the others.
    """
    real = np.array([label or "" for label in truth], object)
    known = np.isin(real, result.names[result.is_known])
    right = known & (result.names[result.predicted] == real)
    novel = np.flatnonzero(~result.is_known)
    others = sorted(set(real[~known & (real != "")]))
    table = np.array(
        [[((result.predicted == i) & (real == name)).sum() for name in others] for i in novel]
    ).reshape(len(novel), len(others))
    for row, column in zip(*linear_sum_assignment(table, maximize=True), strict=True):
        right |= (result.predicted == novel[row]) & (real == others[column])
    return right, known


def measure(table: Table, config: RunConfig) -> dict[str, Any]:
    """Discover, predict, and return the measurements."""
    begun = time.perf_counter()
    result = discover(table.corpus, config)
    seconds = time.perf_counter() - begun
    assert result.model is not None
    assert result.fit is not None
    right, known = right_answers(result, table.truth)
    strange = np.array([label is None for label in table.truth])
    pile = ~result.labelled
    verdict = result.is_known[result.predicted]
    parts = {
        "all": pile & ~strange,
        "known": pile & known,
        "novel": pile & ~known & ~strange,
        "verdict_known": pile & verdict & ~strange,
        "verdict_novel": pile & ~verdict & ~strange,
    }
    found = result.model.predict(table.new_texts)
    seen = set(table.truth) - {None}
    new_strange = np.array([label is None for label in table.new_truth])
    unseen = np.array([label is not None and label not in seen for label in table.new_truth])
    return {
        "auroc": {
            "in_pile": _auroc(strange[pile], result.fit[pile]),
            "in_predict": _auroc(new_strange[~unseen], found.fit[~unseen]),
            "unseen": _auroc(unseen[~new_strange], found.fit[~new_strange]),
            "in_pile_by_probability": _auroc(strange[pile], result.probability[pile]),
            "in_predict_by_probability": _auroc(new_strange[~unseen], found.probability[~unseen]),
        },
        "calibration_error": {
            name: _calibration_error(result.probability[rows], right[rows])
            for name, rows in parts.items()
        },
        "accuracy": {name: float(right[rows].mean()) for name, rows in parts.items()},
        "seconds": round(seconds, 1),
    }


def _calibration_error(probability: np.ndarray, right: np.ndarray) -> float:
    """Return the expected calibration error in bins of equal width."""
    return calibration_error(probability, right, bins_of_equal_width(probability, BINS))


def _auroc(positive: np.ndarray, score: np.ndarray) -> float | None:
    """Return the area under the curve of a score that is low for positives."""
    if positive.all() or not positive.any():
        return None
    return float(roc_auc_score(positive, -score))


def main() -> None:
    """Measure each task, and append a line for it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", help="folder of the data sets (default: NEWFOUND_DATA)")
    parser.add_argument("--data-set", nargs="+", default=["banking", "clinc"])
    parser.add_argument("--task", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--texts", type=int, default=3000)
    parser.add_argument("--noise", type=float, default=NOISE, help="share of the task noise")
    parser.add_argument("--effort", default="fast")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cache", help="folder for the output of frozen layers")
    parser.add_argument("--out", type=Path, default=LINES)
    options = parser.parse_args()
    folder = data_folder(options.data)
    noise = read_tables([folder / "wild" / "out_of_scope.tsv"], text_column="text").corpus.texts
    for name in options.data_set:
        data = read_data_set(folder, name)
        for task in options.task:
            table = make_table(
                data,
                noise,
                task,
                texts=options.texts,
                noise_share=options.noise,
                seed=options.seed,
            )
            config = RunConfig(
                n_categories=table.n_categories,
                effort=options.effort,
                seed=options.seed,
                cache=options.cache,
            )
            chosen = {
                "kind": "fits-nowhere",
                "data_set": name,
                "task": task,
                "texts": options.texts,
                "noise": options.noise if task == "noise" else 0,
                "effort": options.effort,
                "seed": options.seed,
            }
            line = {**chosen, **_rounded(measure(table, config)), "commit": commit()}
            append_line(options.out, line)
            print(line, flush=True)


def _rounded(value: Any) -> Any:
    """Return numbers with four decimals."""
    if isinstance(value, dict):
        return {name: _rounded(inner) for name, inner in value.items()}
    return round(value, 4) if isinstance(value, float) else value


if __name__ == "__main__":
    main()
