"""DTC and CDAC+: shared self-training, and both methods on easy tasks."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.drawn_states import Drawn, draw
from support.small_texts import KNOWN, SmallTask, small_task
from torch import Tensor

from newfound import CategoryDiscoverer
from newfound.clustering.assignment import assign
from newfound.clustering.kmeans import kmeans
from newfound.clustering.metrics import accuracy
from newfound.data.task import Task, make_task
from newfound.encoding.batching import Batch, Cells
from newfound.encoding.feature_cache import Inputs, features_of
from newfound.encoding.loading import load_encoder
from newfound.methods import METHODS, resolve_config
from newfound.methods.fitted import Fitted
from newfound.progress import Stages
from newfound.training import self_training as refining
from newfound.training.losses.student_t import soft_assignment, target_distribution
from newfound.training.pretraining import validation_inputs
from newfound.training.self_training import RefiningConfig, Refresh, assignments, refine

BOTH = ["dtc", "cdac+"]
# Settings with which a tiny encoder learns within a second.
QUICK: dict[str, dict[str, Any]] = {
    "dtc": {"pretrain_epochs": 3, "warm_up": 1, "epochs": 6, "batch": 32, "starts": 2},
    "cdac+": {"tightening": 0.05, "epochs": 4, "batch": 32, "starts": 2, "learning_rate": 5e-4},
}


@pytest.fixture(scope="module")
def task() -> SmallTask:
    return small_task()


# Self-training on synthetic vectors.


def every_epoch(epoch: int, q: Tensor) -> Tensor:
    return target_distribution(q)


def never(epoch: int, q: Tensor) -> None:
    return None


CONFIG = RefiningConfig(
    warm_up=0, epochs=8, learning_rate=3e-3, batch=64, patience=3, tolerance=0.0
)


def started(drawn: Drawn) -> Tensor:
    """Add logits to the model, and return centres by k-means."""
    torch.manual_seed(0)
    drawn.prepared.model.add_logits(drawn.prepared.k)
    features = features_of(drawn.prepared.model, drawn.prepared.inputs)
    return kmeans(features, drawn.prepared.k, starts=2, seed=0).centres


def refined(
    drawn: Drawn,
    refresh: Refresh = every_epoch,
    rows: np.ndarray | None = None,
    centres: Tensor | None = None,
    **changes: Any,
) -> Tensor:
    rows = np.arange(len(drawn.truth)) if rows is None else rows
    return refine(
        drawn.prepared,
        drawn.task,
        rows,
        started(drawn) if centres is None else centres,
        refresh,
        dataclasses.replace(CONFIG, **changes),
        seed=0,
        stages=Stages(False),
    )


def with_validation(drawn: Drawn, monkeypatch: pytest.MonkeyPatch, scores: list[float]) -> None:
    """Add validation texts to the task, with scripted values of their NMI."""
    drawn.task = dataclasses.replace(
        drawn.task, validation_texts=["rain"], validation_targets=np.array([0])
    )
    script = iter(scores)
    monkeypatch.setattr(refining, "validation_nmi", lambda *given: next(script))


def test_model_and_centres_are_trained(tiny_encoder: str) -> None:
    drawn = draw(tiny_encoder, head="residual")
    model = drawn.prepared.model
    centres = started(drawn)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    loss = refining.self_training_loss(
        assignments(model, centres, drawn.prepared.inputs),
        target_distribution(assignments(model, centres, drawn.prepared.inputs)),
    )
    found = refined(drawn, never, centres=centres)
    assert not torch.equal(found, centres)
    moved = {name for name, weight in model.state_dict().items() if not weight.equal(before[name])}
    assert moved == {name for name in before if name.startswith(("head.", "logits."))}
    assert drawn.prepared.pretrained.history[-1]["loss"] < float(loss)


def test_targets_are_indexed_by_text(tiny_encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = draw(tiny_encoder, each=10)
    centres = started(drawn)
    rows = np.random.default_rng(1).permutation(len(drawn.truth))[:37]  # some rows in random order
    first = target_distribution(
        soft_assignment(features_of(drawn.prepared.model, drawn.prepared.inputs)[rows], centres)
    )
    second = torch.rand(37, drawn.prepared.k)
    seen: list[tuple[Tensor, Tensor]] = []
    asked: list[Tensor] = []
    real_batch, real_loss = Inputs.batch, refining.self_training_loss

    def watched_batch(self: Inputs, batch: Batch) -> tuple[Tensor, Cells | None]:
        asked.append(batch.rows)
        return real_batch(self, batch)

    def watched_loss(q: Tensor, p: Tensor) -> Tensor:
        seen.append((asked[-1], p))
        return real_loss(q, p)

    monkeypatch.setattr(Inputs, "batch", watched_batch)
    monkeypatch.setattr(refining, "self_training_loss", watched_loss)
    refined(drawn, lambda epoch, q: second, rows, centres, epochs=2, learning_rate=0.0, batch=10)
    place = {int(row): i for i, row in enumerate(rows)}
    assert len(seen) == 8  # 37 texts in batches of 10, twice
    for number, (batch, p) in enumerate(seen):
        wanted = first if number < 4 else second
        torch.testing.assert_close(p, wanted[[place[int(row)] for row in batch]])
    for epoch in (seen[:4], seen[4:]):
        assert {int(row) for batch, _ in epoch for row in batch} == set(place)
    orders = [[int(row) for batch, _ in epoch for row in batch] for epoch in (seen[:4], seen[4:])]
    assert orders[0] != orders[1]


def test_warm_up_keeps_the_first_target(tiny_encoder: str) -> None:
    drawn = draw(tiny_encoder, each=10)
    epochs: list[int] = []

    def watched(epoch: int, q: Tensor) -> Tensor:
        epochs.append(epoch)
        return target_distribution(q)

    refined(drawn, watched, warm_up=3, epochs=4)
    assert epochs == [1, 2, 3, 4]
    assert [line["epoch"] for line in drawn.prepared.pretrained.history] == list(range(1, 8))


def test_assignments_are_computed_without_dropout(tiny_encoder: str) -> None:
    drawn = draw(tiny_encoder, each=10, head="residual")
    torch.nn.init.normal_(drawn.prepared.model.head.down.weight)
    centres = started(drawn)
    drawn.prepared.model.train()
    one, two = (assignments(drawn.prepared.model, centres, drawn.prepared.inputs) for _ in range(2))
    assert torch.equal(one, two)


def test_epoch_with_the_best_validation_nmi_is_restored(
    tiny_encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[Tensor] = []
    for scores in ([0.5, 0.7, 0.6, 0.7, 0.1, 0.9], [0.5, 0.7]):
        drawn = draw(tiny_encoder, each=10, head="residual")
        with_validation(drawn, monkeypatch, scores)
        kept.append(refined(drawn, epochs=2 if len(scores) == 2 else 8))
        kept.append(features_of(drawn.prepared.model, drawn.prepared.inputs))
        nmi = [line["validation_nmi"] for line in drawn.prepared.pretrained.history]
        # Training stops after three epochs without improvement.
        assert nmi == scores[:5]
    torch.testing.assert_close(kept[0], kept[2])
    torch.testing.assert_close(kept[1], kept[3])


def test_without_validation_texts_stable_clusters_stop_training(tiny_encoder: str) -> None:
    drawn = draw(tiny_encoder, each=10)
    refined(drawn, learning_rate=0.0, tolerance=0.001)
    history = drawn.prepared.pretrained.history
    # The first refresh does not stop training.
    assert [line["changed"] for line in history] == [0.0, 0.0]
    drawn = draw(tiny_encoder, each=10)
    refined(drawn, never, learning_rate=0.0, tolerance=0.001)  # compared at refreshes only
    assert len(drawn.prepared.pretrained.history) == 8


def test_nmi_is_computed_on_validation_texts(tiny_encoder: str) -> None:
    drawn = draw(tiny_encoder, each=10)
    centres = started(drawn)
    texts = ["rain", "lost card", "play song", "book flight", "rain now"]
    task = dataclasses.replace(
        drawn.task, validation_texts=texts, validation_targets=np.array([0, 1, 1, 0, 2])
    )
    given = validation_inputs(drawn.prepared.model, task)
    assert given is not None
    inputs, targets = given
    assert len(inputs.lengths) == 5
    assert targets.tolist() == [0, 1, 1, 0, 2]
    found = refining.validation_nmi(drawn.prepared.model, centres, inputs, task)
    clusters = soft_assignment(torch.from_numpy(drawn.prepared.model(texts)), centres).argmax(1)
    wanted = accuracy(clusters.numpy(), task.validation_targets, set()).nmi / 100
    assert found == pytest.approx(wanted)
    assert validation_inputs(drawn.prepared.model, drawn.task) is None


@pytest.mark.parametrize("how", ["pca", "random"])
def test_logits_of_the_mean_text_start_at_zero(tiny_encoder: str, how: str) -> None:
    drawn = draw(tiny_encoder, each=10)
    model, inputs, rows = drawn.prepared.model, drawn.prepared.inputs, np.arange(5, 50)
    refining.start_logits(model, inputs, rows, 4, how)
    logits = features_of(model, inputs, rows)
    assert logits.shape == (45, 4)
    torch.testing.assert_close(logits.mean(0), torch.zeros(4), atol=1e-5, rtol=0)
    spread = torch.cov(logits.T)
    apart = spread - torch.diag(spread.diag())
    assert (float(apart.abs().max()) < 1e-3) == (
        how == "pca"
    )  # principal components are uncorrelated


def test_zero_epochs_keep_the_centres(tiny_encoder: str) -> None:
    drawn = draw(tiny_encoder, each=10)
    centres = started(drawn)
    assert torch.equal(refined(drawn, centres=centres, epochs=0, warm_up=5), centres)
    assert drawn.prepared.pretrained.history == []


# Both methods.


def as_task(
    small: SmallTask, n_categories: int | None = 4, labels: list[str | None] | None = None
) -> Task:
    labels = small.labels if labels is None else labels
    known = sorted({label for label in labels if label is not None})
    place = {name: i for i, name in enumerate(known)}
    targets = np.array([place.get(label or "", -1) for label in labels])
    return make_task(small.texts, targets, known, n_categories, validation_share=0.2)


def fit(
    encoder: str, name: str, task: Task, effort: str = "balanced", seed: int = 0, **changes: Any
) -> Fitted:
    torch.manual_seed(seed)
    config = resolve_config(name, effort, {**QUICK[name], **changes})
    return METHODS[name].fit(task, load_encoder(encoder), config, seed=seed, stages=Stages(False))


def predicted(fitted: Fitted) -> np.ndarray:
    return assign(fitted.training_features, fitted.prototypes, fitted.temperature)[0]


@pytest.mark.parametrize("effort", ["fast", "balanced", "best"])
@pytest.mark.parametrize("name", BOTH)
def test_easy_task_is_solved(tiny_encoder: str, task: SmallTask, name: str, effort: str) -> None:
    fitted = fit(tiny_encoder, name, as_task(task), effort)
    hidden = np.array([label is None for label in task.labels])
    names = np.array([*sorted(KNOWN), "novel 1", "novel 2"], object)
    found = names[predicted(fitted)][hidden]
    assert accuracy(found, task.truth[hidden], set(KNOWN)).all > 95
    # Known categories keep their names.
    known = np.isin(task.truth[hidden], KNOWN)
    assert (found[known] == task.truth[hidden][known]).mean() > 0.95
    assert fitted.prototypes.shape == (4, 4)
    np.testing.assert_allclose(fitted.features(task.texts), fitted.training_features, atol=1e-3)


@pytest.mark.parametrize("name", BOTH)
def test_nearest_prototype_has_the_largest_soft_assignment(
    tiny_encoder: str, task: SmallTask, name: str
) -> None:
    fitted = fit(tiny_encoder, name, as_task(task))
    q = soft_assignment(
        torch.from_numpy(fitted.training_features), torch.from_numpy(fitted.prototypes)
    )
    assert (q.argmax(1).numpy() == predicted(fitted)).all()


@pytest.mark.parametrize("name", BOTH)
def test_same_seed_gives_the_same_result(tiny_encoder: str, task: SmallTask, name: str) -> None:
    one, two, other = (fit(tiny_encoder, name, as_task(task), "fast", seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.prototypes, two.prototypes)
    np.testing.assert_array_equal(one.training_features, two.training_features)
    assert one.history == two.history
    assert not np.allclose(one.prototypes, other.prototypes)


@pytest.mark.parametrize("name", BOTH)
def test_cached_pretraining_gives_the_same_result(
    tiny_encoder: str, task: SmallTask, name: str, tmp_path: Path
) -> None:
    def once() -> Fitted:
        torch.manual_seed(0)
        config = resolve_config(name, "fast", {**QUICK[name], "pretrain_epochs": 2})
        return METHODS[name].fit(
            as_task(task),
            load_encoder(tiny_encoder),
            config,
            seed=0,
            stages=Stages(False),
            cache=tmp_path,
        )

    np.testing.assert_array_equal(once().prototypes, once().prototypes)


@pytest.mark.parametrize("name", BOTH)
def test_loaded_model_gives_equal_predictions(
    tiny_encoder: str, task: SmallTask, name: str, tmp_path: Path
) -> None:
    found = CategoryDiscoverer(
        name, tiny_encoder, 4, "fast", device="cpu", settings=QUICK[name]
    ).fit(task.texts, task.labels)
    found.save(tmp_path / "model")
    loaded = CategoryDiscoverer.load(tmp_path / "model", device="cpu")
    texts = [*task.texts, "rain and sun please", "my money"]
    assert (loaded.predict(texts) == found.predict(texts)).all()
    np.testing.assert_allclose(loaded.predict_proba(texts), found.predict_proba(texts), atol=1e-5)
    assert loaded.transform(texts).shape == (len(texts), 4)


@pytest.mark.parametrize("name", BOTH)
def test_fit_without_labels(tiny_encoder: str, task: SmallTask, name: str) -> None:
    fitted = fit(tiny_encoder, name, as_task(task, labels=[None] * len(task.texts)))
    assert fitted.known == []
    assert fitted.labelled_prototypes is None
    assert {line["stage"] for line in fitted.history} <= {"training", "refining"}
    assert not any("labelled_pairs" in line for line in fitted.history)
    assert accuracy(predicted(fitted), task.truth, set()).all > 80


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("effort", ["fast", "balanced"])
@pytest.mark.parametrize(
    ("k", "labels"),
    [(2, "some"), (1, "none"), (4, "all"), (None, "some"), (40, "none")],
    ids=str,
)
def test_fit_edge_cases(
    tiny_encoder: str, task: SmallTask, name: str, effort: str, k: int | None, labels: str
) -> None:
    given: list[str | None] = {
        "some": task.labels,
        "none": [None] * len(task.texts),
        "all": list(task.truth),
    }[labels]
    fitted = fit(tiny_encoder, name, as_task(task, k, given), effort, batch=1000, pretrain_epochs=1)
    wanted = k or (fitted.estimate.n_categories if fitted.estimate else 0)
    assert fitted.prototypes.shape == (wanted, wanted)
    assert np.isfinite(fitted.prototypes).all()
    assert np.isfinite(fitted.training_features).all()
    assert all(np.isfinite(line["loss"]) for line in fitted.history)
