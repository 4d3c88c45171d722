"""Sample the texts for the map if there are too many to draw."""

import numpy as np

from newfound.clustering.quotas import draw, quotas

TOO_MANY = 100_000
SAMPLE = 20_000
LEAST = 10  # of each category, so that small ones stay on the map


def map_sample(category: np.ndarray, seed: int) -> np.ndarray | None:
    """Return positions of about SAMPLE texts, stratified by category; None if all are shown."""
    if len(category) < TOO_MANY:
        return None
    take = quotas(np.bincount(category), SAMPLE, LEAST)
    return draw(category, take, np.random.default_rng(seed))
