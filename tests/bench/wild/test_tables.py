"""Tables as people have them: sizes, labels by design, noise, and determinism."""

from collections import Counter

import numpy as np
import pytest

from newfound.bench.wild.sources import Source
from newfound.bench.wild.tables import DESIGNS, SIZES, Cell, Table, cut_table
from newfound.errors import InputError

EACH, CATEGORIES = 60, 12
SOURCE = Source(
    "texts",
    [f"text {i}" for i in range(EACH * CATEGORIES)],
    [f"c{i % CATEGORIES:02d}" for i in range(EACH * CATEGORIES)],
)
NOISE = [f"noise {i}" for i in range(400)]


def cut(design: str = "tenth", sizes: str = "natural", noise: float = 0.0, **more: int) -> Table:
    return cut_table(SOURCE, Cell("texts", design, sizes, noise, **more), NOISE)


def labelled(table: Table) -> Counter[str]:
    return Counter(label for label in table.labels if label is not None)


def unlabelled(table: Table) -> Counter[str | None]:
    return Counter(np.array(table.truth, object)[table.unlabelled].tolist())


@pytest.mark.parametrize(("design", "number"), [("tenth", 6), ("ten", 10), ("archive", 36)])
def test_design_labels_so_many_texts_of_each_known_category(design: str, number: int) -> None:
    table = cut(design)
    assert len(table.known) == 9  # three quarters of twelve
    assert labelled(table) == dict.fromkeys(table.known, number)
    assert set(unlabelled(table)) == set(SOURCE.labels)
    assert table.n_categories == CATEGORIES


def test_a_third_of_the_known_categories_is_absent_from_the_unlabelled_texts() -> None:
    table = cut("absent")
    assert labelled(table) == dict.fromkeys(table.known, 10)
    missing = set(table.known) - set(unlabelled(table))
    assert len(missing) == 3
    assert len(table.texts) == EACH * CATEGORIES - 3 * (EACH - 10)
    assert table.n_categories == CATEGORIES


def test_without_labels_nothing_is_known() -> None:
    table = cut("none")
    assert table.known == []
    assert table.unlabelled.all()
    assert table.n_categories == CATEGORIES


@pytest.mark.parametrize(("sizes", "ratio"), [("even", 1), ("tail10", 10), ("tail100", 30)])
def test_tail_has_its_ratio(sizes: str, ratio: float) -> None:
    counts = sorted(Counter(cut("none", sizes).truth).values())
    assert counts[-1] == EACH
    assert counts[-1] / counts[0] == ratio  # no category falls below two texts
    if ratio == 10:
        steps = np.diff(np.log(counts))
        assert np.allclose(steps, np.log(10) / (CATEGORIES - 1), atol=0.09)


def test_noise_is_a_share_of_the_unlabelled_texts() -> None:
    table = cut("ten", noise=0.3)
    outside = ~table.in_scope
    assert outside.sum() / table.unlabelled.sum() == pytest.approx(0.3, abs=0.002)
    assert all(table.texts[i].startswith("noise") for i in np.flatnonzero(outside))
    assert table.unlabelled[outside].all()
    assert table.n_categories == CATEGORIES
    assert 0.2 < np.flatnonzero(outside).mean() / len(table.texts) < 0.8  # mixed in
    assert table.counts()["out_of_scope"] == outside.sum()


def test_too_few_out_of_scope_texts_are_an_error() -> None:
    with pytest.raises(InputError, match=r"309 out-of-scope texts, but only 5 are available"):
        cut_table(SOURCE, Cell("texts", "none", noise=0.3), NOISE[:5])


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("sizes", SIZES)
def test_seed_decides_the_table(design: str, sizes: str) -> None:
    one = cut(design, sizes, noise=0.1, limit=200, seed=3)
    again = cut(design, sizes, noise=0.1, limit=200, seed=3)
    other = cut(design, sizes, noise=0.1, limit=200, seed=4)
    assert one == again
    assert one.texts != other.texts
    assert one.in_scope.sum() <= 200
    truth = dict(zip(SOURCE.texts, SOURCE.labels, strict=True))
    assert one.truth == [truth.get(text) for text in one.texts]
    for label, category in zip(one.labels, one.truth, strict=True):
        assert label in (None, category)


def test_designs_share_their_texts() -> None:
    tables = [cut(design, limit=300) for design in ("tenth", "ten", "archive", "none")]
    assert all(table.texts == tables[0].texts for table in tables)


def test_small_novel_categories_do_not_count() -> None:
    truth = ["a"] * 3 + ["b"] * 5 + ["c"] * 4 + [None]
    table = Table(["x"] * 13, ["a", *[None] * 12], truth, ["a"])
    assert (table.n_categories, table.n_counted) == (3, 2)
