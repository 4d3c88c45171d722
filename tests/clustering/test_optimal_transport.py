"""Sinkhorn iterations, compared with a loop, with extreme scores and with a queue."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from newfound.clustering.optimal_transport import sinkhorn


def by_loop(
    scores: Tensor, epsilon: float, iterations: int, class_prior: list[float] | None = None
) -> list[list[float]]:
    """Return the assignment by the definition, with loops."""
    n, k = scores.shape
    table = [[math.exp(float(scores[i, j]) / epsilon) for j in range(k)] for i in range(n)]
    for _ in range(iterations):
        for j in range(k):
            total = sum(table[i][j] for i in range(n))
            for i in range(n):
                table[i][j] *= (class_prior[j] if class_prior else 1 / k) / total
        for i in range(n):
            total = sum(table[i])
            table[i] = [value / total / n for value in table[i]]
    return [[value / sum(row) for value in row] for row in table]


def drawn(n: int, k: int, seed: int) -> Tensor:
    return 2 * torch.rand(n, k, generator=torch.Generator().manual_seed(seed)) - 1


@settings(deadline=None, max_examples=60)
@given(
    n=st.integers(1, 9),
    k=st.integers(1, 7),
    seed=st.integers(0, 999),
    epsilon=st.sampled_from([0.05, 0.3, 1.0]),
    iterations=st.integers(0, 5),
)
def test_sinkhorn_equals_a_loop(n: int, k: int, seed: int, epsilon: float, iterations: int) -> None:
    scores = drawn(n, k, seed)
    wanted = torch.tensor(by_loop(scores, epsilon, iterations))
    torch.testing.assert_close(sinkhorn(scores, epsilon, iterations), wanted, atol=1e-5, rtol=1e-3)


@settings(deadline=None, max_examples=30)
@given(n=st.integers(1, 9), k=st.integers(1, 7), seed=st.integers(0, 999))
def test_sinkhorn_with_class_prior_equals_a_loop(n: int, k: int, seed: int) -> None:
    scores = drawn(n, k, seed)
    prior = drawn(1, k, seed + 1)[0].softmax(0)
    wanted = torch.tensor(by_loop(scores, 0.3, 3, prior.tolist()))
    torch.testing.assert_close(sinkhorn(scores, 0.3, 3, prior), wanted, atol=1e-5, rtol=1e-3)
    converged = sinkhorn(scores, 0.5, 300, prior)
    torch.testing.assert_close(converged.sum(0), n * prior, rtol=1e-3, atol=1e-3)


def relaxed_by_loop(
    scores: Tensor, epsilon: float, iterations: int, class_prior: list[float], strength: float
) -> list[list[float]]:
    """Return the assignment whose column scales are raised to the power `strength`."""
    n, k = scores.shape
    kernel = [[math.exp(float(scores[i, j]) / epsilon) for j in range(k)] for i in range(n)]
    columns, rows = [1.0] * k, [1 / sum(row) for row in kernel]
    for _ in range(iterations):
        sums = [sum(rows[i] * kernel[i][j] for i in range(n)) for j in range(k)]
        columns = [(n * class_prior[j] / sums[j]) ** strength for j in range(k)]
        rows = [1 / sum(kernel[i][j] * columns[j] for j in range(k)) for i in range(n)]
    return [[rows[i] * kernel[i][j] * columns[j] for j in range(k)] for i in range(n)]


@settings(deadline=None, max_examples=40)
@given(
    n=st.integers(1, 9),
    k=st.integers(1, 7),
    seed=st.integers(0, 999),
    iterations=st.integers(1, 5),
    strength=st.floats(0, 0.99),
)
def test_strength_by_loop(n: int, k: int, seed: int, iterations: int, strength: float) -> None:
    scores, prior = drawn(n, k, seed), drawn(1, k, seed + 1)[0].softmax(0)
    wanted = torch.tensor(relaxed_by_loop(scores, 0.3, iterations, prior.tolist(), strength))
    found = sinkhorn(scores, 0.3, iterations, prior, strength)
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-3)


def test_strength_0_is_a_softmax_and_strength_1_holds_sizes_exactly() -> None:
    scores, prior = drawn(30, 4, 5), torch.tensor([0.1, 0.2, 0.3, 0.4])
    softmax = (scores / 0.3).softmax(1)
    torch.testing.assert_close(sinkhorn(scores, 0.3, 10, prior, strength=0.0), softmax)
    strict = sinkhorn(scores, 0.3, 300, prior)
    torch.testing.assert_close(sinkhorn(scores, 0.3, 300, prior, strength=1.0), strict)
    torch.testing.assert_close(strict.sum(0), 30 * prior, rtol=1e-3, atol=1e-3)
    nearly = sinkhorn(scores, 0.3, 3000, prior, strength=0.999)
    torch.testing.assert_close(nearly, strict, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("strength", [0.1, 0.5, 0.8])
def test_strength_is_the_weight_of_a_penalty_on_sizes(strength: float) -> None:
    """Where -<S, Q> + eps sum Q log Q + lambda KL(sizes || N prior) is least, its gradient is 0."""
    scores, prior, epsilon = drawn(50, 5, 6), torch.tensor([0.1, 0.1, 0.2, 0.2, 0.4]), 0.2
    found = sinkhorn(scores, epsilon, 500, prior, strength)
    penalty = epsilon * strength / (1 - strength)  # lambda, from f = lambda / (lambda + epsilon)
    excess = (found.sum(0) / (50 * prior)).log()
    wanted = ((scores - penalty * excess) / epsilon).softmax(1)
    torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-5)


def test_sizes_come_closer_to_the_prior_the_larger_the_strength() -> None:
    scores = drawn(60, 3, 7)
    scores[:, 0] += 0.5
    away = [
        float((sinkhorn(scores, 0.1, 200, strength=f).sum(0) - 20).abs().sum())
        for f in (0.0, 0.2, 0.5, 0.8, 1.0)
    ]
    assert away == sorted(away, reverse=True)
    assert away[0] > 15 > 1 > away[-1]


@settings(deadline=None, max_examples=30)
@given(n=st.integers(1, 40), k=st.integers(1, 10), seed=st.integers(0, 999))
def test_rows_sum_to_one_and_columns_to_equal_shares(n: int, k: int, seed: int) -> None:
    found = sinkhorn(drawn(n, k, seed), 0.5, 200)
    torch.testing.assert_close(found.sum(1), torch.ones(n))
    torch.testing.assert_close(found.sum(0), torch.full((k,), n / k), rtol=1e-3, atol=1e-3)


def test_without_iterations_the_result_is_a_softmax() -> None:
    scores = drawn(6, 4, 0)
    scores[:, 0] += 2
    torch.testing.assert_close(sinkhorn(scores, 0.05, 0), (scores / 0.05).softmax(1))
    assert sinkhorn(scores, 0.05, 0).sum(0)[0] > 5.9
    assert sinkhorn(scores, 0.05, 3).sum(0)[0] < 3


@pytest.mark.parametrize("strength", [0.2, 1.0])
@pytest.mark.parametrize("iterations", [0, 3])
@pytest.mark.parametrize("size", [1e3, 1e6])
def test_large_scores_neither_overflow_nor_vanish(
    size: float, iterations: int, strength: float
) -> None:
    scores = drawn(20, 5, 1) * size
    scores[3] -= 5 * size  # a row far below all others
    scores[:, 2] -= 5 * size  # a column that no text comes near
    found = sinkhorn(scores, 0.05, iterations, strength=strength)
    assert found.isfinite().all()
    torch.testing.assert_close(found.sum(1), torch.ones(20))


def test_adding_a_constant_to_all_scores_changes_nothing() -> None:
    scores = drawn(8, 3, 2)
    moved = sinkhorn(scores + 64, 0.05, 3)
    torch.testing.assert_close(moved, sinkhorn(scores, 0.05, 3), atol=1e-4, rtol=1e-3)


def test_small_batch_is_transported_with_its_queue() -> None:
    """Three texts of one of six categories would be split among categories without the queue."""
    truth = torch.arange(6).repeat(20)
    scores = torch.nn.functional.one_hot(truth, 6) + 0.1 * drawn(120, 6, 3)
    batch, queue = scores[truth == 4][:3], scores
    alone = sinkhorn(batch, 0.05, 50)
    together = sinkhorn(torch.cat([batch, queue]), 0.05, 50)[:3]
    assert (alone.argmax(1) == 4).sum() <= 1
    assert (together.argmax(1) == 4).all()


def test_no_gradient_flows_through_sinkhorn() -> None:
    assert not sinkhorn(drawn(4, 3, 4).requires_grad_(), 0.05, 3).requires_grad
