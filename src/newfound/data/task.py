"""The input of a method: texts, labels, and the number of categories to find."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Task:
    """Texts, their labels, and the number of categories to find.

    Attributes
    ----------
    texts : list of str
    targets : ndarray of shape [N], int64
        Label of each text as an index into `known`, -1 where unlabelled.
    known : list of str
        Names of the known categories.
    n_categories : int or None
        None lets the method estimate the number.
    learnable : ndarray of shape [N], bool
        Texts whose label may be learnt from; validation texts are excluded.
    validation_texts : list of str
        Texts of known categories; may be empty.
    validation_targets : ndarray of shape [V], int64
        Labels of the validation texts, as indices into `known`.
    vectors : ndarray of shape [N, d], float16, optional
        Scaled vectors of the texts, if a frozen encoder or the user computed them.
    validation_vectors : ndarray of shape [V, d], float16, optional
        Those of the validation texts.
    """

    texts: list[str]
    targets: np.ndarray
    known: list[str]
    n_categories: int | None
    learnable: np.ndarray
    validation_texts: list[str]
    validation_targets: np.ndarray
    vectors: np.ndarray | None = None
    validation_vectors: np.ndarray | None = None

    @property
    def labelled(self) -> np.ndarray:
        """Row numbers of the labelled texts."""
        return np.flatnonzero(self.targets >= 0)

    @property
    def unlabelled(self) -> np.ndarray:
        """Row numbers of the unlabelled texts."""
        return np.flatnonzero(self.targets < 0)


def make_task(
    texts: Sequence[str],
    targets: np.ndarray,
    known: Sequence[str],
    n_categories: int | None,
    *,
    validation: tuple[Sequence[str], np.ndarray] | None = None,
    vectors: np.ndarray | None = None,
    validation_vectors: np.ndarray | None = None,
    validation_share: float = 0.15,
    seed: int = 0,
) -> Task:
    """Build a task; hold out validation texts if none are given.

    Parameters
    ----------
    texts : sequence of str
    targets : ndarray of shape [N], int64
        Label of each text as an index into `known`, -1 where unlabelled.
    known : sequence of str
        Names of the known categories.
    n_categories : int or None
        None lets the method estimate the number.
    validation : tuple of (texts, targets), optional
        Validation texts; by default, they are held out from the labelled texts.
    vectors : ndarray of shape [N, d], float16, optional
        Scaled vectors of the texts.
    validation_vectors : ndarray of shape [V, d], float16, optional
        Those of `validation`.
    validation_share : float
        Share of each category's labelled texts to hold out. A category with fewer than five keeps
        all of them, because each is worth more in training. Held-out texts keep their label for
        everything but the gradient.
    seed : int
        Random seed of the held-out texts.

    Returns
    -------
    Task
    """
    texts = list(texts)
    learnable = targets >= 0
    if validation is not None:
        return Task(
            texts,
            targets,
            list(known),
            n_categories,
            learnable,
            list(validation[0]),
            validation[1],
            vectors,
            validation_vectors,
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
        vectors,
        None if vectors is None else vectors[held],
    )
