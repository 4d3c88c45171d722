"""DeepCluster, Semi-DC and DAC: functions, alignment, easy tasks, edge cases."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.small_texts import KNOWN, SmallTask, small_task
from torch import Tensor, nn

from newfound import CategoryDiscoverer
from newfound.clustering.assignment import assign
from newfound.clustering.kmeans import kmeans
from newfound.clustering.lloyd import Clustering
from newfound.clustering.metrics import accuracy
from newfound.clustering.silhouette import silhouette_score
from newfound.data.task import Task, make_task
from newfound.encoding.batching import Ragged
from newfound.encoding.feature_cache import Inputs, features_of
from newfound.encoding.feature_maps import EncoderFeatures
from newfound.encoding.loading import load_encoder
from newfound.methods import METHODS, deep_clustering, resolve_config
from newfound.methods.deep_clustering import (
    DACConfig,
    DeepClusteringConfig,
    SemiDCConfig,
    aligned,
    even_rows,
    start_at_centroids,
    start_at_random,
    train,
    whitened,
)
from newfound.methods.fitted import Fitted
from newfound.progress import Stages
from newfound.training.preparation import Prepared
from newfound.training.pretraining import Pretrained

METHODS_HERE = ("deepcluster", "semi-dc", "dac")
QUICK = {"epochs": 3, "pretrain_epochs": 3, "starts": 3}


@pytest.fixture(scope="module")
def task() -> SmallTask:
    return small_task()


def as_task(small: SmallTask, n_categories: int | None = 4, **options: Any) -> Task:
    place = {name: i for i, name in enumerate(sorted(KNOWN))}
    targets = np.array([place.get(label or "", -1) for label in small.labels])
    return make_task(small.texts, targets, sorted(KNOWN), n_categories, **options)


def fit(
    encoder: str, task: Task, method: str, effort: str = "fast", seed: int = 0, **changes: Any
) -> Fitted:
    torch.manual_seed(seed)
    quick = dict(QUICK)
    if method == "deepcluster":  # which has no pretraining
        del quick["pretrain_epochs"]
    config = resolve_config(method, effort, {**quick, **changes})
    loaded = load_encoder(encoder)
    return METHODS[method].fit(task, loaded, config, seed=seed, stages=Stages(False))


def predicted(fitted: Fitted) -> np.ndarray:
    return assign(fitted.training_features, fitted.prototypes, fitted.temperature)[0]


# Functions.


@given(k=st.integers(1, 6), seed=st.integers(0, 999))
@settings(max_examples=30, deadline=None)
def test_aligned_clusters_keep_their_members_and_numbers(k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    previous = torch.from_numpy(10 * np.eye(k))
    renumbered = rng.permutation(k)  # cluster i was cluster renumbered[i]
    before = rng.integers(k, size=20)
    labels = torch.from_numpy(renumbered.argsort()[before])
    new = previous[renumbered] + 0.1 * torch.from_numpy(rng.normal(size=(k, k)))
    centroids, found = aligned(previous, Clustering(new, labels, 0.0, 1))
    assert found.tolist() == before.tolist()
    for i in range(k):
        assert (centroids[i] - previous[i]).norm() < 2
        # The centroids are in the new order, too.
        assert torch.equal(centroids[i], new[renumbered.tolist().index(i)])


def test_first_clusters_are_not_renumbered() -> None:
    found = Clustering(torch.randn(3, 2), torch.tensor([2, 0, 1]), 0.0, 1)
    centroids, labels = aligned(None, found)
    assert centroids is found.centres
    assert labels is found.labels


@given(seed=st.integers(0, 999), n=st.integers(1, 60))
@settings(max_examples=30, deadline=None)
def test_even_rows_sample_clusters_equally(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    clusters = rng.choice([0, 3, 3, 3, 3, 7], size=n)  # 1, 2, 4, 5, 6 are empty
    rows = even_rows(clusters, rng)
    assert len(rows) == n
    drawn = np.unique(clusters[rows], return_counts=True)[1]
    share = -(-n // len(set(clusters)))
    assert drawn.max() <= share
    assert drawn.sum() == n
    for cluster in set(clusters):
        members = rows[clusters[rows] == cluster]
        if (clusters == cluster).sum() >= share:  # enough texts: none is drawn twice
            assert len(set(members)) == len(members)


def test_whitened_components_have_equal_variance() -> None:
    torch.manual_seed(0)
    mixed = torch.randn(500, 4) @ torch.diag(torch.tensor([9.0, 3.0, 1.0, 0.3])) @ torch.randn(4, 4)
    found = whitened(mixed + 5, 3)
    assert found.shape == (500, 3)
    assert torch.allclose(found.norm(dim=1), torch.ones(500), atol=1e-5)
    spread = found.T @ found / 500
    assert torch.allclose(spread, torch.eye(3) / 3, atol=0.05)
    assert whitened(mixed, 99).shape == (500, 4)
    assert whitened(torch.ones(5, 4), 2).isfinite().all()


def test_classifier_at_centroids_predicts_the_nearest() -> None:
    torch.manual_seed(0)
    raw = torch.randn(40, 5) + 3
    found = kmeans(raw, 4)
    classifier = nn.Linear(5, 4)
    start_at_centroids(classifier, raw, found.labels)
    for x, label in zip(raw, found.labels, strict=True):
        apart = [float((x - raw[found.labels == c].mean(0)).square().sum()) for c in range(4)]
        scores = classifier(x).detach()
        assert int(scores.argmax()) == int(np.argmin(apart)) == int(label)
        scale = (raw - found.centres[found.labels]).square().sum(1).mean() / 8
        gap = (apart[0] - apart[1]) / (2 * float(scale))
        assert float(scores[1] - scores[0]) == pytest.approx(gap, rel=1e-2, abs=1e-2)


def test_start_at_random_reinitialises_in_place() -> None:
    torch.manual_seed(0)
    classifier = nn.Linear(300, 50)
    places = [w.data_ptr() for w in classifier.parameters()]
    start_at_random(classifier)
    assert [w.data_ptr() for w in classifier.parameters()] == places
    assert float(classifier.weight.detach().std()) == pytest.approx(0.01, rel=0.05)
    assert (classifier.bias == 0).all()


# Training on synthetic vectors.


def blobs(seed: int, k: int = 8, each: int = 40) -> tuple[Tensor, np.ndarray]:
    """Return noisy vectors of k directions, and their categories."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(k, 32))
    centres *= 2 / np.linalg.norm(centres, axis=1, keepdims=True)
    truth = np.repeat(np.arange(k), each)
    return torch.from_numpy(centres[truth] + 0.5 * rng.normal(size=(k * each, 32))).half(), truth


def start_on(encoder: str, vectors: Tensor, k: int = 8) -> Prepared:
    torch.manual_seed(1)  # with some seeds a random classifier merges two blobs
    model = EncoderFeatures(load_encoder(encoder), head="residual", frozen_layers=3)
    one = np.ones(len(vectors), np.int64)
    inputs = Inputs(vectors, one, torch.device("cpu"))
    tokens = Ragged.from_lengths(torch.zeros(len(vectors), dtype=torch.int64), one)
    return Prepared(model, tokens, inputs, Pretrained(nn.Linear(32, 1), []), k, None)


LOOP: dict[str, Any] = {"epochs": 8, "learning_rate": 3e-3, "batch": 32, "starts": 3}


@pytest.mark.parametrize("classifier_start", ["centroids", "random"])
def test_training_needs_alignment(tiny_encoder: str, classifier_start: str) -> None:
    separation, losses = {}, {}
    for alignment in (True, False):
        vectors, truth = blobs(1)
        start = start_on(tiny_encoder, vectors)
        before = silhouette_score(features_of(start.model, start.inputs), torch.from_numpy(truth))
        config = DACConfig(**LOOP, alignment=alignment, classifier_start=classifier_start)
        train(start, config, 0, Stages(False))
        features = features_of(start.model, start.inputs)
        separation[alignment] = silhouette_score(features, torch.from_numpy(truth))
        losses[alignment] = start.pretrained.history[-1]["loss"]
        if alignment:
            assert separation[True] > 2 * before
            assert accuracy(kmeans(features, 8).labels.numpy(), truth, set()).all > 90
    # Without alignment the pseudo-labels contradict those of the epoch before.
    assert losses[False] > 1.5 > 0.5 > losses[True]
    assert separation[True] > 1.4 * separation[False]


def test_new_classifier_replaces_alignment(tiny_encoder: str) -> None:
    best = {True: 0.0, False: 0.0}
    for new in best:
        for seed in range(3):
            start = start_on(tiny_encoder, blobs(1)[0])
            train(start, SemiDCConfig(**LOOP, new_classifier=new), seed, Stages(False))
            best[new] += max(line["silhouette"] for line in start.pretrained.history)
    assert best[True] > 1.4 * best[False]


def test_optimiser_state_of_a_new_classifier_is_reset(
    tiny_encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgotten: list[int] = []
    real = deep_clustering.Optimiser.forget

    def watched(self: Any, weights: Any) -> None:
        weights = list(weights)
        real(self, weights)
        memory = [part for w in weights for part in self._adamw.state[w].values()]
        assert all((part == 0).all() for part in memory)
        forgotten.append(self.done)

    monkeypatch.setattr(deep_clustering.Optimiser, "forget", watched)
    vectors = blobs(0)[0]
    steps = len(vectors) // 32
    train(start_on(tiny_encoder, vectors), SemiDCConfig(**LOOP), 0, Stages(False))
    assert forgotten == [steps * epoch for epoch in range(8)]
    forgotten.clear()
    train(start_on(tiny_encoder, vectors), DACConfig(**LOOP), 0, Stages(False))
    assert forgotten == [0]


@pytest.mark.parametrize("patience", [2, 99])
def test_epoch_with_the_best_silhouette_is_restored(
    tiny_encoder: str, monkeypatch: pytest.MonkeyPatch, patience: int
) -> None:
    seen: list[Tensor] = []
    scores = iter([0.1, 0.2, 0.5, 0.4, 0.3, 0.2, 0.1])

    def scripted(points: Tensor, labels: Tensor) -> float:
        seen.append(points.clone())
        return next(scores)

    monkeypatch.setattr(deep_clustering, "silhouette_score", scripted)
    start = start_on(tiny_encoder, blobs(0)[0])
    config = DACConfig(**{**LOOP, "epochs": 6}, silhouette_patience=patience)
    train(start, config, 0, Stages(False))
    # Scores are computed before training and after every epoch.
    assert len(seen) == (5 if patience == 2 else 7)
    assert [line["silhouette"] for line in start.pretrained.history] == [
        0.2,
        0.5,
        0.4,
        0.3,
        0.2,
        0.1,
    ][: len(seen) - 1]
    assert torch.equal(features_of(start.model, start.inputs), seen[2])
    assert not torch.equal(seen[2], seen[-1])


def test_silhouette_uses_the_same_sample_every_epoch(
    tiny_encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Tensor] = []
    monkeypatch.setattr(
        deep_clustering, "silhouette_score", lambda points, labels: seen.append(points) or 0.0
    )
    start = start_on(tiny_encoder, blobs(0)[0])
    first = features_of(start.model, start.inputs)
    train(start, DACConfig(**LOOP, silhouette_texts=50), 0, Stages(False))
    assert {len(points) for points in seen} == {50}
    assert all((first == row).all(1).any() for row in seen[0])


@pytest.mark.parametrize("switch", [{"whitening": 8}, {"even_sampling": True}], ids=str)
@pytest.mark.parametrize("config", [DACConfig, SemiDCConfig])
def test_deepcluster_options_change_training(
    tiny_encoder: str, config: type[DeepClusteringConfig], switch: dict[str, Any]
) -> None:
    vectors, truth = blobs(1)
    plain, changed = start_on(tiny_encoder, vectors), start_on(tiny_encoder, vectors)
    train(plain, config(**{**LOOP, "epochs": 2}), 0, Stages(False))
    train(changed, config(**{**LOOP, "epochs": 2}, **switch), 0, Stages(False))
    features = features_of(changed.model, changed.inputs)
    assert accuracy(kmeans(features, 8).labels.numpy(), truth, set()).all > 70
    assert changed.pretrained.history != plain.pretrained.history


# The whole method.


@pytest.mark.parametrize("effort", ["fast", "balanced", "best"])
@pytest.mark.parametrize("method", METHODS_HERE)
def test_easy_task_is_solved(tiny_encoder: str, task: SmallTask, method: str, effort: str) -> None:
    fitted = fit(tiny_encoder, as_task(task), method, effort)
    hidden = np.array([label is None for label in task.labels])
    names = np.array(["bank", "travel", "novel 1", "novel 2"], object)
    found = names[predicted(fitted)][hidden]
    assert accuracy(found, task.truth[hidden], set(KNOWN)).all > 95
    # Known categories keep their names.
    known = np.isin(task.truth[hidden], KNOWN)
    assert (found[known] == task.truth[hidden][known]).mean() > 0.95
    np.testing.assert_allclose(fitted.features(task.texts), fitted.training_features, atol=1e-3)
    training = [line for line in fitted.history if line["stage"] == "training"]
    assert 1 <= len(training) <= 3
    assert len(training) < len(fitted.history) or method == "deepcluster"


def test_deepcluster_learns_nothing_from_labels(tiny_encoder: str, task: SmallTask) -> None:
    labelled = as_task(task)
    unlabelled = make_task(task.texts, np.full(len(task.texts), -1), [], 4)
    mislabelled = dataclasses.replace(labelled, targets=labelled.targets[::-1].copy())
    for effort in ("fast", "balanced"):
        ours, blind, wrong = (
            fit(tiny_encoder, given, "deepcluster", effort, learning_rate=0.01)
            for given in (labelled, unlabelled, mislabelled)
        )
        for other in (blind, wrong):
            assert np.array_equal(ours.training_features, other.training_features)
            assert {tuple(p) for p in ours.prototypes} == {tuple(p) for p in other.prototypes}
        assert ours.known == ["bank", "travel"]
        assert any("ignores labels" in note for note in ours.notes)
        assert blind.notes == []
    # Pretraining, if any, uses masked words only.
    changes = {"pretrain_epochs": 1, "masked_words": True, "pretrain_learning_rate": 0.01}
    ours, wrong = (
        fit(tiny_encoder, given, "deepcluster", "balanced", **changes)
        for given in (labelled, mislabelled)
    )
    assert "masked_words" in ours.history[0]
    assert np.array_equal(ours.training_features, wrong.training_features)
    assert not METHODS["deepcluster"].uses_labels


@pytest.mark.parametrize("method", METHODS_HERE)
def test_same_seed_gives_the_same_result(tiny_encoder: str, task: SmallTask, method: str) -> None:
    one, two, other = (
        fit(tiny_encoder, as_task(task), method, "balanced", seed=seed, learning_rate=0.01)
        for seed in (3, 3, 4)
    )
    assert np.array_equal(one.prototypes, two.prototypes)
    assert one.history == two.history
    assert not np.array_equal(one.training_features, other.training_features)


@pytest.mark.parametrize("method", METHODS_HERE)
def test_fit_edge_cases(tiny_encoder: str, task: SmallTask, method: str) -> None:
    n = len(task.texts)
    nobody = make_task(task.texts, np.full(n, -1), [], 4)
    assert accuracy(predicted(fit(tiny_encoder, nobody, method)), task.truth, set()).all > 80
    one = make_task(task.texts, np.full(n, -1), [], 1)
    assert len(fit(tiny_encoder, one, method).prototypes) == 1
    number = {name: i for i, name in enumerate(sorted(set(task.truth)))}
    truth = np.array([number[name] for name in task.truth])
    everything = make_task(task.texts, truth, sorted(number), 4)
    assert fit(tiny_encoder, everything, method, batch=1000).known == sorted(number)
    no_novel = as_task(task, 2, validation_share=0.0)
    assert len(fit(tiny_encoder, no_novel, method, epochs=1).prototypes) == 2
    few = make_task(task.texts[:3], np.full(3, -1), [], 3)
    assert len(fit(tiny_encoder, few, method).prototypes) == 3
    unknown = fit(tiny_encoder, dataclasses.replace(as_task(task), n_categories=None), method)
    assert unknown.estimate is not None
    assert len(unknown.prototypes) == unknown.estimate.n_categories >= 2
    untrained = fit(tiny_encoder, as_task(task), method, head="none")  # no trainable weights
    assert not any(line["stage"] == "training" for line in untrained.history)


@pytest.mark.parametrize("method", METHODS_HERE)
def test_loaded_model_gives_equal_predictions(
    tiny_encoder: str, task: SmallTask, tmp_path: Path, method: str
) -> None:
    discoverer = CategoryDiscoverer(
        method=method,
        encoder=tiny_encoder,
        n_categories=4,
        effort="balanced",
        device="cpu",
        settings={"epochs": 2},
    ).fit(task.texts, task.labels)
    discoverer.save(tmp_path / "model")
    again = CategoryDiscoverer.load(tmp_path / "model")
    assert again.predict(task.texts).tolist() == discoverer.predict(task.texts).tolist()
    assert again.predict_proba(task.texts) == pytest.approx(discoverer.predict_proba(task.texts))
