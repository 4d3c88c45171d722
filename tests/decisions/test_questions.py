"""The queue: what changes most comes first, and what is decided is not asked again."""

from dataclasses import replace

import numpy as np
from support.decided import small_result

from newfound.decisions import Decision, apply
from newfound.decisions.questions import SHOWN, questions

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
