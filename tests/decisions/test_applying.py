"""Decisions applied to a result: what each does, what cannot be applied, and what always holds."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.decided import EACH, NAMES, small_result

from newfound.decisions import Decision, Problem, apply, decision_from
from newfound.result import Result

RESULT = small_result()


def decided(*lines: dict[str, Any]) -> tuple[Result, list[str]]:
    """Return the result after decisions, and the reasons why some do not apply."""
    found, problems = apply(RESULT, [decision_from(line) for line in lines])
    check(found)
    return found, [f"{problem.line}: {problem.reason}" for problem in problems]


def check(result: Result) -> None:
    """Assert what holds for every result, whatever was decided."""
    count = len(result.categories)
    for array in (result.assigned, result.predicted):
        assert array.min() >= 0
        assert array.max() < count
    assert [c.size for c in result.categories] == np.bincount(
        result.assigned, minlength=count
    ).tolist()
    assert sum(c.size for c in result.categories) == len(result.corpus)
    assert len(set(result.ids)) == len(set(result.names)) == count
    assert all(result.names)
    assert all(c.status in ("known", "proposed", "accepted") for c in result.categories)
    kinds = [c.kind for c in result.categories]
    assert kinds == sorted(kinds)  # known ones first
    retired = {gone.id for gone in result.lineage.retired}
    assert not retired & set(result.ids)
    numbers = [int(id_[1:]) for id_ in {*retired, *result.ids}]
    assert max(numbers) < result.lineage.next_number
    for category in result.categories:
        assert category.nearest is None or category.nearest in result.position
        assert category.nearest != category.id
        own = {
            result.corpus.texts[row]
            for row in np.flatnonzero(result.assigned == result.position[category.id])
        }
        assert {*category.examples, *category.border} <= own
    names = {c.name for c in result.categories if c.kind == "known"}
    assert set(result.corpus.known) <= names
    if result.best_known is not None:
        for at in result.best_known[result.best_known >= 0]:
            assert kinds[at] == "known"
    if result.matching is not None:
        assert result.matching.shape == (kinds.count("known"), count)


def of(result: Result, id_: str) -> set[str]:
    """Return the ids of a category's texts."""
    return {result.corpus.ids[row] for row in np.flatnonzero(result.ids[result.assigned] == id_)}


def test_without_decisions_the_result_is_the_same() -> None:
    found, problems = apply(RESULT, [])
    check(found)
    assert problems == ()
    assert found.categories == RESULT.categories
    assert found.lineage == RESULT.lineage
    assert found.corpus == RESULT.corpus
    np.testing.assert_array_equal(found.assigned, RESULT.assigned)
    np.testing.assert_array_equal(found.matching, RESULT.matching)
    assert found.reviewed is found.fits_nowhere is None


def test_accept_marks_shown_texts_as_reviewed() -> None:
    found, problems = decided(
        {"decision": "accept", "category": "c3", "author": "Ada", "time": "T"}
    )
    assert problems == []
    category = found.categories[2]
    assert (category.status, category.kind) == ("accepted", "novel")
    assert str(category.history[-1]) == "accepted by Ada in run 1 on T"
    assert found.reviewed is not None
    assert {found.corpus.ids[row] for row in np.flatnonzero(found.reviewed)} == {"12", "16", "17"}


def test_accept_with_texts_marks_these() -> None:
    found, _ = decided({"decision": "accept", "category": "c3", "texts": ["13", 14]})
    assert found.reviewed is not None
    assert np.flatnonzero(found.reviewed).tolist() == [13, 14]


def test_reject_frees_its_texts() -> None:
    found, problems = decided({"decision": "reject", "category": "c4"})
    assert problems == []
    assert found.ids.tolist() == ["c1", "c2", "c3", "c5"]
    assert found.fits_nowhere is not None
    assert np.flatnonzero(found.fits_nowhere).tolist() == list(range(18, 24))
    assert of(found, "c5") == {str(i) for i in range(18, 30)}  # the nearest one
    gone = found.lineage.find_retired("c4")
    assert gone is not None
    assert (gone.status, gone.texts) == ("rejected", tuple(map(str, range(18, 24))))
    assert found.categories[3].fits_nowhere == EACH


def test_rejected_category_takes_its_labels_with_it() -> None:
    categories = list(RESULT.categories)  # as after a refit: accepted, with labels
    categories[1] = replace(categories[1], status="accepted")
    found, problems = apply(
        replace(RESULT, categories=tuple(categories)), [Decision("reject", category="c2")]
    )
    check(found)
    assert problems == ()
    assert found.corpus.known == ["bank"]


def test_rename_keeps_the_id() -> None:
    found, _ = decided({"decision": "rename", "category": "c1", "name": " My\nmoney "})
    category = found.categories[0]
    assert (category.id, category.name, category.history[-1].of) == ("c1", "My money", ("bank",))
    assert found.corpus.labels[:3] == ["My money", "My money", None]  # the labels go with it


def test_merge_keeps_the_target() -> None:
    found, problems = decided({"decision": "merge", "categories": ["c3", "c4"], "into": "c5"})
    assert problems == []
    assert found.ids.tolist() == ["c1", "c2", "c5"]
    assert of(found, "c5") == {str(i) for i in range(12, 30)}
    category = found.categories[2]
    assert (category.status, category.history[-1].of) == ("accepted", ("c3", "c4"))
    assert {"parcel", "song", "rain"} <= set(category.keywords)
    assert [gone.into for gone in found.lineage.retired] == [("c5",), ("c5",)]
    assert (found.predicted == 2).sum() == 18


def test_merge_of_a_known_category_keeps_its_labels() -> None:
    found, _ = decided({"decision": "merge", "categories": ["c1"], "into": "c3"})
    assert found.ids.tolist() == ["c3", "c2", "c4", "c5"] or found.kinds[0] == "known"
    category = found.categories[found.position["c3"]]
    assert (category.kind, category.labelled) == ("known", 2)
    assert found.corpus.labels[:2] == ["Stop song", "Stop song"]


def test_split_gives_new_ids_and_leaves_the_rest() -> None:
    parts = [{"texts": ["12", "13"], "name": "Loud"}, {"texts": ["14"]}]
    found, problems = decided({"decision": "split", "category": "c3", "parts": parts})
    assert problems == []
    assert found.ids.tolist() == ["c1", "c2", "c3", "c4", "c5", "c6", "c7"]
    assert (of(found, "c3"), of(found, "c6"), of(found, "c7")) == (
        {"15", "16", "17"}, {"12", "13"}, {"14"},
    )  # fmt: skip
    part = found.categories[5]
    assert (part.name, part.status, part.history[0].of) == ("Loud", "accepted", ("c3",))
    assert found.lineage.next_number == 8
    assert found.lineage.retired == ()


def test_split_into_parts_of_all_texts_retires_the_category() -> None:
    parts = [{"texts": ["12", "13", "14"], "name": "Stop song"}, {"texts": ["15", "16", "17"]}]
    found, problems = decided({"decision": "split", "category": "c3", "parts": parts})
    assert problems == []
    assert found.ids.tolist() == ["c1", "c2", "c4", "c5", "c6", "c7"]
    gone = found.lineage.find_retired("c3")
    assert gone is not None
    assert (gone.status, gone.into) == ("split", ("c6", "c7"))


def test_moved_texts_are_reviewed_and_lose_a_label_of_another_category() -> None:
    found, _ = decided({"decision": "move", "texts": ["0", "13"], "into": "c2"})
    assert {"0", "13"} <= of(found, "c2")
    assert found.corpus.labels[0] == "travel"
    found, _ = decided({"decision": "move", "texts": ["0"], "into": "c4"})
    assert found.corpus.labels[0] is None
    assert found.reviewed is not None
    assert np.flatnonzero(found.reviewed).tolist() == [0]
    assert found.predicted[0] == 0  # what the model says stays


def test_nowhere_marks_and_a_later_move_unmarks() -> None:
    mark = {"decision": "nowhere", "texts": ["12", "20"]}
    found, _ = decided(mark)
    assert found.fits_nowhere is not None
    assert np.flatnonzero(found.fits_nowhere).tolist() == [12, 20]
    assert found.assigned[12] == 2
    found, _ = decided(mark, {"decision": "move", "texts": ["20"], "into": "c1"})
    assert found.fits_nowhere is not None
    assert np.flatnonzero(found.fits_nowhere).tolist() == [12]


def test_undo_and_undo_of_undo() -> None:
    rename = {"decision": "rename", "category": "c3", "name": "X"}
    undo: list[dict[str, Any]] = [{"decision": "undo", "line": line} for line in (1, 2)]
    assert decided(rename)[0].names[2] == "X"
    assert decided(rename, undo[0])[0].names[2] == NAMES[2]
    assert decided(rename, *undo)[0].names[2] == "X"


def test_undoing_a_split_does_not_change_later_ids() -> None:
    lines: list[dict[str, Any]] = [
        {"decision": "split", "category": "c3", "parts": [{"texts": ["12"]}]},
        {"decision": "split", "category": "c4", "parts": [{"texts": ["18"]}]},
        {"decision": "rename", "category": "c7", "name": "Seven"},
        {"decision": "undo", "line": 1},
    ]
    found, problems = decided(*lines)
    assert problems == []
    assert found.ids.tolist() == ["c1", "c2", "c3", "c4", "c5", "c7"]
    assert (of(found, "c7"), found.names[5]) == ({"18"}, "Seven")
    assert found.lineage.next_number == 8


SPLIT = {"decision": "split", "category": "c3"}


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([{"decision": "accept", "category": "c99"}], "1: there is no category 'c99'"),
        ([{"decision": "reject", "category": "c1"}], "known from your labels"),
        ([{"decision": "move", "texts": ["99"], "into": "c1"}], "no text with the id '99'"),
        ([{"decision": "merge", "categories": ["c3"], "into": "c3"}], "merged into itself"),
        (
            [
                {"decision": "merge", "categories": ["c3"], "into": "c4"},
                {"decision": "merge", "categories": ["c4"], "into": "c3"},
            ],
            "2: the category c3 was merged into c4",
        ),
        ([{"decision": "rename", "category": "c3", "name": "cold_rain"}], "c4 has the name"),
        ([{**SPLIT, "parts": [{"texts": [str(i) for i in range(12, 18)]}]}], "nothing is split"),
        ([{**SPLIT, "parts": [{"texts": ["0"]}]}], "the text '0' is not in c3"),
        ([{**SPLIT, "parts": [{"texts": ["12"]}, {"texts": ["12"]}]}], "is in two parts"),
        ([{"decision": "accept", "category": "c3", "texts": ["0"]}], "is in c1, not in c3; move"),
        ([{"decision": "undo", "line": 1}], "not an earlier decision"),
        (
            [
                {"decision": "reject", "category": "c4"},
                {"decision": "accept", "category": "c4"},
            ],
            "2: the category c4 was rejected",
        ),
    ],
)
def test_decision_that_cannot_be_applied_is_reported_and_others_hold(
    lines: list[dict[str, Any]], reason: str
) -> None:
    last = {"decision": "rename", "category": "c5", "name": "It holds"}
    found, problems = decided(*lines, last)
    assert len(problems) == 1
    assert reason in problems[0]
    assert "It holds" in found.names


def test_the_last_category_cannot_be_rejected() -> None:
    lines = [{"decision": "merge", "categories": ["c1", "c2"], "into": "c3"}]
    lines += [{"decision": "reject", "category": f"c{i}"} for i in (4, 5, 3)]
    found, problems = decided(*lines)
    assert problems == [
        "4: c3 is the last category, and every text needs one; run `newfound discover` with other "
        "settings instead"
    ]
    assert found.ids.tolist() == ["c3"]


def test_lines_that_cannot_be_read_are_problems() -> None:
    rename = Decision("rename", category="c3", name="X")
    found, problems = apply(RESULT, [Problem(1, "it is not JSON"), None, rename])
    assert problems == (Problem(1, "it is not JSON"),)
    assert found.names[2] == "X"


def test_applying_is_pure() -> None:
    before = RESULT.assigned.copy()
    decided({"decision": "merge", "categories": ["c3"], "into": "c4"})
    np.testing.assert_array_equal(RESULT.assigned, before)


IDS = st.sampled_from([f"c{i}" for i in range(1, 12)])
TEXTS = st.lists(st.sampled_from([str(i) for i in range(31)]), min_size=1, max_size=8)
LINES = st.one_of(
    st.fixed_dictionaries({"decision": st.sampled_from(["accept", "reject"]), "category": IDS}),
    st.fixed_dictionaries(
        {"decision": st.just("rename"), "category": IDS, "name": st.sampled_from("XYZ")}
    ),
    st.fixed_dictionaries(
        {
            "decision": st.just("merge"),
            "categories": st.lists(IDS, min_size=1, max_size=3),
            "into": IDS,
        }
    ),
    st.fixed_dictionaries({"decision": st.just("move"), "texts": TEXTS, "into": IDS}),
    st.fixed_dictionaries({"decision": st.just("nowhere"), "texts": TEXTS}),
    st.fixed_dictionaries(
        {
            "decision": st.just("split"),
            "category": IDS,
            "parts": st.lists(st.fixed_dictionaries({"texts": TEXTS}), min_size=1, max_size=3),
        }
    ),
    st.fixed_dictionaries({"decision": st.just("undo"), "line": st.integers(1, 12)}),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(LINES, max_size=14))
def test_any_decisions_give_a_valid_result(lines: list[dict[str, Any]]) -> None:
    found, problems = apply(RESULT, [decision_from(line) for line in lines])
    check(found)
    # What cannot be applied changes nothing: without these lines, the result is the same.
    bad = {problem.line for problem in problems}
    if not any(line["decision"] in ("undo", "split") for line in lines):
        good = [decision_from(line) for at, line in enumerate(lines, 1) if at not in bad]
        again, more = apply(RESULT, good)
        assert more == ()
        assert repr(again.categories) == repr(found.categories)  # NaN is not equal to itself
        np.testing.assert_array_equal(again.assigned, found.assigned)
