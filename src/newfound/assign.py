"""The last step of every method: a text's category is its nearest prototype."""

import numpy as np

CHUNK = 65536  # rows at a time, so that memory stays flat
SAME = 1e-9  # distances that differ by less, relative to the prototypes' lengths, are equal
NOISE = 1e-3  # a text's features differ by less than this between batches, relative to their length


def squared_distances(features: np.ndarray, prototypes: np.ndarray) -> np.ndarray:
    """Squared Euclidean distances [N, K], in double precision.

    The rounding of a matrix product depends on its shape; in double precision that is too little
    to change which prototype is the nearest.
    """
    features, prototypes = features.astype(np.float64), prototypes.astype(np.float64)
    return np.maximum(
        np.square(features).sum(1)[:, None]
        + np.square(prototypes).sum(1)
        - 2 * features @ prototypes.T,
        0,
    )


def probabilities(features: np.ndarray, prototypes: np.ndarray, temperature: float) -> np.ndarray:
    """Probability of each category [N, K]: softmax of -squared distance / (2 temperature)."""
    apart = squared_distances(features, prototypes)
    nearest = apart.min(1, keepdims=True)
    # Prototypes that coincide are equally near, whatever rounding says; the first of them wins.
    same = apart <= nearest + SAME * np.square(prototypes, dtype=np.float64).sum(1).max()
    scores = np.where(same, 0, (nearest - apart) / (2 * temperature))
    np.exp(scores, out=scores)
    return scores / scores.sum(1, keepdims=True)


def assign(
    features: np.ndarray, prototypes: np.ndarray, temperature: float
) -> tuple[np.ndarray, np.ndarray]:
    """The nearest prototype of each text and its probability: (index [N], probability [N])."""
    index = np.empty(len(features), np.int64)
    sure = np.empty(len(features), np.float32)
    for start in range(0, len(features), CHUNK):
        part = slice(start, start + CHUNK)
        chances = probabilities(features[part], prototypes, temperature)
        index[part] = chances.argmax(1)
        sure[part] = chances.max(1)
    return index, sure


def near_ties(features: np.ndarray, prototypes: np.ndarray, noise: float = NOISE) -> np.ndarray:
    """Rows that lie so near the border of two categories that noise could carry them across."""
    between = np.sqrt(squared_distances(prototypes, prototypes))  # [K, K]
    np.fill_diagonal(between, 0)  # exactly: rounding would make every text a tie with itself
    found = [np.empty(0, np.int64)]
    for start in range(0, len(features), CHUNK):
        part = features[start : start + CHUNK]
        apart = squared_distances(part, prototypes)
        nearest = apart.argmin(1)
        gap = apart - apart.min(1, keepdims=True)
        # A step of length s changes the gap of two squared distances by 2 s |p - q| at most.
        reach = 2 * noise * np.linalg.norm(part, axis=1)[:, None] * between[nearest]
        found.append(start + np.flatnonzero((gap < reach).any(1)))
    return np.concatenate(found)


def fit_temperature(features: np.ndarray, prototypes: np.ndarray, targets: np.ndarray) -> float:
    """The temperature under which labelled texts are least surprising; a default without any.

    One-dimensional search over a grid around the mean squared distance to the nearest prototype,
    by the negative log-likelihood of the given categories.
    """
    if len(features) == 0:
        return 0.05
    scale = float(squared_distances(features, prototypes).min(1).mean()) or 1.0
    labelled = targets >= 0
    if labelled.sum() < 20:
        return scale / 8
    grid = scale * np.geomspace(1 / 64, 1, 25)
    features, targets = features[labelled], targets[labelled]
    surprise = [
        -np.log(
            np.maximum(
                probabilities(features, prototypes, t)[np.arange(len(targets)), targets], 1e-12
            )
        ).mean()
        for t in grid
    ]
    return float(grid[int(np.argmin(surprise))])
