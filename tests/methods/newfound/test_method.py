"""The method newfound as a whole, on easy data."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from support.small_texts import KNOWN, SmallTask, small_task

from newfound.clustering.assignment import assign
from newfound.clustering.metrics import accuracy
from newfound.config import settings_of
from newfound.data.task import Task, make_task
from newfound.encoding.loading import load_encoder
from newfound.methods import resolve_config
from newfound.methods.fitted import Fitted
from newfound.methods.newfound import config, contrast, initialisation, method, pseudo_labels
from newfound.methods.newfound.class_prior import UNTOLD, WEAK, uniform_prior
from newfound.methods.newfound.config import (
    INITIALISATION_EPOCHS,
    MIN_STEPS,
    NewfoundConfig,
    enough_epochs,
)
from newfound.progress import Stages
from newfound.training import swapped_prediction
from newfound.training.swapped_prediction import SwappedPredictionConfig

QUICK = {"pretrain_epochs": 2, "epochs": 2, "pseudo_label_epochs": 2, "initialisations": 1}


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
    fitted = fit(tiny_encoder, as_task(small), effort, initialisations=2)
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


# Six groups of words, one for each category; all are in the tiny encoder's vocabulary.
GROUPS = (
    "card lost pay bill money",
    "trip flight hotel book travel",
    "music play song loud stop",
    "weather rain sun cold warm",
    "the my a please help",
    "bank cash day me now",
)


def table(sizes: Sequence[int], labels: Sequence[int]) -> tuple[Task, np.ndarray]:
    """Make texts of up to six categories, the first of each labelled; return their truth too."""
    draw = random.Random(0)
    texts: list[str] = []
    targets: list[int] = []
    truth: list[str] = []
    for category, (words, size) in enumerate(zip(GROUPS, sizes, strict=False)):
        found: dict[str, None] = {}
        while len(found) < size:
            found[" ".join(draw.sample(words.split(), 4))] = None
        texts += found
        labelled = labels[category] if category < len(labels) else 0
        targets += [category] * labelled + [-1] * (size - labelled)
        truth += [str(category)] * size
    names = [str(category) for category in range(len(labels))]
    return make_task(texts, np.array(targets), names, len(sizes)), np.array(truth, object)


UNEVEN = ([100, 50, 20, 80, 40, 12], [10, 10, 10])
ABSENT = ([10, 40, 40, 40, 40, 40], [10, 10, 10])  # all of the first are labelled


@pytest.fixture(scope="module")
def found_in_uneven(tiny_encoder: str) -> np.ndarray:
    """What is predicted for the uneven table."""
    return predicted(fit(tiny_encoder, table(*UNEVEN)[0]))


@pytest.mark.parametrize("cut", [UNEVEN, ABSENT], ids=["uneven", "a known category is absent"])
def test_ten_labels_per_category_are_enough(
    tiny_encoder: str, cut: tuple[list[int], list[int]], found_in_uneven: np.ndarray
) -> None:
    task, truth = table(*cut)
    found = found_in_uneven if cut is UNEVEN else predicted(fit(tiny_encoder, task))
    free = task.unlabelled
    assert accuracy(found[free], truth[free], set(task.known)).all > 90
    known = free[np.isin(truth[free], task.known)]
    assert np.mean(found[known] == truth[known].astype(int)) > 0.9  # by their own number


def test_uneven_categories_are_not_found_with_strictly_equal_sizes(
    tiny_encoder: str, found_in_uneven: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the class prior is for: held to equal sizes, large categories are torn apart."""
    task, truth = table(*UNEVEN)
    free = task.unlabelled

    def score(found: np.ndarray) -> float:
        return accuracy(found[free], truth[free], set(task.known)).all

    monkeypatch.setattr(
        initialisation, "estimate_class_prior", lambda *given: uniform_prior(given[2], 1.0)
    )
    assert score(predicted(fit(tiny_encoder, task))) < score(found_in_uneven) - 8


@pytest.mark.parametrize("cut", [UNEVEN, ABSENT], ids=["uneven", "a known category is absent"])
def test_fit_counts_categories_as_the_estimate_does(
    tiny_encoder: str, cut: tuple[list[int], list[int]]
) -> None:
    given, truth = table(*cut)
    task = replace(given, n_categories=None)
    settings = resolve_config("newfound", "fast", QUICK)
    encoder = load_encoder(tiny_encoder)
    estimated = method.estimate(task, encoder, settings, seed=0, stages=Stages(False))
    fitted = fit(tiny_encoder, task)
    assert fitted.estimate == estimated
    assert len(fitted.prototypes) == estimated.n_categories
    # Texts of a category that lack the same word are a cluster of their own in this small world, so
    # large novel categories stay cut.
    assert 5 <= estimated.n_categories <= 12
    free = task.unlabelled
    scores = accuracy(predicted(fitted)[free], truth[free], set(task.known))
    assert scores.known > 80
    assert scores.nmi > 80


@pytest.mark.parametrize(
    ("sizes", "labels"),
    [([8], [2]), ([4, 4], [1]), ([1, 1, 1, 1, 1, 6], [1, 1, 1]), ([10, 10], [10, 9])],
    ids=["8 texts", "one known category", "categories of one text", "all labelled but one"],
)
@pytest.mark.parametrize("counted", [True, False])
def test_tiny_tables_are_fitted(
    tiny_encoder: str, sizes: list[int], labels: list[int], counted: bool
) -> None:
    task, _ = table(sizes, labels)
    fitted = fit(tiny_encoder, replace(task, n_categories=None if counted else len(sizes)))
    assert np.isfinite(fitted.prototypes).all()
    assert len(fitted.prototypes) >= len(labels)


def test_the_same_seed_gives_the_same_result(
    tiny_encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "MIN_STEPS", 6)
    task = as_task(small_task())
    one, other = (fit(tiny_encoder, task, "best", initialisations=1) for _ in range(2))
    np.testing.assert_array_equal(one.prototypes, other.prototypes)


def test_no_labels_at_all(tiny_encoder: str) -> None:
    small = small_task()
    nobody = make_task(small.texts, np.full(len(small.texts), -1), [], 4)
    fitted = fit(tiny_encoder, nobody, "best", initialisations=2)
    assert accuracy(predicted(fitted), small.truth, set()).all > 80


def test_history_holds_the_losses_of_every_initial_clustering(
    tiny_encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one of least pseudo-label loss in its last epoch is marked as chosen."""
    monkeypatch.setattr(config, "MIN_STEPS", 6)
    task = as_task(small_task())
    fitted = fit(tiny_encoder, task, initialisations=3, initialisation_rounds=2)
    lines = [line for line in fitted.history if line["stage"] == "initialisation"]
    epochs = enough_epochs(INITIALISATION_EPOCHS, len(task.texts), 256)
    assert [line["epoch"] for line in lines] == list(range(1, (1 + 3 * 2) * epochs + 1))
    order = [(0, 0)] * epochs  # the round that finds the class prior
    order += [(run, turn) for run in (1, 2, 3) for turn in (1, 2) for _ in range(epochs)]
    assert [(line["run"], line["round"]) for line in lines] == order
    last = {line["run"]: line["pseudo_labels"] for line in lines if line["run"]}
    (chosen,) = {line["run"] for line in lines if line["chosen"]} - {0}
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
    own = {"pseudo_label_learning_rate": 0.003, "batch": 20}
    fit(tiny_encoder, as_task(small_task()), initialisation_rounds=3, **own)
    *rounds, last = seen
    assert (last.epochs, last.learning_rate, last.queue) == (2, 0.003, config.QUEUE)
    assert len(rounds) == 1 + 3
    for each in rounds:  # rounds have their own length and learning rate
        assert (each.epochs, each.learning_rate) == (4, config.INITIALISATION_LEARNING_RATE)
    assert {each.batch for each in seen} == {20}
    best = resolve_config("newfound", "best", None)
    assert best.pseudo_labels(9000, 77).queue == config.ENCODER_QUEUE
    assert best.initialisation(9000, 77).queue == config.QUEUE


@pytest.mark.parametrize("lsa", [False, True])
def test_lsa_features_are_used_in_initialisation_and_log_odds_only(
    tiny_encoder: str, monkeypatch: pytest.MonkeyPatch, lsa: bool
) -> None:
    widths: dict[str, list[int]] = {"nearest_neighbours": [], "initial_clustering": []}

    def watch(module: Any, name: str) -> None:
        real = getattr(module, name)

        def watched(points: torch.Tensor, *rest: Any, **more: Any) -> Any:
            widths[name].append(points.shape[1])
            return real(points, *rest, **more)

        monkeypatch.setattr(module, name, watched)

    watch(method, "nearest_neighbours")
    watch(contrast, "nearest_neighbours")
    watch(method, "initial_clustering")
    monkeypatch.setattr(config, "MIN_STEPS", 0)
    monkeypatch.setattr(contrast, "REFRESH", 1)
    fitted = fit(tiny_encoder, as_task(small_task()), lsa_features=lsa, epochs=3)
    width = fitted.prototypes.shape[1]  # prediction uses no LSA features
    (joint,) = widths["initial_clustering"]
    assert (joint > width) == lsa
    # Log-odds, then the contrast, whose neighbours are found again twice, then log-odds again.
    assert widths["nearest_neighbours"] == [joint, width, width, width, joint]


def test_parts_can_be_left_out(tiny_encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    priors: set[bool] = set()
    held: list[tuple[float, bool]] = []

    def watch(module: Any, name: str) -> None:
        real = getattr(module, name)

        def watched(*given: Any, **options: Any) -> Any:
            called.append(name)
            return real(*given, **options)

        monkeypatch.setattr(module, name, watched)

    watch(initialisation, "estimate_class_prior")
    real = swapped_prediction.swapped_loss

    def loss(*given: Any, log_prior: Any, class_prior: Any, **more: Any) -> torch.Tensor:
        priors.add(log_prior is not None)
        held.append((more["strength"], bool((class_prior == class_prior[0]).all())))
        return real(*given, log_prior=log_prior, class_prior=class_prior, **more)

    monkeypatch.setattr(swapped_prediction, "swapped_loss", loss)
    monkeypatch.setattr(config, "MIN_STEPS", 0)
    task = as_task(small_task())
    fit(tiny_encoder, task, pseudo_label_epochs=6)
    assert called == ["estimate_class_prior"]
    assert priors == {True}
    assert held[0] == (WEAK, True)
    assert held[-1] == (UNTOLD, True)  # two known categories do not tell how sizes vary
    called.clear()
    priors.clear()
    held.clear()
    fit(tiny_encoder, task, pseudo_label_epochs=6, known_prior=False, class_prior=False)
    assert called == []
    assert priors == {False}
    assert set(held) == {(WEAK, True)}


def test_the_method_has_few_settings() -> None:
    assert len(list(settings_of(NewfoundConfig))) <= 17


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
