"""How many texts to draw from each group: in proportion to its size, but a few of each."""

import numpy as np


def quotas(sizes: np.ndarray, total: int, least: int | np.ndarray) -> np.ndarray:
    """Return how many texts to draw from each group.

    Parameters
    ----------
    sizes : ndarray of int, shape (G,)
        Number of texts of each group.
    total : int
        Number of texts to draw; all are drawn if there are fewer.
    least : int or ndarray of int, shape (G,)
        Texts to draw from each group that has so many, as far as there is room.

    Returns
    -------
    ndarray of int64, shape (G,)

    Examples
    --------
    >>> import numpy as np
    >>> quotas(np.array([900, 90, 10]), 100, least=10).tolist()
    [73, 17, 10]
    """
    sizes = sizes.astype(np.int64)
    if sizes.sum() <= total:
        return sizes
    few = np.minimum(sizes, np.minimum(least, total // max(int((sizes > 0).sum()), 1)))
    rest = sizes - few
    exact = rest * (total - few.sum()) / rest.sum()
    take = np.floor(exact).astype(np.int64)
    # Texts that are missing after rounding down go to the largest remainders.
    left = int(total - few.sum() - take.sum())
    take[np.argsort(take - exact, kind="stable")[:left]] += 1
    return few + take


def draw(groups: np.ndarray, take: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return positions of `take` [G] texts of each group at random, sorted.

    Parameters
    ----------
    groups : ndarray of int, shape (N,)
        Group of each text.
    take : ndarray of int, shape (G,)
        Number of texts to draw from each group.
    rng : Generator

    Returns
    -------
    ndarray of int64

    Examples
    --------
    >>> import numpy as np
    >>> draw(np.array([0, 1, 1, 0]), np.array([2, 0]), np.random.default_rng(0)).tolist()
    [0, 3]
    """
    order = rng.permutation(len(groups))
    order = order[np.argsort(groups[order], kind="stable")]  # by group, at random in each
    starts = np.cumsum(np.bincount(groups, minlength=len(take))) - np.bincount(
        groups, minlength=len(take)
    )
    place = np.arange(len(groups)) - starts[groups[order]]  # of a text in its group
    return np.sort(order[place < take[groups[order]]])


def places_within(groups: np.ndarray) -> np.ndarray:
    """Return how many items of the same group come before each one, [N].

    Parameters
    ----------
    groups : ndarray of int, shape (N,)

    Examples
    --------
    >>> places_within(np.array([4, 2, 4, 4])).tolist()
    [0, 0, 1, 2]
    """
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    places = np.empty(len(groups), np.int64)
    places[order] = np.arange(len(groups)) - np.searchsorted(ordered, ordered)
    return places
