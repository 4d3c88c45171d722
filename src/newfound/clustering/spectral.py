"""Spectral features: the main directions of the neighbour graph, in which clusters are compact.

k-means takes clusters to be round. Categories of texts are not: their parts are connected through
neighbours. The leading eigenvectors of the graph that links each text to its nearest neighbours
place texts that are connected close together, however long the way through the original space.

1. Link each text to its nearest neighbours, and scale links by the degrees of both ends
   (`neighbour_graph`).
2. Smooth the points along the links, a few steps. This is a block power iteration that starts from
   the points themselves, so nothing is drawn at random.
3. Within the space of the smoothed points, take the leading eigenvectors of the graph plus the
   linear kernel of the points. The kernel decides where the graph falls apart into pieces, as
   groups of nearly equal texts do: similar pieces belong together.
4. Weight each eigenvector by its eigenvalue, and scale each text to length one.
"""

import warnings

import torch
import torch.nn.functional as F
from torch import Tensor

LINKS = 15  # nearest neighbours that each text is linked to
POWER_STEPS = 6
KERNEL = 1.0  # largest eigenvalue of the linear kernel; that of the graph is 1


def neighbour_graph(neighbours: Tensor) -> Tensor:
    """Return the normalised adjacency of the neighbour graph, a sparse matrix [N, N].

    With A_ij = 1 if j is a neighbour of i, and the degrees d of A + A^T, it is
    D^-1/2 (A + A^T) D^-1/2: symmetric, with eigenvalues between -1 and 1.

    Parameters
    ----------
    neighbours : Tensor of shape [N, n]
        Row numbers of each text's nearest neighbours.

    Examples
    --------
    >>> import torch
    >>> neighbour_graph(torch.tensor([[1], [0], [1]])).to_dense().round(decimals=2)[0].tolist()
    [0.0, 0.8199999928474426, 0.0]
    """
    texts, number = neighbours.shape
    start = torch.arange(texts, device=neighbours.device).repeat_interleave(number)
    both = torch.stack(
        [torch.cat([start, neighbours.flatten()]), torch.cat([neighbours.flatten(), start])]
    )
    links = torch.ones(both.shape[1], device=neighbours.device)
    summed = _sparse(both, links, texts).coalesce()  # a mutual link counts twice
    ends, weights = summed.indices(), summed.values()
    degrees = torch.zeros(texts, device=neighbours.device).index_add_(0, ends[0], weights)
    scaled = weights / (degrees[ends[0]] * degrees[ends[1]]).sqrt()
    return _sparse(ends, scaled, texts).coalesce()


@torch.no_grad()
def spectral_features(points: Tensor, neighbours: Tensor, width: int) -> Tensor:
    """Return texts along the leading eigenvectors of graph and kernel, with unit length.

    Parameters
    ----------
    points : Tensor of shape [N, d]
        Points that the iterations start from.
    neighbours : Tensor of shape [N, n]
        Each text's nearest neighbours, the nearest first; the first `LINKS` are used.
    width : int
        Number of eigenvectors; there are no more than points or dimensions.

    Returns
    -------
    Tensor of shape [N, width]

    Examples
    --------
    >>> import torch
    >>> points = torch.tensor([[1.0, 0.1], [1.0, 0.2], [0.1, 1.0], [0.2, 1.0]])
    >>> found = spectral_features(points, torch.tensor([[1], [0], [3], [2]]), 2)
    >>> same = found @ found.T > 0.5
    >>> same.int().tolist()
    [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]]
    """
    graph = neighbour_graph(neighbours[:, :LINKS])
    with warnings.catch_warnings():  # torch calls this format, the fastest by far, a beta
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
        graph = graph.to_sparse_csr()
    unit = F.normalize(points.float(), dim=1)
    basis = unit
    for _ in range(POWER_STEPS):  # half a step stays where it is, so no eigenvalue is negative
        basis = (graph @ basis + basis) / 2
    basis = torch.linalg.qr(basis).Q  # [N, min(N, d)]
    # The best approximation within the basis (Rayleigh-Ritz).
    inner = basis.T @ (unit - unit.mean(0))
    kernel = inner @ inner.T
    largest = torch.linalg.eigvalsh(kernel)[-1].clamp(min=1e-12)
    small = basis.T @ (graph @ basis) + KERNEL * kernel / largest
    values, vectors = torch.linalg.eigh((small + small.T) / 2)
    width = min(width, len(values))
    found = basis @ vectors[:, -width:] * values[-width:].clamp(min=0)
    return F.normalize(found, dim=1)


def _sparse(indices: Tensor, values: Tensor, size: int) -> Tensor:
    """Return a square sparse matrix."""
    return torch.sparse_coo_tensor(indices, values, (size, size), check_invariants=False)
