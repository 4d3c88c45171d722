"""The method newfound as a whole, on easy data."""

from typing import Any

import numpy as np
import pytest
import torch
from support.small_texts import KNOWN, SmallTask, small_task

from newfound.clustering.assignment import assign
from newfound.clustering.lloyd import Clustering
from newfound.clustering.metrics import accuracy
from newfound.data.task import Task, make_task
from newfound.encoding.loading import load_encoder
from newfound.methods import resolve_config
from newfound.methods.fitted import Fitted
from newfound.methods.newfound import config, contrast, initialisation, method, pseudo_labels
from newfound.methods.newfound.config import INITIALISATION_EPOCHS, MIN_STEPS, enough_epochs
from newfound.progress import Stages
from newfound.training import swapped_prediction
from newfound.training.swapped_prediction import SwappedPredictionConfig

QUICK = {"pretrain_epochs": 2, "epochs": 2, "pseudo_label_epochs": 2}


def as_task(small: SmallTask, n_categories: int | None = 4) -> Task:
    place = {name: i for i, name in enumerate(sorted(KNOWN))}
    targets = np.array([place.get(label or "", -1) for label in small.labels])
    return make_task(small.texts, targets, sorted(KNOWN), n_categories)


def fit(encoder: str, task: Task, effort: str = "fast", **changes: Any) -> Fitted:
    torch.manual_seed(0)
    settings = resolve_config("newfound", effort, {**QUICK, **changes})
    return method.fit(task, load_encoder(encoder), settings, seed=0, stages=Stages(False))


def predicted(fitted: Fitted) -> np.ndarray:
    return assign(fitted.training_features, fitted.prototypes, fitted.temperature)[0]


@pytest.mark.parametrize("effort", ["fast", "balanced", "best"])
def test_an_easy_task_is_solved(tiny_encoder: str, effort: str) -> None:
    small = small_task()
    fitted = fit(tiny_encoder, as_task(small), effort)
    assert accuracy(predicted(fitted), small.truth, KNOWN).all > 90
    learnt = [line for line in fitted.history if line["stage"] != "pretraining"]
    epochs = enough_epochs(2, len(small.texts), 256)
    stages = [line["stage"] for line in learnt if line["stage"] != "initialisation"]
    assert stages == ["contrast"] * epochs + ["pseudo-labels"] * epochs
    assert all(("contrast" in line) == (line["stage"] == "contrast") for line in learnt)
    assert all(("pseudo_labels" in line) == (line["stage"] != "contrast") for line in learnt)
    known = sorted(KNOWN)
    right = [predicted(fitted)[i] == known.index(x) for i, x in enumerate(small.labels) if x]
    assert np.mean(right) > 0.9  # the first prototypes carry the labels' names


def test_the_same_seed_gives_the_same_result(tiny_encoder: str) -> None:
    one, other = (fit(tiny_encoder, as_task(small_task()), "best") for _ in range(2))
    np.testing.assert_array_equal(one.prototypes, other.prototypes)


def test_no_labels_at_all(tiny_encoder: str) -> None:
    small = small_task()
    nobody = make_task(small.texts, np.full(len(small.texts), -1), [], 4)
    fitted = fit(tiny_encoder, nobody, "best")
    assert accuracy(predicted(fitted), small.truth, set()).all > 80


def test_history_holds_the_losses_of_every_initial_clustering(tiny_encoder: str) -> None:
    """The one of least pseudo-label loss in its last epoch is marked as chosen."""
    task = as_task(small_task())
    fitted = fit(tiny_encoder, task, initialisations=3, initialisation_rounds=2)
    lines = [line for line in fitted.history if line["stage"] == "initialisation"]
    epochs = enough_epochs(INITIALISATION_EPOCHS, len(task.texts), 256)
    assert [line["epoch"] for line in lines] == list(range(1, 3 * 2 * epochs + 1))
    order = [(run, turn) for run in (1, 2, 3) for turn in (1, 2) for _ in range(epochs)]
    assert [(line["run"], line["round"]) for line in lines] == order
    last = {line["run"]: line["pseudo_labels"] for line in lines}
    (chosen,) = {line["run"] for line in lines if line["chosen"]}
    assert last[chosen] == min(last.values())


def test_pseudo_label_training_uses_the_settings_of_the_method(
    tiny_encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[SwappedPredictionConfig] = []
    real = pseudo_labels.train_swapped

    def watched(*given: Any, **more: Any) -> Any:
        seen.append(given[5])
        return real(*given, **more)

    monkeypatch.setattr(pseudo_labels, "train_swapped", watched)
    monkeypatch.setattr(config, "MIN_STEPS", 0)
    own = {
        "pseudo_label_learning_rate": 0.003,
        "pseudo_label_temperature": 0.2,
        "sinkhorn_iterations": 5,
        "queue": 7,
    }
    batches = {"batch": 20, "labelled_batch": 5}
    fit(tiny_encoder, as_task(small_task()), initialisation_rounds=3, **batches, **own)
    *rounds, last = seen
    assert (last.epochs, last.learning_rate, last.queue) == (2, 0.003, 7)
    assert len(rounds) == 3
    for each in rounds:  # rounds have their own length and learning rate
        assert (each.epochs, each.learning_rate, each.queue) == (4, 0.002, 16)
    for each in seen:
        assert (each.temperature, each.sinkhorn_iterations) == (0.2, 5)
        assert (each.batch, each.labelled_batch) == (20, 5)


@pytest.mark.parametrize("lsa", [False, True])
def test_lsa_features_are_used_in_initialisation_and_log_odds_only(
    tiny_encoder: str, monkeypatch: pytest.MonkeyPatch, lsa: bool
) -> None:
    widths: dict[str, list[int]] = {"nearest_neighbours": [], "best_initial_clustering": []}

    def watch(module: Any, name: str) -> None:
        real = getattr(module, name)

        def watched(points: torch.Tensor, *rest: Any, **more: Any) -> Any:
            widths[name].append(points.shape[1])
            return real(points, *rest, **more)

        monkeypatch.setattr(module, name, watched)

    watch(method, "nearest_neighbours")
    watch(contrast, "nearest_neighbours")
    watch(method, "best_initial_clustering")
    monkeypatch.setattr(config, "MIN_STEPS", 0)
    fitted = fit(tiny_encoder, as_task(small_task()), lsa_features=lsa, epochs=3, refresh=1)
    width = fitted.prototypes.shape[1]  # prediction uses no LSA features
    (joint,) = widths["best_initial_clustering"]
    assert (joint > width) == lsa
    # Log-odds, then the contrast, whose neighbours are found again twice, then log-odds again.
    assert widths["nearest_neighbours"] == [joint, width, width, width, joint]


def test_parts_can_be_left_out(tiny_encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    priors: list[bool] = []
    uniform: list[bool] = []

    def watch(module: Any, name: str) -> None:
        real = getattr(module, name)

        def watched(*given: Any, **options: Any) -> Any:
            called.append(name)
            return real(*given, **options)

        monkeypatch.setattr(module, name, watched)

    watch(initialisation, "split_merge")
    watch(pseudo_labels, "split_merge_directions")
    farthest: list[float] = []
    move = method.move_known_out
    monkeypatch.setattr(
        method, "move_known_out", lambda *given: (farthest.append(given[-1]), move(*given))[1]
    )
    real = swapped_prediction.swapped_loss

    def loss(*given: Any, log_prior: Any, class_prior: Any, **more: Any) -> torch.Tensor:
        priors.append(log_prior is not None)
        uniform.append(bool((class_prior == 1 / len(class_prior)).all()))
        return real(*given, log_prior=log_prior, class_prior=class_prior, **more)

    monkeypatch.setattr(swapped_prediction, "swapped_loss", loss)
    monkeypatch.setattr(config, "MIN_STEPS", 0)
    task = as_task(small_task())
    fit(tiny_encoder, task, pseudo_label_epochs=6)
    # After k-means and before the third epoch of four in each of two rounds; never afterwards.
    assert called == ["split_merge", *["split_merge_directions"] * 2]
    assert set(priors) == {True}
    assert set(uniform) == {False}
    called.clear()
    priors.clear()
    uniform.clear()
    left_out = {"split_merge_every": 0, "known_prior": False, "class_prior": False}
    fit(tiny_encoder, task, pseudo_label_epochs=6, known_farther=0.0, **left_out)
    assert called == []
    assert farthest == [0.2, 0.0]
    assert set(priors) == {False}
    assert set(uniform) == {True}


def test_split_merge_finds_a_category_absorbed_by_a_known_one(
    tiny_encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """k-means that ends with two novel centres in one category and a known one over two."""
    small = small_task()
    task = as_task(small)
    first = {c: np.flatnonzero(small.truth == c) for c in sorted(set(small.truth))}
    novel = [c for c in first if c not in KNOWN]
    known = sorted(KNOWN)

    def stuck(features: torch.Tensor, k: int, targets: torch.Tensor, **options: Any) -> Clustering:
        labels = torch.zeros(len(features), dtype=torch.int64)
        labels[first[known[1]]] = 1
        labels[first[novel[0]]] = 0  # hidden in the first known category
        labels[first[novel[1]][::2]], labels[first[novel[1]][1::2]] = 2, 3
        centres = torch.stack([features[labels == c].mean(0) for c in range(4)])
        inertia = float((features - centres[labels]).square().sum())
        return Clustering(centres, labels, inertia, 1)

    monkeypatch.setattr(initialisation, "constrained_kmeans", stuck)
    still: dict[str, Any] = {"initialisation_rounds": 0, "pseudo_label_learning_rate": 0.0}
    scores = {
        moving: accuracy(
            predicted(fit(tiny_encoder, task, split_merge_every=moving, **still)),
            small.truth,
            KNOWN,
        ).all
        for moving in (0, 2)
    }
    assert scores[0] < 80
    assert scores[2] > 95


@pytest.mark.parametrize("texts", [1, 255, 256, 257, 1095, 4000, 90000])
def test_a_small_table_has_enough_steps(texts: int) -> None:
    steps = -(-texts // 256)
    epochs = enough_epochs(3, texts, 256)
    assert epochs * steps >= MIN_STEPS
    assert epochs == 3 or (epochs - 1) * steps < MIN_STEPS
    assert enough_epochs(0, texts, 256) == 0


@pytest.mark.parametrize("texts", [1, 255, 4000, 18000, 90000, 1_000_000])
def test_a_large_table_has_no_more_steps_than_it_needs(texts: int) -> None:
    steps = -(-texts // 256)
    epochs = enough_epochs(45, texts, 256, 1600)
    assert epochs >= 1
    assert (epochs - 1) * steps < 1600  # the last epoch begins before the limit
    assert epochs >= 45 or epochs * steps >= 1600
    assert enough_epochs(0, texts, 256, 1600) == 0
    assert enough_epochs(3, 200, 256, 1) == MIN_STEPS  # what a small table needs comes first
