"""Vectors of a small task that a user might have computed: one direction per category."""

import numpy as np

from support.small_texts import SmallTask


def vectors_of_task(task: SmallTask, width: int = 12, seed: int = 0) -> np.ndarray:
    """Vectors [N, width] around one random direction per category; equal texts have equal ones."""
    rng = np.random.default_rng(seed)
    names = sorted(set(task.truth))
    centres = rng.normal(size=(len(names), width))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    place = [names.index(name) for name in task.truth]
    noise = rng.normal(scale=0.05, size=(len(place), width))
    return (centres[place] + noise).astype(np.float32)
