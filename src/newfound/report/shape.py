"""Does a cloud of points look like two?"""

import numpy as np

LEAST = 20  # points; fewer say nothing about a shape
LEAST_PART = 0.2  # of the points: a handful of strays is no second group
# The share of the variance that the best cut explains is 0.64 for a normal cloud, 0.75 for an
# even one, and reaches this when two normal clouds lie about five standard deviations apart.
EXPLAINED = 0.85


def parts(xy: np.ndarray) -> tuple[int, int] | None:
    """Return the sizes of the two groups that [n, 2] points fall into, or None if they do not.

    The points are projected on their main axis and cut where the two sides differ most.
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
