"""Place new texts on the map of a run, on which all others stay where they are."""

import numpy as np

from newfound.clustering.assignment import squared_distances

CELLS = 41  # of the grid of places for a new category, in each direction
BESIDE = 0.15  # distance of a new text to the text that it is placed beside, in radii
MIN_RADIUS = 0.01


def place_new(
    positions: np.ndarray,
    features: np.ndarray,
    categories: np.ndarray,
    placed: np.ndarray,
    seed: int,
) -> np.ndarray:
    """Return map positions in [-1, 1] of texts, those of placed texts unchanged.

    A text is placed beside the most similar placed text of its category. The texts of a category
    without placed texts get a disc of their own, in a free place close to the category of the most
    similar text.

    Parameters
    ----------
    positions : ndarray of shape (N, 2)
        Positions of placed texts; other rows are not read.
    features : ndarray of shape (N, d)
    categories : ndarray of int, shape (N,)
    placed : ndarray of bool, shape (N,)
    seed : int
        Random seed.

    Returns
    -------
    ndarray of float64, shape (N, 2)
    """
    rng = np.random.default_rng(seed)
    found = positions.copy()
    there = np.unique(categories[placed])
    centres = np.array([found[placed & (categories == c)].mean(axis=0) for c in there])
    radii = np.array(
        [
            max(MIN_RADIUS, 2 * float(found[placed & (categories == c)].std(axis=0).mean()))
            for c in there
        ]
    )
    sizes = np.array([(categories[placed] == c).sum() for c in there])
    scale = float(np.median(radii / np.sqrt(sizes))) if len(there) else 0.1
    for category in np.unique(categories[~placed]).tolist():
        rows = np.flatnonzero(~placed & (categories == category))
        own = np.flatnonzero(placed & (categories == category))
        angle = rng.uniform(0, 2 * np.pi, len(rows))
        circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        if len(own):
            near = squared_distances(features[rows], features[own]).argmin(axis=1)
            radius = radii[there.tolist().index(category)]
            found[rows] = found[own[near]] + BESIDE * radius * circle
            continue
        radius = max(MIN_RADIUS, scale * float(np.sqrt(len(rows))))
        beside = np.zeros(2)
        if placed.any():
            everyone = np.flatnonzero(placed)
            mean = features[rows].mean(axis=0, keepdims=True)
            beside = found[everyone[squared_distances(mean, features[everyone]).argmin()]]
        centre = free_place(beside, radius, centres, radii)
        found[rows] = centre + radius * _inside_disc(features[rows], circle)
        centres, radii = np.vstack([centres.reshape(-1, 2), centre]), np.append(radii, radius)
        there = np.append(there, category)
    return np.clip(found, -1, 1)


def free_place(
    beside: np.ndarray, radius: float, centres: np.ndarray, radii: np.ndarray
) -> np.ndarray:
    """Return the place nearest to `beside` where a disc covers no other one, or covers least.

    Examples
    --------
    >>> at = free_place(np.zeros(2), 0.1, np.zeros((1, 2)), np.array([0.3]))
    >>> bool(np.linalg.norm(at) >= 0.4)
    True
    """
    line = np.linspace(-1 + min(radius, 1), 1 - min(radius, 1), CELLS)
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    apart = np.linalg.norm(grid - beside, axis=1)
    if not len(centres):
        return np.asarray(grid[apart.argmin()])
    gaps = np.linalg.norm(grid[:, None] - centres[None], axis=2) - radii
    room = gaps.min(axis=1) - radius
    free = np.flatnonzero(room >= 0)
    return np.asarray(grid[free[apart[free].argmin()]] if len(free) else grid[room.argmax()])


def _inside_disc(features: np.ndarray, circle: np.ndarray) -> np.ndarray:
    """Return texts [n, 2] in a disc of radius 1, along their two main directions."""
    centred = features - features.mean(axis=0)
    if len(features) < 3 or not np.abs(centred).max() > 0:
        return 0.5 * circle
    left, scale, _ = np.linalg.svd(centred, full_matrices=False)
    plane = (left * scale)[:, :2]
    return np.asarray(plane / np.linalg.norm(plane, axis=1).max())
