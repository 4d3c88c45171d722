"""The scores of a draw, by small cases that can be counted by hand."""

import math

import numpy as np
import pytest

from newfound.checking.draws import Draw
from newfound.checking.scores import DrawScores, score_draw
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


def test_known_and_novel_are_weighted_by_their_share_of_the_pile() -> None:
    # Verdicts of novelty are all right. 14 of 20 texts without a label are judged novel; a fifth
    # of the labels was hidden, which leaves (0.7 - 0.2) / 0.8 for categories without labels.
    pile: list[Row] = [(None, None, 3)] * 14 + [(None, None, 0)] * 6
    held: list[Row] = [(None, "a", 0), (None, "b", 0), (None, "c", 2), (None, "c", 2)]
    known: list[Row] = [("a", None, 0)] * 3 + [("b", None, 1)] * 3
    found = scores([*known, *pile, *held], ("c",), 4)
    assert (found.known, found.novel) == (50, 100)
    assert found.all == pytest.approx(0.375 * 50 + 0.625 * 100)


def test_the_share_of_novel_texts_is_adjusted_for_wrong_verdicts() -> None:
    # Half of the hidden texts are judged known: of the pile twice as many as judged are novel.
    pile: list[Row] = [(None, None, 3)] * 7 + [(None, None, 0)] * 13
    held: list[Row] = [(None, "a", 0), (None, "b", 0), (None, "c", 2), (None, "c", 0)]
    known: list[Row] = [("a", None, 0)] * 3 + [("b", None, 1)] * 3
    found = scores([*known, *pile, *held], ("c",), 4)
    assert (found.known, found.novel) == (50, 50)
    held[1] = (None, "b", 1)
    found = scores([*known, *pile, *held], ("c",), 4)
    assert found.all == pytest.approx(0.375 * 100 + 0.625 * 50)


def test_a_pile_without_novel_texts_gives_the_score_of_known_ones() -> None:
    pile: list[Row] = [(None, None, 0)] * 20
    found = scores([*KNOWN, *pile, (None, "a", 0), (None, "b", 0), (None, "c", 2)], ("c",), 3)
    assert found.all == found.known == 50
    assert found.novel == 100


def test_without_held_back_labels_known_has_no_score() -> None:
    found = scores([*KNOWN, *[(None, "c", 2)] * 4], ("c",), 3)
    assert math.isnan(found.known)
    assert math.isnan(found.exact_known)
    assert found.all == found.novel == 100


def test_calibration_error_uses_the_weights_of_known_and_novel_texts() -> None:
    # 4 of 5 known and 1 of 5 novel texts are right, at a probability of 0.9. Without texts that
    # never had a label, each novel text weighs as much as a known one.
    known: list[Row] = [(None, "a", 0)] * 4 + [(None, "a", 1)]
    novel: list[Row] = [(None, "c", 2)] * 1 + [(None, "c", 0)] * 4
    assert scores([*KNOWN, *known, *novel], ("c",), 3).calibration_error == pytest.approx(40)
    # Here every text without a label is judged known, so only the known ones count.
    pile: list[Row] = [(None, None, 0)] * 20
    found = scores([*KNOWN, *known, *novel, *pile], ("c",), 3)
    assert found.calibration_error == pytest.approx(10)


def test_gaps_are_accuracy_less_probability() -> None:
    # 4 of 5 known and 1 of 5 novel texts are right, at a probability of 0.9.
    known: list[Row] = [(None, "a", 0)] * 4 + [(None, "a", 1)]
    novel: list[Row] = [(None, "c", 2)] * 1 + [(None, "c", 0)] * 4
    found = scores([*KNOWN, *known, *novel], ("c",), 3)
    assert found.known_gap == pytest.approx(80 - 90)
    assert found.novel_gap == pytest.approx(20 - 90)
    assert math.isnan(scores([*KNOWN, *novel], ("c",), 3).known_gap)
