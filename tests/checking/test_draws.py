"""What a draw hides."""

from collections import Counter

import pytest

from newfound.checking.draws import hide_categories
from newfound.data.corpus import Corpus
from newfound.errors import InputError


def corpus(**labels: int) -> Corpus:
    """So many texts of each label, and ten without one."""
    names: list[str | None] = [name for name, count in labels.items() for _ in range(count)]
    names += [None] * 10
    return Corpus.from_lists([f"text {i}" for i in range(len(names))], names)


def eight(each: int = 8) -> Corpus:
    return corpus(**{f"label {i}": each for i in range(8)})


def test_a_quarter_of_the_categories_and_of_the_other_labels_is_hidden() -> None:
    draw = hide_categories(eight())
    counts = Counter(label for label in draw.truth if label is not None)
    assert len(draw.hidden) == 2
    assert all(counts[label] == 8 for label in draw.hidden)
    assert all(counts[label] == 2 for label in draw.corpus.known)
    assert len(draw.corpus.known) == 6


def test_texts_stay_and_a_label_is_either_given_or_hidden() -> None:
    whole = eight()
    draw = hide_categories(whole)
    assert (draw.corpus.texts, draw.corpus.ids) == (whole.texts, whole.ids)
    for label, given, hidden in zip(whole.labels, draw.corpus.labels, draw.truth, strict=True):
        assert sorted([given, hidden], key=str) == sorted([label, None], key=str)


def test_draws_hide_each_category_once_before_any_twice() -> None:
    hidden = [label for draw in range(4) for label in hide_categories(eight(), draw=draw).hidden]
    assert sorted(hidden) == eight().known


def test_the_same_seed_hides_the_same() -> None:
    assert hide_categories(eight(), seed=3, draw=1) == hide_categories(eight(), seed=3, draw=1)
    seeds = {hide_categories(eight(), seed=seed).hidden for seed in range(10)}
    assert len(seeds) > 1


def test_categories_with_few_labels_keep_them() -> None:
    draw = hide_categories(corpus(a=2, b=1, c=3, d=20, e=2))
    counts = Counter(label for label in draw.corpus.labels if label is not None)
    assert (counts["a"], counts["b"], counts["e"]) == (2, 1, 2)
    assert draw.hidden in [("c",), ("d",)]


def test_one_label_is_held_back_where_a_category_has_three() -> None:
    draw = hide_categories(corpus(a=3, b=3, c=3, d=3))
    assert Counter(Counter(label for label in draw.truth if label).values()) == {1: 3, 3: 1}


def test_too_few_categories_or_labels_are_refused() -> None:
    with pytest.raises(InputError, match=r"3 categories are known, .* at least 4"):
        hide_categories(corpus(a=9, b=9, c=9))
    with pytest.raises(InputError, match="no category has 3 labelled texts"):
        hide_categories(corpus(a=2, b=2, c=2, d=2))
    with pytest.raises(InputError, match=r"at most 0\.5"):
        hide_categories(eight(), share=0.8)
