"""The scores of a draw, by small cases that can be counted by hand."""

import math

import numpy as np
import pytest

from newfound.checking.draws import Draw
from newfound.checking.scores import DrawScores, calibration_error, score_draw
from newfound.data.corpus import Corpus

Row = tuple[str | None, str | None, int]  # label that is given, label that was hidden, answer


def scores(rows: list[Row], hidden: tuple[str, ...], n_categories: int) -> DrawScores:
    """Score answers with a probability of 0.9 each."""
    given = [label for label, _, _ in rows]
    corpus = Corpus(
        [f"text {i}" for i in range(len(rows))], given, [str(i) for i in range(len(rows))]
    )
    draw = Draw(corpus, [truth for _, truth, _ in rows], hidden)
    predicted = np.array([answer for _, _, answer in rows])
    return score_draw(draw, predicted, np.full(len(rows), 0.9), n_categories)


KNOWN: list[Row] = [("a", None, 0)] * 4 + [("b", None, 1)] * 4  # labels that stayed, found again


def test_everything_found_again() -> None:
    found = scores([*KNOWN, (None, "a", 0), (None, "b", 1), *[(None, "c", 2)] * 4], ("c",), 3)
    assert (found.all, found.known, found.novel, found.exact_known) == (100, 100, 100, 100)
    assert (found.recovered, found.k_error) == (100, 0)
    assert (found.known_texts, found.novel_texts, found.n_hidden) == (2, 4, 1)
    assert found.calibration_error == pytest.approx(10)


def test_a_hidden_category_inside_a_known_one_is_wrong() -> None:
    found = scores([*KNOWN, (None, "a", 0), *[(None, "c", 1)] * 9], ("c",), 2)
    assert (found.known, found.novel, found.recovered, found.k_error) == (100, 0, 0, -100)


def test_a_known_category_that_returns_as_novel_is_right_by_matching_but_not_by_name() -> None:
    rows: list[Row] = [("a", None, 0)] * 4 + [("b", None, 2)] * 4
    found = scores([*rows, (None, "a", 0), (None, "b", 2), *[(None, "c", 3)] * 4], ("c",), 4)
    assert (found.known, found.exact_known) == (100, 50)
    assert found.k_error == 100  # two novel categories, one was hidden


def test_a_split_category_counts_by_its_larger_half() -> None:
    found = scores(
        [*KNOWN, (None, "a", 0), *[(None, "c", 2)] * 6, *[(None, "c", 3)] * 4], ("c",), 4
    )
    assert (found.novel, found.k_error, found.recovered) == (60, 100, 100)
    even = [*KNOWN, *[(None, "c", 2)] * 5, *[(None, "c", 3)] * 5]
    assert scores(even, ("c",), 4).recovered == 0


def test_merged_hidden_categories_count_once() -> None:
    found = scores([*KNOWN, *[(None, "c", 2)] * 6, *[(None, "d", 2)] * 6], ("c", "d"), 3)
    assert (found.novel, found.k_error, found.recovered) == (50, -50, 0)


def test_stray_texts_make_no_category() -> None:
    found = scores([*KNOWN, *[(None, "c", 2)] * 9, (None, "c", 3)], ("c",), 4)
    assert (found.k_error, found.novel) == (0, 90)


def test_scores_are_weighted_as_the_pile_is() -> None:
    # Of 20 texts without a label, 15 are in a category that no label names, 4 in a, 1 in b.
    pile: list[Row] = [(None, None, 3)] * 15 + [(None, None, 0)] * 4 + [(None, None, 1)]
    held: list[Row] = [(None, "a", 0), (None, "b", 0), *[(None, "c", 2)] * 2]
    found = scores([*KNOWN, *pile, *held], ("c",), 4)
    assert found.known == pytest.approx(100 * 5 / 7)  # a stands for 4 + 1 texts, b for 1 + 1
    assert found.all == pytest.approx(0.25 * 100 * 5 / 7 + 0.75 * 100)


def test_texts_of_hidden_categories_in_the_pile_do_not_count_as_novel() -> None:
    pile: list[Row] = [(None, None, 2)] * 20
    found = scores([*KNOWN, *pile, (None, "a", 0), (None, "b", 0), (None, "c", 2)], ("c",), 3)
    assert found.all == found.known == 50
    assert found.novel == 100


def test_without_held_back_labels_known_has_no_score() -> None:
    found = scores([*KNOWN, *[(None, "c", 2)] * 4], ("c",), 3)
    assert math.isnan(found.known)
    assert math.isnan(found.exact_known)
    assert found.all == found.novel == 100


def test_calibration_error() -> None:
    one = np.ones(90)
    sure, right = np.repeat([0.5, 0.8, 1.0], 30), np.repeat([0, 1, 1], 30).astype(bool)
    assert calibration_error(sure, right, one) == pytest.approx(100 * (0.5 + 0.2 + 0) / 3)
    # Too few for bins: only the means differ.
    assert calibration_error(sure[::10], right[::10], one[::10]) == pytest.approx(10)
    weights = np.repeat([0.0, 1.0, 0.0], 30)
    assert calibration_error(sure, right, weights) == pytest.approx(20)
    assert math.isnan(calibration_error(one[:0], right[:0], one[:0]))
