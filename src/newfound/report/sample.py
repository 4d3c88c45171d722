"""Sample the texts for the map if there are too many to draw."""

import numpy as np

TOO_MANY = 100_000
SAMPLE = 20_000
LEAST = 10  # of each category, so that small ones stay on the map


def map_sample(category: np.ndarray, seed: int) -> np.ndarray | None:
    """Return positions of about SAMPLE texts, stratified by category; None if all are shown."""
    if len(category) < TOO_MANY:
        return None
    sizes = np.bincount(category)
    rng = np.random.default_rng(seed)
    chosen = [
        rng.choice(np.flatnonzero(category == position), size=take, replace=False)
        for position, take in enumerate(quotas(sizes, SAMPLE))
    ]
    return np.sort(np.concatenate(chosen))


def quotas(sizes: np.ndarray, total: int) -> np.ndarray:
    """Return how many texts to draw per category: in proportion, but a few of each."""
    if sizes.sum() <= total:
        return sizes.copy()
    few = np.minimum(sizes, min(LEAST, total // max(int((sizes > 0).sum()), 1)))
    rest = sizes - few
    exact = rest * (total - few.sum()) / rest.sum()
    take = np.floor(exact).astype(np.int64)
    # Texts that are missing after rounding down go to the largest remainders.
    left = int(total - few.sum() - take.sum())
    take[np.argsort(take - exact, kind="stable")[:left]] += 1
    return few + take
