"""Ids of categories: given in order, never twice."""

import pytest

from newfound.lineage import Lineage, Retired, following_number, id_of_number, number_of_id


def test_ids_are_never_given_twice() -> None:
    lineage, given = Lineage.begin(3), ["c1", "c2", "c3"]
    for count in (1, 0, 4, 2):
        new, lineage = lineage.new_ids(count)
        assert len(new) == count
        given += new
    assert len(set(given)) == len(given) == 10
    assert lineage.next_number == following_number(given)


def test_new_ids_keep_what_is_retired() -> None:
    gone = Retired("c1", "Old", "merged", into=("c2",))
    _, lineage = Lineage(2, 5, (gone,)).new_ids(2)
    assert lineage == Lineage(2, 7, (gone,))
    assert lineage.find_retired("c1") == gone
    assert lineage.find_retired("c2") is None


@pytest.mark.parametrize("id_", ["", "c", "c0", "c01", "C1", "1", "c1 ", "c-1", "c1\n", "c\u0661"])
def test_other_strings_are_no_ids(id_: str) -> None:
    assert number_of_id(id_) is None


def test_id_and_number_are_inverse() -> None:
    assert [number_of_id(id_of_number(number)) for number in (1, 9, 10, 12345)] == [1, 9, 10, 12345]
    assert following_number([]) == 1
