"""Fit scores: how well a text fits its category.

Training moves every text towards some prototype, so distances to prototypes do not show that a text
fits nowhere. The space before training does. A `FitReference` compares texts with training texts
there:

1. It keeps up to 100 training texts per category, labelled ones first, as unit vectors. If one of
   them is the same as the text that is compared, it is left out, so that a training text gets the
   same scores when it comes again.
2. Beside its vector, each text has a profile: how similar it is to the mean of every category
   (`category_profiles`). Profiles leave out much of what differs between texts of one category,
   but tell little where categories are few: they count in proportion to the number of categories.
3. The fit score of a text is the mean of two cosines: the mean cosine to the five nearest reference
   texts of its category, and the cosine to the mean of that category's reference texts. A cosine is
   here a weighted mean of that of the vectors and that of the profiles.
4. Fit scores of labelled training texts turn a false-alarm rate into a threshold, those of
   unlabelled ones a share.
5. Two more comparisons are the evidence that calibrates probabilities (`calibration`), by vectors
   alone: how many of the ten nearest reference texts are of the same category, and how near the
   nearest labelled text of that category is, in comparison with how near labelled texts are to each
   other.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from newfound.clustering.calibration import Evidence
from newfound.clustering.quotas import places_within

NEAREST = 5  # reference texts that a fit score is the mean cosine to
PER_CATEGORY = 100  # reference texts kept of each category
MOST_TEXTS = 20_000  # reference texts kept of all categories
MOST_SCORES = 1_001  # training scores kept of each sort; more are kept as their quantiles
NEIGHBOURS = 10  # nearest reference texts whose categories are compared
# Reference texts of each category among which neighbours are found: with equal numbers a large
# category does not surround the texts of a small one.
CANDIDATES = 30
DECIMALS = 4  # of cosines that are ranked; what differs by less is in the order of the reference
SPARE = 5  # more neighbours among which those that differ by less are ranked
FULL_WEIGHT = 400  # categories with which profiles count as much as vectors
SAME = 0.985  # cosine above which two texts are taken to be the same; int8 costs less than that
ROWS = 4096  # texts compared with all candidates at a time, which limits memory


Members = dict[int, np.ndarray]  # vectors [m, d] of unit length by category


@dataclass(frozen=True, eq=False)
class Profiles:
    """What turns vectors of texts into profiles: similarities to the means of all categories.

    Attributes
    ----------
    centre : ndarray of float32, shape (d,)
        Mean of the training texts' unit vectors.
    directions : ndarray of float32, shape (d, r)
        Its products with two vectors have the inner product of their similarities to all
        categories; r is at most the number of categories.
    """

    centre: np.ndarray
    directions: np.ndarray

    @property
    def weight(self) -> float:
        """Weight of cosines of profiles beside those of vectors."""
        return min(1.0, self.directions.shape[1] / FULL_WEIGHT)

    def beside(self, vectors: np.ndarray) -> np.ndarray:
        """Return the vectors [N, d] with their profiles beside them [N, d + r].

        Cosines of the result are weighted means of the cosines of vectors and of profiles.
        """
        unit = unit_length(vectors)
        # In double precision, so that no digit depends on the other texts, as in `_cosines`.
        profiles = (unit - self.centre).astype(np.float64) @ self.directions.astype(np.float64)
        return np.hstack([unit, np.float32(math.sqrt(self.weight)) * unit_length(profiles)])


@dataclass(frozen=True, eq=False)
class FitReference:
    """The reference texts for the fit scores of new texts.

    Attributes
    ----------
    vectors : ndarray of float16, shape (R, d)
        Reference texts, of unit length.
    categories : ndarray of int64, shape (R,)
        Category of each reference text, in ascending order.
    given : ndarray of bool, shape (R,)
        Which reference texts carry a label; they are the first of their category.
    frozen : bool
        Whether the vectors come from the encoder before training; otherwise they are features.
    labelled : ndarray of float32
        Sorted fit scores of labelled training texts.
    unlabelled : ndarray of float32
        Sorted fit scores of unlabelled training texts.
    label_cosines : ndarray of float32
        Sorted cosines of labelled training texts to the nearest other one with the same label.
    profiles : Profiles or None
        None in models of earlier versions, whose fit scores compare vectors alone.
    """

    vectors: np.ndarray
    categories: np.ndarray
    given: np.ndarray
    frozen: bool
    labelled: np.ndarray
    unlabelled: np.ndarray
    label_cosines: np.ndarray
    profiles: Profiles | None = None

    def scores(self, vectors: np.ndarray, categories: np.ndarray) -> np.ndarray:
        """Return the fit scores [N] of texts with these vectors [N, d] and categories [N]."""
        return _fit_scores(self._with_profiles(vectors), categories, self._members)

    def _with_profiles(self, vectors: np.ndarray) -> np.ndarray:
        """Return the vectors that fit scores compare."""
        return vectors if self.profiles is None else self.profiles.beside(vectors)

    @cached_property
    def _members(self) -> Members:
        """All reference texts by category, with their profiles."""
        return _members_of(self._with_profiles(self.vectors), self.categories)

    @cached_property
    def _labelled_members(self) -> Members:
        """The reference texts with a label by category."""
        return _members_of(self.vectors[self.given], self.categories[self.given])

    @cached_property
    def _candidates(self) -> tuple[np.ndarray, np.ndarray]:
        """Unit vectors [C, d], in float32, and categories of the texts that may be neighbours."""
        candidates = places_within(self.categories) < CANDIDATES
        return unit_length(self.vectors[candidates]), self.categories[candidates]

    def evidence(self, vectors: np.ndarray, categories: np.ndarray) -> Evidence:
        """Return what speaks for these categories [N] of texts with these vectors [N, d]."""
        return Evidence(
            neighbours=_log_odds(vectors, categories, *self._candidates),
            labels=self._label_ranks(vectors, categories),
        )

    def _label_ranks(self, vectors: np.ndarray, categories: np.ndarray) -> np.ndarray:
        """Return the rank [N], from 0 to 1, of the nearest label's cosine; 0 without labels."""
        cosines = _nearest_cosines(vectors, categories, self._labelled_members)
        # Interpolated, so that the last digits of a vector change little.
        knots = np.array([-1, *self.label_cosines, 1])
        ranks = np.interp(cosines, knots, np.linspace(0, 1, len(knots)))
        # Nothing to compare with: one label per category, or this is the only one of its category.
        ranks[np.isnan(cosines) | (len(knots) == 2)] = 0.5
        ranks[~np.isin(categories, list(self._labelled_members))] = 0
        return ranks

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
) -> np.ndarray:
    """Return how well each text fits the reference texts of its category.

    Parameters
    ----------
    vectors : ndarray of shape (N, d)
        Vectors of the texts, of any length but zero.
    categories : ndarray of int, shape (N,)
        Category of each text.
    reference : ndarray of shape (R, d)
        Of any length but zero.
    reference_categories : ndarray of int, shape (R,)
        Category of each reference text.

    Returns
    -------
    ndarray of float32, shape (N,)
        The mean of the mean cosine to the five nearest reference texts, or to as many as there are,
        and the cosine to the mean of all; 0 where there is none but the text itself.

    Examples
    --------
    >>> import numpy as np
    >>> axes = np.eye(3)
    >>> fit_scores(axes[:2] + axes[2], np.array([0, 0]), axes[:1], np.array([0])).round(2).tolist()
    [0.71, 0.0]
    """
    return _fit_scores(vectors, categories, _members_of(reference, reference_categories))


def _fit_scores(vectors: np.ndarray, categories: np.ndarray, members: Members) -> np.ndarray:
    """Return the scores of `fit_scores`."""
    found = np.zeros(len(vectors), np.float32)
    for category, texts in _by_category(categories).items():
        if category not in members:
            continue
        own = members[category]
        points = unit_length(vectors[texts])
        cosines = _cosines(points, own)
        same = _leave_out_same(cosines)
        nearest = -np.sort(-cosines, axis=1)[:, :NEAREST]
        there = np.isfinite(nearest)
        near = np.where(there, nearest, 0).sum(1) / np.maximum(there.sum(1), 1)
        rest = own.sum(0) - np.where(same >= 0, 1, 0)[:, None] * own[same]
        mean = (points * unit_length(rest)).sum(1)
        found[texts] = np.where(there.any(1), (near + mean) / 2, 0)
    return found


def nearest_cosines(
    vectors: np.ndarray,
    categories: np.ndarray,
    reference: np.ndarray,
    reference_categories: np.ndarray,
) -> np.ndarray:
    """Return the cosine [N] to the nearest reference text of the same category, NaN without one.

    The parameters are those of `fit_scores`.
    """
    return _nearest_cosines(vectors, categories, _members_of(reference, reference_categories))


def _nearest_cosines(vectors: np.ndarray, categories: np.ndarray, members: Members) -> np.ndarray:
    """Return the cosines of `nearest_cosines`."""
    found = np.full(len(vectors), np.nan, np.float32)
    for category, texts in _by_category(categories).items():
        if category not in members:
            continue
        cosines = _cosines(unit_length(vectors[texts]), members[category])
        _leave_out_same(cosines)
        best = cosines.max(1)
        found[texts] = np.where(np.isfinite(best), best, np.nan)
    return found


def neighbour_log_odds(
    vectors: np.ndarray,
    categories: np.ndarray,
    reference: np.ndarray,
    reference_categories: np.ndarray,
) -> np.ndarray:
    """Return the log-odds that a neighbour of a text is of the text's category.

    With h of n neighbours in the category they are log((h + 1/2) / (n - h + 1/2)), so at most
    log 21 for ten neighbours. Of a category with fewer reference texts only as many neighbours are
    looked at as it has. The parameters are those of `fit_scores`.

    Returns
    -------
    ndarray of float64, shape (N,)
        0 where there is no reference text but the text itself.

    Examples
    --------
    >>> import numpy as np
    >>> axes = np.eye(2)
    >>> text = np.array([[2.0, 1.0]])
    >>> neighbour_log_odds(text, np.array([0]), axes, np.array([0, 1])).round(2).tolist()
    [1.1]
    """
    return _log_odds(vectors, categories, unit_length(reference), reference_categories)


def _log_odds(
    vectors: np.ndarray,
    categories: np.ndarray,
    points: np.ndarray,
    reference_categories: np.ndarray,
) -> np.ndarray:
    """Return the log-odds of `neighbour_log_odds`, by reference texts of unit length [R, d]."""
    found = np.zeros(len(vectors))
    if not len(points):
        return found
    total = max(int(categories.max(initial=0)), int(reference_categories.max())) + 1
    sizes = np.bincount(reference_categories, minlength=total)
    count = min(NEIGHBOURS, len(points))
    drawn = min(NEIGHBOURS + SPARE, len(points))
    for start in range(0, len(vectors), ROWS):
        own = categories[start : start + ROWS]
        own_points = unit_length(vectors[start : start + ROWS])
        cosines = own_points @ points.T
        same = _leave_out_same(cosines)
        near = np.argpartition(cosines, -drawn, axis=1)[:, -drawn:]
        values = _ranked(own_points, points, near, same)
        near = np.take_along_axis(near, np.lexsort((near, -values), axis=1)[:, :count], 1)
        hits = reference_categories[near] == own[:, None]
        hits &= near != same[:, None]
        itself = (same >= 0) & (reference_categories[same] == own)
        looked_at = np.clip(sizes[own] - itself, 1, min(count, len(points)))
        inside = np.take_along_axis(hits.cumsum(1), looked_at[:, None] - 1, 1)[:, 0]
        odds = np.log((inside + 0.5) / (looked_at - inside + 0.5))
        found[start : start + ROWS] = np.where(np.isfinite(cosines).any(1), odds, 0)
    return found


def _ranked(
    points: np.ndarray, reference: np.ndarray, near: np.ndarray, same: np.ndarray
) -> np.ndarray:
    """Return the rounded cosines [N, n] to the reference texts `near`, -inf to the `same` text.

    They are computed again, in double precision and one by one: the last digits of a product of
    matrices depend on its other rows, and here they would decide on an order.
    """
    precise, values = points.astype(np.float64), np.empty(near.shape)
    for column in range(near.shape[1]):
        values[:, column] = (precise * reference[near[:, column]]).sum(1)
    return np.where(near == same[:, None], -np.inf, values.round(DECIMALS))


def _cosines(points: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Return the cosines [N, R] of unit vectors, in float32.

    In double precision the rounding of a product, which depends on its shape, is too small to show.
    """
    return (points.astype(np.float64) @ reference.T.astype(np.float64)).astype(np.float32)


def _leave_out_same(cosines: np.ndarray) -> np.ndarray:
    """Set one cosine of each row that is of the same text to -inf; its column [N], else -1."""
    rows, best = np.arange(len(cosines)), cosines.argmax(1)
    same = cosines[rows, best] > SAME
    cosines[rows[same], best[same]] = -np.inf
    return np.where(same, best, -1)


def category_profiles(vectors: np.ndarray, categories: np.ndarray) -> Profiles:
    """Return what turns vectors into profiles, from the training texts.

    The profile of a text v is (cos(v - c, m_1 - c), ..., cos(v - c, m_K - c)), scaled to length
    one, with the mean c of all texts and the mean m_k of each category that occurs.

    Parameters
    ----------
    vectors : ndarray of shape (N, d)
        Vectors of the training texts.
    categories : ndarray of int, shape (N,)
        Category of each.

    Examples
    --------
    >>> import numpy as np
    >>> axes = np.eye(3)
    >>> found = category_profiles(axes, np.arange(3)).beside(axes)
    >>> bool(found[0] @ found[1] < 0)  # their profiles are opposite
    True
    """
    unit = unit_length(vectors).astype(np.float64)
    centre = unit.mean(0)
    groups = _by_category(categories).values()
    means = unit_length(np.stack([unit[rows].mean(0) - centre for rows in groups]))
    # Beyond the number of dimensions, more categories add no direction.
    _, lengths, directions = np.linalg.svd(means.astype(np.float64), full_matrices=False)
    scaled = directions.T * lengths
    return Profiles(centre.astype(np.float32), scaled.astype(np.float32))


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
    """
    kept = choose_texts(categories, labelled, seed)
    chosen = unit_length(vectors[kept]).astype(np.float16)
    given = labelled[kept]
    cosines = nearest_cosines(
        vectors[labelled], categories[labelled], chosen[given], categories[kept][given]
    )
    reference = FitReference(
        vectors=chosen,
        categories=categories[kept],
        given=given,
        frozen=frozen,
        labelled=np.empty(0, np.float32),
        unlabelled=np.empty(0, np.float32),
        label_cosines=_thinned(cosines[np.isfinite(cosines)]),
        profiles=category_profiles(vectors, categories),
    )
    scores = reference.scores(vectors, categories)
    return with_scores(reference, scores, labelled), scores


def with_scores(reference: FitReference, scores: np.ndarray, labelled: np.ndarray) -> FitReference:
    """Return the reference with the fit scores of other training texts.

    Parameters
    ----------
    reference : FitReference
    scores : ndarray of shape (N,)
        Fit scores of the training texts.
    labelled : ndarray of bool, shape (N,)
        Which of them have a label.

    Returns
    -------
    FitReference
    """
    return replace(
        reference, labelled=_thinned(scores[labelled]), unlabelled=_thinned(scores[~labelled])
    )


def choose_texts(categories: np.ndarray, labelled: np.ndarray, seed: int) -> np.ndarray:
    """Return the rows of the reference texts: as many of each category as there is room for.

    They are in the order of the categories, and labelled ones come first in each category: their
    category is certain.
    """
    rng = np.random.default_rng(seed)
    members = _by_category(categories)
    most = max(NEAREST, min(PER_CATEGORY, MOST_TEXTS // max(len(members), 1)))
    kept = [np.empty(0, np.int64)]
    for rows in members.values():
        drawn = rng.permutation(rows)
        kept.append(drawn[np.argsort(~labelled[drawn], kind="stable")][:most])
    return np.concatenate(kept)


def unit_length(vectors: np.ndarray) -> np.ndarray:
    """Return vectors [N, d] in float32 with unit length; a zero vector stays zero."""
    real = vectors.astype(np.float32)
    return real / np.maximum(np.linalg.norm(real, axis=1, keepdims=True), 1e-12)


def _by_category(categories: np.ndarray) -> dict[int, np.ndarray]:
    """Return the rows of each category that occurs."""
    order = np.argsort(categories, kind="stable")
    names, starts = np.unique(categories[order], return_index=True)
    return dict(zip(names.tolist(), np.split(order, starts[1:]), strict=True)) if len(order) else {}


def _members_of(vectors: np.ndarray, categories: np.ndarray) -> Members:
    """Return the vectors [R, d] of each category that occurs, with unit length."""
    return {c: unit_length(vectors[rows]) for c, rows in _by_category(categories).items()}


def _thinned(scores: np.ndarray) -> np.ndarray:
    """Return the sorted scores, or `MOST_SCORES` quantiles if there are more."""
    if len(scores) > MOST_SCORES:
        return np.quantile(scores, np.linspace(0, 1, MOST_SCORES)).astype(np.float32)
    return np.sort(scores).astype(np.float32)
