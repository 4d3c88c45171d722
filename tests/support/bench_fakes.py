"""A tiny data set in the layout of the paper's, and result lines and artefacts that look real."""

import random
from pathlib import Path
from typing import Any

import numpy as np

TOPICS = {
    "bank": "card money bank cash bill pay",
    "travel": "trip flight hotel book travel",
    "music": "music play song loud stop",
    "weather": "weather rain sun cold warm day",
}
SIZES = {"train": 20, "dev": 4, "test": 8}


def save_tiny_data_set(folder: Path, name: str = "banking") -> Path:
    """Write train, dev and test parts of four easy categories."""
    rng = random.Random(0)
    (folder / name).mkdir(parents=True, exist_ok=True)
    for part, size in SIZES.items():
        rows = []
        for label, words in TOPICS.items():
            for _ in range(size):
                rows.append(f"the {' '.join(rng.choices(words.split(), k=4))} please\t{label}")
        rng.shuffle(rows)
        text = "text\tlabel\n" + "".join(row + "\n" for row in rows)
        (folder / name / f"{part}.tsv").write_text(text, encoding="utf-8")
    return folder


def fake_line(
    data_set: str = "banking",
    method: str = "dpn",
    seed: int = 0,
    *,
    scores: tuple[float, float, float] = (70.0, 75.0, 50.0),
    encoder: str = "minilm",
    known_ratio: float = 0.75,
    given_k: bool = True,
    estimated: int | None = None,
    seconds: dict[str, float] | None = None,
    **config: Any,
) -> dict[str, Any]:
    """A result line of a run."""
    values = dict(zip(("all", "known", "novel", "nmi", "ari"), (*scores, 80.0, 60.0), strict=True))
    return {
        "data_set": data_set,
        "method": method,
        "encoder": encoder,
        "seed": seed,
        "known_ratio": known_ratio,
        "labelled_ratio": 0.1,
        "config": {"epochs": 60, "pretrain_epochs": 100, **config, "given_k": given_k},
        "scores": {"kmeans": values, "prototype": {k: v + 1 for k, v in values.items()}},
        "categories": {"true": 77, "used": estimated or 77, "estimated": estimated},
        "seconds": seconds or {"total": 40.0, "pretraining": 30.0},
        "device": "some GPU",
        "versions": {"python": "3.12"},
        "commit": "abc",
    }


def fake_count(data_set: str, seed: int, estimated: int, counts: dict[str, int]) -> dict[str, Any]:
    """A result line of `newfound bench count`."""
    line = fake_line(data_set, seed=seed)
    for name in ("method", "scores", "categories"):
        del line[name]
    return {**line, "kind": "count", "estimated": estimated, "overclustering": counts}


def fake_artefact(
    data_set: str, method: str, *, known: int, novel: int, spread: float = 4.0
) -> dict[str, Any]:
    """What a run would keep for the figures."""
    rng = np.random.default_rng(len(method))
    k = known + novel
    labels = [str(i + 1) if data_set == "stackoverflow" else f"category_{i}" for i in range(k)]
    known_labels = sorted(rng.permutation(labels)[:known].tolist())
    centres = rng.uniform(-90, 90, (k, 2))
    truth = np.repeat(np.arange(k), 50)
    distances = rng.uniform(0.8, 1.3, (known, k))
    distances[np.arange(known), np.arange(known)] = rng.uniform(0.1, 0.3, known)
    pretraining = [
        {
            "stage": "pretraining",
            "epoch": e,
            "loss": 6 / e + 1,
            "masked_words": 4 / e + 1,
            "cross_entropy": 2 / e,
            "validation_accuracy": 0.9 - 0.6 / e,
        }
        for e in range(1, 61)
    ]
    training = [
        {
            "stage": "training",
            "epoch": e,
            "loss": 1 + 3 / e,
            "prototypes": 0.8 + 2 / e,
            "cross_entropy": 0.2 + 1 / e,
        }
        for e in range(1, 31)
    ]
    return {
        "data_set": data_set,
        "method": method,
        "encoder": "minilm",
        "seed": 0,
        "known_ratio": 0.75,
        "given_k": True,
        "known": known_labels,
        "distances": distances.round(3).tolist(),
        "categories": labels,
        "truth": truth.tolist(),
        "map": (centres[truth] + rng.normal(0, spread, (len(truth), 2))).round(1).tolist(),
        "history": pretraining + training,
    }
