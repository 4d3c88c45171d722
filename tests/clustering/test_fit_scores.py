"""Fit scores: against a loop, the reference that new texts are compared with, the thresholds."""

import numpy as np
import pytest

from newfound.clustering import fit_scores as module
from newfound.clustering.fit_scores import (
    FitReference,
    category_profiles,
    choose_texts,
    fit_scores,
    make_reference,
    nearest_cosines,
    neighbour_log_odds,
    unit_length,
)


def drawn(n: int = 60, categories: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    of = np.arange(n) % categories
    return rng.normal(size=(categories, 8))[of] + rng.normal(size=(n, 8)), of


def scores(values: list[float]) -> np.ndarray:
    return np.array(values, np.float32)


def reference(labelled: list[float], unlabelled: list[float]) -> FitReference:
    return FitReference(
        vectors=np.empty((0, 2), np.float16),
        categories=np.empty(0, np.int64),
        given=np.empty(0, bool),
        frozen=True,
        labelled=scores(labelled),
        unlabelled=scores(unlabelled),
        label_cosines=scores([]),
    )


def test_fit_equals_a_loop_over_the_other_texts_of_the_category() -> None:
    vectors, of = drawn()
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    wanted, nearest = [], []
    for i in range(len(vectors)):
        others = [unit[j] for j in range(len(vectors)) if j != i and of[j] == of[i]]
        cosines = sorted(unit[i] @ other for other in others)
        mean = np.mean(others, 0)
        wanted.append((np.mean(cosines[-5:]) + unit[i] @ mean / np.linalg.norm(mean)) / 2)
        nearest.append(cosines[-1])
    points = unit_length(vectors)
    np.testing.assert_allclose(fit_scores(vectors, of, points, of), wanted, atol=1e-5)
    np.testing.assert_allclose(nearest_cosines(vectors, of, points, of), nearest, atol=1e-5)


def test_few_and_missing_reference_texts() -> None:
    vectors = np.array([[1.0, 1.0], [0.0, 3.0], [1.0, 0.0]])
    found = fit_scores(vectors, np.array([0, 1, 0]), np.eye(2)[:1], np.array([0]))
    np.testing.assert_allclose(found, [np.sqrt(0.5), 0, 0], atol=1e-6)
    cosines = nearest_cosines(vectors, np.array([0, 1, 0]), np.eye(2)[:1], np.array([0]))
    np.testing.assert_allclose(cosines, [np.sqrt(0.5), np.nan, np.nan], atol=1e-6)


def test_of_equal_texts_one_is_left_out() -> None:
    thanks = np.tile([[1.0, 0.0]], (4, 1))
    categories = np.zeros(4, np.int64)
    np.testing.assert_allclose(fit_scores(thanks, categories, thanks, categories), 1, atol=1e-6)
    np.testing.assert_allclose(
        neighbour_log_odds(thanks, categories, thanks, categories), np.log(3.5 / 0.5)
    )


@pytest.mark.parametrize("categories", [4, 20])
def test_neighbours_equal_a_loop(categories: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROWS", 7)
    vectors, of = drawn(categories=categories)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    found = neighbour_log_odds(vectors, of, unit_length(vectors), of)
    for i in range(len(of)):
        others = sorted((j for j in range(len(of)) if j != i), key=lambda j: -unit[i] @ unit[j])
        looked_at = others[: min(10, sum(of[j] == of[i] for j in others))]
        inside = sum(of[j] == of[i] for j in looked_at)
        wanted = np.log((inside + 0.5) / (len(looked_at) - inside + 0.5))
        assert found[i] == pytest.approx(wanted)


def test_neighbours_of_a_lone_text() -> None:
    axes, categories = np.eye(2), np.array([0, 1])
    assert neighbour_log_odds(axes[:1], categories[:1], axes[:1], categories[:1]).tolist() == [0]
    alone = neighbour_log_odds(axes[:1], categories[:1], axes, categories)
    np.testing.assert_allclose(alone, np.log(0.5 / 1.5))
    assert neighbour_log_odds(axes, categories, axes[:0], categories[:0]).tolist() == [0, 0]


def test_evidence_of_labels_is_the_rank_among_labelled_texts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "SAME", 0.9999)  # in few dimensions others are nearly the same
    rng = np.random.default_rng(0)
    of = np.repeat([0, 1, 2, 3], [12, 12, 12, 1])
    vectors = np.eye(8)[of] + 0.3 * rng.normal(size=(len(of), 8))
    labelled = (of == 3) | (of < 2) & (np.arange(len(of)) % 2 == 0)
    kept, _ = make_reference(vectors, of, labelled, frozen=True, seed=0)
    assert len(kept.label_cosines) == 12
    ranks = kept.evidence(vectors, of).labels
    np.testing.assert_allclose(
        np.sort(ranks[labelled & (of < 2)]), np.arange(1, 13) / 13, atol=1e-5
    )
    assert (ranks[of == 2] == 0).all()  # no label
    assert ranks[of == 3] == [0.5]  # no other label
    far = kept.evidence(-vectors[:1], of[:1]).labels
    assert 0 < far < 1 / 13
    nearer = kept.evidence(vectors[:1] + np.linspace(0, 20, 9)[:, None] * vectors[2], of[[0] * 9])
    assert (np.diff(nearer.labels) >= 0).all()


def test_one_label_per_category_is_no_evidence_for_or_against_it() -> None:
    vectors, of = drawn(8)
    kept, _ = make_reference(vectors, of, np.arange(8) < 4, frozen=True, seed=0)
    assert len(kept.label_cosines) == 0
    assert (kept.evidence(vectors, of).labels == 0.5).all()


def test_large_categories_do_not_surround_small_ones() -> None:
    rng = np.random.default_rng(0)
    of = np.repeat([0, 1], [500, 25])
    vectors = np.array([[1.0, 0.2], [1.0, -0.2]])[of] + 0.3 * rng.normal(size=(525, 2))
    kept, _ = make_reference(vectors, of, of < 0, frozen=True, seed=0)
    small = kept.evidence(vectors, of).neighbours[of == 1].mean()
    assert small > neighbour_log_odds(vectors, of, unit_length(vectors), of)[of == 1].mean() + 1


def test_new_texts_are_scored_as_the_training_texts_were() -> None:
    vectors, of = drawn()
    labelled = np.arange(len(of)) % 3 == 0
    kept, found = make_reference(vectors, of, labelled, frozen=True, seed=0)
    assert kept.vectors.dtype == np.float16
    assert len(kept.vectors) == len(of)
    np.testing.assert_allclose(kept.labelled, np.sort(found[labelled]))
    np.testing.assert_allclose(kept.unlabelled, np.sort(found[~labelled]))
    np.testing.assert_array_equal(kept.scores(vectors, of), found)
    strange = np.random.default_rng(1).normal(size=vectors.shape)
    assert kept.scores(strange, of).mean() < found.mean() - 0.2


def test_profiles_equal_a_loop_over_the_categories() -> None:
    vectors, of = drawn(categories=5)
    found = category_profiles(vectors, of).beside(vectors)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    means = [unit[of == category].mean(0) - unit.mean(0) for category in range(5)]
    profiles = []
    for text in unit:
        own = text - unit.mean(0)
        likes = [own @ mean / np.linalg.norm(mean) for mean in means]
        profiles.append(np.array(likes) / np.linalg.norm(likes))
    for i in range(len(unit)):
        for j in range(len(unit)):
            wanted = unit[i] @ unit[j] + 5 / 400 * profiles[i] @ profiles[j]
            assert found[i] @ found[j] == pytest.approx(wanted, abs=1e-4)


def test_more_categories_than_dimensions_add_no_direction() -> None:
    vectors, of = drawn(categories=20)
    assert category_profiles(vectors, of).directions.shape == (8, 8)


def test_the_reference_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    of = np.repeat([0, 1, 2], [300, 8, 40])
    labelled = np.arange(len(of)) % 10 == 0
    kept = choose_texts(of, labelled, seed=0)
    assert np.bincount(of[kept]).tolist() == [100, 8, 40]
    assert (np.diff(of[kept]) >= 0).all()
    assert labelled[kept[:30]].all()
    assert labelled[kept].sum() == labelled.sum()
    assert kept.tolist() == choose_texts(of, labelled, seed=0).tolist()
    monkeypatch.setattr(module, "MOST_TEXTS", 60)
    assert np.bincount(of[choose_texts(of, labelled, seed=0)]).tolist() == [20, 8, 20]
    monkeypatch.setattr(module, "MOST_SCORES", 11)
    vectors = np.random.default_rng(0).normal(size=(len(of), 4))
    reduced, found = make_reference(vectors, of, of == 1, frozen=False, seed=0)
    assert len(reduced.unlabelled) == 11
    rest = found[of != 1]
    assert reduced.threshold(outside=0.3) == pytest.approx(np.quantile(rest, 0.3), abs=0.03)


def test_a_share_marks_that_many_of_the_unlabelled_texts() -> None:
    values = [round(0.01 * i, 2) for i in range(100)]
    kept = reference([0.9], values)
    for share in (0.05, 0.1, 0.5):
        below = kept.threshold(outside=share)
        assert below is not None
        assert (kept.unlabelled < below).mean() == pytest.approx(share)
    assert (kept.unlabelled < kept.threshold(outside=1.0)).all()
    assert not (kept.unlabelled < kept.threshold(outside=0.0)).any()
    assert kept.threshold() is None
    # Where every text has a label these stand in.
    assert reference(values, []).threshold(outside=0.1) == pytest.approx(0.1)


def test_a_false_alarm_rate_holds_on_texts_of_the_same_kind() -> None:
    rng = np.random.default_rng(0)
    rates = []
    for _ in range(400):
        kept = reference(np.sort(rng.normal(size=30)).tolist(), [])
        below = kept.threshold(false_alarms=0.1)
        assert below is not None
        rates.append((rng.normal(size=200) < below).mean())
    assert 0.08 < np.mean(rates) <= 0.105


def test_too_few_labels_for_a_small_rate_mark_nothing() -> None:
    kept = reference([0.1, 0.2, 0.3], [])
    assert kept.threshold(false_alarms=0.05) == -np.inf
    assert kept.threshold(false_alarms=0.25) == pytest.approx(0.1)
    assert kept.threshold(false_alarms=1.0) == np.inf
