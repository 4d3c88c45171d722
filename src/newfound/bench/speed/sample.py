"""Samples of the paper's data sets for measurements of speed."""

import csv
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from newfound.bench.datasets import DATA_SETS, DataSet, read_data_set
from newfound.errors import InputError

KNOWN_RATIO, LABELLED_RATIO = 0.75, 0.1
TRIES = 20  # to join two texts, for each text that is wanted


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


def predictions(path: Path) -> list[str]:
    """Return the predictions in the assignments of a run."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return [row["predicted"] for row in csv.DictReader(file)]


def enlarge(data: DataSet, count: int, seed: int = 0) -> DataSet:
    """Return a data set with at least `count` distinct training texts.

    Where the data set has fewer, texts are added that begin as one text of a category and end as
    another one of it, so that words, lengths and categories stay those of real texts.
    """
    real = dict(zip(data.texts["train"], data.labels["train"], strict=True))
    found = dict(real)
    own: dict[str, list[list[str]]] = {}
    for text, label in real.items():
        own.setdefault(label, []).append(text.split())
    rng, texts = random.Random(seed), list(real)
    for _ in range(TRIES * count):
        if len(found) >= count:
            break
        label = real[rng.choice(texts)]  # categories keep their shares
        found.setdefault(_joined(rng.choice(own[label]), rng.choice(own[label]), rng), label)
    if len(found) < count:
        raise InputError(
            f"{data.name} has too few texts to make {count:,} distinct ones of them; ask for fewer"
        )
    part = {"train": list(found)}
    return DataSet(
        data.name, {**data.texts, **part}, {**data.labels, "train": list(found.values())}
    )


def _joined(one: list[str], other: list[str], rng: random.Random) -> str:
    """Return the beginning of one text and the end of another, cut at the same share."""
    share = rng.random()
    return " ".join(one[: round(share * len(one))] + other[round(share * len(other)) :])


def draw_distinct_texts(folder: Path, count: int, seed: int = 0) -> tuple[list[str], int]:
    """Draw `count` distinct training texts from all data sets in a folder.

    Returns
    -------
    list of str
        Real texts, and texts joined from parts of two real ones where these do not suffice.
    int
        How many are joined.
    """
    there = [read_data_set(folder, name) for name in DATA_SETS if (folder / name).is_dir()]
    real = dict.fromkeys(text for data in there for text in data.texts["train"])
    rng = random.Random(seed)
    if count <= len(real):
        return rng.sample(list(real), count), 0
    pool = dict(real)
    missing = count - len(real)
    for data in there:  # as many more from each; a text may be in two of them
        size = len(set(data.texts["train"])) + missing
        pool |= dict.fromkeys(enlarge(data, size, seed).texts["train"])
    joined = rng.sample(list(pool)[len(real) :], missing)
    texts = [*real, *joined]
    rng.shuffle(texts)
    return texts, missing
