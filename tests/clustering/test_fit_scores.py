"""Fit scores: against a loop, the reference that new texts are compared with, the thresholds."""

import numpy as np
import pytest

from newfound.clustering import fit_scores as module
from newfound.clustering.fit_scores import (
    FitReference,
    choose_texts,
    fit_scores,
    make_reference,
    unit_length,
)


def drawn(n: int = 60, categories: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    of = np.arange(n) % categories
    return rng.normal(size=(categories, 8))[of] + rng.normal(size=(n, 8)), of


def scores(values: list[float]) -> np.ndarray:
    return np.array(values, np.float32)


def reference(labelled: list[float], unlabelled: list[float]) -> FitReference:
    empty = np.empty((0, 2), np.float16)
    return FitReference(empty, np.empty(0, np.int64), True, scores(labelled), scores(unlabelled))


def test_fit_is_the_mean_cosine_to_the_nearest_of_the_category() -> None:
    vectors, of = drawn()
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    wanted = []
    for i in range(len(vectors)):
        others = [unit[i] @ unit[j] for j in range(len(vectors)) if j != i and of[j] == of[i]]
        wanted.append(np.mean(sorted(others)[-5:]))
    found = fit_scores(vectors, of, unit_length(vectors), of, np.arange(len(of)))
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_few_and_missing_reference_texts() -> None:
    vectors = np.array([[2.0, 0.0], [1.0, 1.0], [0.0, 3.0]])
    found = fit_scores(vectors, np.array([0, 0, 1]), np.eye(2), np.array([0, 0]))
    np.testing.assert_allclose(found, [0.5, np.sqrt(0.5), 0], atol=1e-6)
    alone = fit_scores(vectors[:1], np.array([0]), np.eye(2)[:1], np.array([0]), np.array([0]))
    assert alone.tolist() == [0]


def test_new_texts_are_scored_as_the_training_texts_were() -> None:
    vectors, of = drawn()
    labelled = np.arange(len(of)) % 3 == 0
    kept, found = make_reference(vectors, of, labelled, frozen=True, seed=0)
    assert kept.vectors.dtype == np.float16
    assert len(kept.vectors) == len(of)
    np.testing.assert_allclose(kept.labelled, np.sort(found[labelled]))
    np.testing.assert_allclose(kept.unlabelled, np.sort(found[~labelled]))
    # A training text that comes again finds itself, so that it fits better than before.
    assert (kept.scores(vectors, of) > found).all()
    far = -vectors.sum(0, keepdims=True)
    assert kept.scores(far, of[:1])[0] < found.min()


def test_the_reference_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    of = np.repeat([0, 1, 2], [300, 8, 40])
    kept = choose_texts(of, seed=0)
    assert np.bincount(of[kept]).tolist() == [100, 8, 40]
    assert kept.tolist() == choose_texts(of, seed=0).tolist()
    monkeypatch.setattr(module, "MOST_TEXTS", 60)
    assert np.bincount(of[choose_texts(of, seed=0)]).tolist() == [20, 8, 20]
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
