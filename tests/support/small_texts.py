"""A small task of well separated texts, in the words that the tiny encoders know."""

import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

WORDS_OF = {
    "bank": "card lost pay bill money bank cash",
    "travel": "trip flight hotel book travel",
    "music": "music play song loud stop",
    "weather": "weather rain sun cold warm day",
}
KNOWN = ("bank", "travel")
# What makes a run of dpn take a fraction of a second.
QUICK = {"pretrain_epochs": 2, "epochs": 1, "starts": 2}
QUICK_FLAGS = ["--method", "dpn", "--effort", "fast", "--device", "cpu"] + [
    part for name, value in QUICK.items() for part in ("--set", f"{name}={value}")
]


@dataclass(frozen=True)
class SmallTask:
    """Texts of four categories; some of the first two are labelled."""

    texts: list[str]
    labels: list[str | None]
    truth: np.ndarray

    def csv(self) -> str:
        """The task as the content of a CSV file."""
        rows = [
            f"{text},{label or ''}" for text, label in zip(self.texts, self.labels, strict=True)
        ]
        return "\n".join(["text,label", *rows]) + "\n"


def small_task(each: int = 16, labelled: int = 6, seed: int = 0) -> SmallTask:
    """`each` distinct texts a category, `labelled` of them labelled in a known one."""
    draw = random.Random(seed)
    rows = []
    for name, words in WORDS_OF.items():
        texts: dict[str, None] = {}
        while len(texts) < each:
            texts[" ".join(draw.sample(words.split(), 4))] = None
        rows += [(text, name) for text in texts]
    draw.shuffle(rows)
    seen: Counter[str] = Counter()
    labels: list[str | None] = []
    for _, name in rows:
        seen[name] += 1
        labels.append(name if name in KNOWN and seen[name] <= labelled else None)
    truth = np.array([name for _, name in rows], object)
    return SmallTask([text for text, _ in rows], labels, truth)


def everything_under(folder: Path) -> set[str]:
    """The names of all files and folders under a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}
