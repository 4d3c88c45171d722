"""Near-duplicates are folded and counted, and nothing else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from newfound.large.duplicates import fold_duplicates, normal_form

SAME = [
    ("Where is my card?", "where is my card"),
    ("where  is\tmy card", "Where is my card."),
    ("order 123456 is late", "order 9876 is late!"),
    ("\uff21\uff22\uff23", "abc"),  # full width
    ("STRASSE", "straße"),
]
DIFFERENT = [
    ("python 2", "python 3"),
    ("error 404", "error 500"),
    ("card lost", "lost card"),
    ("c", "c++"),
    ("???", "!!!"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_case_spacing_final_punctuation_and_long_numbers_do_not_count(one: str, other: str) -> None:
    assert normal_form(one) == normal_form(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_words_their_order_and_short_numbers_count(one: str, other: str) -> None:
    assert normal_form(one) != normal_form(other)


@given(st.text())
def test_the_normal_form_is_its_own_normal_form_unless_it_is_all_punctuation(text: str) -> None:
    form = normal_form(text)
    assert "\n" not in form
    assert bool(form) == bool(text.split())


@given(
    st.lists(
        st.tuples(st.sampled_from(["Hi", "hi ", "bye", "No 12345", "no 99999"]), st.integers(-1, 1))
    )
)
def test_groups_are_those_of_a_plain_loop(rows: list[tuple[str, int]]) -> None:
    found = fold_duplicates([text for text, _ in rows], np.array([t for _, t in rows], np.int64))
    groups: dict[tuple[str, int], list[int]] = {}
    for row, (text, target) in enumerate(rows):
        groups.setdefault((normal_form(text), target), []).append(row)
    assert found.first.tolist() == [own[0] for own in groups.values()]
    assert found.counts.tolist() == [len(own) for own in groups.values()]
