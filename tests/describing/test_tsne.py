"""t-SNE: exact for few points, scikit-learn's for many."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.manifold import TSNE, trustworthiness

from newfound.describing import tsne


def groups(count, each, seed=0):
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((count, 20)) * 4
    return np.repeat(centres, each, axis=0) + rng.standard_normal((count * each, 20))


def start_of(points):
    plane = (points - points.mean(0))[:, :2]
    return plane / plane.std(0).max() * 1e-4


def test_probabilities_have_the_perplexity():
    squared = cdist(groups(4, 10), groups(4, 10), "sqeuclidean")
    joint = tsne._joint(squared, 8.0)
    assert joint.sum() == pytest.approx(1)
    assert np.allclose(joint, joint.T)
    assert (np.diag(joint) == 0).all()


def test_gradient_matches_finite_differences():
    points = groups(3, 5)
    wanted = tsne._joint(cdist(points, points, "sqeuclidean"), 4.0)
    plane = np.random.default_rng(1).standard_normal((15, 2))

    def divergence(plane):
        near = 1 / (1 + cdist(plane, plane, "sqeuclidean"))
        np.fill_diagonal(near, 0)
        there = wanted > 0
        return (wanted[there] * np.log(wanted[there] / (near / near.sum())[there])).sum()

    slope = tsne._slope(plane, wanted)
    for row, axis in ((0, 0), (7, 1), (14, 0)):
        moved = np.zeros_like(plane)
        moved[row, axis] = 1e-5
        change = (divergence(plane + moved) - divergence(plane - moved)) / 2e-5
        assert slope[row, axis] == pytest.approx(change, rel=1e-3, abs=1e-8)


def test_neighbours_stay_together_as_with_scikit_learn():
    points = groups(15, 6)
    start = start_of(points)
    ours = tsne.embed(points, start, 8.0, 0)
    theirs = TSNE(perplexity=8, init=start.astype("f4"), random_state=0).fit_transform(points)
    assert trustworthiness(points, ours) > trustworthiness(points, theirs) - 0.02


def test_embedding_is_deterministic():
    points = groups(8, 3)
    found = [tsne.embed(points, start_of(points), 5.0, 0) for _ in range(2)]
    assert np.array_equal(*found)


@pytest.mark.parametrize("count", [6, 7, 300])
def test_few_points_and_the_largest_exact_number_are_embedded(count):
    points = np.random.default_rng(0).standard_normal((count, 12))
    assert np.isfinite(tsne.embed(points, start_of(points), min(8.0, (count - 1) / 3), 0)).all()


def test_equal_points_are_embedded():
    points = np.repeat(groups(4, 1), 3, axis=0)
    assert np.isfinite(tsne.embed(points, start_of(points), 3.0, 0)).all()


def test_many_points_are_passed_to_scikit_learn():
    points = groups(tsne.MOST // 10 + 1, 10)
    assert tsne.embed(points, start_of(points), 8.0, 0).shape == (len(points), 2)
