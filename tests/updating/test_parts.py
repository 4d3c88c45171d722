"""The parts of an update: joining, trends, choice of texts, places on the map."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom
from support.fake_run import write_fake_run

from newfound import InputError
from newfound.data.corpus import Corpus
from newfound.result import Result
from newfound.storage.run_folder import read_run
from newfound.updating.changes import LEVEL, TIMES, trends
from newfound.updating.choosing import (
    EACH,
    MOST_LOOSE,
    choose_loose,
    choose_typical,
)
from newfound.updating.joining import joined, new_rows
from newfound.updating.placing import free_place, place_new


def corpus(texts: list[str], ids: list[str], **columns: list[str]) -> Corpus:
    return Corpus(texts, [None] * len(texts), ids, columns)


def test_rows_that_the_run_has_are_skipped() -> None:
    old = corpus(["a", "b"], ["1", "2"])
    new, notes = new_rows(old, corpus(["a", "c"], ["1", "3"]))
    assert (new.ids, new.texts) == (["3"], ["c"])
    assert notes == ["1 text is in the run already (same id and text): skipped"]
    with pytest.raises(InputError, match="no new text"):
        new_rows(old, corpus(["b"], ["2"]))


def test_an_id_of_another_text_gets_a_number() -> None:
    old = corpus(["a", "b"], ["1", "1-2"])
    new, notes = new_rows(old, corpus(["c", "d", "e"], ["1", "1-3", "2"]))
    assert new.ids == ["1-4", "1-3", "2"]
    assert "a number was added, as in 1-4" in notes[0]


def test_columns_of_both_are_kept_and_dates_joined() -> None:
    old = replace(corpus(["a"], ["1"], day=["2024-01-01"], who=["x"]), time_column="day")
    new = replace(corpus(["b"], ["2"], when=["2024-02-01"], where=["y"]), time_column="when")
    both = joined(old, new)
    assert both.columns == {
        "day": ["2024-01-01", "2024-02-01"],
        "who": ["x", ""],
        "where": ["", "y"],
    }
    assert both.time_column == "day"
    clash = replace(corpus(["b"], ["2"], when=["1"], day=["2"]), time_column="when")
    with pytest.raises(InputError, match="the dates of the run are in 'day'"):
        joined(old, clash)


def test_a_column_with_the_name_of_an_output_is_joined_under_its_stored_name() -> None:
    old = corpus(["a"], ["1"], **{"category (2)": ["x"]})
    new = corpus(["b"], ["2"], category=["y"])
    (name,) = joined(corpus(["a"], ["1"]), new).columns
    assert name != "category"
    assert joined(replace(old, columns={name: ["x"]}), new).columns == {name: ["x", "y"]}


def test_trends_agree_with_a_plain_loop() -> None:
    rng = np.random.default_rng(0)
    earlier, new = rng.integers(0, 80, 40), rng.integers(0, 40, 40)
    share = new.sum() / (earlier.sum() + new.sum())
    expected = []
    for a, b in zip(earlier.tolist(), new.tolist(), strict=True):
        terms = [binom.pmf(k, a + b, share) for k in range(a + b + 1)]
        rate, old_rate = b / new.sum(), a / earlier.sum()
        level = LEVEL / 80
        if sum(terms[b:]) < level and rate >= TIMES * old_rate:
            expected.append(1)
        elif sum(terms[: b + 1]) < level and rate * TIMES <= old_rate:
            expected.append(-1)
        else:
            expected.append(0)
    assert trends(earlier, new).tolist() == expected
    assert {-1, 0, 1} == set(expected)


def test_no_trend_without_texts() -> None:
    assert trends(np.array([0, 0]), np.array([3, 4])).tolist() == [0, 0]
    assert trends(np.array([3, 4]), np.array([0, 0])).tolist() == [0, 0]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """A run of 6,000 texts and eight categories."""
    folder = tmp_path_factory.mktemp("large")
    write_fake_run(folder, 6_000, 4, 4, seed=0)
    result = read_run(folder)
    fit = np.random.default_rng(0).random(len(result.corpus))
    return replace(result, fit=fit, fits_nowhere=None)


def test_number_of_chosen_texts_does_not_grow_with_the_run(large: Result) -> None:
    loose = choose_loose(large)
    typical = choose_typical(large, loose, 0)
    counts = np.bincount(large.assigned[typical], minlength=len(large.categories))
    assert counts.max() <= EACH
    # Labelled texts come first.
    for at in range(len(large.categories)):
        own = large.labelled & (large.assigned == at)
        chosen = typical[large.assigned[typical] == at]
        assert large.labelled[chosen].sum() == min(EACH, own.sum())
    assert len(loose) == MOST_LOOSE
    assert not set(loose.tolist()) & set(typical.tolist())
    assert not large.labelled[loose].any()
    assert large.fit is not None
    others = np.setdiff1d(np.flatnonzero(~large.labelled), loose)
    assert large.fit[loose].max() <= large.fit[others].min()


def test_texts_marked_as_fitting_nowhere_are_left_out(large: Result) -> None:
    marked = ~large.labelled & (np.arange(len(large.corpus)) % 2 == 0)
    typical = choose_typical(replace(large, fits_nowhere=marked), np.empty(0, int), 0)
    assert not marked[typical].any()


def test_new_texts_are_placed_beside_their_category() -> None:
    rng = np.random.default_rng(0)
    features = np.repeat(np.eye(3), 20, axis=0) + 0.01 * rng.normal(size=(60, 3))
    categories = np.repeat([0, 1, 2], 20)
    positions = np.repeat([[-0.5, 0.0], [0.5, 0.0], [9.0, 9.0]], 20, axis=0)
    positions += 0.05 * rng.normal(size=(60, 2))
    placed = (categories < 2) & (np.arange(60) % 20 < 15)
    found = place_new(positions, features, categories, placed, seed=0)
    np.testing.assert_array_equal(found[placed], positions[placed])
    assert np.abs(found).max() <= 1
    for category, centre in ((0, [-0.5, 0]), (1, [0.5, 0])):
        new = found[(categories == category) & ~placed]
        assert np.linalg.norm(new - centre, axis=1).max() < 0.3
    disc = found[categories == 2]
    for centre in ([-0.5, 0], [0.5, 0]):
        assert np.linalg.norm(disc - centre, axis=1).min() > 0.05


def test_a_full_map_still_has_a_place() -> None:
    line = np.linspace(-1, 1, 9)
    centres = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    at = free_place(np.zeros(2), 0.2, centres, np.full(len(centres), 0.2))
    assert np.abs(at).max() <= 1


def test_every_category_with_texts_is_looked_at(large: Result) -> None:
    marked = ~large.labelled
    result = replace(large, fits_nowhere=marked, fit=np.where(large.assigned == 5, 0.0, 1.0))
    typical = choose_typical(result, choose_loose(result), 0)
    assert set(large.assigned[typical]) == set(large.assigned)
