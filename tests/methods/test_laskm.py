"""LASKM: losses compared with loops, the effect of labels, and the method on an easy task."""

import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from support.small_texts import KNOWN, SmallTask, small_task
from torch import Tensor

from newfound import CategoryDiscoverer
from newfound.clustering.assignment import assign
from newfound.clustering.metrics import accuracy
from newfound.data.task import Task, make_task
from newfound.encoding.loading import load_encoder
from newfound.methods import laskm, resolve_config
from newfound.methods.fitted import Fitted
from newfound.methods.laskm import LASKMConfig, contrast
from newfound.progress import Stages

QUICK = {"epochs": 2, "starts": 2}


@pytest.fixture(scope="module")
def small() -> SmallTask:
    return small_task()


def as_task(small: SmallTask, n_categories: int | None = 4, **options: Any) -> Task:
    place = {name: i for i, name in enumerate(sorted(KNOWN))}
    targets = np.array([place.get(label or "", -1) for label in small.labels])
    return make_task(small.texts, targets, sorted(KNOWN), n_categories, **options)


def fit(encoder: str, task: Task, effort: str = "fast", seed: int = 0, **changes: Any) -> Fitted:
    torch.manual_seed(seed)
    config = resolve_config("laskm", effort, {**QUICK, **changes})
    return laskm.fit(task, load_encoder(encoder), config, seed=seed, stages=Stages(False))


def predicted(fitted: Fitted) -> np.ndarray:
    return assign(fitted.training_features, fitted.prototypes, fitted.temperature)[0]


# The losses.


def by_loop(views: list[tuple[Tensor, int]], temperature: float) -> float:
    """Return the supervised contrastive loss of (vector, group) pairs."""
    total = 0.0
    for i, (anchor, group) in enumerate(views):
        others = [view for j, view in enumerate(views) if j != i]
        scores = [math.exp(float(anchor @ other) / temperature) for other, _ in others]
        logs = [
            math.log(score / sum(scores))
            for score, (_, its) in zip(scores, others, strict=True)
            if its == group
        ]
        total -= sum(logs) / len(logs)
    return total / len(views)


@settings(deadline=None, max_examples=30)
@given(
    free=st.integers(1, 4),
    labelled=st.integers(0, 4),
    seed=st.integers(0, 999),
    weight=st.sampled_from([0.35, 0.5, 1.0]),
)
def test_losses_equal_a_loop(free: int, labelled: int, seed: int, weight: float) -> None:
    draw = torch.Generator().manual_seed(seed)
    n = free + labelled
    first, second = (F.normalize(torch.randn(n, 5, generator=draw), dim=1) for _ in range(2))
    rows = torch.randint(n, (n,), generator=draw)  # a text may occur twice in a batch
    targets = torch.cat([torch.full((free,), -1), torch.randint(2, (labelled,), generator=draw)])
    config = LASKMConfig(supervised=weight)
    found = contrast(first, second, rows, targets, free, config)

    def both(groups: Tensor, start: int) -> list[tuple[Tensor, int]]:
        names = groups[start:].tolist()
        return [pair for v in (first, second) for pair in zip(v[start:], names, strict=True)]

    views = by_loop(both(rows, 0), 0.07)
    if not labelled:
        assert set(found) == {"views"}
        assert float(found["views"]) == pytest.approx(views, rel=1e-3, abs=1e-4)
        return
    labels = by_loop(both(targets, free), 0.07)
    assert float(found["views"]) == pytest.approx((1 - weight) * views, rel=1e-3, abs=1e-4)
    assert float(found["labels"]) == pytest.approx(weight * labels, rel=1e-3, abs=1e-4)


# The batches.


def watch_batches(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    seen: list[np.ndarray] = []
    real = laskm.paired_batches

    def watched(*given: Any) -> Any:
        batches = real(*given)
        seen.extend(batches)
        return batches

    monkeypatch.setattr(laskm, "paired_batches", watched)
    return seen


def test_half_of_a_batch_is_labelled(
    tiny_encoder: str, small: SmallTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = watch_batches(monkeypatch)
    task = as_task(small)
    fit(tiny_encoder, task, batch=16, epochs=3)
    assert len(seen) == 3 * 64 // 16  # the steps of three passes over all texts
    for rows in seen:
        assert len(rows) == 16
        assert task.learnable[rows[8:]].all()
        assert not task.learnable[rows[:8]].any()  # held-out texts count as unlabelled
        assert len(set(rows)) == 16  # no text occurs twice


def test_few_labels_give_a_smaller_labelled_part(
    tiny_encoder: str, small: SmallTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = watch_batches(monkeypatch)
    targets = np.full(64, -1)
    targets[:3] = [0, 1, 1]
    fit(tiny_encoder, make_task(small.texts, targets, ["a", "b"], 4), batch=16)
    assert {len(rows) for rows in seen} == {16}
    assert all(set(rows[13:]) == {0, 1, 2} for rows in seen)


# The whole method.


@pytest.mark.parametrize("effort", ["fast", "balanced", "best"])
def test_easy_task_is_solved(tiny_encoder: str, small: SmallTask, effort: str) -> None:
    fitted = fit(tiny_encoder, as_task(small), effort, epochs=4)
    hidden = np.array([label is None for label in small.labels])
    names = np.array(["bank", "travel", "novel 1", "novel 2"], object)
    found = names[predicted(fitted)][hidden]
    assert accuracy(found, small.truth[hidden], set(KNOWN)).all > 95
    known = np.isin(small.truth[hidden], KNOWN)
    assert (found[known] == small.truth[hidden][known]).mean() > 0.95
    assert {line["stage"] for line in fitted.history} == {"training"}  # no pretraining
    assert {"views", "labels"} <= set(fitted.history[-1])


def two_ways_to_sort() -> tuple[list[str], np.ndarray]:
    """Return texts of a topic (four words) and a tone (one word), labelled by tone."""
    draw = random.Random(0)
    topics = ["card lost pay bill money bank cash", "trip flight hotel book travel my a the"]
    tones = ["please", "now"]
    rows = []
    for tone in range(2):
        for topic in range(2):
            for _ in range(24):
                rows.append((" ".join([*draw.sample(topics[topic].split(), 4), tones[tone]]), tone))
    draw.shuffle(rows)
    return [text for text, _ in rows], np.array([tone for _, tone in rows])


def test_supervised_contrast_finds_the_labelled_distinction(tiny_encoder: str) -> None:
    texts, tones = two_ways_to_sort()
    targets = np.where(np.arange(len(texts)) < 30, tones, -1)
    task = make_task(texts, targets, ["polite", "hasty"], 2, validation_share=0)
    hidden = targets < 0
    scores = []
    for supervised in (0.5, 0.0):
        fitted = fit(
            tiny_encoder,
            task,
            "best",
            epochs=15,
            learning_rate=0.003,
            batch=32,
            supervised=supervised,
        )
        scores.append(100 * float((predicted(fitted) == tones)[hidden].mean()))
    assert scores[0] > 90
    assert scores[1] < 75


def test_epoch_with_the_best_validation_accuracy_is_restored(
    tiny_encoder: str, small: SmallTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    features: list[np.ndarray] = []
    scores = iter([0.4, 0.9, 0.5, 0.6, 0.7, 0.8])
    task = as_task(small, validation_share=0.4)

    def scored(model: Any, inputs: Any, targets: Tensor, seed: int) -> float:
        features.append(model(small.texts))
        return next(scores)

    monkeypatch.setattr(laskm, "clustering_accuracy", scored)
    fitted = fit(tiny_encoder, task, epochs=6, patience=3, learning_rate=0.01)
    assert len(features) == 5  # two epochs, then three without improvement
    np.testing.assert_allclose(fitted.training_features, features[1], atol=1e-5)
    assert not np.allclose(features[4], features[1], atol=1e-3)


def test_clustering_accuracy_ignores_cluster_numbers(
    tiny_encoder: str, small: SmallTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = torch.cat([torch.zeros(5, 3), torch.ones(5, 3), 2 * torch.ones(5, 3)])
    targets = torch.tensor([2] * 5 + [0] * 5 + [5] * 4 + [0])
    monkeypatch.setattr(laskm, "features_of", lambda *_, **__: points)
    found = laskm.clustering_accuracy(None, None, targets, 0)  # type: ignore[arg-type]
    assert found == pytest.approx(14 / 15)


def test_same_seed_gives_the_same_result(tiny_encoder: str, small: SmallTask) -> None:
    one, same, other = (fit(tiny_encoder, as_task(small), seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.prototypes, same.prototypes)
    assert one.history == same.history
    assert (one.prototypes != other.prototypes).any()


def test_loaded_model_gives_equal_predictions(
    tiny_encoder: str, small: SmallTask, tmp_path: Path
) -> None:
    found = CategoryDiscoverer(
        method="laskm",
        encoder=tiny_encoder,
        n_categories=4,
        effort="fast",
        device="cpu",
        settings=QUICK,
    ).fit(small.texts, small.labels)
    found.save(tmp_path / "model")
    again = CategoryDiscoverer.load(tmp_path / "model")
    assert (again.predict(small.texts) == found.predict(small.texts)).all()
    np.testing.assert_array_equal(
        again.predict_proba(small.texts), found.predict_proba(small.texts)
    )


# Edge cases.


@pytest.mark.parametrize("effort", ["fast", "best"])
def test_fit_without_labels(tiny_encoder: str, small: SmallTask, effort: str) -> None:
    """The supervised loss of a batch without labels would be 0 / 0."""
    nobody = make_task(small.texts, np.full(len(small.texts), -1), [], 4)
    fitted = fit(tiny_encoder, nobody, effort)
    assert set(fitted.history[-1]) == {"stage", "epoch", "loss", "views"}
    assert math.isfinite(fitted.history[-1]["loss"])
    assert accuracy(predicted(fitted), small.truth, set()).all > 80


@pytest.mark.parametrize("k", [1, 2, None])
def test_fit_with_one_or_estimated_categories(
    tiny_encoder: str, small: SmallTask, k: int | None
) -> None:
    task = as_task(small, k) if k != 1 else make_task(small.texts, np.full(64, -1), [], 1)
    fitted = fit(tiny_encoder, task)
    assert len(fitted.prototypes) == (k or fitted.estimate.n_categories)  # type: ignore[union-attr]
    assert np.isfinite(fitted.prototypes).all()


@pytest.mark.parametrize("batch", [2, 16, 1000])
def test_fit_with_all_texts_labelled(tiny_encoder: str, small: SmallTask, batch: int) -> None:
    names = sorted(set(small.truth))
    targets = np.array([names.index(name) for name in small.truth])
    task = make_task(small.texts, targets, names, 4, validation_share=0)
    fitted = fit(tiny_encoder, task, batch=batch)
    assert (predicted(fitted) == targets).mean() > 0.95
    assert all(math.isfinite(line["loss"]) for line in fitted.history)


def test_fit_without_trainable_weights(tiny_encoder: str, small: SmallTask) -> None:
    fitted = fit(tiny_encoder, as_task(small), head="none")
    assert fitted.history == []
    assert fitted.prototypes.shape == (4, 32)
