"""Match the categories of two runs: by the texts that both have, then by prototypes."""

from collections.abc import Mapping

import numpy as np
from scipy.optimize import linear_sum_assignment

LEAST_SHARED = 1 / 3  # of the texts of either category, for both to count as one


def match_categories(
    old: np.ndarray,
    new: np.ndarray,
    sizes: tuple[int, int],
    *,
    pinned: Mapping[int, int] | None = None,
    distances: np.ndarray | None = None,
) -> dict[int, int]:
    """Return which categories of a new run are those of an old one. Names play no part.

    Parameters
    ----------
    old, new : ndarray of int64, shape (n,)
        Position of the category of each text that both runs have; -1 for none.
    sizes : tuple of int
        Number of categories of the old and of the new run.
    pinned : mapping of int to int, optional
        Pairs that are given, old to new, such as those with labels.
    distances : ndarray of shape (sizes), optional
        Distances between prototypes of the old and the new categories in one space. They match
        categories of which the runs have no text in common.

    Returns
    -------
    dict of int to int
        Position of the new category by that of the old one. A pair shares at least a third of the
        texts of both together, and all pairs together share as many as possible.

    Examples
    --------
    >>> import numpy as np
    >>> from newfound.decisions.matching import match_categories
    >>> old, new = np.array([0, 0, 0, 1, 1, 2]), np.array([1, 1, 1, 0, 0, 1])
    >>> match_categories(old, new, (3, 2))
    {0: 1, 1: 0}
    """
    found = dict(pinned or {})
    free_old = [i for i in range(sizes[0]) if i not in found]
    free_new = [i for i in range(sizes[1]) if i not in found.values()]
    both = (old >= 0) & (new >= 0)
    shared = np.zeros(sizes)
    np.add.at(shared, (old[both], new[both]), 1)
    of_old, of_new = shared.sum(axis=1), shared.sum(axis=0)
    union = of_old[:, None] + of_new[None] - shared
    share = np.divide(shared, union, out=np.zeros(sizes), where=union > 0)
    part = share[np.ix_(free_old, free_new)]
    for i, j in zip(*linear_sum_assignment(-part), strict=True):
        if part[i, j] >= LEAST_SHARED:
            found[free_old[i]] = free_new[j]
    if distances is not None:
        _match_by_distance(found, distances, of_old == 0, of_new == 0)
    return dict(sorted(found.items()))


def _match_by_distance(
    found: dict[int, int], distances: np.ndarray, old: np.ndarray, new: np.ndarray
) -> None:
    """Add pairs of categories without common texts that are each other's nearest."""
    rows = [i for i in np.flatnonzero(old).tolist() if i not in found]
    taken = set(found.values())
    columns = [j for j in np.flatnonzero(new).tolist() if j not in taken]
    if not rows or not columns:
        return
    part = distances[np.ix_(rows, columns)]
    for i, row in enumerate(rows):
        j = int(part[i].argmin())
        if int(part[:, j].argmin()) == i:
            found[row] = columns[j]
