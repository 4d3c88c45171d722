"""A 2-D map of the texts: similar categories are close, and each text is near its category."""

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from newfound.clustering.assignment import squared_distances
from newfound.describing.tsne import embed

FEW = 100  # up to this many centres all pairs are compared
MANY = 1_000  # with more centres, neighbours on the map are only roughly similar
CELLS = 2**24  # distances per block
SAMPLE = 1_000  # texts of a category that its two directions are computed from
LEVELS = 33  # quantiles that describe a category along a direction
FILLED = 0.45  # share of the map that the categories' discs cover
GAP = 1.1  # space around a disc, in radii
SQUEEZE = 0.35  # share of the empty space between categories that is removed
STRETCH = 1.5  # largest growth of an edge between two categories in one step
PERPLEXITY = 8.0  # of the t-SNE of the prototypes
RANKS = np.linspace(0.01, 0.99, 981)  # of texts; more extreme ranks are clipped to these
DEVIATIONS = np.array([NormalDist().inv_cdf(rank) for rank in RANKS])
RIM = 2.4  # radius of a disc, in standard deviations of its texts
LEAN = 0.6  # shift, in radii, of a text half way to another category
Floats = NDArray[np.floating]
Integers = NDArray[np.integer]
Array = NDArray[np.float64]


def map_positions(
    features: Floats, prototypes: Floats, assigned: Integers, seed: int
) -> NDArray[np.float32]:
    """Return positions [N, 2] in [-1, 1]: one disc per category, with its texts inside.

    1. Place the prototypes by t-SNE, which does not depend on the number of texts.
    2. Move the centres until the discs of the categories do not overlap; more than a thousand
       categories are placed by their two principal components on a grid instead.
    3. Place each text in the disc of its category along the two main directions of the category,
       and shift it towards the second-nearest prototype if it lies between the two.

    features [N, d], prototypes [K, d], assigned [N] ids 0..K-1.
    """
    features = np.asarray(features)
    prototypes = np.asarray(prototypes, dtype=features.dtype)
    if features.shape[1] == 1:  # a plane needs two directions
        features = np.pad(features, ((0, 0), (0, 1)))
        prototypes = np.pad(prototypes, ((0, 0), (0, 1)))
    category = np.asarray(assigned, dtype=np.int64)
    sizes = np.bincount(category, minlength=len(prototypes)).astype(np.float64)
    radii = np.sqrt(np.maximum(sizes, sizes.mean() / 10 + 1e-9))  # a tiny category stays visible
    radii *= np.sqrt(4 * FILLED / np.pi / (radii**2).sum())  # the map has area 4
    plane = _lay_out(prototypes.astype(np.float64), seed)
    centres, radii = _apart(plane, radii) if len(radii) <= MANY else _grid(plane)
    axes, levels = _directions(features, prototypes, category, centres, seed)
    positions = np.empty((len(features), 2), dtype=np.float32)
    rows = max(1, CELLS // max(len(prototypes), features.shape[1]))
    for start in range(0, len(features), rows):
        part = slice(start, start + rows)
        positions[part] = _place(
            features[part], prototypes, category[part], axes, levels, centres, radii
        )
    return np.clip(positions, -1, 1)


def _lay_out(prototypes: Array, seed: int) -> Array:
    """Return the prototypes in the plane [K, 2], scaled to [-1, 1], with neighbours together."""
    count = len(prototypes)
    if count == 1:
        return np.zeros((1, 2))
    centred = prototypes - prototypes.mean(axis=0)
    left, scale, _ = np.linalg.svd(centred, full_matrices=False)
    plane = np.zeros((count, 2))
    width = min(2, len(scale))
    plane[:, :width] = left[:, :width] * scale[:width]
    # The sign of a component is arbitrary; the largest entry is made positive.
    plane *= np.where(plane[np.abs(plane).argmax(axis=0), [0, 1]] < 0, -1, 1)
    if 5 < count <= MANY and scale[0] > 1e-9:
        start = plane / plane.std(axis=0).max() * 1e-4
        perplexity = min(PERPLEXITY, (count - 1) / 3)
        plane = embed(prototypes, start, perplexity, seed)
    plane = _upright(plane)
    plane -= (plane.max(axis=0) + plane.min(axis=0)) / 2
    return plane / np.maximum(np.abs(plane).max(), 1e-12)


def _upright(plane: Array) -> Array:
    """Return the layout, rotated to fill a square best."""
    turns = np.linspace(0, np.pi / 2, 45, endpoint=False)
    turned = [plane @ np.array([[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]]) for t in turns]
    return min(turned, key=lambda each: float(np.ptp(each, axis=0).max()))


def _apart(centres: Array, radii: Array) -> tuple[Array, Array]:
    """Return centres and radii of discs that do not overlap, scaled to [-1, 1].

    Moving single discs would scatter groups of similar categories. So each centre is connected to
    those around it. Long edges are shortened to save space, then edges that are too short are
    lengthened step by step.
    """
    # Equal centres would have no direction to move in.
    angle = 2.399963 * np.arange(len(radii))  # multiples of the golden angle are all different
    centres = centres + 1e-6 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    room = GAP * (radii[:, None] + radii[None, :])  # [K, K]
    np.fill_diagonal(room, 0.0)
    if len(radii) > 3:
        tied, distance = _net(centres), _distances(centres)
        gap = np.maximum(distance - room, 0.0)
        centres = _relax(centres, tied, tied * (distance - SQUEEZE * gap))
    for _ in range(100):
        distance = _distances(centres)
        short = room > distance * (1 + 1e-6)
        if not short.any():
            break
        if len(radii) < 4:  # too few for a graph: scale everything
            apart = distance + np.eye(len(radii))
            centres = centres * float((room / apart).max())
            break
        tied = short | _net(centres)
        wanted: Array = np.maximum(distance, np.minimum(room, STRETCH * distance))
        centres = _relax(centres, tied, tied * wanted)
    lowest = (centres - radii[:, None]).min(axis=0)
    highest = (centres + radii[:, None]).max(axis=0)
    size = max(1e-12, float((highest - lowest).max()) / 2)
    return (centres - (lowest + highest) / 2) / size, radii / size


def _grid(centres: Array) -> tuple[Array, Array]:
    """Return many centres on a square grid, and radii that fill it; quick, whatever their number.

    Columns hold centres of similar first coordinates, sorted by their second one.
    """
    count = len(centres)
    side = math.ceil(math.sqrt(count))
    by_column = np.argsort(centres[:, 0], kind="stable")
    placed = np.empty((count, 2))
    for column, start in enumerate(range(0, count, side)):
        members = by_column[start : start + side]
        members = members[np.argsort(centres[members, 1], kind="stable")]
        placed[members, 0], placed[members, 1] = column, np.arange(len(members))
    radius = 1 / side  # half of a cell
    return (2 * placed + 1) / side - 1, np.full(count, radius / GAP)


def _distances(centres: Array) -> Array:
    """Return the distances between centres [K, K]."""
    apart: Array = np.sqrt(squared_distances(centres, centres))
    np.fill_diagonal(apart, 0.0)
    return apart


def _net(centres: Array) -> NDArray[np.bool_]:
    """Return the Gabriel graph [K, K]: two centres are adjacent if no third is between them.

    No third centre lies in the disc whose diameter is their edge. The graph is connected and
    planar.
    """
    square = squared_distances(centres, centres)
    one, two = _pairs(centres)
    # A third centre is outside the disc if its angle to the two is acute.
    free = (square[one] + square[two] >= square[one, two][:, None] * (1 - 1e-9)).all(axis=1)
    tied = np.zeros(square.shape, dtype=bool)
    tied[one[free], two[free]] = True
    return tied | tied.T


def _pairs(centres: Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return pairs that may be adjacent: all, or for many centres those of a triangulation."""
    if len(centres) <= FEW:
        one, two = np.triu_indices(len(centres), 1)
        return one, two
    from scipy.spatial import Delaunay  # imported here, because it is slow

    # QJ perturbs collinear points slightly, which would span no triangles otherwise.
    corners = Delaunay(centres, qhull_options="QJ").simplices.astype(np.int64)  # [triangles, 3]
    return corners[:, [0, 1, 2]].ravel(), corners[:, [1, 2, 0]].ravel()


def _relax(centres: Array, tied: NDArray[np.bool_], length: Array) -> Array:
    """Move centres so that edges approach their target lengths, by stress majorisation."""
    weight = np.divide(1.0, length**2, out=np.zeros_like(length), where=tied)
    weight /= weight.max()
    laplacian = np.diag(weight.sum(axis=1)) - weight
    # The added constant fixes the mean, which the edges do not.
    solve = np.linalg.inv(laplacian + weight.mean())
    for _ in range(max(3, min(15, 4_500 // len(centres)))):
        distance = _distances(centres)
        pull = np.divide(weight * length, distance, out=np.zeros_like(weight), where=distance > 0)
        centres = solve @ (pull.sum(axis=1)[:, None] * centres - pull @ centres)
    return centres


def _directions(
    features: Floats, prototypes: Floats, assigned: NDArray[np.int64], centres: Array, seed: int
) -> tuple[Floats, Array]:
    """Return the main directions [K, d, 2] of each category and the quantiles [K, 2, LEVELS].

    The directions are rotated so that texts close to a neighbouring category in feature space are
    also close to it on the map.
    """
    count, width = prototypes.shape
    axes = np.zeros((count, width, 2), dtype=features.dtype)
    levels = np.zeros((count, 2, LEVELS))
    start = np.random.default_rng(seed).standard_normal((width, 2)).astype(features.dtype)
    order = np.argsort(assigned, kind="stable")
    ends = np.cumsum(np.bincount(assigned, minlength=count))
    for category, rows in enumerate(np.split(order, ends[:-1])):
        if not len(rows):
            continue
        if len(rows) > SAMPLE:
            rows = rows[np.linspace(0, len(rows) - 1, SAMPLE).astype(np.int64)]
        residual = features[rows] - prototypes[category]  # [n, d]
        basis = start
        for _ in range(6):
            basis = np.linalg.qr(residual.T @ (residual @ basis))[0]
        axes[category] = basis
        if count <= MANY:
            axes[category] = basis @ _turn(basis, prototypes, category, centres)
        along = residual @ axes[category]  # [n, 2]
        levels[category] = np.quantile(along, np.linspace(0, 1, LEVELS), axis=0).T
    return axes, levels


def _turn(basis: Floats, prototypes: Floats, category: int, centres: Array) -> Floats:
    """Return the rotation [2, 2] that best aligns a category's plane with the map."""
    there = (prototypes - prototypes[category]) @ basis  # [K, 2]
    here = centres - centres[category]
    weight = 1 / np.maximum((here**2).sum(axis=1), 1e-9)
    weight[category] = 0
    left, _, right = np.linalg.svd((there * weight[:, None]).T @ here)
    return (left @ right).astype(basis.dtype)


def _place(
    features: Floats,
    prototypes: Floats,
    assigned: NDArray[np.int64],
    axes: Floats,
    levels: Array,
    centres: Array,
    radii: Array,
) -> Array:
    """Return the positions [n, 2] of a block of texts."""
    local = np.zeros((len(features), 2))  # in radii
    shares = np.linspace(0, 1, LEVELS)
    for category in np.unique(assigned):
        rows = np.flatnonzero(assigned == category)
        along = (features[rows] - prototypes[category]) @ axes[category]
        # Ranks instead of lengths, so that a few outliers do not compress all others.
        for axis in (0, 1):
            rank = np.interp(along[:, axis], levels[category, axis], shares)
            local[rows, axis] = np.interp(rank, RANKS, DEVIATIONS) / RIM
    if len(prototypes) > 1:
        other, between = _second(features, prototypes, assigned)
        lean = LEAN * between
        towards = _unit(centres[other] - centres[assigned])
        local = (1 - lean)[:, None] * local + lean[:, None] * towards
    return centres[assigned] + radii[assigned, None] * local


def _second(
    features: Floats, prototypes: Floats, assigned: NDArray[np.int64]
) -> tuple[NDArray[np.int64], Array]:
    """Return the nearest other prototype [n], and how close a text is to the border [n], 0 to 1."""
    square = (features**2).sum(axis=1)[:, None] + (prototypes**2).sum(axis=1)[None, :]
    distance = np.sqrt(np.maximum(0.0, square - 2 * features @ prototypes.T))  # [n, K]
    each = np.arange(len(features))
    own = distance[each, assigned]
    distance[each, assigned] = np.inf
    other = distance.argmin(axis=1)
    share = 2 * own / np.maximum(own + distance[each, other], 1e-12)  # 1 in the middle
    return other, np.minimum(1.0, share) ** 8  # small except close to the border


def _unit(vectors: Floats) -> Array:
    """Return vectors of unit length; zero vectors stay zero."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1), 1e-12)[:, None]
