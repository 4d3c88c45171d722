"""New texts join a run, whose categories keep their ids, names and texts."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from newfound import InputError
from newfound.config import RunConfig
from newfound.data.corpus import Corpus
from newfound.decisions import Decision, apply
from newfound.pipeline import discover
from newfound.report.findings.checks import findings
from newfound.result import Result
from newfound.storage.model_files import load_model
from newfound.storage.run_folder import read_run, write_run
from newfound.updating import describe_changes, update
from newfound.updating.assembling import FEW_MOVED, MOST_MOVED

WIDTH = 8
EACH = 24  # texts of a subject in the run


def texts_of(
    subjects: list[int], *, seed: int, labelled: int = 0, first_id: int = 1, noise: float = 0.25
) -> Corpus:
    """Texts of these subjects, whose vectors lie around one axis each."""
    rng = np.random.default_rng(seed)
    vectors = 3 * np.eye(WIDTH)[subjects] + noise * rng.normal(size=(len(subjects), WIDTH))
    words = ["card", "flight", "song", "rain", "bread", "shoe", "tree", "moon"]
    texts = [f"{words[s]} {words[s]}s number {first_id + i}" for i, s in enumerate(subjects)]
    seen: dict[int, int] = {}
    labels = []
    for subject in subjects:
        seen[subject] = seen.get(subject, 0) + 1
        known = subject < 2 and seen[subject] <= labelled
        labels.append(words[subject] if known else None)
    ids = [str(first_id + i) for i in range(len(subjects))]
    return Corpus.from_lists(texts, labels, ids, vectors=vectors)


@pytest.fixture(scope="module")
def run() -> Result:
    """A run of two known categories and one novel one."""
    corpus = texts_of([0] * EACH + [1] * EACH + [2] * EACH, seed=0, labelled=6)
    result = discover(corpus, RunConfig(n_categories=3, effort="fast", device="cpu"))
    assert [category.size for category in result.categories] == [EACH] * 3
    return result


@pytest.fixture(scope="module")
def updated(run: Result) -> Result:
    """The run with texts of all its categories, and of one more subject."""
    return update(run, texts_of([0] * 8 + [2] * 8 + [3] * 15, seed=1, first_id=101))


def test_categories_keep_ids_names_and_texts(run: Result, updated: Result) -> None:
    assert updated.ids[:3].tolist() == run.ids.tolist()
    assert updated.names[:3].tolist() == run.names.tolist()
    np.testing.assert_array_equal(updated.assigned[: 3 * EACH], run.assigned)
    assert updated.corpus.ids[: 3 * EACH] == run.corpus.ids
    assert updated.lineage.run == 2


def test_new_texts_join_their_category(run: Result, updated: Result) -> None:
    new = updated.assigned[3 * EACH :]
    assert (new[:8] == run.assigned[0]).all()
    assert (new[8:16] == run.assigned[-1]).all()
    sizes = [category.size for category in updated.categories[:3]]
    assert sorted(sizes) == [EACH, EACH + 8, EACH + 8]


def test_what_fits_nowhere_becomes_a_proposed_category_with_a_fresh_id(updated: Result) -> None:
    assert len(updated.categories) == 4
    category = updated.categories[3]
    assert (category.id, category.kind, category.status) == ("c4", "novel", "proposed")
    assert (updated.assigned[-15:] == 3).all()
    assert "rain" in category.name.casefold()
    assert [(event.event, event.run) for event in category.history] == [("found", 2)]
    assert updated.lineage.next_number == 5


def test_model_predicts_old_and_new_categories(updated: Result) -> None:
    assert updated.model is not None
    corpus = texts_of([0, 1, 2, 3], seed=2)
    found = updated.model.predict(corpus.texts, vectors=corpus.vectors)
    assert found.ids.tolist() == [updated.ids[updated.assigned[row]] for row in (0, EACH, -20, -1)]
    assert set(found.best_known) <= set(updated.model.known)
    assert np.isfinite(found.fit).all()


def test_changes_list_what_is_new_growing_and_fading(updated: Result) -> None:
    assert updated.changes is not None
    assert updated.changes["appeared"] == ["c4"]
    assert updated.changes["new_texts"] == 31
    assert updated.changes["texts"] == 0
    assert sum(updated.changes["joined"].values()) == 31
    lines = describe_changes(updated)
    assert lines[0].startswith("31 new texts; 0 earlier texts of 72 changed category")
    assert any(line.startswith("new") and "c4" in line for line in lines)


def test_no_category_is_proposed_if_everything_fits(run: Result) -> None:
    later = update(run, texts_of([0] * 10 + [1] * 10 + [2] * 10, seed=3, first_id=201))
    assert later.ids.tolist() == run.ids.tolist()
    assert later.changes is not None
    assert later.changes["appeared"] == []


def test_a_second_update_continues_the_lineage(updated: Result) -> None:
    later = update(updated, texts_of([3] * 6 + [4] * 15, seed=4, first_id=301))
    assert later.ids[:4].tolist() == updated.ids.tolist()
    assert later.ids[4:].tolist() == ["c5"]
    assert (later.assigned[-15:] == 4).all()
    assert later.lineage.run == 3


def test_positions_of_earlier_texts_stay(run: Result, updated: Result) -> None:
    old = len(run.corpus)
    np.testing.assert_array_equal(updated.map_positions[:old], run.map_positions)
    assert np.isfinite(updated.map_positions).all()
    assert np.abs(updated.map_positions).max() <= 1


def test_a_new_label_is_a_new_known_category(run: Result) -> None:
    new = texts_of([0] * 4 + [3] * 8, seed=5, first_id=401)
    labels = [None] * 4 + ["rain"] * 8
    later = update(run, replace(new, labels=labels))
    at = later.names.tolist().index("rain")
    assert (later.categories[at].id, later.categories[at].kind) == ("c4", "known")
    assert later.kinds.tolist() == ["known"] * 3 + ["novel"]
    assert later.model is not None
    assert later.model.known == tuple(later.names[:3])
    assert (later.assigned[-8:] == at).all()
    # The novel category has moved by one place, and its texts with it.
    np.testing.assert_array_equal(later.ids[later.assigned[:72]], run.ids[run.assigned])


def test_a_label_with_the_name_of_a_novel_category_makes_it_known(run: Result) -> None:
    decided, _ = apply(run, [Decision("rename", category="c3", name="Music")])
    new = texts_of([2] * 8, seed=6, first_id=501)
    later = update(decided, replace(new, labels=["Music"] * 4 + [None] * 4))
    category = later.categories[later.position["c3"]]
    assert (category.name, category.kind, category.status) == ("Music", "known", "known")
    assert category.labelled == 4


def test_decisions_hold_in_an_update(run: Result) -> None:
    decisions = [Decision("accept", category="c3"), Decision("rename", category="c3", name="Ours")]
    decided, _ = apply(run, decisions)
    later = update(decided, texts_of([2] * 8, seed=7, first_id=601))
    category = later.categories[later.position["c3"]]
    assert (category.name, category.status) == ("Ours", "accepted")
    assert category.size == EACH + 8
    assert later.reviewed is not None
    assert later.reviewed.sum() == decided.reviewed.sum() > 0  # type: ignore[union-attr]


def test_a_loose_text_goes_to_a_new_category() -> None:
    subjects = [0] * EACH + [1] * EACH + [2] * EACH + [3] * 3
    result = discover(
        texts_of(subjects, seed=8, labelled=6),
        RunConfig(n_categories=3, effort="fast", device="cpu"),
    )
    later = update(result, texts_of([3] * 12, seed=9, first_id=701))
    assert "c4" in later.position
    at = later.position["c4"]
    assert (later.assigned[-12:] == at).all()
    assert (later.assigned[3 * EACH : 3 * EACH + 3] == at).all()
    assert later.changes is not None
    assert later.changes["moved"]["to_new_categories"] == 3
    assert later.changes["texts"] == 3


def test_an_update_moves_a_limited_share_of_earlier_texts() -> None:
    # 40 texts of a subject that the run has no category for are absorbed by the others.
    subjects = [0] * EACH + [1] * EACH + [2] * EACH + [3] * 40
    result = discover(
        texts_of(subjects, seed=10, labelled=6),
        RunConfig(n_categories=3, effort="fast", device="cpu"),
    )
    later = update(result, texts_of([3] * 30, seed=11, first_id=801))
    assert later.changes is not None
    assert later.changes["texts"] <= max(FEW_MOVED, MOST_MOVED * len(result.corpus))


def test_update_gives_the_same_result_again(run: Result, updated: Result) -> None:
    again = update(run, texts_of([0] * 8 + [2] * 8 + [3] * 15, seed=1, first_id=101))
    np.testing.assert_array_equal(again.assigned, updated.assigned)
    np.testing.assert_array_equal(again.probability, updated.probability)


def test_vectors_are_needed_for_both_or_neither(run: Result) -> None:
    with pytest.raises(InputError, match="give vectors for both"):
        update(run, Corpus.from_lists(["a new text"], ids=["x"]))
    without = replace(run, corpus=replace(run.corpus, vectors=None))
    with pytest.raises(InputError, match="vectors that you computed"):
        update(without, Corpus.from_lists(["a new text"], ids=["x"]))


def test_report_tells_what_changed(run: Result, updated: Result) -> None:
    finding = next(each for each in findings(updated) if each.kind == "changes")
    assert "31 texts joined 72; 1 category is new" in finding.text
    assert finding.items[0].category == updated.position["c4"]
    assert finding.items[0].text == "new: 15 new texts, 48% of all new ones"
    assert not any(each.kind == "changes" for each in findings(run))


def test_updated_run_is_written_and_read(updated: Result, tmp_path: Path) -> None:
    write_run(updated, tmp_path)
    again = read_run(tmp_path)
    assert again.changes == updated.changes
    assert again.ids.tolist() == updated.ids.tolist()
    assert again.lineage == updated.lineage
    np.testing.assert_array_equal(again.assigned, updated.assigned)
    corpus = texts_of([3], seed=2)
    found = load_model(tmp_path, "cpu").predict(corpus.texts, vectors=corpus.vectors)
    assert found.ids.tolist() == ["c4"]
