"""The contrast with neighbours: its parts against loops, the whole on easy data."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import poisson
from support.small_texts import KNOWN, SmallTask, small_task

from newfound.clustering.assignment import assign
from newfound.clustering.lloyd import Clustering
from newfound.clustering.metrics import accuracy
from newfound.clustering.neighbours import DOUBT, STRAY, known_odds, nearest_neighbours
from newfound.data.task import Task, make_task
from newfound.encoding.feature_maps import EncoderFeatures
from newfound.encoding.loading import load_encoder
from newfound.methods import resolve_config, self_labelling
from newfound.methods.fitted import Fitted
from newfound.methods.newfound import initialisation as drafting
from newfound.methods.newfound import method as newfound
from newfound.methods.newfound.method import (
    LEAST_STEPS,
    contrast_batches,
    enough_epochs,
    neighbour_count,
    positives,
)
from newfound.methods.self_labelling import SelfLabellingConfig
from newfound.progress import Stages
from newfound.training.masking import replace_words


@given(n=st.integers(2, 30), count=st.integers(1, 10), seed=st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_neighbours_by_loop(n: int, count: int, seed: int) -> None:
    x = torch.randn(n, 4, generator=torch.Generator().manual_seed(seed))
    found = nearest_neighbours(x, count)
    for i in range(n):
        others = [j for j in range(n) if j != i]
        by_cosine = sorted(others, key=lambda j: -float(torch.cosine_similarity(x[i], x[j], dim=0)))
        assert found[i].tolist() == by_cosine[: min(count, n - 1)]


def test_neighbours_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(50, 4)
    whole = nearest_neighbours(x, 5)
    monkeypatch.setattr("newfound.clustering.neighbours.BLOCK", 120)
    assert torch.equal(nearest_neighbours(x, 5), whole)


@given(seed=st.integers(0, 999))
@settings(max_examples=40, deadline=None)
def test_odds_by_loop(seed: int) -> None:
    """Poisson's chances of so many labels near a text, if it is known and if it is novel."""
    rng = np.random.default_rng(seed)
    near = rng.integers(30, size=(30, 8))
    targets = np.where(rng.random(30) < 0.3, rng.integers(4, size=30), -1)
    targets[:2], targets[2:4] = 1, -1
    found = known_odds(torch.from_numpy(near), torch.from_numpy(targets))
    counts = [sum(int(targets[j] >= 0) for j in row) for row in near]
    usual = np.mean([count for count, target in zip(counts, targets, strict=True) if target >= 0])
    most = np.log((1 - DOUBT) / DOUBT)
    for odds, count in zip(found.tolist(), counts, strict=True):
        known, novel = (poisson.logpmf(count, mean) for mean in (usual, STRAY * usual))
        wanted = known - novel if usual > 0 else 0.0
        assert odds == pytest.approx(min(max(wanted, -most), most), abs=1e-4)


def test_labels_near_a_text_tell_known_from_novel() -> None:
    """One text in five of two categories is labelled, none of the third."""
    x = torch.eye(3).repeat_interleave(50, 0) + 0.05 * torch.randn(150, 3)
    targets = torch.full((150,), -1)
    targets[0:50:5], targets[50:100:5] = 0, 1
    odds = known_odds(nearest_neighbours(x, 20), targets)
    assert (odds[:100] > 0).float().mean() > 0.8
    assert (odds[100:] < 0).all()
    assert (known_odds(nearest_neighbours(x, 20), torch.full((150,), -1)) == 0).all()


@given(seed=st.integers(0, 999))
@settings(max_examples=40, deadline=None)
def test_positives_by_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = torch.from_numpy(rng.permutation(20)[:6])
    near = torch.from_numpy(rng.integers(20, size=(6, 3)))
    targets = torch.from_numpy(rng.integers(-1, 2, size=6))
    found = positives(rows, near, targets)
    for i in range(6):
        for j in range(6):
            if targets[i] >= 0 and targets[j] >= 0:
                wanted = bool(targets[i] == targets[j])
            else:
                wanted = int(rows[j]) in near[i].tolist() or int(rows[i]) in near[j].tolist()
            assert bool(found[i, j]) == wanted


def test_batches_pair_anchors_with_neighbours_unless_labels_disagree() -> None:
    rng = np.random.default_rng(0)
    near = np.array([[1], [0], [3], [2], [5], [4]])
    labels = np.array([0, 1, 0, 0, -1, 1])
    partner = {}
    for rows in contrast_batches(3, near, labels, np.array([0, 1, 2, 3, 5]), 2, rng):
        assert len(rows) == 3 + 3 + 2
        partner |= dict(zip(rows[:3].tolist(), rows[3:6].tolist(), strict=True))
        assert (labels[rows[6:]] >= 0).all()
    assert partner == {0: 0, 1: 1, 2: 3, 3: 2, 4: 5, 5: 4}


def test_neighbour_count_follows_the_data() -> None:
    assert neighbour_count(9003, 77, 0.4) == 47
    assert neighbour_count(18000, 20, 0.4) == 360
    assert neighbour_count(10, 9, 0.4) == 1
    assert neighbour_count(3, 1, 5.0) == 2
    assert neighbour_count(10**6, 20, 0.4) == 512  # memory must not grow with their product


def test_replaced_words_spare_special_tokens_and_padding(tiny_encoder: str) -> None:
    model = EncoderFeatures(load_encoder(tiny_encoder))
    torch.manual_seed(0)
    ids = torch.full((200, 20), 10)
    ids[:, 0] = 2
    mask = torch.ones_like(ids, dtype=torch.bool)
    mask[:, 15:] = False
    view = replace_words(ids, mask, model, 0.5)
    assert (view[:, 0] == 2).all()
    assert (view[:, 15:] == 10).all()
    changed = (view[:, 1:15] != 10).float().mean().item()
    assert changed == pytest.approx(0.5 * 34 / 35, abs=0.03)


# The whole method.

QUICK = {"pretrain_epochs": 2, "epochs": 2, "label_epochs": 2}


def as_task(small: SmallTask, n_categories: int | None = 4) -> Task:
    place = {name: i for i, name in enumerate(sorted(KNOWN))}
    targets = np.array([place.get(label or "", -1) for label in small.labels])
    return make_task(small.texts, targets, sorted(KNOWN), n_categories)


def fit(encoder: str, task: Task, effort: str = "fast", **changes: Any) -> Fitted:
    torch.manual_seed(0)
    config = resolve_config("newfound", effort, {**QUICK, **changes})
    return newfound.fit(task, load_encoder(encoder), config, seed=0, stages=Stages(False))


def predicted(fitted: Fitted) -> np.ndarray:
    return assign(fitted.training_features, fitted.prototypes, fitted.temperature)[0]


@pytest.mark.parametrize("effort", ["fast", "balanced", "best"])
def test_an_easy_task_is_solved(tiny_encoder: str, effort: str) -> None:
    small = small_task()
    fitted = fit(tiny_encoder, as_task(small), effort)
    assert accuracy(predicted(fitted), small.truth, KNOWN).all > 90
    learnt = [line for line in fitted.history if line["stage"] != "pretraining"]
    epochs = enough_epochs(2, len(small.texts), 256)
    assert [line["stage"] for line in learnt] == ["training"] * epochs + ["labelling"] * epochs
    assert ["contrast" in line for line in learnt] == [True] * epochs + [False] * epochs
    assert ["self_labels" in line for line in learnt] == [False] * epochs + [True] * epochs
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


def test_self_made_labels_are_made_by_its_own_settings(
    tiny_encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[SelfLabellingConfig] = []
    real = self_labelling.train

    def watched(*given: Any, **more: Any) -> Any:
        seen.append(given[5])
        return real(*given, **more)

    monkeypatch.setattr(self_labelling, "train", watched)
    monkeypatch.setattr(drafting, "train", watched)
    monkeypatch.setattr(newfound, "LEAST_STEPS", 0)
    own = {"label_rate": 0.003, "label_temperature": 0.2, "balance": 5, "queue": 7}
    fit(tiny_encoder, as_task(small_task()), batch=20, labelled_batch=5, rounds=3, **own)
    *rounds, last = seen
    assert (last.epochs, last.learning_rate, last.queue) == (2, 0.003, 7)
    assert len(rounds) == 3
    for each in rounds:  # rounds have a pace of their own
        assert (each.epochs, each.learning_rate, each.queue) == (4, 0.002, 16)
    for each in seen:
        assert (each.temperature, each.balance) == (0.2, 5)
        assert (each.batch, each.labelled_batch) == (20, 5)


@pytest.mark.parametrize("words", [False, True])
def test_words_are_heard_in_the_draft_and_in_the_odds_alone(
    tiny_encoder: str, monkeypatch: pytest.MonkeyPatch, words: bool
) -> None:
    widths: dict[str, list[int]] = {"nearest_neighbours": [], "best_draft": []}

    def watch(name: str) -> None:
        real = getattr(newfound, name)

        def watched(points: torch.Tensor, *rest: Any, **more: Any) -> Any:
            widths[name].append(points.shape[1])
            return real(points, *rest, **more)

        monkeypatch.setattr(newfound, name, watched)

    for name in widths:
        watch(name)
    monkeypatch.setattr(newfound, "LEAST_STEPS", 0)
    fitted = fit(tiny_encoder, as_task(small_task()), words=words, epochs=3, refresh=1)
    width = fitted.prototypes.shape[1]  # prediction knows no words
    (joint,) = widths["best_draft"]
    assert (joint > width) == words
    # Those whose labels say known or novel, those of the contrast, found again twice, then odds.
    assert widths["nearest_neighbours"] == [joint, width, width, width, joint]


def test_parts_can_be_left_out(tiny_encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    priors: list[bool] = []
    even: list[bool] = []

    def watch(module: Any, name: str) -> None:
        real = getattr(module, name)

        def watched(*given: Any, **options: Any) -> Any:
            called.append(name)
            return real(*given, **options)

        monkeypatch.setattr(module, name, watched)

    watch(drafting, "relocate")
    watch(self_labelling, "relocate_directions")
    farthest: list[float] = []
    move = self_labelling.move_known_out
    monkeypatch.setattr(
        self_labelling,
        "move_known_out",
        lambda *given: (farthest.append(given[-1]), move(*given))[1],
    )
    real = self_labelling.swapped_loss

    def loss(first: Any, second: Any, waiting: Any, config: Any, *hints: Any) -> torch.Tensor:
        prior, shares = hints
        priors.append(prior is not None)
        even.append(bool((shares == 1 / len(shares)).all()))
        return real(first, second, waiting, config, prior, shares)

    monkeypatch.setattr(self_labelling, "swapped_loss", loss)
    monkeypatch.setattr(newfound, "LEAST_STEPS", 0)
    task = as_task(small_task())
    fit(tiny_encoder, task, label_epochs=6)
    # After k-means and before the third epoch of four in each of two rounds; never after the draft.
    assert called == ["relocate", *["relocate_directions"] * 2]
    assert set(priors) == {True}
    assert set(even) == {False}
    called.clear()
    priors.clear()
    even.clear()
    left_out = {"relocate": 0, "known_prior": False, "label_shares": False, "known_farther": 0.0}
    fit(tiny_encoder, task, label_epochs=6, **left_out)
    assert called == []
    assert farthest == [0.2, 0.0]
    assert set(priors) == {False}
    assert set(even) == {True}


def test_a_category_hidden_in_a_known_one_is_found(
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

    monkeypatch.setattr(drafting, "seeded_kmeans", stuck)
    still: dict[str, Any] = {"rounds": 0, "label_rate": 0.0}
    scores = {
        moving: accuracy(
            predicted(fit(tiny_encoder, task, relocate=moving, **still)), small.truth, KNOWN
        ).all
        for moving in (0, 2)
    }
    assert scores[0] < 80
    assert scores[2] > 95


@pytest.mark.parametrize("texts", [1, 255, 256, 257, 1095, 4000, 90000])
def test_a_small_table_has_enough_steps(texts: int) -> None:
    steps = -(-texts // 256)
    epochs = enough_epochs(3, texts, 256)
    assert epochs * steps >= LEAST_STEPS
    assert epochs == 3 or (epochs - 1) * steps < LEAST_STEPS
    assert enough_epochs(0, texts, 256) == 0


@pytest.mark.parametrize("texts", [1, 255, 4000, 18000, 90000, 1_000_000])
def test_a_large_table_has_no_more_steps_than_it_needs(texts: int) -> None:
    steps = -(-texts // 256)
    epochs = enough_epochs(45, texts, 256, 1600)
    assert epochs >= 1
    assert (epochs - 1) * steps < 1600  # the last epoch begins before the limit
    assert epochs >= 45 or epochs * steps >= 1600
    assert enough_epochs(0, texts, 256, 1600) == 0
    assert enough_epochs(3, 200, 256, 1) == LEAST_STEPS  # what a small table needs comes first
