"""The paper's data sets and the splits of its protocol (Table 1)."""

import os
import random
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from newfound.data.tables import read_tables
from newfound.errors import InputError
from newfound.wording import suggestion

DATA_SETS = ("banking", "stackoverflow", "clinc")
PARTS = ("train", "dev", "test")


@dataclass(frozen=True)
class DataSet:
    """The texts of a data set with their true categories, by part: train, dev and test."""

    name: str
    texts: dict[str, list[str]]
    labels: dict[str, list[str]]

    @property
    def categories(self) -> list[str]:
        """Sorted categories of the training part."""
        return sorted(set(self.labels["train"]))


@dataclass(frozen=True)
class Split:
    """The texts and labels that a method gets, and the test part that it is scored on."""

    texts: list[str]
    labels: list[str | None]
    truth: list[str]  # of `texts`; for evaluation only
    known: list[str]
    n_categories: int
    validation_texts: list[str]
    validation_labels: list[str]
    test_texts: list[str]
    test_labels: list[str]

    def counts(self) -> dict[str, int]:
        """Return the row of Table 1."""
        labelled = sum(label is not None for label in self.labels)
        return {
            "known": len(self.known),
            "novel": self.n_categories - len(self.known),
            "labelled": labelled,
            "unlabelled": len(self.labels) - labelled,
            "test": len(self.test_texts),
        }


def data_folder(given: str | Path | None) -> Path:
    """Return the folder of the data sets: the given one, or that of NEWFOUND_DATA."""
    chosen = given or os.environ.get("NEWFOUND_DATA")
    if not chosen:
        raise InputError(
            "name the folder of the paper's data sets with --data or NEWFOUND_DATA; "
            "`newfound bench fetch` downloads them"
        )
    if not Path(chosen).is_dir():
        raise InputError(
            f"the data folder {chosen} does not exist; `newfound bench fetch` creates it"
        )
    return Path(chosen)


def read_data_set(folder: Path, name: str) -> DataSet:
    """Read train.tsv, dev.tsv and test.tsv of one data set."""
    if name not in DATA_SETS:
        advice = suggestion(name, DATA_SETS, f"choose one of {', '.join(DATA_SETS)}")
        raise InputError(f"the data set {name!r} is unknown; {advice}")
    texts, labels = {}, {}
    for part in PARTS:
        path = folder / name / f"{part}.tsv"
        corpus = read_tables([path], text_column="text", label_column="label").corpus
        if None in corpus.labels:
            raise InputError(f"{path} has a row without a label; download it again")
        texts[part], labels[part] = corpus.texts, [str(label) for label in corpus.labels]
    return DataSet(name, texts, labels)


def make_split(
    data: DataSet, *, known_ratio: float = 0.75, labelled_ratio: float = 0.1, seed: int = 0
) -> Split:
    """Draw known categories and labelled texts; keep dev texts of known categories only.

    The random generators and their order are those of the authors' released code, so a seed gives
    the same split: with seed 0, BANKING has the 673 labelled texts of Table 1. Counts are rounded
    as Python does: 0.75 of CLINC's 150 categories are 112. The paper prints 113, but its 1,344
    labelled texts are 112 x 12.

    Parameters
    ----------
    data : DataSet
        The data set.
    known_ratio : float
        Share of the categories that are known.
    labelled_ratio : float
        Share of the known categories' training texts that are labelled.
    seed : int
        Seed of both draws.

    Returns
    -------
    Split
        The training texts with labels, and the test part.
    """
    categories = data.categories
    n_known = round(known_ratio * len(categories))
    drawn = np.random.RandomState(seed).choice(len(categories), n_known, replace=False)
    truth = np.array(data.labels["train"], object)
    labels: list[str | None] = [None] * len(truth)
    rng = random.Random(seed)
    for category in [categories[i] for i in drawn]:
        rows = np.flatnonzero(truth == category).tolist()
        for row in rng.sample(rows, round(labelled_ratio * len(rows))):
            labels[row] = category
    return known_part(data, labels, [categories[i] for i in sorted(drawn)])


def known_part(data: DataSet, labels: list[str | None], known: list[str]) -> Split:
    """Return a split with these labels of training texts, and dev texts of known categories."""
    in_known = set(known)
    kept = [i for i, label in enumerate(data.labels["dev"]) if label in in_known]
    return Split(
        texts=data.texts["train"],
        labels=labels,
        truth=data.labels["train"],
        known=known,
        n_categories=len(data.categories),
        validation_texts=[data.texts["dev"][i] for i in kept],
        validation_labels=[data.labels["dev"][i] for i in kept],
        test_texts=data.texts["test"],
        test_labels=data.labels["test"],
    )


def search_split(split: Split, seed: int) -> Split:
    """Return a split for choosing settings with labels of known categories alone.

    A quarter of the known categories loses its labels and takes the role of novel categories. The
    dev texts are scored; they belong to known categories with and without remaining labels. Neither
    test labels nor labels of novel texts are used.
    """
    rng = np.random.default_rng(1000 + seed)
    kept = sorted(rng.choice(split.known, round(0.75 * len(split.known)), replace=False).tolist())
    chosen = set(kept)
    return replace(
        split,
        labels=[label if label in chosen else None for label in split.labels],
        known=kept,
        validation_texts=[],  # a share of the labelled texts is held out instead
        validation_labels=[],
        test_texts=split.validation_texts,
        test_labels=split.validation_labels,
    )
