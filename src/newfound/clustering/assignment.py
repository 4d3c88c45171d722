"""Assign texts to the nearest prototype, and calibrate the probabilities."""

from collections.abc import Iterator

import numpy as np

CHUNK = 65536  # rows per chunk, which limits memory
CELLS = 2**23  # distances per chunk, for thousands of categories
LEAST_LABELS = 1000  # that a temperature is fitted on, if there are so many
SAME = 1e-9  # squared distances that differ by less, relative to the largest prototype, are equal
# Candidate temperatures, relative to the mean squared distance to the nearest prototype.
GRID = np.geomspace(1 / 64, 1, 25)
# Prior of calibration: mean temperature, relative to the same distance, and the standard deviation
# of its logarithm.
PRIOR_TEMPERATURE = 0.21
PRIOR_LOG_STD = 0.3
NOISE = 1e-3  # maximum difference of a text's features between batches, relative to their length


def chunks(rows: int, columns: int) -> Iterator[slice]:
    """Yield slices of rows such that a matrix of this many columns fits into memory."""
    size = max(1, min(CHUNK, CELLS // max(columns, 1)))
    for start in range(0, rows, size):
        yield slice(start, start + size)


def squared_distances(features: np.ndarray, prototypes: np.ndarray) -> np.ndarray:
    """Return squared Euclidean distances [N, K], in double precision.

    The rounding of a matrix product depends on its shape; in double precision the difference is too
    small to change which prototype is nearest.
    """
    features, prototypes = features.astype(np.float64), prototypes.astype(np.float64)
    return np.maximum(
        np.square(features).sum(1)[:, None]
        + np.square(prototypes).sum(1)
        - 2 * features @ prototypes.T,
        0,
    )


def probabilities(features: np.ndarray, prototypes: np.ndarray, temperature: float) -> np.ndarray:
    """Compute the probability of each category: softmax of -squared distance / (2 temperature).

    Parameters
    ----------
    features : ndarray of shape [N, d]
    prototypes : ndarray of shape [K, d]
    temperature : float

    Returns
    -------
    ndarray of shape [N, K]

    Examples
    --------
    >>> prototypes = np.array([[0.0, 1.0], [0.0, -1.0]])
    >>> probabilities(np.array([[1.0, 0.0]]), prototypes, 0.5).tolist()
    [[0.5, 0.5]]
    """
    weights = np.exp(relative_scores(features, prototypes, temperature))
    return weights / weights.sum(1, keepdims=True)


def relative_scores(features: np.ndarray, prototypes: np.ndarray, temperature: float) -> np.ndarray:
    """Return -squared distance / (2 temperature), less that of the nearest prototype: [N, K]."""
    squared = squared_distances(features, prototypes)
    nearest = squared.min(1, keepdims=True)
    # Equal prototypes have the same distance, whatever the rounding; the first one is assigned.
    same = squared <= nearest + SAME * np.square(prototypes, dtype=np.float64).sum(1).max()
    return np.where(same, 0, (nearest - squared) / (2 * temperature))


def assign(
    features: np.ndarray, prototypes: np.ndarray, temperature: float
) -> tuple[np.ndarray, np.ndarray]:
    """Assign texts to their nearest prototypes.

    Parameters
    ----------
    features : ndarray of shape [N, d]
    prototypes : ndarray of shape [K, d]
    temperature : float

    Returns
    -------
    index : ndarray of shape [N], int64
        Nearest prototype of each text.
    probability : ndarray of shape [N], float32
        Its probability.
    """
    index = np.empty(len(features), np.int64)
    confidence = np.empty(len(features), np.float32)
    for part in chunks(len(features), len(prototypes)):
        probability = probabilities(features[part], prototypes, temperature)
        index[part] = probability.argmax(1)
        confidence[part] = probability.max(1)
    return index, confidence


def near_ties(features: np.ndarray, prototypes: np.ndarray, noise: float = NOISE) -> np.ndarray:
    """Find texts that are so close to the border of two categories that noise could move them.

    Parameters
    ----------
    features : ndarray of shape [N, d]
    prototypes : ndarray of shape [K, d]
    noise : float
        Size of the noise, relative to the length of a feature.

    Returns
    -------
    ndarray of int64
        Row numbers.
    """
    found = [np.empty(0, np.int64)]
    if len(prototypes) < 2:
        return found[0]
    # No two prototypes are further apart, so that most texts need not be compared with all pairs.
    widest = 2 * np.linalg.norm(prototypes - prototypes.mean(0), axis=1).max()
    for rows in chunks(len(features), len(prototypes)):
        part = features[rows]
        squared = squared_distances(part, prototypes)
        two = np.partition(squared, 1, axis=1)
        length = np.linalg.norm(part, axis=1)
        close = np.flatnonzero(two[:, 1] - two[:, 0] <= 2.01 * noise * length * widest)
        squared = squared[close]
        nearest = squared.argmin(1)
        gap = squared - squared.min(1, keepdims=True)
        between = np.sqrt(squared_distances(prototypes[nearest], prototypes))  # [n, K]
        # Exactly zero, or every text would tie with itself.
        between[np.arange(len(close)), nearest] = 0
        # A step of length s changes the gap between two squared distances by at most 2 s |p - q|.
        reach = 2 * noise * length[close, None] * between
        found.append(rows.start + close[(gap < reach).any(1)])
    return np.concatenate(found)


def fit_temperature(features: np.ndarray, prototypes: np.ndarray, targets: np.ndarray) -> float:
    """Return the temperature with the highest likelihood of the labels.

    It is found by a grid search, relative to the mean squared distance to the nearest prototype.

    Parameters
    ----------
    features : ndarray of shape [N, d]
    prototypes : ndarray of shape [K, d]
    targets : ndarray of shape [N]
        Labels, -1 where unlabelled. With fewer than 20 labels a default is returned.

    Returns
    -------
    float
    """
    scale = _nearest_mean(features, prototypes)
    labelled = targets >= 0
    if labelled.sum() < 20:
        return scale / 8
    grid = scale * GRID
    loss = _negative_log_likelihood(features[labelled], prototypes, targets[labelled], grid)
    return float(grid[loss.argmin()])


def calibrate(features: np.ndarray, prototypes: np.ndarray, held_out: np.ndarray) -> float:
    """Return the temperature that calibrates the probabilities on held-out labels.

    Training texts are close to their prototypes, so probabilities fitted on them would be too high.
    A log-normal prior of the temperature dominates if there are few held-out labels.

    Parameters
    ----------
    features : ndarray of shape [N, d]
    prototypes : ndarray of shape [K, d]
    held_out : ndarray of shape [N]
        Labels of held-out texts, -1 for all other texts.

    Returns
    -------
    float
    """
    scale = _nearest_mean(features, prototypes)
    grid, labelled = scale * GRID, held_out >= 0
    loss = _negative_log_likelihood(features[labelled], prototypes, held_out[labelled], grid)
    loss += np.square(np.log(grid / (PRIOR_TEMPERATURE * scale)) / PRIOR_LOG_STD) / 2
    return float(grid[loss.argmin()])


def _nearest_mean(features: np.ndarray, prototypes: np.ndarray) -> float:
    """Return the mean squared distance to the nearest prototype; 1 if it is zero or undefined."""
    if not len(features):
        return 1.0
    parts = (features[part] for part in chunks(len(features), len(prototypes)))
    nearest = [squared_distances(part, prototypes).min(1) for part in parts]
    return float(np.concatenate(nearest).mean()) or 1.0


def _negative_log_likelihood(
    features: np.ndarray, prototypes: np.ndarray, targets: np.ndarray, grid: np.ndarray
) -> np.ndarray:
    """Return the negative log-likelihood of targets [N] for each temperature of a grid [T]."""
    most = max(LEAST_LABELS, CELLS // len(prototypes))
    if len(targets) > most:  # some of the labels give nearly the same temperature
        kept = np.linspace(0, len(targets) - 1, most).astype(np.int64)
        return _negative_log_likelihood(features[kept], prototypes, targets[kept], grid) * (
            len(targets) / most
        )
    rows = np.arange(len(targets))
    probability = [probabilities(features, prototypes, t)[rows, targets] for t in grid]
    return -np.log(np.maximum(probability, 1e-12)).sum(1)
