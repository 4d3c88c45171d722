"""Self-Labeling: the effect of the optimal transport, and the method on an easy task."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from support.small_texts import KNOWN, SmallTask, small_task
from torch import Tensor

from newfound import CategoryDiscoverer
from newfound.clustering.assignment import assign
from newfound.clustering.metrics import accuracy
from newfound.data.task import Task, make_task
from newfound.encoding.loading import load_encoder
from newfound.methods import resolve_config, self_labelling
from newfound.methods.fitted import Fitted
from newfound.progress import Stages
from newfound.training import swapped_prediction

QUICK = {"pretrain_epochs": 3, "epochs": 2, "starts": 2}


@pytest.fixture(scope="module")
def small() -> SmallTask:
    return small_task()


def as_task(small: SmallTask, n_categories: int | None = 4, **options: Any) -> Task:
    place = {name: i for i, name in enumerate(sorted(KNOWN))}
    targets = np.array([place.get(label or "", -1) for label in small.labels])
    return make_task(small.texts, targets, sorted(KNOWN), n_categories, **options)


def fit(encoder: str, task: Task, effort: str = "fast", seed: int = 0, **changes: Any) -> Fitted:
    torch.manual_seed(seed)
    config = resolve_config("self-labeling", effort, {**QUICK, **changes})
    return self_labelling.fit(task, load_encoder(encoder), config, seed=seed, stages=Stages(False))


def predicted(fitted: Fitted) -> np.ndarray:
    return assign(fitted.training_features, fitted.prototypes, fitted.temperature)[0]


def unit(rows: int, width: int, seed: int) -> Tensor:
    return F.normalize(torch.randn(rows, width, generator=torch.Generator().manual_seed(seed)))


def test_small_batch_is_transported_with_the_queue(
    tiny_encoder: str, small: SmallTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch of three texts cannot be transported to four categories by itself."""
    seen: list[tuple[int, Tensor]] = []
    real = swapped_prediction.swapped_loss

    def watched(first: Tensor, second: Tensor, waiting: Tensor, **more: Any) -> Tensor:
        seen.append((len(first), waiting.clone()))
        return real(first, second, waiting, **more)

    monkeypatch.setattr(swapped_prediction, "swapped_loss", watched)
    task = as_task(small, validation_share=0)
    fit(tiny_encoder, task, batch=3, queue=6, learning_rate=1e-6)
    assert {(size, len(waiting)) for size, waiting in seen} == {(3, 24)}
    # The queue advances by one batch per step.
    torch.testing.assert_close(seen[1][1][3:], seen[0][1][:-3], atol=1e-3, rtol=0)
    seen.clear()
    fit(tiny_encoder, task, batch=50)  # the queue holds only texts outside the batch
    assert {(size, len(waiting)) for size, waiting in seen} == {(50, 52 - 50)}


# The whole method.


@pytest.mark.parametrize("effort", ["fast", "balanced", "best"])
def test_easy_task_is_solved(tiny_encoder: str, small: SmallTask, effort: str) -> None:
    fitted = fit(tiny_encoder, as_task(small), effort, epochs=4, pretrain_epochs=5)
    hidden = np.array([label is None for label in small.labels])
    names = np.array(["bank", "travel", "novel 1", "novel 2"], object)
    found = names[predicted(fitted)][hidden]
    assert accuracy(found, small.truth[hidden], set(KNOWN)).all > 95
    known = np.isin(small.truth[hidden], KNOWN)
    assert (found[known] == small.truth[hidden][known]).mean() > 0.95
    assert {"pseudo_labels", "cross_entropy"} <= set(fitted.history[-1])


def test_optimal_transport_finds_novel_categories_from_a_poor_start(
    tiny_encoder: str, small: SmallTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Novel categories that start far from all texts get texts by the transport only."""
    real = self_labelling.constrained_kmeans

    def poor(features: Tensor, *rest: Any, **options: Any) -> Any:
        found = real(features, *rest, **options)
        novel = features.mean(0) + 0.1 * unit(2, 32, 5)
        return dataclasses.replace(found, centres=torch.cat([found.centres[:2], novel]))

    monkeypatch.setattr(self_labelling, "constrained_kmeans", poor)

    def learnt(**changes: Any) -> np.ndarray:
        return predicted(fit(tiny_encoder, as_task(small), learning_rate=0.002, **changes))

    start, balanced, unbalanced = (
        learnt(epochs=0),
        learnt(epochs=40),
        learnt(epochs=40, sinkhorn_iterations=0),
    )
    assert len(set(balanced)) == 4
    assert len(set(unbalanced)) < 4
    scores = [accuracy(x, small.truth, set()).all for x in (start, balanced, unbalanced)]
    assert scores[1] > scores[0] + 10
    assert scores[2] < scores[0]


def test_words_are_replaced_only_if_all_layers_learn(
    tiny_encoder: str, small: SmallTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    real = swapped_prediction.replace_words
    cls = load_encoder(tiny_encoder).tokenizer.token_to_id("[CLS]")

    def watched(ids: Tensor, mask: Tensor, *rest: Any) -> Tensor:
        seen.append(int((ids[mask] == cls).sum()))  # number of texts
        return real(ids, mask, *rest)

    monkeypatch.setattr(swapped_prediction, "replace_words", watched)
    for layers in (0, 1):
        fit(tiny_encoder, as_task(small), trainable_layers=layers)
    fit(tiny_encoder, as_task(small), "best", replaced_words=0)
    assert seen == []
    fit(tiny_encoder, as_task(small), "best", batch=8, labelled_batch=4)
    assert set(seen) == {2 * (8 + 4)}  # both views


def test_same_seed_gives_the_same_result(tiny_encoder: str, small: SmallTask) -> None:
    one, same, other = (fit(tiny_encoder, as_task(small), seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.prototypes, same.prototypes)
    assert one.history == same.history
    assert (one.prototypes != other.prototypes).any()


def test_loaded_model_gives_equal_predictions(
    tiny_encoder: str, small: SmallTask, tmp_path: Path
) -> None:
    found = CategoryDiscoverer(
        method="self-labeling",
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


def test_held_out_texts_train_without_their_label(
    tiny_encoder: str, small: SmallTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = as_task(small, validation_share=0.5)
    batches: list[np.ndarray] = []
    real = swapped_prediction.paired_batches

    def watched(rows: np.ndarray, *rest: Any) -> Any:
        batches.extend([rows, rest[1]])
        return real(rows, *rest)

    monkeypatch.setattr(swapped_prediction, "paired_batches", watched)
    fit(tiny_encoder, task, epochs=1)
    free, labelled = batches
    assert task.learnable[labelled].all()
    assert not task.learnable[free].any()
    assert len(free) + len(labelled) == len(small.texts)


# Edge cases.


@pytest.mark.parametrize("effort", ["fast", "best"])
def test_fit_without_labels(tiny_encoder: str, small: SmallTask, effort: str) -> None:
    nobody = make_task(small.texts, np.full(len(small.texts), -1), [], 4)
    fitted = fit(tiny_encoder, nobody, effort)
    assert "cross_entropy" not in fitted.history[-1]
    assert accuracy(predicted(fitted), small.truth, set()).all > 80


@pytest.mark.parametrize("k", [1, 2, None])
def test_fit_with_one_or_estimated_categories(
    tiny_encoder: str, small: SmallTask, k: int | None
) -> None:
    task = as_task(small, k) if k != 1 else make_task(small.texts, np.full(64, -1), [], 1)
    fitted = fit(tiny_encoder, task)
    assert len(fitted.prototypes) == (k or fitted.estimate.n_categories)  # type: ignore[union-attr]
    assert np.isfinite(fitted.prototypes).all()


def test_fit_with_all_texts_labelled(tiny_encoder: str, small: SmallTask) -> None:
    names = sorted(set(small.truth))
    targets = np.array([names.index(name) for name in small.truth])
    fitted = fit(tiny_encoder, make_task(small.texts, targets, names, 4, validation_share=0))
    assert (predicted(fitted) == targets).mean() > 0.95


def test_fit_without_trainable_weights(tiny_encoder: str, small: SmallTask) -> None:
    fitted = fit(tiny_encoder, as_task(small), head="none")
    assert [line for line in fitted.history if line["stage"] == "training"] == []
    assert fitted.prototypes.shape == (4, 32)
