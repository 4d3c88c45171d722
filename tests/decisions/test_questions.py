"""The queue: what changes most comes first, and what is decided is not asked again."""

from dataclasses import replace

import numpy as np
import pytest
from support.decided import small_result

from newfound.decisions import Decision, apply
from newfound.decisions.questions import ONE_GROUP, SHOWN, questions, two_groups
from newfound.result import Result

RESULT = small_result()


def test_questions_are_sorted_by_gain() -> None:
    gains = [question.gain for question in questions(RESULT)]
    assert gains == sorted(gains, reverse=True)
    assert len(gains) >= 5


def test_every_proposal_is_asked_and_texts_are_its_own() -> None:
    found = {q.category: q for q in questions(RESULT) if q.kind == "category"}
    assert set(found) == {"c3", "c4", "c5"}
    for id_, question in found.items():
        rows = [int(text) for text in question.texts]
        assert 0 < len(rows) <= SHOWN
        assert (RESULT.assigned[rows] == RESULT.position[id_]).all()


def test_larger_and_less_sure_proposals_come_first() -> None:
    probability = RESULT.probability.copy()
    probability[RESULT.assigned == 3] = 0.2
    first = questions(replace(RESULT, probability=probability))[0]
    assert (first.kind, first.category) == ("category", "c4")
    assigned = RESULT.assigned.copy()
    assigned[:6] = 4  # c5 is twice as large
    assert questions(replace(RESULT, assigned=assigned))[0].category == "c5"


def test_border_question_shows_the_least_sure_texts_that_nobody_saw() -> None:
    found = next(q for q in questions(RESULT) if q.kind == "border" and q.category == "c1")
    assert found.texts == ("2", "3", "4", "5")  # the first two are labelled
    moved, _ = apply(RESULT, [Decision("move", texts=("2",), into="c1")])
    again = next(q for q in questions(moved) if q.kind == "border" and q.category == "c1")
    assert again.texts == ("3", "4", "5")
    assert again.gain < found.gain


def test_gain_of_a_border_question_lies_between_the_shown_texts_and_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    doubt = 1 - RESULT.probability[2:6]  # of the open texts of c1
    monkeypatch.setattr("newfound.decisions.questions.SHOWN", 2)
    monkeypatch.setattr("newfound.decisions.questions.LEAST_GAIN", 0.0)
    found = next(q for q in questions(RESULT) if q.kind == "border" and q.category == "c1")
    shown = np.sort(doubt)[-2:].sum()
    assert found.gain == pytest.approx((shown * doubt.sum()) ** 0.5)
    assert shown < found.gain < doubt.sum()


def test_accepted_category_is_no_longer_a_proposal() -> None:
    decided, _ = apply(RESULT, [Decision("accept", category="c3")])
    kinds = {q.kind for q in questions(decided) if q.category == "c3"}
    assert "category" not in kinds


def test_answered_questions_are_left_out() -> None:
    first = questions(RESULT)[0]
    assert first.key not in {q.key for q in questions(RESULT, [first.key])}


def test_look_alikes_are_asked_about_once() -> None:
    categories = list(RESULT.categories)
    categories[2] = replace(categories[2], nearest="c4", nearest_distance=0.01, size=30)
    categories[3] = replace(categories[3], nearest="c3", nearest_distance=0.01, size=30)
    pairs = [
        q for q in questions(replace(RESULT, categories=tuple(categories))) if q.kind == "pair"
    ]
    assert [(q.category, q.other) for q in pairs] == [("c3", "c4")]
    assert {RESULT.assigned[int(text)] for text in pairs[0].texts} == {2, 3}


def test_certain_results_leave_no_border_questions() -> None:
    sure = replace(RESULT, probability=np.ones(len(RESULT.assigned)))
    assert not [q for q in questions(sure) if q.kind == "border"]


def in_two_groups() -> Result:
    """Return the small result with the first two categories merged, and apart on the map."""
    assigned = RESULT.assigned.copy()
    assigned[6:10] = 0
    positions = np.random.default_rng(0).normal(0, 0.1, RESULT.positions.shape)
    positions[6:10] += 5
    return replace(RESULT, assigned=assigned, positions=positions)


def test_two_groups_on_the_map_are_asked_about_with_texts_of_both() -> None:
    found = [q for q in questions(in_two_groups()) if q.kind == "split"]
    assert [q.category for q in found] == ["c1"]
    rows = [int(text) for text in found[0].texts]
    groups = [
        {row >= 6 for row in part} for part in (rows[: len(rows) // 2], rows[len(rows) // 2 :])
    ]
    assert sorted(groups, key=str) == [{False}, {True}]


def test_one_group_is_not_asked_about() -> None:
    positions = np.random.default_rng(0).normal(0, 1, (600, 2))
    assert two_groups(positions)[1] < ONE_GROUP
    one = replace(in_two_groups(), positions=RESULT.positions)
    assert not [q for q in questions(one) if q.kind == "split"]


def test_two_groups_explain_what_the_loop_says() -> None:
    rng = np.random.default_rng(1)
    points = np.concatenate([rng.normal(0, 1, (40, 2)), rng.normal(4, 1, (30, 2))])
    second, explained = two_groups(points)
    within = 0.0
    for part in (points[second], points[~second]):
        within += sum(float(((point - part.mean(axis=0)) ** 2).sum()) for point in part)
    total = sum(float(((point - points.mean(axis=0)) ** 2).sum()) for point in points)
    assert explained == pytest.approx(1 - within / total)
    assert two_groups(points[::-1])[1] == pytest.approx(explained)


def test_equal_points_are_one_group() -> None:
    assert two_groups(np.zeros((8, 2)))[1] == 0
