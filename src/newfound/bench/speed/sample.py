"""Samples of the paper's data sets for measurements of speed."""

import csv
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from newfound.bench.datasets import DATA_SETS, DataSet, read_data_set

KNOWN_RATIO, LABELLED_RATIO = 0.75, 0.1


@dataclass(frozen=True)
class Sample:
    """Texts of which some are labelled: 75% of categories known, 10% of their texts labelled."""

    texts: list[str]
    labels: list[str]  # "" for an unlabelled text
    truth: list[str]
    known: list[str]

    def write(self, path: Path) -> Path:
        """Write the texts and labels as CSV."""
        with path.open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["text", "label"])
            rows.writerows(zip(self.texts, self.labels, strict=True))
        return path

    def accuracy(self, predicted: Sequence[Any]) -> float:
        """Return the accuracy (All, %) of predictions for the unlabelled texts."""
        from newfound.clustering.metrics import accuracy

        unlabelled = [i for i, label in enumerate(self.labels) if not label]
        clusters = np.array([str(predicted[i]) for i in unlabelled])
        truth = np.array([self.truth[i] for i in unlabelled])
        return round(accuracy(clusters, truth, set(self.known)).all, 2)


def draw_sample(data: DataSet, count: int, seed: int = 0) -> Sample:
    """Draw `count` training texts, and then the labelled ones by category."""
    rng = random.Random(seed)
    rows = list(range(len(data.texts["train"])))
    if count < len(rows):
        rows = sorted(rng.sample(rows, count))
    truth = [data.labels["train"][row] for row in rows]
    categories = sorted(set(truth))
    known = sorted(rng.sample(categories, round(KNOWN_RATIO * len(categories))))
    labels = [""] * len(rows)
    for category in known:
        own = [i for i, label in enumerate(truth) if label == category]
        for i in rng.sample(own, max(1, round(LABELLED_RATIO * len(own)))):
            labels[i] = category
    return Sample([data.texts["train"][row] for row in rows], labels, truth, known)


def draw_distinct_texts(folder: Path, count: int, seed: int = 0) -> list[str]:
    """Draw up to `count` distinct training texts from all data sets in a folder."""
    there = [name for name in DATA_SETS if (folder / name).is_dir()]
    pool = dict.fromkeys(
        text for name in there for text in read_data_set(folder, name).texts["train"]
    )
    return random.Random(seed).sample(list(pool), min(count, len(pool)))
