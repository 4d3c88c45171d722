"""Test whether points form two groups."""

import numpy as np

LEAST = 20  # points; fewer have no clear shape
LEAST_PART = 0.2  # of the points; fewer are outliers, not a second group
# Share of the variance that the best cut explains: 0.64 for a normal distribution, 0.75 for a
# uniform one, and this value for two normal ones about five standard deviations apart.
EXPLAINED = 0.85


def parts(xy: np.ndarray) -> tuple[int, int] | None:
    """Return the sizes of the two groups of points [n, 2], or None if there is only one group.

    The points are projected onto their main axis and cut where the variance between both sides is
    largest.
    """
    points = xy[np.isfinite(xy).all(axis=1)]
    if len(points) < LEAST:
        return None
    centred = points - points.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    along = np.sort(centred @ axes[0])  # [n], mean 0
    total = float((along**2).sum())
    if total == 0:
        return None
    left = np.arange(1, len(along))  # points left of each cut
    sums = np.cumsum(along)[:-1]
    between = sums**2 / left + sums**2 / (len(along) - left)
    cut = int(between.argmax())
    first, second = int(left[cut]), int(len(along) - left[cut])
    if between[cut] / total < EXPLAINED or min(first, second) < LEAST_PART * len(along):
        return None
    return max(first, second), min(first, second)
