"""Initial clustering: rounds that pass on nothing but labels, and the choice among several."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from newfound.clustering.metrics import accuracy
from newfound.data.task import Task, make_task
from newfound.encoding.feature_maps import PointFeatures
from newfound.methods.newfound import initialisation
from newfound.methods.newfound.class_prior import estimate_class_prior
from newfound.methods.newfound.initialisation import (
    InitialClustering,
    best_initial_clustering,
    initial_clustering,
)
from newfound.methods.newfound.pseudo_labels import Priors
from newfound.progress import Stages
from newfound.training.swapped_prediction import SwappedPredictionConfig

SIZES = (40, 24, 12, 40, 8, 8)  # of uneven categories, the last three novel
CONFIG = SwappedPredictionConfig(
    epochs=3,
    learning_rate=2e-3,
    batch=32,
    labelled_batch=8,
    temperature=0.1,
    epsilon=0.05,
    sinkhorn_iterations=3,
    queue=8,
    replaced_words=0.0,
)


def cloud(k: int = 6, each: int = 40, spread: float = 0.2) -> tuple[Tensor, np.ndarray]:
    """Points around k directions, and whose they are."""
    draw = torch.Generator().manual_seed(5)
    truth = np.repeat(np.arange(k), each)
    centres = F.normalize(torch.randn(k, 8, generator=draw), dim=1)
    return centres[truth] + spread * torch.randn(k * each, 8, generator=draw), truth


def half_known(truth: np.ndarray, k: int = 6) -> tuple[Task, Priors]:
    """The first half of the categories is known, by every fourth text."""
    targets = np.where((truth < k // 2) & (np.arange(len(truth)) % 4 == 0), truth, -1)
    names = [str(c) for c in range(k // 2)]
    task = make_task(["x"] * len(truth), targets, names, k, validation_share=0)
    log_odds = torch.from_numpy(np.where(truth < k // 2, 2.0, -2.0)).float()
    class_prior = estimate_class_prior(torch.from_numpy(targets), k)
    return task, Priors(log_odds, True, class_prior, size_variation=0.0)


def clustered(
    rounds: int, seed: int = 0, split_merge_every: int = 2
) -> tuple[InitialClustering, Task, np.ndarray]:
    points, truth = cloud()
    task, priors = half_known(truth)
    found = initial_clustering(
        points,
        task,
        CONFIG,
        priors,
        rounds=rounds,
        split_merge_every=split_merge_every,
        seed=seed,
        stages=Stages(False),
    )
    return found, task, truth


def test_labelled_texts_keep_their_category_and_the_others_find_theirs() -> None:
    found, task, truth = clustered(2)
    labels = found.labels.numpy()
    assert (labels[task.labelled] == task.targets[task.labelled]).all()
    assert accuracy(labels, truth.astype(str), {"0", "1", "2"}).all > 90
    assert (labels[truth < 3] == truth[truth < 3]).mean() > 0.9  # known ones by their own number
    assert found.loss > 0


def test_the_same_seed_gives_the_same_clustering_and_another_does_not() -> None:
    one, again, other = clustered(2)[0], clustered(2)[0], clustered(2, seed=1)[0]
    assert torch.equal(one.labels, again.labels)
    assert one.loss == again.loss != other.loss


def test_without_rounds_the_clustering_is_k_means() -> None:
    for moving in (0, 2):
        found, task, _ = clustered(0, split_merge_every=moving)
        points, _ = cloud()
        targets = torch.from_numpy(task.targets)
        plain = initialisation.constrained_kmeans(points, 6, targets, starts=1, seed=0)
        if moving:
            log_odds = half_known(cloud()[1])[1].known_log_odds
            plain = initialisation.split_merge(points, targets, log_odds, plain, seed=0)
        assert torch.equal(found.labels, plain.labels)
        assert found.loss == 0


def test_a_round_passes_on_nothing_but_its_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each begins at the means that the last labels have among the points themselves."""
    starts: list[Tensor] = []
    ends: list[Tensor] = []
    models: list[PointFeatures] = []
    real = initialisation.train_pseudo_labels

    def watched(model: Any, inputs: Any, head: Any, *rest: Any, **more: Any) -> Any:
        points = inputs.states
        torch.testing.assert_close(model.finish(model.from_states(points)), points)  # untrained
        starts.append(head.rows.detach().clone())
        history = real(model, inputs, head, *rest, **more)
        with torch.no_grad():
            ends.append(head(model.eval().finish(model.from_states(points))).argmax(1))
        models.append(model)
        assert not torch.allclose(model.finish(model.from_states(points)), points)
        return history

    monkeypatch.setattr(initialisation, "train_pseudo_labels", watched)
    found, task, _ = clustered(3)
    points = F.normalize(cloud()[0], dim=1)
    targets = torch.from_numpy(task.targets)
    for labels, rows in zip(ends, [*starts[1:], None], strict=True):
        labels = torch.where(targets >= 0, targets, labels)
        if rows is None:
            assert torch.equal(found.labels, labels)
            continue
        for c in range(6):
            wanted = F.normalize(points[labels == c].mean(0) - points.mean(0), dim=0)
            torch.testing.assert_close(rows[c], wanted)
    assert len({id(model) for model in models}) == 3


def test_rounds_make_split_merge_moves_as_often_as_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[int] = []
    real = initialisation.train_pseudo_labels

    def watched(*given: Any, **more: Any) -> Any:
        seen.append(more["split_merge_every"])
        return real(*given, **more)

    monkeypatch.setattr(initialisation, "train_pseudo_labels", watched)
    clustered(1, split_merge_every=0)
    clustered(1, split_merge_every=5)
    assert seen == [0, 5]


def test_class_prior_stays_where_known_categories_are_of_one_size() -> None:
    found, _, truth = clustered(2)
    assert torch.equal(found.class_prior, half_known(truth)[1].class_prior)


def test_novel_categories_keep_their_sizes_where_known_ones_vary() -> None:
    points, truth = cloud(spread=0.15)
    kept = np.concatenate([np.flatnonzero(truth == c)[:n] for c, n in enumerate(SIZES)])
    points, truth = points[kept], truth[kept]
    task, priors = half_known(truth)
    config = replace(CONFIG, sinkhorn_iterations=10)
    options: dict[str, Any] = {"rounds": 3, "seed": 0, "stages": Stages(False)}
    options["split_merge_every"] = 2
    right = []
    for variation in (0.0, 0.5):
        varied = replace(priors, size_variation=variation)
        found = initial_clustering(points, task, config, varied, **options)
        right.append(accuracy(found.labels.numpy(), truth.astype(str), {"0", "1", "2"}).novel)
    assert right[1] > 95
    assert right[0] < 90
    free = truth[task.targets < 0]
    sizes = np.bincount(free, minlength=6) / len(free)
    before, after = (np.sort(s.class_prior.numpy()[3:]) for s in (priors, found))
    wanted = np.sort(sizes[3:])
    assert np.abs(after - wanted).sum() < 0.5 * np.abs(before - wanted).sum()


@pytest.mark.parametrize("chosen", [0, 1, 2])
def test_of_several_clusterings_the_one_of_least_loss_is_kept(
    monkeypatch: pytest.MonkeyPatch, chosen: int
) -> None:
    seeds: list[int] = []

    def made(*_: Any, seed: int, **more: Any) -> InitialClustering:
        seeds.append(seed)
        loss = float(len(seeds) - 1 != chosen)
        return InitialClustering(torch.tensor([seed]), torch.ones(1), loss, [{"loss": loss}])

    monkeypatch.setattr(initialisation, "initial_clustering", made)
    points, truth = cloud()
    task, priors = half_known(truth)
    options: dict[str, Any] = {"runs": 3, "seed": 7, "stages": Stages(False)}
    options["split_merge_every"] = 2
    found = best_initial_clustering(points, task, CONFIG, priors, rounds=2, **options)
    assert seeds == [7, 8, 9]
    assert found.labels.tolist() == [7 + chosen]
    assert [line["chosen"] for line in found.history] == [run == chosen for run in range(3)]
    seeds.clear()
    best_initial_clustering(points, task, CONFIG, priors, rounds=0, **options)
    assert seeds == [7]  # without rounds there is nothing to choose by


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
