"""Spectral features: the graph against a loop, eigenvectors against an exact solver."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from support.blobs import blobs
from torch import Tensor

from newfound.clustering import spectral
from newfound.clustering.kmeans import kmeans
from newfound.clustering.metrics import accuracy
from newfound.clustering.neighbours import nearest_neighbours
from newfound.clustering.spectral import neighbour_graph, spectral_features


def drawn(n: int, d: int, seed: int) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed))


@given(n=st.integers(2, 20), count=st.integers(1, 5), seed=st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_graph_equals_a_loop(n: int, count: int, seed: int) -> None:
    neighbours = nearest_neighbours(drawn(n, 3, seed), count)
    links = torch.zeros(n, n)
    for i in range(n):
        for j in neighbours[i].tolist():
            links[i, j] += 1
            links[j, i] += 1
    wanted = torch.zeros(n, n)
    for i in range(n):
        for j in range(n):
            wanted[i, j] = links[i, j] / (links[i].sum() * links[j].sum()).sqrt()
    torch.testing.assert_close(neighbour_graph(neighbours).to_dense(), wanted)


def test_features_are_the_leading_eigenvectors_where_the_points_span_everything() -> None:
    points = drawn(40, 60, 0)
    neighbours = nearest_neighbours(points, 6)
    found = spectral_features(points, neighbours, 4)
    unit = F.normalize(points, dim=1)
    kernel = (unit - unit.mean(0)).double() @ (unit - unit.mean(0)).double().T
    matrix = (
        neighbour_graph(neighbours).to_dense().double() + kernel / torch.linalg.eigvalsh(kernel)[-1]
    )
    values, vectors = torch.linalg.eigh(matrix)
    wanted = F.normalize(vectors[:, -4:] * values[-4:], dim=1)
    # Eigenvectors have no sign, products of rows have.
    torch.testing.assert_close((found @ found.T).double(), wanted @ wanted.T, atol=1e-3, rtol=1e-3)


def test_connected_texts_lie_together_where_k_means_tears_them_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two rings, one around the other: no two centres separate them."""
    angle = torch.linspace(0, 2 * torch.pi, 201)[:-1]
    ring = torch.stack([angle.cos(), angle.sin()], dim=1)
    far = torch.cat([ring, 3 * ring])
    # Cosines see no length, so a third coordinate tells the rings apart.
    points = torch.cat([far, far.norm(dim=1, keepdim=True).square() - 5], dim=1)
    truth = torch.arange(2).repeat_interleave(200).numpy()
    distances = torch.cdist(points, points).fill_diagonal_(torch.inf)
    neighbours = distances.topk(5, largest=False).indices
    monkeypatch.setattr(spectral, "KERNEL", 0.0)  # the points know nothing of the rings
    monkeypatch.setattr(spectral, "POWER_STEPS", 60)
    found = spectral_features(drawn(400, 20, 0), neighbours, 2)
    plain, better = (kmeans(x, 2, seed=0).labels.numpy() for x in (far, found))
    assert accuracy(plain, truth, {0}).all < 80
    assert accuracy(better, truth, {0}).all == 100


def test_similar_pieces_of_a_graph_belong_together() -> None:
    """Four groups of nearly equal texts, which link to no other: two of each category."""
    centres = torch.tensor([[1.0, 0.2, 0.0], [1.0, -0.2, 0.0], [0.0, 0.2, 1.0], [0.0, -0.2, 1.0]])
    points = centres.repeat_interleave(40, 0) + 0.01 * drawn(160, 3, 0)
    neighbours = nearest_neighbours(points, 15)
    assert (neighbours // 40 == torch.arange(160)[:, None] // 40).all()
    labels = kmeans(spectral_features(points, neighbours, 2), 2, seed=0).labels.numpy()
    truth = torch.arange(2).repeat_interleave(80).numpy()
    assert accuracy(labels, truth, {0}).all == 100


def test_features_have_unit_length_and_no_more_columns_than_there_are_points() -> None:
    points, _ = blobs([6, 6])
    found = spectral_features(points, nearest_neighbours(points, 3), 200)
    assert found.shape == (12, min(12, points.shape[1]))
    torch.testing.assert_close(found.norm(dim=1), torch.ones(12))


@pytest.mark.parametrize("points", [torch.ones(5, 3), torch.zeros(4, 3), torch.ones(1, 3)])
def test_points_that_do_not_differ_give_finite_features(points: Tensor) -> None:
    found = spectral_features(points, nearest_neighbours(points, 2), 2)
    assert found.isfinite().all()


def test_nothing_is_drawn_at_random() -> None:
    points = drawn(50, 8, 1)
    neighbours = nearest_neighbours(points, 5)
    one, again = (spectral_features(points, neighbours, 3) for _ in range(2))
    assert torch.equal(one, again)
