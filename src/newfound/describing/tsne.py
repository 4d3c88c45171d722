"""Exact t-SNE of a few points.

For a few hundred points this takes less time than the import of scikit-learn. Larger inputs are
passed on to scikit-learn.
"""

import numpy as np
from numpy.typing import NDArray

from newfound.clustering.assignment import squared_distances

MOST = 300  # points that are embedded exactly
STEPS, EARLY = 1_000, 250  # gradient steps, and how many of them use early exaggeration
EXAGGERATION = 12.0  # factor of the joint probabilities in the early steps
Array = NDArray[np.float64]


def embed(points: Array, start: Array, perplexity: float, seed: int) -> Array:
    """Return the t-SNE embedding [N, 2] of points [N, d], initialised with `start` [N, 2]."""
    if len(points) > MOST:
        from sklearn.manifold import TSNE  # imported here, because it is slow

        tsne = TSNE(perplexity=perplexity, init=start.astype(np.float32), random_state=seed)
        return np.asarray(tsne.fit_transform(points), dtype=np.float64)
    wanted = _joint(squared_distances(points, points), perplexity)
    plane, speed, gain = start.copy(), np.zeros_like(start), np.ones_like(start)
    rate = max(len(points) / EXAGGERATION / 4, 50.0)
    for step in range(STEPS):
        early = step < EARLY
        slope = _slope(plane, EXAGGERATION * wanted if early else wanted)
        # The step size grows while a coordinate keeps its direction and shrinks when it oscillates.
        gain = np.maximum(np.where(speed * slope < 0, gain + 0.2, gain * 0.8), 0.01)
        speed = (0.5 if early else 0.8) * speed - rate * gain * slope
        plane += speed
    return plane


def _slope(plane: Array, wanted: Array) -> Array:
    """Return the gradient [N, 2] of the KL divergence of the embedding from `wanted`."""
    near = 1 / (1 + squared_distances(plane, plane))
    np.fill_diagonal(near, 0)
    pull = (wanted - near / near.sum()) * near
    return 4 * (pull.sum(axis=1)[:, None] * plane - pull @ plane)


def _joint(squared: Array, perplexity: float) -> Array:
    """Return the joint probabilities [N, N]: Gaussians with the given perplexity."""
    nearest = np.where(np.eye(len(squared)), np.inf, squared).min(axis=1, keepdims=True)
    squared = np.maximum(squared - nearest, 0)  # the nearest neighbour keeps a positive probability
    squared /= max(float(squared.mean()), 1e-12)
    low, high = np.full(len(squared), -20.0), np.full(len(squared), 20.0)  # log of 1 / width
    for _ in range(50):
        middle = (low + high) / 2
        given = np.exp(-np.exp(middle)[:, None] * squared)
        np.fill_diagonal(given, 0)
        given /= given.sum(axis=1, keepdims=True)
        entropy = -(given * np.log(np.maximum(given, 1e-300))).sum(axis=1)
        wide = entropy > np.log(perplexity)
        low, high = np.where(wide, middle, low), np.where(wide, high, middle)
    return (given + given.T) / (2 * len(given))
