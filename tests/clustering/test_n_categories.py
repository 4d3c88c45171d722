import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from newfound.clustering import n_categories as estimate
from newfound.clustering.kmeans import kmeans
from newfound.clustering.n_categories import (
    Estimate,
    drop_single_labels,
    estimate_categories,
    geometric_range,
    held_out_silhouette,
    known_share,
    mate_rates,
    overclustering_count,
    principal_components,
    smoothed,
)
from newfound.errors import DamagedFileError


def mixture(
    k: int, size: int, d: int = 32, noise: float = 0.5, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """Return unit vectors around k centres, `size` points each, and their categories."""
    draw = torch.Generator().manual_seed(seed)
    truth = torch.arange(k).repeat_interleave(size)
    centres = torch.nn.functional.normalize(torch.randn(k, d, generator=draw), dim=1)
    points = centres[truth] + noise * torch.randn(len(truth), d, generator=draw) / d**0.5
    return torch.nn.functional.normalize(points, dim=1), truth


def some_labels(truth: Tensor, known: int, rate: float, seed: int = 0) -> Tensor:
    """Label `rate` of the texts of the first `known` categories."""
    draw = torch.Generator().manual_seed(seed)
    targets = torch.full_like(truth, -1)
    for j in range(known):
        members = torch.nonzero(truth == j)[:, 0]
        chosen = members[torch.randperm(len(members), generator=draw)]
        targets[chosen[: round(rate * len(members))]] = j
    return targets


@given(st.integers(0, 10_000), st.integers(2, 5), st.integers(1, 6))
@settings(max_examples=30, deadline=None)
def test_mate_rates_equal_a_loop_over_texts(seed: int, known: int, k: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    targets = torch.randint(-1, known, (40,), generator=draw)
    targets[: 2 * known] = torch.arange(known).repeat(2)  # at least two labels
    clusters = torch.randint(k, (40,), generator=draw)
    own, other = 0.0, 0.0
    for i in range(40):
        mates = [m for m in range(40) if m != i and clusters[m] == clusters[i]]
        if targets[i] < 0 or not mates:
            continue
        n = int((targets == targets[i]).sum())
        same = sum(1 for m in mates if targets[m] == targets[i])
        different = sum(1 for m in mates if targets[m] >= 0 and targets[m] != targets[i])
        own += same / len(mates) * n / (n - 1)
        other += different / len(mates)
    labelled = int((targets >= 0).sum())
    got = mate_rates(targets, clusters, torch.ones(1, known, dtype=torch.float64))
    assert float(got[0]) == pytest.approx(own / labelled)
    assert float(got[1]) == pytest.approx(other / labelled)


def test_weight_of_two_counts_a_category_twice() -> None:
    targets = torch.tensor([0, 0, 0, 1, 1, -1, -1, -1])
    clusters = torch.tensor([0, 0, 0, 1, 1, 0, 1, 1])
    weights = torch.tensor([[1.0, 1.0], [2.0, 1.0]], dtype=torch.float64)
    own, other = mate_rates(targets, clusters, weights)
    first, second = 3 * (2 / 3) * 3 / 2, 2 * (1 / 3) * 2  # sums over the texts of each category
    assert own.tolist() == pytest.approx([(first + second) / 5, (2 * first + second) / 8])
    assert other.tolist() == [0.0, 0.0]


@given(
    st.integers(2, 30),
    st.integers(0, 40),
    st.fractions(Fraction(1, 50), Fraction(1, 2)),
    st.fractions(Fraction(0), Fraction(1, 2)),
)
def test_known_share_inverts_the_rates_of_equal_categories(
    known: int, novel: int, rate: Fraction, leak: Fraction
) -> None:
    # The mates of a text are of its own category except for `leak`, spread over all others.
    total = known + novel
    own = rate * (1 - leak)
    other = rate * leak * Fraction(known - 1, total - 1)
    share = Fraction(known, total)
    got = known_share(
        torch.tensor([float(own)], dtype=torch.float64),
        torch.tensor([float(other)], dtype=torch.float64),
        torch.tensor([float(rate * share)], dtype=torch.float64),
        known,
    )
    # With mates mixed like all texts the equation is 0 / 0.
    if abs((1 - leak) - leak / (total - 1)) > Fraction(1, 100):
        assert float(got) == pytest.approx(float(share), rel=1e-6)


def test_known_share_stays_between_the_labelled_texts_and_all_texts() -> None:
    labelled = torch.tensor([0.1, 0.1, 0.1])
    share = known_share(torch.tensor([0.0, 0.05, 5.0]), torch.tensor([0.0, 0.2, 0.0]), labelled, 4)
    assert share.tolist() == pytest.approx([1.0, 0.1, 0.1])


def test_held_out_silhouette_equals_a_loop() -> None:
    points, _ = mixture(3, 20)
    train, test = points[::2], points[1::2]
    centres = kmeans(train, 3, starts=1, seed=5, max_iterations=10).centres
    values = []
    for text in test:
        near, far = sorted(math.dist(text.tolist(), c.tolist()) for c in centres)[:2]
        values.append((far - near) / far)
    got = held_out_silhouette(train, test, 3, 5)
    assert got == pytest.approx(sum(values) / len(values), rel=1e-4)


def test_smoothed_equals_a_loop() -> None:
    assert smoothed([4.0, 0.0, 8.0]) == [3.0, 3.0, 6.0]
    assert smoothed([2.0]) == [2.0]


def test_drop_single_labels_renumbers_the_others() -> None:
    targets = torch.tensor([2, 0, -1, 1, 2, 3, 3, 3])
    assert drop_single_labels(targets).tolist() == [0, -1, -1, -1, 0, 1, 1, 1]
    assert drop_single_labels(torch.tensor([-1, -1])).tolist() == [-1, -1]


def test_principal_components_keep_distances_of_low_rank_points() -> None:
    draw = torch.Generator().manual_seed(0)
    points = torch.randn(50, 3, generator=draw) @ torch.randn(3, 20, generator=draw) + 7
    points = points.double()
    reduced = principal_components(points, 3)
    assert reduced.shape == (50, 3)
    torch.testing.assert_close(torch.pdist(reduced), torch.pdist(points), rtol=1e-5, atol=1e-5)
    assert principal_components(points, 20).shape == (50, 20)


@given(st.integers(1, 500), st.integers(1, 2000))
def test_candidates_rise_from_low_to_high(low: int, high: int) -> None:
    numbers = geometric_range(low, high)
    assert numbers[0] == low
    assert numbers[-1] == max(high, low + 1)
    assert all(a < b < 1.15 * a + 1.001 for a, b in pairwise(numbers))


def test_overclustering_counts_clusters_above_the_share() -> None:
    points, _ = mixture(6, 40, noise=0.2)
    assert overclustering_count(points, 6, seed=0) == 6
    labels = kmeans(points, 20, starts=1, seed=3).labels.tolist()
    sizes = [labels.count(k) for k in range(20)]
    for share in (0.5, 0.9):
        expected = sum(1 for size in sizes if size > share * 240 / 20)
        assert overclustering_count(points, 20, share=share, seed=3) == expected


@pytest.mark.parametrize(("k", "known", "size"), [(4, 3, 40), (20, 15, 60), (60, 30, 50)])
def test_labels_give_the_number_of_categories(k: int, known: int, size: int) -> None:
    points, truth = mixture(k, size)
    found = estimate_categories(points, some_labels(truth, known, 0.2))
    assert abs(found.n_categories - k) <= 0.08 * k
    assert known <= found.low <= found.n_categories <= found.high
    assert len(found.candidates) == len(found.scores)
    assert found.candidates[0] <= found.n_categories < found.candidates[-1]
    assert max(found.scores) > 0


def test_small_table_is_clustered_repeatedly_for_a_stabler_estimate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    points, truth = mixture(16, 50, noise=1.0)
    targets = some_labels(truth, 11, 0.2)
    calls: list[int] = []
    real = estimate.kmeans

    def watched(features: Tensor, k: int, **options: Any) -> Any:
        calls.append(len(features))
        return real(features, k, **options)

    monkeypatch.setattr(estimate, "kmeans", watched)

    def error(most: int) -> float:
        """Return the standard deviation of the logarithm of estimates over seeds."""
        monkeypatch.setattr(estimate, "MAX_REPEATS", most)
        found = [estimate_categories(points, targets, seed=seed) for seed in range(12)]
        return float(torch.tensor([e.n_categories for e in found]).float().log().std())

    once, several = error(1), error(8)
    assert several < once
    calls.clear()
    estimate_categories(points, targets)
    assert calls.count(800) == 4 * (4500 // 800)  # a first estimate and three numbers of clusters
    calls.clear()
    estimate_categories(points.repeat(6, 1), targets.repeat(6))
    assert calls.count(4800) == 4


def test_weight_of_the_silhouette_grows_continuously(monkeypatch: pytest.MonkeyPatch) -> None:
    """With two labels per category the estimate does not jump where the silhouette joins in."""
    points, truth = mixture(40, 50)
    targets = some_labels(truth, 30, 0.04)
    far = Estimate(10**9, [1], [1.0], 1, 1, "")  # so far off that a small weight shows
    monkeypatch.setattr(estimate, "_from_silhouette", lambda *_: far)

    def number(low: float, high: float) -> int:
        monkeypatch.setattr(estimate, "LOW_ERROR", low)
        monkeypatch.setattr(estimate, "HIGH_ERROR", high)
        return estimate_categories(points, targets).n_categories

    alone = number(9.0, 10.0)
    whole = number(0.0, 1e-9)
    parts = [number(0.0, width) for width in (0.2, 0.4, 0.8, 1.6, 100.0)]
    assert parts == sorted(parts, reverse=True)
    assert alone == parts[-1] < parts[0] < whole
    # The estimate by labels alone is reported and within the range.
    monkeypatch.setattr(estimate, "HIGH_ERROR", 1e-9)
    found = estimate_categories(points, targets)
    assert f"labels alone give {alone}, " in found.how
    assert found.low <= alone < found.n_categories <= found.high


def test_overlapping_categories_are_counted() -> None:
    points, truth = mixture(30, 80, noise=1.1)  # k-means misassigns many texts
    found = estimate_categories(points, some_labels(truth, 22, 0.15))
    assert abs(found.n_categories - 30) <= 3


def test_two_labels_per_category_suffice() -> None:
    points, truth = mixture(40, 50)
    found = estimate_categories(points, some_labels(truth, 30, 0.04))
    assert abs(found.n_categories - 40) <= 5


@pytest.mark.parametrize("k", [2, 10, 40])
def test_without_labels_the_silhouette_decides(k: int) -> None:
    points, truth = mixture(k, 50)
    for targets in (torch.full_like(truth, -1), some_labels(truth, 1, 0.2)):
        found = estimate_categories(points, targets)
        assert abs(found.n_categories - k) <= 0.2 * k
        assert found.low <= found.n_categories <= found.high
        assert found.n_categories == found.candidates[found.scores.index(max(found.scores))]
        assert not found.at_limit


def test_more_categories_than_candidates_are_at_the_limit() -> None:
    points, truth = mixture(90, 6)  # up to a sixth of the 540 texts are tried
    found = estimate_categories(points, torch.full_like(truth, -1))
    assert found.n_categories == max(found.candidates) == 90
    assert found.at_limit


def test_estimate_is_at_least_the_number_of_known_categories() -> None:
    points, truth = mixture(3, 60)
    apart = torch.randint(9, truth.shape, generator=torch.Generator().manual_seed(0))
    meaningless = torch.where(torch.arange(len(truth)) % 3 == 0, apart, -1)
    singles = torch.full_like(truth, -1)
    singles[:9] = torch.arange(9)
    for targets in (meaningless, singles):
        found = estimate_categories(points, targets)
        assert found.n_categories >= 9
        assert found.low >= 9
        assert min(found.candidates) >= 9


def test_same_seed_gives_the_same_estimate() -> None:
    points, truth = mixture(12, 30, noise=0.9)
    targets = some_labels(truth, 8, 0.2)
    assert estimate_categories(points, targets, seed=4) == estimate_categories(
        points, targets, seed=4
    )


def test_estimate_without_texts_to_discover() -> None:
    points, truth = mixture(5, 10, d=80)
    assert estimate_categories(points, truth).n_categories == 5
    same = torch.ones(30, 8)
    assert estimate_categories(same, torch.full((30,), -1)).n_categories == 1
    for n in (0, 1, 3):
        few = estimate_categories(points[:n], torch.full((n,), -1))
        assert few.n_categories == 1


@pytest.mark.parametrize("n", [8, 9, 12, 20])
def test_estimate_with_few_texts(n: int) -> None:
    points, _ = mixture(2, 10)
    points = points[torch.randperm(20, generator=torch.Generator().manual_seed(1))[:n]]
    for labelled in (0, 1, 2, 4, n - 1):
        targets = torch.full((n,), -1)
        targets[:labelled] = torch.arange(labelled) // 2
        found = estimate_categories(points, targets)
        assert math.ceil(labelled / 2) <= found.n_categories <= n


def test_progress_reaches_the_total() -> None:
    points, truth = mixture(6, 30)
    for targets in (some_labels(truth, 4, 0.3), torch.full_like(truth, -1)):
        calls: list[tuple[int, int]] = []
        estimate_categories(points, targets, progress=lambda i, n, c=calls: c.append((i, n)))
        assert [i for i, _ in calls] == list(range(1, len(calls) + 1))
        assert calls[-1][0] == calls[-1][1]


def test_to_dict_has_the_keys_of_a_run_file() -> None:
    record = Estimate(5, [4, 5], [0.1, 0.9], 4, 6, "because").to_dict()
    assert record == {
        "estimate": 5,
        "candidates": [4, 5],
        "scores": [0.1, 0.9],
        "low": 4,
        "high": 6,
        "how": "because",
        "at_limit": False,
    }


def test_a_file_of_an_earlier_version_has_no_limit() -> None:
    record = Estimate(5, [4, 5], [0.1, 0.9], 4, 6, "because", at_limit=True).to_dict()
    assert Estimate.from_dict(record, "run.json").at_limit
    del record["at_limit"]
    assert not Estimate.from_dict(record, "run.json").at_limit
    with pytest.raises(DamagedFileError, match="at_limit"):
        Estimate.from_dict({**record, "at_limit": "yes"}, "run.json")
