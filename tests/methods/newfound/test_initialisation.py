"""Initial clustering: rounds that pass on nothing but labels, and the choice among several."""

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from support.blobs import blobs, label
from torch import Tensor

from newfound.clustering.kmeans import constrained_kmeans
from newfound.clustering.metrics import accuracy
from newfound.clustering.neighbours import nearest_neighbours
from newfound.clustering.spectral import spectral_features
from newfound.data.task import Task, make_task
from newfound.encoding.feature_maps import PointFeatures
from newfound.methods import resolve_config
from newfound.methods.newfound import initialisation
from newfound.methods.newfound.class_prior import (
    STRONG,
    STRONG_ESTIMATED,
    UNTOLD,
    WEAK,
    ClassPrior,
    uniform_prior,
)
from newfound.methods.newfound.initialisation import (
    STARTS,
    InitialClustering,
    initial_clustering,
)
from newfound.methods.newfound.known_prior import known_log_odds
from newfound.progress import Stages

SIZES = [160, 80, 40, 20, 12, 120, 60, 30, 15]  # of uneven categories, the first five known


def clustered(
    sizes: list[int],
    known: int,
    design: str = "a tenth",
    *,
    spread: float = 0.15,
    seed: int = 0,
    **changes: Any,
) -> tuple[InitialClustering, Task, np.ndarray]:
    """Cluster blobs at effort fast; return what was found, the task, and the truth."""
    points, truth = blobs(sizes, spread)
    targets = label(truth, known, design)
    names = [str(c) for c in range(known)]
    task = make_task(["x"] * len(truth), targets, names, len(sizes), validation_share=0)
    config = resolve_config("newfound", "fast", {"initialisations": 1, **changes})
    unit, labels = F.normalize(points, dim=1), torch.from_numpy(targets)
    neighbours = nearest_neighbours(unit, 10)
    log_odds = known_log_odds(unit, neighbours, labels)
    found = initial_clustering(
        points, neighbours, task, len(sizes), config, log_odds, seed=seed, stages=Stages(False)
    )
    return found, task, truth


def score(found: InitialClustering, task: Task, truth: np.ndarray) -> Any:
    """Return the accuracy on unlabelled texts."""
    free = task.unlabelled
    return accuracy(found.labels.numpy()[free], truth[free].astype(str), set(task.known))


EVEN: dict[str, Any] = {"sizes": [40] * 6, "known": 3}


def test_labelled_texts_keep_their_category_and_the_others_find_theirs() -> None:
    found, task, truth = clustered(**EVEN)
    labels = found.labels.numpy()
    assert (labels[task.labelled] == task.targets[task.labelled]).all()
    assert score(found, task, truth).all > 95
    assert (labels[truth < 3] == truth[truth < 3]).mean() > 0.95  # known ones by their own number
    assert found.loss > 0
    assert found.class_prior.strength == pytest.approx(0.9, abs=0.02)


@pytest.mark.parametrize("design", ["a tenth", "three per category", "ten per category"])
def test_uneven_sizes_are_found(design: str) -> None:
    found, task, truth = clustered(SIZES, 5, design)
    assert score(found, task, truth).all > 95
    assert found.class_prior.strength < 0.3
    free = truth[task.targets < 0]
    wanted = np.bincount(free, minlength=len(SIZES)) / len(free)
    shares = found.class_prior.shares.numpy()
    assert np.abs(shares[:5] - wanted[:5]).sum() < 0.1  # known ones in their order
    assert np.abs(np.sort(shares[5:]) - np.sort(wanted[5:])).sum() < 0.15


def test_sizes_held_strictly_to_be_equal_tear_uneven_categories_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the class prior is for: without an estimate of it the same table is not solved."""

    def strict(assigned: Tensor, targets: Tensor, k: int, strong: float) -> ClassPrior:
        return uniform_prior(k, 1.0)

    monkeypatch.setattr(initialisation, "estimate_class_prior", strict)
    found, task, truth = clustered(SIZES, 5, "ten per category")
    assert score(found, task, truth).all < 85


def test_absent_known_categories_stay_empty() -> None:
    """Two of six known categories have labelled texts only."""
    found, task, truth = clustered([10, 10, *[50] * 7], 6, "ten per category")
    assert score(found, task, truth).all > 95
    free = found.labels.numpy()[task.unlabelled]
    assert (free < 2).mean() < 0.02
    assert float(found.class_prior.shares[:2].sum()) < 0.02
    assert found.class_prior.strength == pytest.approx(0.9, abs=0.02)  # the others are even


def test_without_the_estimate_sizes_are_held_weakly() -> None:
    found, *_ = clustered(**EVEN, class_prior=False)
    assert torch.equal(found.class_prior.shares, torch.full((6,), 1 / 6))
    assert found.class_prior.strength == WEAK
    assert {line["run"] for line in found.history} == {1}  # no round to find sizes


def test_without_labels_sizes_are_uniform_and_of_medium_strength() -> None:
    found, task, truth = clustered([40] * 6, 0)
    assert found.class_prior.strength == UNTOLD
    assert {line["run"] for line in found.history} == {1}
    assert score(found, task, truth).all > 90


def test_the_same_seed_gives_the_same_clustering_and_another_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("newfound.methods.newfound.config.MIN_STEPS", 6)
    one, again, other = (clustered(**EVEN, seed=seed)[0] for seed in (0, 0, 1))
    assert torch.equal(one.labels, again.labels)
    assert one.loss == again.loss != other.loss


def test_without_rounds_the_clustering_is_k_means_on_spectral_features() -> None:
    found, task, _ = clustered(**EVEN, initialisation_rounds=0, initialisations=3)
    points, _ = blobs([40] * 6)
    targets = torch.from_numpy(task.targets)
    features = spectral_features(points, nearest_neighbours(points, 10), 6)
    plain = constrained_kmeans(features, 6, targets, starts=STARTS, seed=0)
    assert torch.equal(found.labels, plain.labels)
    assert found.loss == 0
    assert found.class_prior.strength > 0.7  # sizes are estimated all the same


def test_sizes_are_held_less_strongly_if_the_number_was_estimated() -> None:
    points, truth = blobs([40] * 6)
    targets = label(truth, 3, "a tenth")
    task = make_task(["x"] * len(truth), targets, ["0", "1", "2"], 6, validation_share=0)
    config = resolve_config("newfound", "fast", {"initialisations": 1})
    neighbours = nearest_neighbours(points, 10)
    odds = known_log_odds(F.normalize(points, dim=1), neighbours, torch.from_numpy(targets))
    strengths = [
        initial_clustering(
            *(points, neighbours, task, 6, config, odds),
            seed=0,
            stages=Stages(False),
            estimated=estimated,
        ).class_prior.strength
        for estimated in (False, True)
    ]
    assert strengths == pytest.approx([STRONG, STRONG_ESTIMATED], abs=0.02)


def test_a_round_passes_on_nothing_but_its_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each begins at the means that the last labels have among the points themselves."""
    starts: list[Tensor] = []
    ends: list[Tensor] = []
    strengths: list[float] = []
    models: list[PointFeatures] = []
    real = initialisation.train_pseudo_labels

    def watched(model: Any, inputs: Any, classifier: Any, *rest: Any, **more: Any) -> Any:
        points = inputs.states
        torch.testing.assert_close(model.finish(model.from_states(points)), points)  # untrained
        starts.append(classifier.rows.detach().clone())
        strengths.append(rest[3].class_prior.strength)
        history = real(model, inputs, classifier, *rest, **more)
        with torch.no_grad():
            ends.append(classifier(model.eval().finish(model.from_states(points))).argmax(1))
        models.append(model)
        assert not torch.allclose(model.finish(model.from_states(points)), points)
        return history

    monkeypatch.setattr(initialisation, "train_pseudo_labels", watched)
    found, task, _ = clustered([40] * 6, 3, spread=0.35, initialisation_rounds=3)
    points = F.normalize(blobs([40] * 6, 0.35)[0], dim=1)
    targets = torch.from_numpy(task.targets)
    assert torch.equal(starts[0], starts[1])  # sizes are found from the same k-means
    assert strengths == [WEAK, *[found.class_prior.strength] * 3]
    for labels, rows in zip(ends[1:], [*starts[2:], None], strict=True):
        labels = torch.where(targets >= 0, targets, labels)
        if rows is None:
            assert torch.equal(found.labels, labels)
            continue
        for c in range(6):
            wanted = F.normalize(points[labels == c].mean(0) - points.mean(0), dim=0)
            torch.testing.assert_close(rows[c], wanted)
    assert len({id(model) for model in models}) == 4


@pytest.mark.parametrize("chosen", [0, 1, 2])
def test_of_several_clusterings_the_one_of_least_loss_is_kept(
    monkeypatch: pytest.MonkeyPatch, chosen: int
) -> None:
    seeds: list[int] = []

    def made(unit: Tensor, *_: Any, seed: int, **more: Any) -> Any:
        seeds.append(seed)
        loss = float(len(seeds) - 2 != chosen)  # the first round finds sizes
        return torch.full((len(unit),), len(seeds)), [{"loss": loss, "pseudo_labels": loss}]

    monkeypatch.setattr(initialisation, "train_round", made)
    changes = {"initialisations": 3, "initialisation_rounds": 1, "class_prior": True}
    monkeypatch.setattr(
        initialisation, "estimate_class_prior", lambda *given: uniform_prior(6, 0.5)
    )
    found, task, _ = clustered(**EVEN, seed=7, **changes)
    assert seeds == [7, 7, 8, 9]
    assert (found.labels.numpy()[task.unlabelled] == chosen + 2).all()
    runs = [(line["run"], line["round"], line["chosen"]) for line in found.history]
    assert runs == [(0, 0, True), *((run + 1, 1, run == chosen) for run in range(3))]
    assert [line["epoch"] for line in found.history] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("sizes", "known", "design"),
    [
        ([8], 1, "three per category"),
        ([4, 4], 1, "one per category"),
        ([1] * 6 + [9], 3, "a tenth"),
    ],
    ids=["one category", "two categories", "categories of one text"],
)
def test_tiny_tables_are_clustered(sizes: list[int], known: int, design: str) -> None:
    found, task, _ = clustered(sizes, known, design)
    assert (found.labels.numpy()[task.labelled] == task.targets[task.labelled]).all()
    assert float(found.class_prior.shares.sum()) == pytest.approx(1)


def test_point_features_begin_as_the_points_and_have_views() -> None:
    torch.manual_seed(0)
    model = PointFeatures(8)
    points = torch.randn(5, 8)
    torch.testing.assert_close(model.finish(model.from_states(points)), F.normalize(points, dim=1))
    torch.nn.init.normal_(model.head.down.weight)
    one, other = model.train().views_of(points, 2).chunk(2)
    assert not torch.equal(one, other)
    one, other = model.eval().views_of(points, 2).chunk(2)
    torch.testing.assert_close(one, other)
