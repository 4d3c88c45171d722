"""The balanced assignment: against a loop, at its limits, and with a queue."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from newfound.clustering.optimal_transport import (
    EVEN,
    expected_shares,
    heeded_shares,
    sinkhorn,
    unevenness,
)


def by_loop(
    scores: Tensor, epsilon: float, iterations: int, shares: list[float] | None = None
) -> list[list[float]]:
    """As the definition says it, one number at a time."""
    n, k = scores.shape
    table = [[math.exp(float(scores[i, j]) / epsilon) for j in range(k)] for i in range(n)]
    for _ in range(iterations):
        for j in range(k):
            total = sum(table[i][j] for i in range(n))
            for i in range(n):
                table[i][j] *= (shares[j] if shares else 1 / k) / total
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
def test_by_loop(n: int, k: int, seed: int, epsilon: float, iterations: int) -> None:
    scores = drawn(n, k, seed)
    wanted = torch.tensor(by_loop(scores, epsilon, iterations))
    torch.testing.assert_close(sinkhorn(scores, epsilon, iterations), wanted, atol=1e-5, rtol=1e-3)


@settings(deadline=None, max_examples=30)
@given(n=st.integers(1, 9), k=st.integers(1, 7), seed=st.integers(0, 999))
def test_shares_by_loop(n: int, k: int, seed: int) -> None:
    scores = drawn(n, k, seed)
    shares = drawn(1, k, seed + 1)[0].softmax(0)
    wanted = torch.tensor(by_loop(scores, 0.3, 3, shares.tolist()))
    torch.testing.assert_close(sinkhorn(scores, 0.3, 3, shares), wanted, atol=1e-5, rtol=1e-3)
    settled = sinkhorn(scores, 0.5, 300, shares)
    torch.testing.assert_close(settled.sum(0), n * shares, rtol=1e-3, atol=1e-3)


def shares_by_loop(targets: list[int], k: int) -> list[float]:
    """What each category should have of the texts without a label, one at a time."""
    n, known = len(targets), max(targets) + 1
    even = n / k
    counts = [sum(target == category for target in targets) for category in range(known)]
    mean = sum(count + 4 for count in counts) / known if known else 0
    whole = [even * (count + 4) / mean for count in counts]
    sizes = [max(size - count, size / 2) for size, count in zip(whole, counts, strict=True)]
    sizes += [even] * (k - known)
    return [size / sum(sizes) for size in sizes]


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_expected_shares_by_loop(data: st.DataObject) -> None:
    known = data.draw(st.integers(1, 4))
    counts = data.draw(st.lists(st.integers(1, 9), min_size=known, max_size=known))
    free = data.draw(st.integers(1, 60))
    targets = [category for category, count in enumerate(counts) for _ in range(count)]
    targets = data.draw(st.permutations(targets + [-1] * free))
    k = known + data.draw(st.integers(0, 3))
    found = expected_shares(torch.tensor(targets), k)
    torch.testing.assert_close(found, torch.tensor(shares_by_loop(targets, k)))
    assert float(found.sum()) == pytest.approx(1)


def test_where_nothing_is_labelled_or_labels_are_not_asked_shares_are_even() -> None:
    even = torch.full((4,), 0.25)
    torch.testing.assert_close(expected_shares(torch.full((9,), -1), 4), even)
    some = torch.tensor([0, 0, 0, 1, -1, -1])
    torch.testing.assert_close(expected_shares(some, 4, by_labels=False), even)
    shares = expected_shares(torch.tensor([0] * 8 + [1] * 2 + [-1] * 90), 4)
    # 8 labels against 2, evened by 4 each, on 50 of 100 texts: 33 and 17, less those with a label
    torch.testing.assert_close(shares[:2] * 90, torch.tensor([25 + 1 / 3, 14 + 2 / 3]))
    torch.testing.assert_close(shares[2:] * 90, torch.tensor([25.0, 25.0]))
    # Nearly all is labelled: half of each known category is thought to be left.
    shares = expected_shares(torch.tensor([0] * 45 + [1] * 45 + [-1] * 10), 4)
    torch.testing.assert_close(shares, torch.tensor([1.0, 1.0, 2.0, 2.0]) / 6)


def labelled_with(counts: list[int]) -> Tensor:
    """Targets with so many labels of each category, and ten texts without."""
    return torch.cat([torch.repeat_interleave(torch.tensor(counts)), torch.full((10,), -1)])


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(1, 60), min_size=2, max_size=30))
def test_unevenness_by_loop(counts: list[int]) -> None:
    mean = sum(counts) / len(counts)
    squares = sum((count - mean) ** 2 for count in counts)
    by_chance = len(counts) - 1
    wanted = (squares / by_chance - mean) / mean**2
    chance = 2 * math.sqrt(2 * by_chance)
    if squares / mean <= by_chance + chance:  # would 0.3 have shown?
        wanted = 0.0 if by_chance * mean * 0.3 > chance else EVEN
    assert unevenness(labelled_with(counts)) == pytest.approx(wanted, abs=1e-9)


def test_few_labels_say_nothing_of_sizes() -> None:
    assert unevenness(torch.full((5,), -1)) == EVEN
    assert unevenness(labelled_with([7])) == EVEN
    assert unevenness(labelled_with([2] * 12)) == EVEN
    assert unevenness(labelled_with([12] * 12)) == 0
    assert unevenness(labelled_with([1] * 11 + [20])) > 0.3
    shares = heeded_shares(torch.full((4,), 0.25), torch.tensor([0, 0, 0, 1, 1, 2, 2, 3]), EVEN)
    torch.testing.assert_close(shares, torch.tensor([5.0, 4, 4, 3]) / 16)


def test_chance_alone_is_not_unevenness() -> None:
    draw = torch.Generator().manual_seed(0)
    found = []
    for _ in range(200):
        of_one_size = torch.poisson(torch.full((30,), 12.0), generator=draw).long() + 1
        found.append(unevenness(labelled_with(of_one_size.tolist())))
    assert sum(value > 0 for value in found) < 20
    assert unevenness(labelled_with([12] * 30)) == 0
    # Sizes of 1 to 9: the spread of sizes is told from that of chance
    sizes = torch.linspace(1, 9, 30)
    drawn_from = torch.poisson(5 * sizes, generator=draw).long() + 1
    true_spread = float(sizes.var() / sizes.mean() ** 2)
    assert unevenness(labelled_with(drawn_from.tolist())) == pytest.approx(true_spread, rel=0.3)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 8), st.integers(0, 40), st.integers(0, 999), st.floats(0, 2))
def test_heeded_shares_by_loop(k: int, n: int, seed: int, uneven: float) -> None:
    draw = torch.Generator().manual_seed(seed)
    expected = torch.rand(k, generator=draw).double() + 0.1
    expected /= expected.sum()
    labels = torch.randint(k, (n,), generator=draw)
    shares = heeded_shares(expected, labels, uneven)
    weight = uneven / (uneven + 0.1) if n and uneven else 0.0
    counts = [max(1, sum(int(label) == c for label in labels)) for c in range(k)]
    for c in range(k):
        wanted = (1 - weight) * float(expected[c]) + weight * counts[c] / sum(counts)
        assert float(shares[c]) == pytest.approx(wanted)
    assert float(shares.sum()) == pytest.approx(1)
    assert torch.equal(heeded_shares(expected, labels, 0.0), expected)


@settings(deadline=None, max_examples=30)
@given(n=st.integers(1, 40), k=st.integers(1, 10), seed=st.integers(0, 999))
def test_rows_sum_to_one_and_columns_come_to_equal_shares(n: int, k: int, seed: int) -> None:
    found = sinkhorn(drawn(n, k, seed), 0.5, 200)
    torch.testing.assert_close(found.sum(1), torch.ones(n))
    torch.testing.assert_close(found.sum(0), torch.full((k,), n / k), rtol=1e-3, atol=1e-3)


def test_without_iterations_there_is_no_balance() -> None:
    scores = drawn(6, 4, 0)
    scores[:, 0] += 2
    torch.testing.assert_close(sinkhorn(scores, 0.05, 0), (scores / 0.05).softmax(1))
    assert sinkhorn(scores, 0.05, 0).sum(0)[0] > 5.9
    assert sinkhorn(scores, 0.05, 3).sum(0)[0] < 3


@pytest.mark.parametrize("iterations", [0, 3])
@pytest.mark.parametrize("size", [1e3, 1e6])
def test_large_scores_neither_overflow_nor_vanish(size: float, iterations: int) -> None:
    scores = drawn(20, 5, 1) * size
    scores[3] -= 5 * size  # a row far below all others
    scores[:, 2] -= 5 * size  # a column that no text comes near
    found = sinkhorn(scores, 0.05, iterations)
    assert found.isfinite().all()
    torch.testing.assert_close(found.sum(1), torch.ones(20))


def test_adding_the_same_to_all_scores_changes_nothing() -> None:
    scores = drawn(8, 3, 2)
    moved = sinkhorn(scores + 64, 0.05, 3)
    torch.testing.assert_close(moved, sinkhorn(scores, 0.05, 3), atol=1e-4, rtol=1e-3)


def test_a_queue_makes_the_balance_of_a_small_batch_mean_something() -> None:
    """Three texts of one category out of six: alone they must be torn apart."""
    truth = torch.arange(6).repeat(20)
    scores = torch.nn.functional.one_hot(truth, 6) + 0.1 * drawn(120, 6, 3)
    batch, queue = scores[truth == 4][:3], scores
    alone = sinkhorn(batch, 0.05, 50)
    together = sinkhorn(torch.cat([batch, queue]), 0.05, 50)[:3]
    assert (alone.argmax(1) == 4).sum() <= 1
    assert (together.argmax(1) == 4).all()


def test_no_gradient_goes_through_it() -> None:
    assert not sinkhorn(drawn(4, 3, 4).requires_grad_(), 0.05, 3).requires_grad
