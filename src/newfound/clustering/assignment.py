"""The last step of every method: a text's category is its nearest prototype."""

import numpy as np

CHUNK = 65536  # rows at a time, so that memory stays flat
SAME = 1e-9  # distances that differ by less, relative to the prototypes' lengths, are equal
# Temperatures to choose from, as shares of the mean squared distance to the nearest prototype
GRID = np.geomspace(1 / 64, 1, 25)
TYPICAL_TEMPERATURE = 0.18  # as such a share, and the spread of its logarithm
TYPICAL_SPREAD = 0.3
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
    scale = _nearest_mean(features, prototypes)
    labelled = targets >= 0
    if labelled.sum() < 20:
        return scale / 8
    grid = scale * GRID
    return float(grid[_surprise(features[labelled], prototypes, targets[labelled], grid).argmin()])


def calibrate(features: np.ndarray, prototypes: np.ndarray, unseen: np.ndarray) -> float:
    """The temperature that makes probabilities honest, by labelled texts that no training saw.

    `unseen` [N] are the categories of these texts and -1 for all others. Texts that were trained on
    lie close to their category and would make every text look sure. Where few labels are left a
    usual temperature has its say: the logarithm of a temperature is thought to be normal about it.
    """
    scale = _nearest_mean(features, prototypes)
    grid, labelled = scale * GRID, unseen >= 0
    surprise = _surprise(features[labelled], prototypes, unseen[labelled], grid)
    surprise += np.square(np.log(grid / (TYPICAL_TEMPERATURE * scale)) / TYPICAL_SPREAD) / 2
    return float(grid[surprise.argmin()])


def _nearest_mean(features: np.ndarray, prototypes: np.ndarray) -> float:
    """The mean squared distance to the nearest prototype; 1 where there is none to speak of."""
    if not len(features):
        return 1.0
    return float(squared_distances(features, prototypes).min(1).mean()) or 1.0


def _surprise(
    features: np.ndarray, prototypes: np.ndarray, targets: np.ndarray, grid: np.ndarray
) -> np.ndarray:
    """The negative log-likelihood of targets [N], summed, under each temperature of a grid [T]."""
    rows = np.arange(len(targets))
    chances = [probabilities(features, prototypes, t)[rows, targets] for t in grid]
    return -np.log(np.maximum(chances, 1e-12)).sum(1)
