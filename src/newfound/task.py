"""What a method is given and what it gives back: the contract of all methods."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from newfound.stages import Advance

if TYPE_CHECKING:
    from newfound.estimate import Estimate


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


class FeatureMap(Protocol):
    """Texts to vectors; every method has one, whatever is behind it."""

    kind: str

    def __call__(self, texts: Sequence[str], advance: Advance | None = None) -> np.ndarray:
        """Features float32 [N, d]."""

    def save(self, folder: Path) -> None:
        """Write all that `load` needs."""


@dataclass
class Fitted:
    """What every method returns: a feature map and the prototypes in its space."""

    features: FeatureMap
    prototypes: np.ndarray  # float32 [K, d]; the known categories come first, in order
    known: list[str]  # names of the first M prototypes' categories
    temperature: float  # turns distances into probabilities
    training_features: np.ndarray  # float32 [N, d]: what `features` says of the task's texts
    labelled_prototypes: np.ndarray | None = None  # float32 [M, d]: mean of each label's texts
    estimate: "Estimate | None" = None  # if the number of categories was not given
    history: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
