"""A refit learns from decisions, and ids and names persist."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.commands import Command
from support.small_texts import QUICK, SmallTask, small_task

from newfound import CategoryDiscoverer, InputError
from newfound.config import RunConfig
from newfound.data.corpus import Corpus
from newfound.decisions import Decision, Part, append, apply, read_decided, read_log
from newfound.decisions.dissolving import without_categories
from newfound.decisions.refitting import decided_corpus, refit
from newfound.pipeline import discover
from newfound.result import Result
from newfound.storage.model_files import load_model
from newfound.storage.run_folder import read_run, write_run


@pytest.fixture(scope="module")
def task() -> SmallTask:
    return small_task()


@pytest.fixture(scope="module")
def result(tiny_encoder: str, task: SmallTask) -> Result:
    config = RunConfig("dpn", tiny_encoder, 4, "fast", device="cpu")
    return discover(Corpus.from_lists(task.texts, task.labels), config, settings=QUICK)


def texts_of(result: Result, id_: str) -> set[str]:
    at = result.position[id_]
    return {result.corpus.ids[row] for row in np.flatnonzero(result.assigned == at)}


def test_refit_without_decisions_keeps_ids_and_names(result: Result) -> None:
    found, problems = refit(result, [])
    assert problems == ()
    assert found.ids.tolist() == result.ids.tolist()
    assert found.names.tolist() == result.names.tolist()
    np.testing.assert_array_equal(found.assigned, result.assigned)
    assert found.lineage.run == 2
    assert found.changes is not None
    assert found.changes["texts"] == 0
    assert found.changes["appeared"] == found.changes["dissolved"] == []


def test_accepted_category_is_known_with_its_id_and_name(result: Result, task: SmallTask) -> None:
    decisions = [
        Decision("accept", category="c3", author="Ada"),
        Decision("rename", category="c3", name="Ours"),
    ]
    found, _ = refit(result, decisions)
    at = found.position["c3"]
    category = found.categories[at]
    assert (category.name, category.kind, category.status) == ("Ours", "known", "accepted")
    assert category.labelled > 0
    assert [event.event for event in category.history] == ["found", "accepted", "renamed"]
    assert found.model is not None
    assert "Ours" in found.model.known
    assert {"Ours"} <= set(found.model.predict(task.texts).names)
    known = [c.id for c in found.categories if c.kind == "known"]
    assert set(known) == {"c1", "c2", "c3"}


def test_merged_categories_stay_merged(result: Result) -> None:
    found, _ = refit(result, [Decision("merge", categories=("c4",), into="c3")])
    assert "c4" not in found.position
    gone = found.lineage.find_retired("c4")
    assert gone is not None
    assert gone.into == ("c3",)
    assert found.categories[found.position["c3"]].status == "accepted"
    assert found.lineage.next_number >= 5
    _, problems = apply(found, [Decision("accept", category="c4")])
    assert [problem.reason for problem in problems] == ["the category c4 was merged into c3"]


def test_split_categories_stay_split(result: Result) -> None:
    members = sorted(texts_of(result, "c3"), key=int)
    part = tuple(members[: len(members) // 2])
    found, _ = refit(result, [Decision("split", category="c3", parts=(Part(part, "Half"),))])
    category = found.categories[found.position["c5"]]
    assert (category.name, category.kind) == ("Half", "known")
    assert set(part) <= texts_of(found, "c5")


def test_moved_and_marked_texts_stay(result: Result) -> None:
    moved = sorted(texts_of(result, "c3"), key=int)[:2]
    marked = sorted(texts_of(result, "c4"), key=int)[:2]
    decisions = [
        Decision("move", texts=tuple(moved), into="c1"),
        Decision("nowhere", texts=tuple(marked)),
    ]
    found, _ = refit(result, decisions)
    assert set(moved) <= texts_of(found, "c1")
    assert found.fits_nowhere is not None
    ids = {found.corpus.ids[row] for row in np.flatnonzero(found.fits_nowhere)}
    assert ids == set(marked)
    assert sum(c.size for c in found.categories) == len(found.corpus)


def test_rejected_category_does_not_come_back(result: Result) -> None:
    rejected = texts_of(result, "c4")
    found, _ = refit(
        replace(result, config={**result.config, "n_categories": "auto"}),
        [Decision("reject", category="c4")],
    )
    assert "c4" not in found.position
    for category in found.categories:
        if category.kind == "novel":
            both = len(texts_of(found, category.id) & rejected)
            assert both <= 0.5 * max(len(rejected), category.size)
    gone = found.lineage.find_retired("c4")
    assert gone is not None
    assert set(gone.texts) == rejected  # remembered for the next refit as well


def test_removing_a_category_gives_its_texts_to_the_nearest(
    result: Result, task: SmallTask
) -> None:
    found = without_categories(result, [3])
    assert len(found.categories) == 3
    free = result.assigned == 3
    assert found.fits_nowhere is not None
    np.testing.assert_array_equal(found.fits_nowhere, free)
    np.testing.assert_array_equal(found.assigned[~free], result.assigned[~free])
    assert found.model is not None
    predicted = found.model.predict(task.texts)
    np.testing.assert_array_equal(predicted.index, found.predicted)
    assert np.isfinite(predicted.fit).all()


def test_new_ids_are_never_those_of_earlier_categories(result: Result) -> None:
    members = sorted(texts_of(result, "c3"), key=int)
    split = Decision("split", category="c3", parts=(Part(tuple(members[:4])),))
    first, _ = refit(result, [split, Decision("undo", line=1)])
    assert first.lineage.next_number >= 6  # c5 was given to the undone part
    second, _ = refit(first, [Decision("accept", category="c3")])
    assert second.lineage.run == 3
    numbers = [int(id_[1:]) for id_ in second.ids]
    assert max(numbers) < second.lineage.next_number


def test_labels_of_a_refit_are_those_of_decided_categories(result: Result) -> None:
    decided, _ = apply(
        result, [Decision("accept", category="c3", texts=tuple(sorted(texts_of(result, "c3"))[:3]))]
    )
    corpus = decided_corpus(decided)
    names = set(corpus.known)
    assert names == {"bank", "travel", str(result.names[2])}
    for label, before in zip(corpus.labels, result.corpus.labels, strict=True):
        assert before is None or label == before


def test_accepted_category_always_has_labels(result: Result) -> None:
    decided, _ = apply(result, [Decision("accept", category="c3")])
    corpus = decided_corpus(replace(decided, reviewed=None))
    assert corpus.labels.count(str(result.names[2])) == 5


def test_refit_from_a_run_folder_equals_refit_in_memory(result: Result, tmp_path: Path) -> None:
    write_run(result, tmp_path)
    decisions = [Decision("accept", category="c4"), Decision("move", texts=("1", "2"), into="c1")]
    one, _ = refit(result, decisions)
    other, _ = refit(read_run(tmp_path), decisions)
    np.testing.assert_array_equal(one.assigned, other.assigned)
    assert one.ids.tolist() == other.ids.tolist()
    assert one.lineage == other.lineage


def test_refit_command_writes_a_run_and_closes_the_old_one(
    result: Result, tmp_path: Path, command: Command
) -> None:
    run, out = tmp_path / "run", tmp_path / "next"
    run.mkdir()
    write_run(result, run)
    assert command("decide", run, "accept", "c3").code == 0
    assert command("decide", run, "rename", "c3", "Ours").code == 0
    done = command("refit", run, "-o", out)
    assert done.code == 0, done.err
    assert "changed category" in done.out
    found = read_run(out)
    assert found.categories[found.position["c3"]].name == "Ours"
    assert found.changes is not None
    assert found.changes["decisions"] == 2
    assert found.lineage.run == 2
    log = read_log(run)
    assert log.refit is not None
    assert log.refit[1].run == str(out)
    late = command("decide", run, "reject", "c4")
    assert late.code == 2
    assert f"was refitted into {out}" in late.err
    again = command("refit", run, "-o", out)
    assert again.code == 2
    assert "replace it with --force" in again.err
    same = command("refit", run, "-o", run, "--force")
    assert "is the run itself" in same.err
    assert load_model(out, "cpu").ids.tolist() == found.ids.tolist()


@pytest.mark.parametrize("name", ["refit", "update"])
def test_decisions_during_long_work_are_carried_over(
    name: str, result: Result, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, out, new = tmp_path / "run", tmp_path / "next", tmp_path / "new.csv"
    run.mkdir()
    write_run(result, run)
    new.write_text("text\nmy hotel trip please\nrain in the sun now\n")
    rows = np.flatnonzero(result.labelled & (result.assigned == result.position["c1"]))
    labelled = result.corpus.ids[rows[0]]
    append(run, [Decision("accept", category="c3")])
    later = [
        Decision("rename", category="c4", name="Later"),
        Decision("note", text="taken back"),
        Decision("undo", line=3),
        Decision("undo", line=1),
        Decision("split", category="c1", parts=(Part((labelled,)),)),
        Decision("rename", category="c5", name="Of the split"),
    ]

    def and_decide(*arguments: Any, **options: Any) -> Result:
        append(run, later)
        return discover(*arguments, **options)

    module = "decisions.refitting" if name == "refit" else "updating.updating"
    monkeypatch.setattr(f"newfound.{module}.discover", and_decide)
    tables = [] if name == "refit" else [new]
    done = command(name, run, *tables, "-o", out)
    assert done.code == 0, done.err
    assert f"made meanwhile were added to {out}" in done.err
    decided, log, problems = read_decided(out)
    assert not problems
    assert [entry.action for entry in log.entries if isinstance(entry, Decision)] == [
        "rename",
        "split",
    ]
    assert decided.names[decided.position["c4"]] == "Later"
    assert decided.names[decided.position["c3"]] == result.names[result.position["c3"]]
    assert "line 5 of " in done.err
    assert "computed with the decision that it takes back" in done.err
    assert "line 7 of " in done.err
    assert "c5 is a category that was split off meanwhile" in done.err
    assert (read_log(run).refit is not None) == (name == "refit")


def test_refit_of_a_read_only_run_succeeds_with_a_note(
    result: Result, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, out = tmp_path / "run", tmp_path / "next"
    run.mkdir()
    write_run(result, run)

    def fail(*arguments: Any, **options: Any) -> None:
        raise InputError("cannot write decisions.jsonl: Read-only file system")

    monkeypatch.setattr("newfound.decisions.carrying_over.append", fail)
    done = command("refit", run, "-o", out)
    assert done.code == 0, done.err
    assert f"Read-only file system; decide on {out} from now on, not on {run}" in done.err


def test_estimator_refits(result: Result, tiny_encoder: str, task: SmallTask) -> None:
    discoverer = CategoryDiscoverer(
        method="dpn",
        encoder=tiny_encoder,
        n_categories=4,
        effort="fast",
        settings=QUICK,
        device="cpu",
    ).fit(task.texts, task.labels)
    decisions = [Decision("accept", category="c3"), Decision("accept", category="c99")]
    assert discoverer.refit(decisions) is discoverer
    assert discoverer.categories_.set_index("id").loc["c3", "status"] == "accepted"
    assert "there is no category 'c99'" in discoverer.notes_[0]


def test_run_on_own_vectors_needs_them_again(result: Result) -> None:
    config = {**result.config, "encoder": "vectors of the user (3 dimensions)"}
    with pytest.raises(InputError, match="does not keep them; give them again"):
        refit(replace(result, config=config), [])
