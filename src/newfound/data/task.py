"""What a method is given: texts, labels, and how many categories to find."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Task:
    """Texts, what is known of them, and how many categories to find."""

    texts: list[str]
    targets: np.ndarray  # [N] int64: index into `known`, -1 for unlabelled
    known: list[str]  # names of the known categories
    n_categories: int | None  # None: the method estimates it
    learnable: np.ndarray  # [N] bool: labelled and free to learn from
    validation_texts: list[str]  # known categories only; may be empty
    validation_targets: np.ndarray

    @property
    def labelled(self) -> np.ndarray:
        """Rows that carry a label."""
        return np.flatnonzero(self.targets >= 0)

    @property
    def unlabelled(self) -> np.ndarray:
        """Rows without a label."""
        return np.flatnonzero(self.targets < 0)


def make_task(
    texts: Sequence[str],
    targets: np.ndarray,
    known: Sequence[str],
    n_categories: int | None,
    *,
    validation: tuple[Sequence[str], np.ndarray] | None = None,
    validation_share: float = 0.15,
    seed: int = 0,
) -> Task:
    """A task; without a validation part one is taken from the labelled texts.

    A category gives `validation_share` of its labelled texts, and none if it has fewer than five:
    with so few, each is worth more in training. Held-out texts keep their label for everything but
    the gradient.
    """
    texts = list(texts)
    learnable = targets >= 0
    if validation is not None:
        return Task(
            texts, targets, list(known), n_categories, learnable, list(validation[0]), validation[1]
        )
    rng = np.random.default_rng(seed)
    held: list[int] = []
    for category in range(len(known)):
        rows = np.flatnonzero(targets == category)
        if len(rows) >= 5:
            share = max(1, int(validation_share * len(rows))) if validation_share > 0 else 0
            held.extend(rng.permutation(rows)[:share].tolist())
    learnable = learnable.copy()
    learnable[held] = False
    return Task(
        texts,
        targets,
        list(known),
        n_categories,
        learnable,
        [texts[i] for i in held],
        targets[held],
    )
