"""Groups of look-alike categories."""

from typing import Any

import numpy as np
import pytest

from newfound.category import Category
from newfound.describing.tree import LEAST, category_means, cut_levels, with_groups


def category(at: int, name: str, **other: Any) -> Category:
    values: dict[str, Any] = {
        "id": f"c{at + 1}", "name": name, "kind": "novel", "status": "proposed", "size": 10 + at,
        "share": 0.1, "labelled": 0, "keywords": (), "examples": (), "border": (),
        "confidence": 0.9, "nearest": None, "nearest_distance": 1.0, "distance": None,
    }  # fmt: skip
    return Category(**(values | other))


def clouds(groups: int, each: int) -> tuple[np.ndarray, np.ndarray]:
    """Return features of `groups` far groups of `each` near categories, and their categories."""
    rng = np.random.default_rng(0)
    centres = np.repeat(np.eye(groups) * 5, each, axis=0)
    centres = centres + 0.5 * rng.normal(size=centres.shape)
    assigned = np.repeat(np.arange(groups * each), 4)
    return centres[assigned] + 0.01 * rng.normal(size=(len(assigned), groups)), assigned


def test_look_alikes_form_groups() -> None:
    features, assigned = clouds(4, 3)
    names = [f"{('card', 'refund', 'app', 'parcel')[at // 3]} matter{at}" for at in range(12)]
    found = with_groups([category(at, name) for at, name in enumerate(names)], features, assigned)
    assert [c.groups for c in found] == [
        (name,) for name in ("card", "refund", "app", "parcel") for _ in range(3)
    ]


def test_levels_are_nested_and_have_unique_names() -> None:
    features, assigned = clouds(9, 4)
    found = with_groups([category(at, f"name{at}") for at in range(36)], features, assigned)
    small = {c.groups[0] for c in found}
    large = {c.groups[1] for c in found}
    assert (len(small), len(large)) == (12, 4)
    assert len({c.groups for c in found}) == len(small)  # each small group is in one large group


def test_group_without_a_shared_word_is_named_by_its_largest_category() -> None:
    features, assigned = clouds(2, 3)
    found = with_groups([category(at, f"name{at}") for at in range(6)], features, assigned)
    assert {c.groups for c in found} == {("name2 and 2 more",), ("name5 and 2 more",)}


def test_few_categories_are_not_grouped() -> None:
    features, assigned = clouds(LEAST - 1, 1)
    few = [category(at, f"name{at}", groups=("old",)) for at in range(LEAST - 1)]
    assert [c.groups for c in with_groups(few, features, assigned)] == [()] * (LEAST - 1)


def test_means_agree_with_a_loop_and_may_be_empty() -> None:
    features, assigned = clouds(3, 2)
    means = category_means(features, assigned, 7)
    for at in range(6):
        mean = np.mean([f for f, own in zip(features, assigned, strict=True) if own == at], axis=0)
        assert means[at] == pytest.approx(mean / np.linalg.norm(mean))
    assert not means[6].any()
    assert len(cut_levels(means)) == 7
