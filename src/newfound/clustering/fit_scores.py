"""Fit scores: how well a text fits its category.

Training moves every text towards some prototype, so a text that fits nowhere can have a high
probability. The fit score is computed in the space before training: it is the mean cosine of a text
to the five nearest reference texts of its category. A `FitReference` stores what the fit scores of
new texts need:

1. up to 100 training texts per category, drawn at random, as vectors of unit length;
2. the fit scores of the training texts, each computed without the text itself. The scores of
   labelled texts turn a false-alarm rate into a threshold, those of unlabelled texts a share.
"""

from dataclasses import dataclass

import numpy as np

NEAREST = 5  # reference texts per fit score
PER_CATEGORY = 100  # maximum number of reference texts of a category
MOST_TEXTS = 20_000  # maximum number of reference texts of all categories
MOST_SCORES = 1_001  # maximum number of stored training scores; of more, quantiles are stored


@dataclass(frozen=True, eq=False)
class FitReference:
    """The reference texts for the fit scores of new texts.

    Attributes
    ----------
    vectors : ndarray of float16, shape (R, d)
        Reference texts, of unit length.
    categories : ndarray of int64, shape (R,)
        Category of each reference text.
    frozen : bool
        Whether the vectors come from the encoder before training; otherwise they are features.
    labelled : ndarray of float32
        Sorted fit scores of labelled training texts.
    unlabelled : ndarray of float32
        Sorted fit scores of unlabelled training texts.
    """

    vectors: np.ndarray
    categories: np.ndarray
    frozen: bool
    labelled: np.ndarray
    unlabelled: np.ndarray

    def scores(self, vectors: np.ndarray, categories: np.ndarray) -> np.ndarray:
        """Return the fit scores [N] of texts with these vectors [N, d] and categories [N]."""
        return fit_scores(vectors, categories, self.vectors, self.categories)

    def threshold(
        self, outside: float | None = None, false_alarms: float | None = None
    ) -> float | None:
        """Return the fit score below which a text fits nowhere; None without a share or a rate.

        Parameters
        ----------
        outside : float, optional
            Share of the unlabelled training texts whose score is below the threshold.
        false_alarms : float, optional
            Share of texts of known categories whose score may be below the threshold.

        Returns
        -------
        float or None
            Minus infinity if there are too few labelled texts for such a low false-alarm rate.
        """
        if false_alarms is not None:
            # A conformal bound: a new text of a known category is equally likely to have any rank
            # among n labelled texts and itself, so it is below the k-th of them with probability
            # k / (n + 1).
            return _below(self.labelled, int(false_alarms * (len(self.labelled) + 1)) - 1)
        if outside is not None:
            scores = self.unlabelled if len(self.unlabelled) else self.labelled
            return _below(scores, round(outside * len(scores)))
        return None


def _below(ordered: np.ndarray, count: int) -> float:
    """Return the value above the first `count` sorted values; minus infinity if it is negative."""
    if count < 0 or not len(ordered):
        return -np.inf
    return float(ordered[count]) if count < len(ordered) else np.inf


def fit_scores(
    vectors: np.ndarray,
    categories: np.ndarray,
    reference: np.ndarray,
    reference_categories: np.ndarray,
    own: np.ndarray | None = None,
) -> np.ndarray:
    """Return the mean cosine of each text to its nearest reference texts of the same category.

    Parameters
    ----------
    vectors : ndarray of shape (N, d)
        Vectors of the texts, of any length but zero.
    categories : ndarray of int, shape (N,)
        Category of each text.
    reference : ndarray of shape (R, d)
        Vectors of the reference texts, of unit length.
    reference_categories : ndarray of int, shape (R,)
        Category of each reference text.
    own : ndarray of int, shape (N,), optional
        Index of each text among the reference texts, at which it is left out; -1 if it is not one.

    Returns
    -------
    ndarray of float32, shape (N,)
        Mean over the five nearest reference texts, or over fewer if the category has fewer; 0 if
        it has none.

    Examples
    --------
    >>> import numpy as np
    >>> axes = np.eye(2)
    >>> fit_scores(axes, np.array([0, 0]), axes[:1], np.array([0])).tolist()
    [1.0, 0.0]
    """
    found = np.zeros(len(vectors), np.float32)
    rows, members = _by_category(categories), _by_category(reference_categories)
    for category, texts in rows.items():
        places = members.get(category)
        if places is None:
            continue
        cosines = unit_length(vectors[texts]) @ reference[places].astype(np.float32).T
        if own is not None:
            cosines[own[texts][:, None] == places] = -np.inf
        nearest = -np.sort(-cosines, axis=1)[:, :NEAREST]
        there = np.isfinite(nearest)
        total = np.where(there, nearest, 0).sum(1)
        found[texts] = total / np.maximum(there.sum(1), 1)
    return found


def make_reference(
    vectors: np.ndarray,
    categories: np.ndarray,
    labelled: np.ndarray,
    *,
    frozen: bool,
    seed: int,
) -> tuple[FitReference, np.ndarray]:
    """Choose reference texts; return them, and the fit scores of the training texts.

    Parameters
    ----------
    vectors : ndarray of shape (N, d)
        Vectors of the training texts.
    categories : ndarray of int, shape (N,)
        Category of each training text.
    labelled : ndarray of bool, shape (N,)
        Which training texts have a label.
    frozen : bool
        Whether the vectors come from the encoder before training.
    seed : int
        Random seed of the choice of reference texts in large categories.

    Returns
    -------
    reference : FitReference
    scores : ndarray of float32, shape (N,)
        Fit score of each training text, computed without the text itself.
    """
    kept = choose_texts(categories, seed)
    own = np.full(len(vectors), -1)
    own[kept] = np.arange(len(kept))
    chosen = unit_length(vectors[kept]).astype(np.float16)
    scores = fit_scores(vectors, categories, chosen, categories[kept], own)
    reference = FitReference(
        vectors=chosen,
        categories=categories[kept],
        frozen=frozen,
        labelled=_thinned(scores[labelled]),
        unlabelled=_thinned(scores[~labelled]),
    )
    return reference, scores


def choose_texts(categories: np.ndarray, seed: int) -> np.ndarray:
    """Return the rows of the reference texts: the same maximum number for each category."""
    rng = np.random.default_rng(seed)
    members = _by_category(categories)
    most = max(NEAREST, min(PER_CATEGORY, MOST_TEXTS // max(len(members), 1)))
    kept = [
        rows if len(rows) <= most else rng.choice(rows, most, replace=False)
        for rows in members.values()
    ]
    return np.sort(np.concatenate(kept)) if kept else np.empty(0, np.int64)


def unit_length(vectors: np.ndarray) -> np.ndarray:
    """Return vectors [N, d] in float32 with unit length; a zero vector stays zero."""
    real = vectors.astype(np.float32)
    return real / np.maximum(np.linalg.norm(real, axis=1, keepdims=True), 1e-12)


def _by_category(categories: np.ndarray) -> dict[int, np.ndarray]:
    """Return the rows of each category that occurs."""
    order = np.argsort(categories, kind="stable")
    names, starts = np.unique(categories[order], return_index=True)
    return dict(zip(names.tolist(), np.split(order, starts[1:]), strict=True)) if len(order) else {}


def _thinned(scores: np.ndarray) -> np.ndarray:
    """Return the sorted scores, or `MOST_SCORES` quantiles if there are more."""
    if len(scores) > MOST_SCORES:
        return np.quantile(scores, np.linspace(0, 1, MOST_SCORES)).astype(np.float32)
    return np.sort(scores).astype(np.float32)
