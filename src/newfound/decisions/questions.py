"""The queue of a review: the question first whose answer changes most.

Four kinds of questions:

- "category": is this proposed category one topic? Keep, rename, merge, split or reject it.
- "border": which of these texts, of which the model is least sure, do not belong to this known or
  accepted category? Move them, or split them off.
- "pair": are these two look-alikes one category? Merge them, or leave them.
- "split": are these two groups, which lie apart on the map, two topics? Split it, or leave it.

The gain of a question is the expected number of texts whose category its answer changes. A text
with probability p is wrong with probability 1 - p. A proposal counts as wrong as a whole with the
probability PRIOR_WRONG, because nobody has looked at it yet. The answer to "border" settles the
texts that are shown, and of the others those that are like them: taken is the geometric mean of
those shown and all of the category.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from newfound.result import Result

SHOWN = 10  # texts of a question
PRIOR_WRONG = 0.25  # probability that a proposal is not one category of its own
LEAST_PART = 4  # texts of either part of a category that is worth splitting
LEAST_PART_SHARE = 0.15  # of the category's texts
ONE_GROUP = 0.4  # share of the variance on the map that two halves of one group explain
LLOYD_STEPS = 8
LEAST_GAIN = 0.5  # expected number of changed texts, below which a question is not worth asking


@dataclass(frozen=True)
class Question:
    """A question to a person.

    Attributes
    ----------
    kind : {"category", "border", "pair", "split"}
    category : str
        Id of the category that it is about.
    other : str or None
        The look-alike of a pair.
    texts : tuple of str
        Ids of the texts to show, the most telling first; of a pair and a split, those of the first
        group, then as many of the second.
    gain : float
        Expected number of texts whose category the answer changes.
    """

    kind: str
    category: str
    other: str | None
    texts: tuple[str, ...]
    gain: float

    @property
    def key(self) -> tuple[str, str, str | None]:
        """What the question is about; equal for the same question after other decisions."""
        return self.kind, self.category, self.other


def questions(
    result: Result, asked: Collection[tuple[str, str, str | None]] = ()
) -> list[Question]:
    """Return the questions on a result, the one first whose answer changes most.

    Parameters
    ----------
    result : Result
        A result after the decisions so far.
    asked : collection of tuple, optional
        Keys of questions that were answered without a decision, such as "these are not the same".

    Returns
    -------
    list of Question
        By gain, highest first.
    """
    reviewed = np.zeros(len(result.assigned), bool) if result.reviewed is None else result.reviewed
    open_ = ~(result.labelled | reviewed)
    doubt = np.where(open_, 1 - np.nan_to_num(result.probability), 0.0)
    found = []
    for at, category in enumerate(result.categories):
        rows = np.flatnonzero(result.assigned == at)
        wrong = float(doubt[rows].sum())
        if category.status == "proposed":
            gain = max(wrong, PRIOR_WRONG * len(rows))
            texts = _spread(result, rows)
            found.append(Question("category", category.id, None, texts, gain))
        else:
            unsure = rows[open_[rows]]
            unsure = unsure[np.argsort(result.probability[unsure], kind="stable")][:SHOWN]
            gain = math.sqrt(wrong * float(doubt[unsure].sum()))
            found.append(Question("border", category.id, None, _ids(result, unsure), gain))
    found += _pairs(result)
    found += _splits(result)
    known = set(asked)
    worth = [q for q in found if q.key not in known and q.texts and q.gain >= LEAST_GAIN]
    return sorted(worth, key=lambda q: (-q.gain, q.kind, q.category))


def _spread(result: Result, rows: np.ndarray) -> tuple[str, ...]:
    """Return texts from the surest to the least sure one of a category, spread evenly."""
    order = rows[np.argsort(-np.nan_to_num(result.probability[rows]), kind="stable")]
    chosen = np.unique(np.linspace(0, len(order) - 1, min(SHOWN, len(order))).round().astype(int))
    return _ids(result, order[chosen])


def _ids(result: Result, rows: np.ndarray) -> tuple[str, ...]:
    """Return the ids of texts."""
    return tuple(result.corpus.ids[row] for row in rows.tolist())


def _pairs(result: Result) -> list[Question]:
    """Return questions on categories that are closer to each other than usual."""
    distances = np.array([c.nearest_distance for c in result.categories], np.float64)
    if np.isfinite(distances).sum() < 2:
        return []
    usual = float(np.nanmedian(distances))
    found: dict[tuple[str, str], Question] = {}
    for at, category in enumerate(result.categories):
        other = result.position.get(category.nearest or "", -1)
        if other < 0 or not distances[at] < usual:
            continue
        partner = result.categories[other]
        if "known" in (category.status, partner.status) and category.status == partner.status:
            continue  # both are labels of the user
        first, second = sorted((category.id, partner.id))
        same = PRIOR_WRONG * (1 - distances[at] / usual)
        texts = _spread(result, np.flatnonzero(result.assigned == at))[: SHOWN // 2]
        texts += _spread(result, np.flatnonzero(result.assigned == other))[: SHOWN // 2]
        gain = float(same * min(category.size, partner.size))
        found[first, second] = Question("pair", first, second, texts, gain)
    return list(found.values())


def _splits(result: Result) -> list[Question]:
    """Return questions on categories whose texts form two groups on the map."""
    found = []
    positions = result.map_positions
    for at, category in enumerate(result.categories):
        rows = np.flatnonzero(result.assigned == at)
        rows = rows[np.isfinite(positions[rows]).all(axis=1)]
        least = max(LEAST_PART, int(LEAST_PART_SHARE * len(rows)))
        if len(rows) < 2 * least:
            continue
        groups = _groups(np.ascontiguousarray(positions[rows], np.float64).tobytes())
        smaller = min(groups.sizes)
        if smaller < least or groups.explained <= ONE_GROUP:
            continue
        apart = (groups.explained - ONE_GROUP) / (1 - ONE_GROUP)
        few = min(SHOWN // 2, smaller)
        texts = [_ids(result, rows[middle[:few]]) for middle in groups.middles]
        gain = PRIOR_WRONG * apart * smaller
        found.append(Question("split", category.id, None, texts[0] + texts[1], gain))
    return found


@dataclass(frozen=True)
class _Groups:
    """Two groups of points: their sizes, the places in their middle, and what they explain."""

    sizes: tuple[int, int]
    middles: tuple[np.ndarray, np.ndarray]
    explained: float


@lru_cache(maxsize=4096)  # most categories stay as they are from one decision to the next
def _groups(points: bytes) -> _Groups:
    """Return the two groups of points [n, 2], given as the bytes of 64-bit numbers."""
    xy = np.frombuffer(points, np.float64).reshape(-1, 2)
    second, explained = two_groups(xy)
    parts = (np.flatnonzero(~second), np.flatnonzero(second))
    return _Groups(
        sizes=(len(parts[0]), len(parts[1])),
        middles=(_middle(xy, parts[0]), _middle(xy, parts[1])),
        explained=explained,
    )


def two_groups(points: np.ndarray) -> tuple[np.ndarray, float]:
    """Return which points [n, d] are in the second of two groups, and how much that explains.

    It is 2-means that starts at the halves along the longest axis; what is explained is the share
    of the variance.

    Examples
    --------
    >>> second, explained = two_groups(np.array([[0.0, 0], [0, 1], [9, 0], [9, 1]]))
    >>> second.tolist(), round(explained, 2)
    ([False, False, True, True], 0.99)
    """
    centred = points - points.mean(axis=0)
    axis = np.linalg.eigh(centred.T @ centred)[1][:, -1]
    axis = axis * np.sign(axis[np.abs(axis).argmax()])
    second = centred @ axis > 0
    total = float((centred**2).sum())
    within = total
    for _ in range(LLOYD_STEPS):
        if second.all() or not second.any():
            return second, 0.0
        means = np.stack([centred[~second].mean(axis=0), centred[second].mean(axis=0)])
        squares = ((centred[:, None] - means[None]) ** 2).sum(axis=2)
        within = float(squares.min(axis=1).sum())
        before, second = second, squares[:, 1] < squares[:, 0]
        if (before == second).all():
            break
    return second, 1 - within / total if total > 0 else 0.0


def _middle(points: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Return the places of the points in the middle of a group."""
    if not len(group):
        return group
    away = ((points[group] - np.median(points[group], axis=0)) ** 2).sum(axis=1)
    return group[np.argsort(away, kind="stable")][: SHOWN // 2]
