from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from torch import Tensor

from newfound.clustering import kmeans as module
from newfound.clustering.kmeans import Clustering, constrained_kmeans, kmeans, nearest
from newfound.clustering.kmeans_plus_plus import greedy_kmeans_plus_plus
from newfound.clustering.lloyd import Problem, all_starts, one_start
from newfound.errors import InputError


def mixture(n: int, d: int, k: int, seed: int, noise: float = 0.6) -> tuple[Tensor, Tensor]:
    """Return unit vectors around k overlapping centres of unequal sizes, as sentence features."""
    draw = torch.Generator().manual_seed(seed)
    centres = torch.randn(k, d, generator=draw) / d**0.5
    truth = torch.multinomial(torch.rand(k, generator=draw) + 0.2, n, True, generator=draw)
    points = centres[truth] + noise * torch.randn(n, d, generator=draw) / d**0.5
    return torch.nn.functional.normalize(points, dim=1), truth


def batched(features: Tensor, k: int, targets: Tensor | None = None, **options: int) -> Clustering:
    """Run the batched implementation of a GPU on a CPU."""
    if targets is None:
        targets = torch.full((len(features),), -1)
    settings = {"starts": 10, "seed": 0, "max_iterations": 100} | options
    return module._fit(
        features, k, targets, tolerance=1e-4, initial=None, progress=None, batched=True, **settings
    )


def problem_of(features: Tensor, k: int) -> Problem:
    zeros = torch.zeros(k, features.shape[1])
    return Problem(features, features.square().sum(1), zeros, zeros[:, 0], zeros[0, 0])


def plain_distances(features: Tensor, centres: Tensor) -> Tensor:
    """Return squared distances [N, K] by a loop, in double precision."""
    rows = [[float((x - c).square().sum()) for c in centres.double()] for x in features.double()]
    return torch.tensor(rows, dtype=torch.float64)


def plain_lloyd(
    features: Tensor, centres: Tensor, targets: Tensor, iterations: int
) -> tuple[Tensor, Tensor, float]:
    """Return k-means by loops, with pinned points."""
    centres = centres.double()
    for step in range(iterations + 1):
        distances = plain_distances(features, centres)
        labels = torch.where(targets >= 0, targets, distances.argmin(1))
        if step < iterations:
            for j in range(len(centres)):
                if bool((labels == j).any()):
                    centres[j] = features.double()[labels == j].mean(0)
    own = distances[torch.arange(len(features)), labels]
    return centres, labels, float(own.sum())


def check_consistent(found: Clustering, features: Tensor, targets: Tensor | None = None) -> None:
    """Check that free points have their nearest centre, and the inertia follows the labels."""
    distances = plain_distances(features, found.centres)
    own = distances[torch.arange(len(features)), found.labels]
    free = torch.ones(len(features), dtype=torch.bool) if targets is None else targets < 0
    scale = float(features.square().sum(1).mean())
    assert bool(((own - distances.min(1).values)[free] <= 1e-5 * scale).all())
    assert found.inertia == pytest.approx(float(own.sum()), rel=1e-4, abs=1e-5 * scale)


@pytest.fixture(scope="module")
def texts() -> tuple[Tensor, Tensor]:
    return mixture(1500, 32, 20, seed=1)


# -- against scikit-learn and against loops


@pytest.mark.parametrize(("n", "d", "k"), [(2000, 64, 30), (1500, 16, 8), (3000, 48, 100)])
def test_inertia_equals_scikit_learn(n: int, d: int, k: int) -> None:
    features, _ = mixture(n, d, k, seed=k)
    expected = KMeans(k, n_init=10, random_state=0).fit(features.numpy()).inertia_
    assert kmeans(features, k).inertia <= 1.005 * expected
    assert batched(features, k).inertia <= 1.005 * expected


def test_batched_starts_equal_single_starts(texts: tuple[Tensor, Tensor]) -> None:
    features, truth = texts
    single, batch = kmeans(features, 20, starts=6, seed=3), batched(features, 20, starts=6, seed=3)
    assert batch.inertia == pytest.approx(single.inertia, rel=1e-5)
    assert torch.equal(batch.labels, single.labels)
    targets = torch.where((truth < 5) & (torch.arange(len(truth)) % 10 == 0), truth, -1)
    pinned = constrained_kmeans(features, 20, targets, starts=6, seed=3)
    pinned_batch = batched(features, 20, targets, starts=6, seed=3)
    assert pinned_batch.inertia == pytest.approx(pinned.inertia, rel=0.005)
    assert torch.equal(pinned_batch.labels[targets >= 0], targets[targets >= 0])


@pytest.mark.parametrize("iterations", [1, 4, 25])
@pytest.mark.parametrize("block", [2**25, 300])
def test_iterations_equal_a_loop(iterations: int, block: int) -> None:
    features, _ = mixture(120, 6, 7, seed=5)
    start = features[::17][:7].clone()
    free = torch.full((120,), -1)
    centres, labels, inertia = plain_lloyd(features, start, free, iterations)
    for found in (
        one_start(
            problem_of(features, 7), start, max_iterations=iterations, tolerance=0, block=block
        ),
        all_starts(
            problem_of(features, 7),
            start[None],
            max_iterations=iterations,
            tolerance=0,
            block=block,
        ),
    ):
        assert torch.equal(found.labels, labels)
        assert torch.allclose(found.centres.double(), centres, atol=1e-6)
        assert found.inertia == pytest.approx(inertia, rel=1e-5)
        assert found.iterations <= iterations


def test_constrained_iterations_equal_a_loop() -> None:
    features, truth = mixture(120, 6, 5, seed=6)
    targets = torch.where((truth < 3) & (torch.arange(120) % 4 == 0), truth, -1)
    start = torch.stack([features[targets == j].mean(0) for j in range(3)] + [*features[7:9]])
    expected, labels, inertia = plain_lloyd(features, start, targets, 6)
    found = constrained_kmeans(features, 5, targets, initial=start, max_iterations=6, tolerance=0)
    assert torch.equal(found.labels, labels)
    assert torch.allclose(found.centres.double(), expected, atol=1e-5)
    assert found.inertia == pytest.approx(inertia, rel=1e-5)


def test_iterations_never_raise_the_inertia(texts: tuple[Tensor, Tensor]) -> None:
    inertias = [
        kmeans(texts[0], 20, starts=1, max_iterations=i, tolerance=0).inertia for i in range(1, 12)
    ]
    assert all(b <= a * (1 + 1e-6) for a, b in pairwise(inertias))
    assert inertias[-1] < inertias[0]


def test_larger_tolerance_stops_earlier(texts: tuple[Tensor, Tensor]) -> None:
    strict, loose = (kmeans(texts[0], 20, starts=1, tolerance=t) for t in (0.0, 10.0))
    assert loose.iterations < strict.iterations
    check_consistent(loose, texts[0])


def test_nearest_equals_a_loop() -> None:
    features, _ = mixture(60, 5, 4, seed=2)
    centres = features[:9]
    for shift in (0.0, 1000.0):
        labels, distances = nearest(features + shift, centres + shift)
        expected = plain_distances(features + shift, centres + shift)
        own = expected[torch.arange(60), labels]
        assert torch.allclose(own, expected.min(1).values, atol=1e-6)
        assert torch.allclose(distances.double(), own, atol=1e-6)


def test_block_size_does_not_change_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    features, _ = mixture(500, 5, 4, seed=2)
    whole = nearest(features, features[:7])
    monkeypatch.setattr("newfound.clustering.distances.BLOCK", 64)
    assert torch.equal(nearest(features, features[:7])[0], whole[0])
    assert nearest(features[:0], features[:7])[0].shape == (0,)


# -- properties and edge cases

small = st.tuples(st.integers(1, 25), st.integers(1, 4), st.integers(0, 10_000), st.booleans())


@settings(deadline=None, max_examples=60)
@given(small, st.data())
def test_small_random_problems(shape: tuple[int, int, int, bool], data: st.DataObject) -> None:
    """CPU and GPU implementations give valid clusterings of points with many duplicates."""
    n, d, seed, rounded = shape
    k = data.draw(st.integers(1, n))
    features = torch.randn(n, d, generator=torch.Generator().manual_seed(seed))
    features = features.round() if rounded else features
    for found in (kmeans(features, k, starts=3), batched(features, k, starts=3)):
        assert found.centres.shape == (k, d)
        assert found.labels.dtype == torch.int64
        assert bool(found.centres.isfinite().all())
        check_consistent(found, features)


@settings(deadline=None, max_examples=60)
@given(small, st.data())
def test_small_random_constrained_problems(
    shape: tuple[int, int, int, bool], data: st.DataObject
) -> None:
    n, d, seed, rounded = shape
    known = data.draw(st.integers(1, min(n, 4)))
    some = data.draw(st.lists(st.integers(-1, known - 1), min_size=n - known, max_size=n - known))
    targets = torch.tensor([*range(known), *some])
    k = data.draw(st.integers(known, known + int((targets < 0).sum())))
    features = torch.randn(n, d, generator=torch.Generator().manual_seed(seed))
    features = features.round() if rounded else features
    for found in (
        constrained_kmeans(features, k, targets, starts=2),
        batched(features, k, targets, starts=2),
    ):
        assert torch.equal(found.labels[targets >= 0], targets[targets >= 0])
        assert int(found.labels.max()) < k
        check_consistent(found, features, targets)


def test_as_many_clusters_as_points() -> None:
    features, _ = mixture(40, 8, 5, seed=3)
    for found in (kmeans(features, 40), batched(features, 40)):
        assert found.inertia == pytest.approx(0, abs=1e-4)
        assert sorted(found.labels.tolist()) == list(range(40))


def test_one_cluster_is_the_mean(texts: tuple[Tensor, Tensor]) -> None:
    features = texts[0]
    for found in (kmeans(features, 1), batched(features, 1)):
        assert torch.allclose(found.centres[0], features.mean(0), atol=1e-6)
        assert found.inertia == pytest.approx(float(features.var(0, correction=0).sum()) * 1500)


def test_fewer_distinct_points_than_clusters() -> None:
    features = torch.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]).repeat(10, 1)
    for found in (kmeans(features, 7), batched(features, 7)):
        assert found.inertia == pytest.approx(0, abs=1e-5)
        assert len({tuple(found.centres[label].tolist()) for label in found.labels}) == 3
        assert found.iterations < 20


def test_empty_cluster_is_refilled_with_the_farthest_point() -> None:
    groups = torch.tensor([[0.0, 0.0], [10.0, 0.0], [0.0, 30.0]])
    noise = torch.randn(30, 2, generator=torch.Generator().manual_seed(0))
    features = groups.repeat_interleave(10, 0) + 0.1 * noise
    start = torch.tensor(
        [[0.0, 0.0], [10.0, 0.0], [500.0, -500.0]]
    )  # the last centre is far from all points
    for found in (
        kmeans(features, 3, initial=start),
        all_starts(problem_of(features, 3), start[None], max_iterations=50, tolerance=0),
    ):
        assert found.labels.tolist() == [0] * 10 + [1] * 10 + [2] * 10
        check_consistent(found, features)


def test_cluster_refilled_with_a_duplicate_is_refilled_again() -> None:
    # The two farthest points are equal, so the second cluster moved there is empty at first.
    features = torch.tensor(
        [[0.0, 0.1], [0.1, 0.0], [0.0, 0.0], [9.0, 9.0], [9.0, 9.0], [-4.0, 0.0]]
    )
    start = torch.tensor([[0.0, 0.0], [500.0, -500.0], [-500.0, 600.0]])
    for found in (
        kmeans(features, 3, initial=start),
        all_starts(problem_of(features, 3), start[None], max_iterations=50, tolerance=0),
    ):
        assert found.labels.tolist() == [0, 0, 0, 1, 1, 2]


def test_many_empty_clusters_are_all_refilled() -> None:
    features, _ = mixture(60, 3, 4, seed=2)
    start = torch.cat([features[:1], 900 + torch.arange(57.0).view(19, 3)])
    for found in (
        kmeans(features, 20, initial=start),
        all_starts(problem_of(features, 20), start[None], max_iterations=50, tolerance=0),
    ):
        assert int(found.labels.bincount(minlength=20).min()) > 0
        check_consistent(found, features)


@pytest.mark.parametrize("shift", [0.0, 3000.0])
def test_points_far_from_the_origin(shift: float) -> None:
    features, _ = mixture(600, 12, 6, seed=8, noise=0.3)
    near = kmeans(features, 6)
    far = kmeans(features + shift, 6)
    assert far.inertia == pytest.approx(near.inertia, rel=1e-3)
    assert torch.allclose(far.centres - shift, near.centres[_order(far, near)], atol=2e-3)


def _order(one: Clustering, other: Clustering) -> Tensor:
    """Return the cluster of `other` with the first point of each cluster of `one`."""
    return torch.stack(
        [other.labels[(one.labels == j).nonzero()[0, 0]] for j in range(len(one.centres))]
    )


# -- starts, random seeds, initial centres


def test_same_seed_gives_the_same_result(texts: tuple[Tensor, Tensor]) -> None:
    features = texts[0]
    for run in (
        lambda seed: kmeans(features, 20, starts=2, seed=seed),
        lambda seed: batched(features, 20, starts=2, seed=seed),
    ):
        one, again, other = run(4), run(4), run(5)
        assert torch.equal(one.labels, again.labels)
        assert torch.equal(one.centres, again.centres)
        assert one.inertia == again.inertia
        assert not torch.equal(one.labels, other.labels)


def test_global_random_state_is_unchanged(texts: tuple[Tensor, Tensor]) -> None:
    torch.manual_seed(9)
    expected = torch.rand(3)
    torch.manual_seed(9)
    kmeans(texts[0], 5, starts=1)
    assert torch.equal(torch.rand(3), expected)


def test_more_starts_are_no_worse(texts: tuple[Tensor, Tensor]) -> None:
    one, many = (kmeans(texts[0], 20, starts=s, seed=2) for s in (1, 8))
    assert many.inertia <= one.inertia


def test_initial_centres_are_the_start(texts: tuple[Tensor, Tensor]) -> None:
    features = texts[0]
    found = kmeans(features, 20)
    again = kmeans(features, 20, initial=found.centres)
    assert torch.equal(again.labels, found.labels)
    assert again.iterations <= 2
    half = kmeans(features, 20, starts=1, max_iterations=2, tolerance=0)
    rest = kmeans(features, 20, initial=half.centres, tolerance=0)
    whole = kmeans(features, 20, starts=1, tolerance=0)
    assert rest.inertia == pytest.approx(whole.inertia, rel=1e-5)


def test_kmeans_plus_plus_prefers_distant_points() -> None:
    groups = 20 * torch.eye(12)
    features = groups.repeat_interleave(8, 0) + 0.01 * torch.randn(
        96, 12, generator=torch.Generator().manual_seed(1)
    )
    first_centres = greedy_kmeans_plus_plus(
        features,
        features.square().sum(1),
        12,
        features[[3]],
        5,
        torch.Generator().manual_seed(0),
    )
    for start in first_centres:
        assert torch.equal(start[0], features[3])
        assert sorted(start.argmax(1).tolist()) == list(range(12))


def test_group_size_does_not_change_kmeans_plus_plus(monkeypatch: pytest.MonkeyPatch) -> None:
    features, _ = mixture(300, 8, 5, seed=3)
    given = features[:2]

    def first_centres() -> Tensor:
        draw = torch.Generator().manual_seed(0)
        return greedy_kmeans_plus_plus(features, features.square().sum(1), 9, given, 6, draw)

    together = first_centres()
    monkeypatch.setattr("newfound.clustering.kmeans_plus_plus.BLOCK", 3000)
    assert torch.equal(first_centres(), together)


# -- pinned points


def test_labels_pull_clusters_to_their_categories(texts: tuple[Tensor, Tensor]) -> None:
    features, truth = texts
    targets = torch.where((truth < 12) & (torch.arange(1500) % 5 == 0), truth, -1)
    found = constrained_kmeans(features, 20, targets)
    assert torch.equal(found.labels[targets >= 0], targets[targets >= 0])
    known = (truth < 12) & (targets < 0)
    assert float((found.labels == truth)[known].float().mean()) > 0.6


def test_distant_pinned_points_stay_in_their_cluster() -> None:
    features = torch.tensor([[0.0], [0.1], [10.0], [10.1], [10.2], [10.3]])
    targets = torch.tensor([0, -1, 0, 1, -1, -1])
    found = constrained_kmeans(features, 2, targets)
    assert found.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert found.centres[0].item() == pytest.approx((0.0 + 0.1 + 10.0) / 3)


def test_without_targets_constrained_kmeans_equals_kmeans(texts: tuple[Tensor, Tensor]) -> None:
    features = texts[0]
    plain = kmeans(features, 9, starts=3, seed=1)
    seeded = constrained_kmeans(features, 9, torch.full((1500,), -1), starts=3, seed=1)
    assert torch.equal(plain.labels, seeded.labels)
    assert plain.inertia == seeded.inertia


def test_only_known_categories(texts: tuple[Tensor, Tensor]) -> None:
    features, truth = texts
    targets = torch.where(torch.arange(1500) % 3 == 0, truth, -1)
    found = constrained_kmeans(features, 20, targets)
    assert torch.equal(found.labels[targets >= 0], targets[targets >= 0])
    # Without free points the centres are the class means.
    for initial in (None, features[:20]):
        done = constrained_kmeans(features, 20, truth, initial=initial)
        means = torch.stack([features[truth == j].mean(0) for j in range(20)])
        assert torch.allclose(done.centres, means, atol=1e-6)
        assert torch.equal(done.labels, truth)


# -- many points


@pytest.mark.parametrize("path", ["single", "batched"])
def test_many_points_are_first_clustered_on_a_sample(
    monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    features, truth = mixture(6000, 16, 10, seed=4)
    targets = torch.where((truth < 5) & (torch.arange(6000) % 10 == 0), truth, -1)
    run = constrained_kmeans if path == "single" else batched
    for pinned in (torch.full_like(targets, -1), targets):
        monkeypatch.setattr(module, "SAMPLE", 100_000)
        whole = run(features, 10, pinned)
        # The smallest number of points per cluster that the real limit allows.
        monkeypatch.setattr(module, "SAMPLE", 10)
        sampled = run(features, 10, pinned)
        own = (features - sampled.centres[sampled.labels]).square().sum(1)
        assert sampled.inertia == pytest.approx(float(own.sum()), rel=1e-5)
        assert torch.equal(sampled.labels[pinned >= 0], pinned[pinned >= 0])
        free = pinned < 0
        assert torch.allclose(own[free], nearest(features, sampled.centres)[1][free], atol=1e-5)
        assert not torch.equal(sampled.centres, whole.centres)
        assert sampled.inertia <= 1.005 * whole.inertia


def test_progress_rises_to_the_total(
    monkeypatch: pytest.MonkeyPatch, texts: tuple[Tensor, Tensor]
) -> None:
    for sample in (100_000, 500):
        monkeypatch.setattr(module, "SAMPLE", sample)
        monkeypatch.setattr(module, "SAMPLE_PER_CLUSTER", 10)
        calls: list[tuple[int, int]] = []
        kmeans(
            texts[0], 20, starts=2, progress=lambda done, total, c=calls: c.append((done, total))
        )
        assert len(calls) > 4
        assert len({total for _, total in calls}) == 1
        assert [done for done, _ in calls] == sorted(done for done, _ in calls)
        assert calls[-1][0] == calls[-1][1]


# -- invalid arguments


def test_impossible_numbers_of_categories_are_refused() -> None:
    features, truth = mixture(30, 4, 5, seed=0)
    with pytest.raises(InputError, match=r"31 categories .* at most 30"):
        kmeans(features, 31)
    with pytest.raises(InputError, match="ask for at least 1"):
        kmeans(features, 0)
    with pytest.raises(InputError, match="labels already name 5"):
        constrained_kmeans(features, 4, truth)
    with pytest.raises(InputError, match="0 unlabelled texts"):
        constrained_kmeans(features, 6, truth)


def test_some_initial_centres_may_be_given() -> None:
    features, truth = mixture(300, 8, 5, seed=0)
    means = torch.stack([features[truth == c].mean(0) for c in range(2)])
    found = kmeans(features, 5, initial=means, starts=5, seed=0)
    assert found.inertia <= 1.05 * kmeans(features, 5, starts=5, seed=0).inertia
    # The first clusters belong to the given centres.
    for c in range(2):
        assert (found.labels[truth == c] == c).float().mean() > 0.6


def test_wrong_arguments_raise() -> None:
    features, truth = mixture(30, 4, 5, seed=0)
    with pytest.raises(ValueError, match="every category index"):
        constrained_kmeans(features, 9, torch.where(truth == 2, -1, truth))
    with pytest.raises(ValueError, match="shape"):
        kmeans(features, 3, initial=features[:4])
    with pytest.raises(ValueError, match="shape"):
        kmeans(features, 3, initial=features[:3, :2])
    with pytest.raises(ValueError, match="at least 1"):
        kmeans(features, 3, starts=0)
    features[4, 1] = np.nan
    with pytest.raises(ValueError, match="finite"):
        kmeans(features, 3)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_gpu_result_equals_cpu(texts: tuple[Tensor, Tensor]) -> None:
    features = texts[0]
    found = kmeans(features.cuda(), 20, starts=6, seed=3)
    again = kmeans(features.cuda(), 20, starts=6, seed=3)
    assert found.centres.is_cuda
    assert torch.equal(found.labels, again.labels)
    assert torch.equal(found.centres, again.centres)
    # From equal initial centres both devices agree; k-means++ may differ by rounding.
    initial = features[:20]
    expected = kmeans(features, 20, initial=initial).inertia
    assert kmeans(features.cuda(), 20, initial=initial).inertia == pytest.approx(expected, rel=1e-3)
    clear = 5 * torch.eye(20, 32)[torch.arange(600) % 20] + 0.3 * features[:600]
    expected = kmeans(clear, 20, starts=10).inertia
    assert kmeans(clear.cuda(), 20, starts=10).inertia == pytest.approx(expected, rel=1e-3)
