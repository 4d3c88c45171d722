"""Draw the texts that a method is fitted on, such that rare categories stay in the sample.

Before the fit nobody knows which texts are rare, but their vectors show it. A rare category is a
small group of texts that are similar to each other; texts that are similar to nothing are rare as
well, but drawing more of them would make them look like a category.

1. Cluster the vectors into many more cells than there are categories, by k-means on some of them.
2. Draw as many texts from each of the denser half of the cells, as long as it has them, and the
   rest in proportion to the sizes of all cells (`quotas`). A small dense cell is drawn whole, and
   large categories remain large.
3. All labelled texts are drawn, up to half of the sample; of more, a few of each category and the
   rest in proportion.
"""

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F

from newfound.clustering.distances import nearest
from newfound.clustering.kmeans import kmeans
from newfound.clustering.quotas import draw, quotas
from newfound.devices import one_thread

LABELLED_SHARE = 0.5  # of the sample, at most
LEAST_LABELLED = 20  # labelled texts drawn of each category, if it has so many
PER_CELL = 20  # texts of the sample per cell, in the mean
MOST_CELLS = 2_000
CELL_SHARE = 0.2  # of the unlabelled texts drawn, spread evenly over the denser half of the cells
CLUSTERED = 50_000  # vectors that the cells are computed from
ITERATIONS = 10  # of k-means: cells need not be exact
COARSE = 200  # cells of a first k-means, whose distances show where the others begin
BLOCK = 65_536  # vectors in memory at a time

Vectors = Callable[[np.ndarray], np.ndarray]  # rows [R] -> vectors [R, d]


def draw_sample(
    vectors: Vectors, targets: np.ndarray, size: int, seed: int, device: torch.device
) -> np.ndarray:
    """Draw about `size` texts to fit a method on.

    Parameters
    ----------
    vectors : callable
        Returns the vectors [R, d] of rows [R].
    targets : ndarray of int64, shape (N,)
        Label of each text, -1 where unlabelled.
    size : int
        Number of texts; all are drawn if there are fewer.
    seed : int
    device : torch.device
        Device of the clustering.

    Returns
    -------
    ndarray of int64
        Rows, sorted.
    """
    if len(targets) <= size:
        return np.arange(len(targets))
    rng = np.random.default_rng(seed)
    labelled, free = np.flatnonzero(targets >= 0), np.flatnonzero(targets < 0)
    most = max(int(LABELLED_SHARE * size), size - len(free))
    if len(labelled) > most:
        take = quotas(np.bincount(targets[labelled]), most, LEAST_LABELLED)
        labelled = labelled[draw(targets[labelled], take, rng)]
    wanted = size - len(labelled)
    count = max(1, min(MOST_CELLS, wanted // PER_CELL))
    with one_thread():  # one cell that differs in its last digits would draw other texts
        cells, distances = cell_of(vectors, free, count, seed, device)
    sizes = np.bincount(cells, minlength=count)
    spread = np.bincount(cells, weights=distances, minlength=count) / np.maximum(sizes, 1)
    least = np.where(spread <= np.median(spread), int(2 * CELL_SHARE * wanted / count), 1)
    take = quotas(sizes, wanted, least)
    return np.sort(np.concatenate([labelled, free[draw(cells, take, rng)]]))


@torch.no_grad()
def cell_of(
    vectors: Vectors, rows: np.ndarray, count: int, seed: int, device: torch.device
) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest of `count` centres of each row, and the squared distance to it, [R] each.

    The centres come from k-means on some of the rows.
    """
    rng = np.random.default_rng(seed)
    some = rows
    if len(rows) > CLUSTERED:
        some = np.sort(rng.choice(rows, CLUSTERED, replace=False))
    points = _unit(vectors(some), device)
    centres = _centres(points, count, seed, rng)
    cells, distances = np.empty(len(rows), np.int64), np.empty(len(rows), np.float32)
    for start in range(0, len(rows), BLOCK):
        part = _unit(vectors(rows[start : start + BLOCK]), device)
        found = nearest(part, centres)
        cells[start : start + BLOCK] = found[0].cpu().numpy()
        distances[start : start + BLOCK] = found[1].cpu().numpy()
    return cells, distances


def _centres(points: torch.Tensor, count: int, seed: int, rng: np.random.Generator) -> torch.Tensor:
    """Return the centres [count, d] of k-means on points [P, d].

    k-means++ for all centres would take longer than the rest. It chooses COARSE ones; the others
    start at points that are drawn at once, in proportion to the squared distance to these, as in
    k-means||. So texts of a rare category, far from all coarse centres, still get one.
    """
    few = min(count, COARSE)
    initial = kmeans(points, few, starts=1, seed=seed, max_iterations=ITERATIONS).centres
    if count > few:
        distances = nearest(points, initial)[1].double().clamp(min=0).cpu().numpy()
        weights = distances + 1e-12  # equal ones if all points lie on a centre
        drawn = rng.choice(len(points), count - few, replace=False, p=weights / weights.sum())
        initial = torch.cat([initial, points[torch.from_numpy(np.sort(drawn))]])
        initial = kmeans(points, count, initial=initial, max_iterations=ITERATIONS).centres
    return initial


def _unit(vectors: np.ndarray, device: torch.device) -> torch.Tensor:
    """Return vectors of unit length on the device."""
    return F.normalize(torch.from_numpy(vectors).to(device).float(), dim=1)
