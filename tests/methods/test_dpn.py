"""DPN: the loss with each ablation, matching, and the method on an easy task."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.small_texts import KNOWN, QUICK, SmallTask, small_task
from torch import Tensor

from newfound.clustering.metrics import accuracy
from newfound.data.task import Task, make_task
from newfound.encoding.loading import load_encoder
from newfound.methods import dpn, resolve_config
from newfound.methods.dpn import DPNConfig, cluster_and_match, separation_loss
from newfound.methods.fitted import Fitted
from newfound.progress import Stages
from newfound.training.losses.dpn import (
    distances,
    hard_prototypical_loss,
    soft_prototypical_loss,
    transfer_loss,
)


@pytest.fixture(scope="module")
def task() -> SmallTask:
    return small_task()


def as_task(small: SmallTask, n_categories: int | None = 4, **options: Any) -> Task:
    place = {name: i for i, name in enumerate(sorted(KNOWN))}
    targets = np.array([place.get(label or "", -1) for label in small.labels])
    return make_task(small.texts, targets, sorted(KNOWN), n_categories, **options)


def fit(
    encoder: str, task: Task, effort: str = "balanced", seed: int = 0, **changes: Any
) -> Fitted:
    torch.manual_seed(seed)
    config = resolve_config("dpn", effort, {**QUICK, **changes})
    return dpn.fit(task, load_encoder(encoder), config, seed=seed, stages=Stages(False))


def predicted(fitted: Fitted) -> np.ndarray:
    from newfound.clustering.assignment import assign

    return assign(fitted.training_features, fitted.prototypes, fitted.temperature)[0]


# The loss and its ablations, compared with loops.


def mean(values: list[Tensor]) -> Tensor:
    return torch.stack(values).mean() if values else torch.zeros(())


class Batch:
    """Random unit features, prototypes and clusters, the first of which are known."""

    def __init__(self, size: int, known: int, novel: int, seed: int) -> None:
        draw = torch.Generator().manual_seed(seed)
        unit = torch.nn.functional.normalize
        self.features = unit(torch.randn(size, 6, generator=draw), dim=1)
        self.unlabelled = unit(torch.randn(known + novel, 6, generator=draw), dim=1)
        self.labelled = torch.randn(known, 6, generator=draw)
        self.clusters = torch.randint(known + novel, (size,), generator=draw)
        self.known = known

    def loss(self, **switches: Any) -> Tensor:
        config = dataclasses.replace(DPNConfig(transfer_weight=3.0, temperature=0.2), **switches)
        return separation_loss(self.features, self.clusters, self.unlabelled, self.labelled, config)

    def rows(self, *, known: bool) -> list[Tensor]:
        return [
            x
            for x, cluster in zip(self.features, self.clusters, strict=True)
            if (cluster < self.known) == known
        ]

    def soft(self, rows: list[Tensor], prototypes: Tensor, **options: bool) -> Tensor:
        if not len(prototypes):
            return torch.zeros(())
        return mean([soft_prototypical_loss(x[None], prototypes, 0.2, **options)[0] for x in rows])

    def transfer(self) -> Tensor:
        """Return Eq. 8 over the texts of known clusters."""
        if not self.known:
            return torch.zeros(())
        return mean([transfer_loss(x[None], self.labelled, 0.2)[0] for x in self.rows(known=True)])


BATCHES = st.builds(
    Batch,
    st.integers(1, 9),
    st.integers(0, 3),
    st.integers(1, 3),
    st.integers(0, 10_000),
)


@settings(deadline=None)
@given(BATCHES)
def test_known_and_novel_texts_have_separate_losses(batch: Batch) -> None:
    k = batch.known
    novel = batch.soft(batch.rows(known=False), batch.unlabelled[k:])
    known = batch.soft(batch.rows(known=True), batch.unlabelled[:k])
    wanted = novel + known + 3.0 * batch.transfer()
    assert batch.loss().item() == pytest.approx(wanted.item(), abs=1e-5)
    # These two settings do not affect this loss.
    assert batch.loss(cross_entropy=False, moving_average=False) == batch.loss()


@settings(deadline=None)
@given(BATCHES)
def test_without_decoupling_all_prototypes_are_used_and_nothing_is_transferred(
    batch: Batch,
) -> None:
    wanted = batch.soft(list(batch.features), batch.unlabelled)
    assert batch.loss(decoupling=False).item() == pytest.approx(wanted.item(), abs=1e-5)


@settings(deadline=None)
@given(BATCHES)
def test_without_soft_assignment_the_loss_is_hard(batch: Batch) -> None:
    hard = mean(
        [
            hard_prototypical_loss(x[None], batch.unlabelled, cluster[None])
            for x, cluster in zip(batch.features, batch.clusters, strict=True)
        ]
    )
    wanted = hard + 3.0 * batch.transfer()
    assert batch.loss(soft_assignment=False).item() == pytest.approx(wanted.item(), abs=1e-5)


@settings(deadline=None)
@given(BATCHES)
def test_without_semantic_weights_prototypes_have_equal_weights(batch: Batch) -> None:
    alike = mean([distances(x[None], batch.unlabelled).mean() for x in batch.features])
    wanted = alike + 3.0 * batch.transfer()
    assert batch.loss(semantic_weights=False).item() == pytest.approx(wanted.item(), abs=1e-5)


@settings(deadline=None)
@given(BATCHES)
def test_coupled_loss_averages_over_the_whole_batch(batch: Batch) -> None:
    known = len(batch.rows(known=True))
    wanted = batch.soft(list(batch.features), batch.unlabelled)
    wanted = wanted + 3.0 * batch.transfer() * known / len(batch.features)
    assert batch.loss(coupled=True).item() == pytest.approx(wanted.item(), abs=1e-5)


@pytest.mark.parametrize(
    "switch",
    [
        {"decoupling": False},
        {"soft_assignment": False},
        {"semantic_weights": False},
        {"coupled": True},
    ],
)
def test_each_ablation_changes_the_loss(switch: dict[str, bool]) -> None:
    batch = Batch(20, 3, 3, 0)
    assert abs(batch.loss(**switch).item() - batch.loss().item()) > 0.01


@settings(deadline=None)
@given(BATCHES, st.sampled_from(["decoupling", "soft_assignment", "semantic_weights", None]))
def test_gradients_are_finite_at_a_prototype(batch: Batch, switched_off: str | None) -> None:
    batch.features = batch.unlabelled[batch.clusters].clone().requires_grad_()
    switches = {switched_off: False} if switched_off else {}
    batch.loss(**switches).backward()
    assert batch.features.grad is not None
    assert batch.features.grad.isfinite().all()


# Clustering and matching.


@given(st.integers(0, 10_000), st.booleans())
@settings(deadline=None, max_examples=30)
def test_matching_puts_the_known_categories_first(seed: int, coupled: bool) -> None:
    rng = np.random.default_rng(seed)
    centres = 10 * np.eye(5)
    truth = rng.permutation(np.repeat(np.arange(5), 8))
    features = torch.from_numpy((centres[truth] + rng.normal(size=(40, 5))).astype(np.float32))
    targets = np.full(40, -1)
    for category in range(3):  # categories 0 to 2 are known, by three labels each
        targets[np.flatnonzero(truth == category)[:3]] = category
    task = make_task([str(i) for i in range(40)], targets, ["a", "b", "c"], 5)
    clusters, unlabelled, labelled = cluster_and_match(
        features, task, 5, DPNConfig(coupled=coupled), seed
    )
    assert (clusters[truth < 3] == truth[truth < 3]).all()
    assert set(clusters[truth == 3]) | set(clusters[truth == 4]) == {3, 4}
    for category in range(3):
        np.testing.assert_allclose(
            labelled[category], features[targets == category].mean(0), atol=1e-4
        )
        own = truth == category
        clustered = own if coupled else own & (targets < 0)
        np.testing.assert_allclose(unlabelled[category], features[clustered].mean(0), atol=1e-4)


def test_all_texts_are_clustered_if_few_are_unlabelled() -> None:
    features = torch.eye(6)
    task = make_task(list("abcdef"), np.array([0, 0, 1, 1, -1, -1]), ["x", "y"], 4)
    clusters, unlabelled, _ = cluster_and_match(features, task, 4, DPNConfig(), 0)
    assert len(unlabelled) == 4
    assert set(clusters) <= {0, 1, 2, 3}


# The whole method.


@pytest.mark.parametrize("effort", ["fast", "balanced", "best"])
def test_easy_task_is_solved(tiny_encoder: str, task: SmallTask, effort: str) -> None:
    fitted = fit(tiny_encoder, as_task(task), effort, epochs=3, pretrain_epochs=5)
    hidden = np.array([label is None for label in task.labels])
    names = np.array(["bank", "travel", "novel 1", "novel 2"], object)
    found = names[predicted(fitted)][hidden]
    scores = accuracy(found, task.truth[hidden], set(KNOWN))
    assert scores.all > 95
    # Known categories keep their names.
    known = np.isin(task.truth[hidden], KNOWN)
    assert (found[known] == task.truth[hidden][known]).mean() > 0.95


@pytest.mark.parametrize("layers", [0, 1, 2, 3, 7, "all"])
@pytest.mark.parametrize("head", ["none", "residual", "tanh"])
def test_any_number_of_layers_can_be_trained(
    tiny_encoder: str, task: SmallTask, layers: int | str, head: str
) -> None:
    before = {k: v.clone() for k, v in load_encoder(tiny_encoder).backbone.state_dict().items()}
    chosen = {"trainable_layers": layers, "pretrain_layers": layers, "head": head}
    fitted = fit(
        tiny_encoder,
        as_task(task),
        "best",
        **chosen,
        learning_rate=0.01,
        pretrain_learning_rate=0.01,
    )
    after = fitted.features.backbone.state_dict()  # type: ignore[attr-defined]
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    learnt = {name for name in moved if name.startswith("layers.")}
    lowest = 3 if layers == 0 else 0 if layers == "all" else max(0, 3 - int(layers))
    assert {int(name.split(".")[1]) for name in learnt} == set(range(lowest, 3))
    assert any(not name.startswith("layers.") for name in moved) == (layers == "all")
    stages = {line["stage"] for line in fitted.history}
    trainable = layers != 0 or head != "none"
    assert ("training" in stages) == trainable
    # Masked words are not used if no layer is trained.
    assert any("masked_words" in line for line in fitted.history) == (layers != 0)
    np.testing.assert_allclose(fitted.features(task.texts), fitted.training_features, atol=1e-3)


def test_layers_of_pretraining_and_training_are_independent(
    tiny_encoder: str, task: SmallTask
) -> None:
    fitted = fit(tiny_encoder, as_task(task), "best", pretrain_layers="all", trainable_layers=1)
    assert fitted.features.frozen_layers == 2  # type: ignore[attr-defined]
    np.testing.assert_allclose(fitted.features(task.texts), fitted.training_features, atol=1e-3)


def test_cross_entropy_can_be_disabled(tiny_encoder: str, task: SmallTask) -> None:
    with_it, without = (
        fit(tiny_encoder, as_task(task), cross_entropy=on).history for on in (True, False)
    )
    assert "cross_entropy" in with_it[-1]
    assert "cross_entropy" not in without[-1]
    assert "cross_entropy" in without[0]  # from pretraining


def test_moving_average_can_be_disabled(
    tiny_encoder: str, task: SmallTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[float] = []
    real = dpn.moving_average

    def counted(old: Tensor, new: Tensor, momentum: float) -> Tensor:
        calls.append(momentum)
        return real(old, new, momentum)

    monkeypatch.setattr(dpn, "moving_average", counted)
    fit(tiny_encoder, as_task(task), epochs=3, moving_average=False)
    assert calls == []
    fit(tiny_encoder, as_task(task), epochs=3, momentum=0.5)
    assert calls == [0.5] * 3  # once per epoch


def test_coupled_clusters_and_trains_on_all_texts(
    tiny_encoder: str, task: SmallTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    real = dpn.kmeans

    def watched(points: Tensor, k: int, **options: Any) -> Any:
        sizes.append(len(points))
        return real(points, k, **options)

    monkeypatch.setattr(dpn, "kmeans", watched)
    for coupled in (True, False):
        fit(tiny_encoder, as_task(task), coupled=coupled)
    assert sizes == [len(task.texts), sum(label is None for label in task.labels)]


@pytest.mark.parametrize(
    "switch",
    [
        {"cross_entropy": False},
        {"moving_average": False},
        {"decoupling": False},
        {"soft_assignment": False},
        {"semantic_weights": False},
        {"coupled": True},
        {"normalise": False},
        {"masked_words": False},
        {"epochs": 0},
        {"pretrain_epochs": 0},
        {"epochs": 0, "pretrain_epochs": 0},
    ],
    ids=str,
)
def test_every_ablation_runs(tiny_encoder: str, task: SmallTask, switch: dict[str, Any]) -> None:
    fitted = fit(tiny_encoder, as_task(task), "best", **switch)
    assert fitted.prototypes.shape == (4, 32)
    assert np.isfinite(fitted.prototypes).all()
    assert all(np.isfinite(line["loss"]) for line in fitted.history)
    assert fitted.known == ["bank", "travel"]


def test_fit_without_labels(tiny_encoder: str, task: SmallTask) -> None:
    nobody = make_task(task.texts, np.full(len(task.texts), -1), [], 4)
    for effort in ("fast", "balanced", "best"):
        fitted = fit(tiny_encoder, nobody, effort)
        assert fitted.labelled_prototypes is None
        assert fitted.known == []
        assert not any("cross_entropy" in line for line in fitted.history)
        assert accuracy(predicted(fitted), task.truth, set()).all > 80


def test_validation_texts_are_not_learnt_from(tiny_encoder: str, task: SmallTask) -> None:
    whole = as_task(task, validation_share=0.5)
    assert len(whole.validation_texts) == 6
    assert int(whole.learnable.sum()) == 6
    fitted = fit(tiny_encoder, whole)
    assert "validation_accuracy" in fitted.history[0]
    # Held-out texts keep their label for the prototypes.
    labelled = fitted.training_features[whole.targets == 0].mean(0)
    assert fitted.labelled_prototypes is not None
    np.testing.assert_allclose(fitted.labelled_prototypes[0], labelled, atol=1e-5)
