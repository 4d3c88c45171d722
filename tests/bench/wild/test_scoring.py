"""Scores of an answer: against naive ones, and what is left undefined."""

import numpy as np
import pytest

from newfound.bench.wild.scoring import (
    NONE,
    SCORES,
    Answer,
    category_counts,
    matched,
    score,
)
from newfound.bench.wild.tables import Table
from newfound.clustering.metrics import accuracy

# Known: a, b. The first two texts are labelled, the last one is out of scope.
TRUTH = ["a", "b", "a", "a", "b", "n", "n", "m", None]
TABLE = Table([f"text {i}" for i in range(9)], ["a", "b", *[None] * 7], [*TRUTH], ["a", "b"])


def answer(*categories: int, **more: object) -> Answer:
    return Answer(np.array([0, 1, *categories]), 4, **more)  # type: ignore[arg-type]


def test_perfect_answer() -> None:
    found = score(answer(0, 0, 1, 2, 2, 3, 0), TABLE)
    for name in ("all", "known", "novel", "exact_known", "f1_novel", "per_category", "nmi", "ari"):
        assert found[name] == 100
    assert set(found) == set(SCORES)
    assert found["auroc"] is found["ece"] is None  # there are no probabilities


def test_exact_known_needs_the_right_name_and_all_does_not() -> None:
    found = score(answer(1, 1, 0, 2, 2, 3, 0), TABLE)  # a and b change places
    assert found["all"] == 100
    assert found["exact_known"] == 0


def test_verdict_and_mean_per_category() -> None:
    # One text of a is called novel, both texts of n are right, m is put into n.
    found = score(answer(0, 3, 1, 2, 2, 2, 3), TABLE)
    assert found["all"] == pytest.approx(100 * 4 / 6, abs=0.01)
    assert found["known"] == pytest.approx(100 * 2 / 3, abs=0.01)
    assert found["per_category"] == pytest.approx(100 * (0.5 + 1 + 1 + 0) / 4)
    assert found["f1_novel"] == pytest.approx(100 * 2 * 3 / (4 + 3), abs=0.01)


def test_text_without_a_category_is_never_right() -> None:
    found = score(answer(0, 0, 1, 2, 2, NONE, NONE), TABLE)
    assert found["all"] == pytest.approx(100 * 5 / 6, abs=0.01)
    assert found["f1_novel"] == 100
    nothing = score(Answer(np.full(9, NONE), 0), TABLE)
    assert nothing["all"] == nothing["exact_known"] == 0


def test_matched_agrees_with_the_accuracy_of_the_package() -> None:
    rng = np.random.default_rng(0)
    for clusters in (3, 8):
        truth = rng.integers(0, 5, 200).astype(str).astype(object)
        found = np.where(rng.random(200) < 0.5, rng.integers(0, clusters, 200), 0)
        known = {"0", "3"}
        ours, theirs = matched(found, truth), accuracy(found, truth, known)
        in_known = np.isin(truth, list(known))
        assert 100 * ours.mean() == pytest.approx(theirs.all)
        assert 100 * ours[in_known].mean() == pytest.approx(theirs.known)


def test_auroc_takes_the_fit_before_the_probability() -> None:
    sure = np.array([1, 1, 0.9, 0.9, 0.9, 0.8, 0.8, 0.7, 0.95])
    assert score(answer(0, 0, 1, 2, 2, 3, 0, probability=sure), TABLE)["auroc"] == 0
    fit = np.array([0, 0, 5, 5, 5, 5, 5, 5, -1])
    assert score(answer(0, 0, 1, 2, 2, 3, 0, probability=sure, fit=fit), TABLE)["auroc"] == 1


def test_calibration_errors_are_of_all_known_and_novel_texts() -> None:
    sure = np.array([1, 1, 0.9, 0.9, 0.9, 0.7, 0.7, 0.7, 0.95])
    found = score(answer(0, 0, 1, 2, 2, 3, 0, probability=sure), TABLE)
    assert (found["ece"], found["ece_known"], found["ece_novel"]) == (0.2, 0.1, 0.3)


def test_without_known_categories_only_their_scores_are_undefined() -> None:
    table = Table(["x", "y", "z"], [None] * 3, ["n", "n", "m"], [])
    found = score(Answer(np.array([0, 0, 1]), 2), table)
    assert found["all"] == found["novel"] == 100
    assert found["known"] is found["exact_known"] is found["f1_novel"] is None


def test_answer_for_known_texts_has_one_score() -> None:
    found = score(answer(0, 1, 1, 0, 0, 0, 0, known_only=True), TABLE)
    assert found.pop("exact_known") == pytest.approx(66.67)
    assert set(found.values()) == {None}
    assert category_counts(answer(0, 1, 1, 0, 0, 0, 0, known_only=True), TABLE)["used"] is None


def test_category_counts_leave_out_small_novel_ones() -> None:
    truth = ["a", *["a"] * 3, *["n"] * 6, *["m"] * 2]
    table = Table(["x"] * 12, ["a", *[None] * 11], [*truth], ["a"])
    found = Answer(np.array([0, 0, 0, 0, *[1] * 4, 2, 2, 3, 3]), 4, estimated=4)
    assert category_counts(found, table) == {
        "true": 3,
        "true_counted": 2,
        "used": 4,
        "used_counted": 1,
        "estimated": 4,
    }
