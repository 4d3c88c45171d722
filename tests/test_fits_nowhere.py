"""Fit scores and texts that fit nowhere, from the fit to the files and the report."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from support.commands import Command, Refuse
from support.sealing import reseal, unseal
from support.small_texts import QUICK, SmallTask

from newfound import CategoryDiscoverer, InputError
from newfound.clustering.assignment import probabilities
from newfound.config import RunConfig
from newfound.data.corpus import Corpus
from newfound.pipeline import discover
from newfound.report.data import prepare
from newfound.report.findings import findings
from newfound.result import Result
from newfound.storage.model_files import load_model, save_model
from newfound.storage.run_folder import read_run, write_run

STRANGE = "help help help now now"  # words that no training text has


def found_by(tiny_encoder: str, task: SmallTask, **chosen: float) -> Result:
    config = RunConfig("dpn", tiny_encoder, 4, "fast", device="cpu", **chosen)
    return discover(Corpus.from_lists(task.texts, task.labels), config, settings=QUICK)


@pytest.fixture(scope="module")
def result(tiny_encoder: str, task: SmallTask) -> Result:
    return found_by(tiny_encoder, task)


@pytest.fixture(scope="module")
def marked(tiny_encoder: str, task: SmallTask) -> Result:
    return found_by(tiny_encoder, task, outside=0.1)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_by_default_texts_have_a_score_and_none_is_marked(result: Result) -> None:
    assert result.fit is not None
    assert np.isfinite(result.fit).all()
    assert result.fits_nowhere is None
    for position, category in enumerate(result.categories):
        own = result.fit[result.assigned == position]
        assert category.fit == pytest.approx(own.mean(), abs=1e-3)
        assert category.fits_nowhere is None


def test_a_strange_text_has_a_lower_score_than_training_texts(
    result: Result, task: SmallTask
) -> None:
    assert result.model is not None
    assert result.fit is not None
    found = result.model.predict([*task.texts, STRANGE, ""])
    assert found.fit[-2] < np.quantile(result.fit, 0.05)
    assert np.isnan(found.fit[-1])
    assert found.fits_nowhere is None


def test_training_texts_that_come_again_have_the_same_scores(
    result: Result, task: SmallTask
) -> None:
    assert result.model is not None
    assert result.fit is not None
    found = result.model.predict(task.texts)
    np.testing.assert_array_equal(found.index, result.predicted)
    np.testing.assert_allclose(found.probability, result.probability, atol=1e-3)
    same = result.assigned == result.predicted  # the fit is of the assigned category
    assert same.mean() > 0.9
    np.testing.assert_allclose(found.fit[same], result.fit[same], atol=1e-3)


def test_probabilities_are_the_largest_of_their_rows(result: Result, task: SmallTask) -> None:
    assert result.model is not None
    rows = result.model.probabilities([*task.texts, STRANGE])
    found = result.model.predict([*task.texts, STRANGE])
    np.testing.assert_allclose(rows.sum(1), 1)
    np.testing.assert_array_equal(rows.argmax(1), found.index)
    np.testing.assert_allclose(rows.max(1), found.probability, atol=1e-3)


def test_without_reference_texts_the_softmax_remains(result: Result, task: SmallTask) -> None:
    assert result.model is not None
    model = replace(result.model, fit_reference=None)
    features = model.transform(task.texts)
    wanted = probabilities(features, model.prototypes, model.temperature)
    np.testing.assert_allclose(model.probabilities(task.texts), wanted, atol=1e-3)
    np.testing.assert_allclose(model.predict(task.texts).probability, wanted.max(1), atol=1e-3)


def test_a_share_marks_that_share_of_the_unlabelled_texts(marked: Result, result: Result) -> None:
    outside = marked.fits_nowhere
    assert outside is not None
    assert marked.fit is not None
    assert outside.sum() == round(0.1 * (~marked.labelled).sum())
    assert not outside[marked.labelled].any()
    rest = ~outside & ~marked.labelled
    assert marked.fit[outside].max() <= marked.fit[rest].min()
    assert sum(category.fits_nowhere or 0 for category in marked.categories) == outside.sum()
    # Marks change nothing else: the texts keep their category.
    np.testing.assert_array_equal(marked.assigned, result.assigned)


def test_best_known_category_of_every_text(result: Result, task: SmallTask) -> None:
    assert result.model is not None
    assert result.best_known is not None
    assert result.best_known_probability is not None
    chances = result.model.probabilities(task.texts)
    np.testing.assert_array_equal(result.best_known, chances[:, :2].argmax(1))
    np.testing.assert_allclose(result.best_known_probability, chances[:, :2].max(1), atol=1e-3)
    found = result.model.predict([*task.texts, ""])
    assert found.best_known.tolist() == [*result.names[result.best_known], None]
    novel = result.kinds[result.predicted] == "novel"
    assert (found.best_known_probability[:-1][novel] < found.probability[:-1][novel]).all()


def test_without_labels_no_category_is_the_best_known(tiny_encoder: str, task: SmallTask) -> None:
    plain = replace(task, labels=[None] * len(task.texts))
    result = found_by(tiny_encoder, plain)
    assert result.best_known is not None
    assert set(result.best_known.tolist()) == {-1}
    assert result.model is not None
    assert result.model.predict(["rain"]).best_known.tolist() == [None]
    with pytest.raises(InputError, match="needs labelled texts, and there are none"):
        found_by(tiny_encoder, plain, false_alarms=0.1)


def test_a_false_alarm_rate_that_the_labels_cannot_tell_is_reported(
    tiny_encoder: str, task: SmallTask
) -> None:
    result = found_by(tiny_encoder, task, false_alarms=0.01)
    assert result.fits_nowhere is not None
    assert not result.fits_nowhere.any()
    assert any("12 labelled texts are too few" in note for note in result.notes)
    wide = found_by(tiny_encoder, task, false_alarms=0.5)
    assert wide.fits_nowhere is not None
    assert wide.fits_nowhere.any()


def test_rules_that_cannot_be_are_refused(result: Result) -> None:
    assert result.model is not None
    with pytest.raises(InputError, match="give one of them"):
        result.model.marking(0.1, 0.1)
    with pytest.raises(InputError, match="--outside must be from 0 to 1, not 5"):
        result.model.marking(5)
    old = replace(result.model, fit_reference=None)
    with pytest.raises(InputError, match="run `newfound discover` again"):
        old.marking(0.1)


def test_the_estimator_scores_and_marks(tiny_encoder: str, task: SmallTask, tmp_path: Path) -> None:
    discoverer = CategoryDiscoverer(
        "dpn", tiny_encoder, 4, "fast", device="cpu", settings=QUICK, false_alarms=0.2
    ).fit(task.texts, task.labels)
    assert discoverer.fit_scores_ is not None
    assert discoverer.fits_nowhere_ is not None
    scores = discoverer.predict_fit([STRANGE, task.texts[0], ""])
    assert scores[0] < scores[1]
    assert np.isnan(scores[2])
    assert discoverer.predict_fits_nowhere([STRANGE, task.texts[0], ""]).tolist() == [
        True,
        False,
        False,
    ]
    discoverer.save(tmp_path / "model")
    loaded = CategoryDiscoverer.load(tmp_path / "model", device="cpu")
    np.testing.assert_allclose(loaded.predict_fit([STRANGE]), scores[:1], atol=1e-4)
    assert loaded.false_alarms == 0.2
    plain = CategoryDiscoverer("dpn", tiny_encoder, 4, "fast", device="cpu", settings=QUICK)
    with pytest.raises(InputError, match="use the scores of predict_fit"):
        plain.fit(task.texts, task.labels).predict_fits_nowhere(["rain"])


def test_a_trained_encoder_is_scored_in_its_own_features(
    tiny_encoder: str, task: SmallTask
) -> None:
    config = RunConfig("dpn", tiny_encoder, 4, "best", device="cpu")
    result = discover(Corpus.from_lists(task.texts, task.labels), config, settings=QUICK)
    assert result.model is not None
    assert result.model.fit_reference is not None
    assert not result.model.fit_reference.frozen
    assert result.model.predict([STRANGE]).fit[0] < np.median(result.fit)


# Files


def test_a_run_folder_keeps_scores_and_marks(marked: Result, tmp_path: Path) -> None:
    write_run(marked, tmp_path)
    rows = rows_of(tmp_path / "assignments.csv")
    assert marked.fits_nowhere is not None
    assert [row["fits_nowhere"] == "yes" for row in rows] == marked.fits_nowhere.tolist()
    read = read_run(tmp_path)
    for name in ("fit", "fits_nowhere", "best_known", "best_known_probability"):
        np.testing.assert_array_equal(getattr(read, name), getattr(marked, name))
    assert read.categories == marked.categories
    assert json.loads((tmp_path / "run.json").read_text())["fits_nowhere"] == sum(
        marked.fits_nowhere
    )


def test_folders_of_earlier_versions_are_read(marked: Result, tmp_path: Path) -> None:
    write_run(marked, tmp_path)
    later = {"best_known", "best_known_probability", "fit", "fits_nowhere"}
    rows = rows_of(tmp_path / "assignments.csv")
    with (tmp_path / "assignments.csv").open("w", encoding="utf-8", newline="") as file:
        names = [name for name in rows[0] if name not in later]
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    for path in (tmp_path / "categories.json", tmp_path / "model" / "model.json"):
        value = json.loads(path.read_text())
        for entry in value if isinstance(value, list) else value["categories"]:
            del entry["fit"], entry["fits_nowhere"]
        if isinstance(value, dict):
            del value["fit_reference"]
        path.write_text(json.dumps(value))
    (tmp_path / "model" / "fit_reference.safetensors").unlink()
    unseal(tmp_path)
    read = read_run(tmp_path)
    assert read.fit is None
    assert read.fits_nowhere is None
    assert read.best_known is None
    assert prepare(read)
    model = load_model(tmp_path, "cpu")
    found = model.predict(["rain"])
    assert np.isnan(found.fit).all()
    assert found.fits_nowhere is None
    again = tmp_path / "again"
    again.mkdir()
    write_run(read, again, model=False)
    assert set(rows_of(again / "assignments.csv")[0]) == set(names)


def test_a_mark_that_is_none_is_named_with_its_row(marked: Result, tmp_path: Path) -> None:
    write_run(marked, tmp_path, model=False)
    path = tmp_path / "assignments.csv"
    lines = path.read_text().splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if ",no," in line)
    lines[at] = lines[at].replace(",no,", ",maybe,")
    path.write_text("".join(lines))
    reseal(tmp_path)
    with pytest.raises(InputError, match=f"row {at}: fits_nowhere cannot be 'maybe'"):
        read_run(tmp_path)


def test_reference_texts_of_another_model_are_refused(
    result: Result, marked: Result, tmp_path: Path
) -> None:
    assert result.model is not None
    reference = result.model.fit_reference
    assert reference is not None
    narrow = replace(reference, vectors=reference.vectors[:, :3], profiles=None)
    save_model(replace(result.model, fit_reference=narrow), tmp_path / "narrow")
    with pytest.raises(InputError, match=r"fit_reference\.safetensors belongs to another encoder"):
        load_model(tmp_path / "narrow", "cpu")
    assert reference.profiles is not None
    profiles = replace(reference.profiles, centre=reference.profiles.centre[:3])
    cut = replace(reference, profiles=profiles)
    save_model(replace(result.model, fit_reference=cut), tmp_path / "cut")
    with pytest.raises(InputError, match=r"its arrays do not fit each other"):
        load_model(tmp_path / "cut", "cpu")
    other = replace(reference, categories=reference.categories + 9)
    save_model(replace(result.model, fit_reference=other), tmp_path / "other")
    with pytest.raises(InputError, match=r"has categories that are not in model\.json"):
        load_model(tmp_path / "other", "cpu")
    mixed = replace(reference, categories=reference.categories[::-1].copy())
    save_model(replace(result.model, fit_reference=mixed), tmp_path / "mixed")
    with pytest.raises(InputError, match="its categories are not in order"):
        load_model(tmp_path / "mixed", "cpu")


def test_reference_texts_with_scores_of_another_scale_are_not_read(
    result: Result, tmp_path: Path
) -> None:
    assert result.model is not None
    save_model(result.model, tmp_path / "model")
    path = tmp_path / "model" / "fit_reference.safetensors"
    arrays = load_file(path)
    save_file({name: arrays[name] for name in arrays if name != "label_cosines"}, path)
    reseal(tmp_path / "model")
    model = load_model(tmp_path / "model", "cpu")
    assert model.fit_reference is None
    assert np.isnan(model.predict(["rain"]).fit).all()


# Commands


def test_discover_and_predict_mark_by_the_same_rule(
    command: Command, flags: list[str], task: SmallTask, tmp_path: Path
) -> None:
    (tmp_path / "table.csv").write_text(task.csv())
    run, new = tmp_path / "run", tmp_path / "new.csv"
    done = command(
        "discover", tmp_path / "table.csv", "-o", run, "--categories", "4", *flags,
        "--outside", "0.1",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "5 texts fit nowhere" in done.out
    assert "fit nowhere 5 texts" in command("info", run).out
    new.write_text(f"text\n{STRANGE}\n{task.texts[0]}\n\n")
    out = tmp_path / "out.csv"
    done = command("predict", run, new, "-o", out)
    assert done.code == 0, done.err
    assert "1 text fits nowhere (" in done.out
    rows = rows_of(out)
    assert [row["fits_nowhere"] for row in rows][:2] == ["yes", "no"]
    assert all(row["category"] and row["best_known"] for row in rows[:2])
    assert float(rows[0]["fit"]) < float(rows[1]["fit"])
    done = command("predict", run, new, "-o", out, "--force", "--outside", "1", "--json")
    assert json.loads(done.out)["fits_nowhere"] == 2


def test_predict_without_a_rule_gives_scores_only(
    command: Command, small_run: Path, tmp_path: Path
) -> None:
    done = command("predict", small_run, "-", stdin=f"{STRANGE}\n")
    answer = json.loads(done.out)
    assert answer["fits_nowhere"] is None
    assert answer["fit"] < 1
    assert answer["best_known"] in ("bank", "travel")
    done = command("predict", small_run, "-", "--false-alarms", "0.5", stdin=f"{STRANGE}\n")
    assert json.loads(done.out)["fits_nowhere"] == "yes"


def test_wrong_rules_are_refused_before_any_work(
    refuse: Refuse, small_run: Path, tmp_path: Path
) -> None:
    (tmp_path / "new.csv").write_text("text\nrain\n")
    into = (tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    message = refuse("predict", small_run, *into, "--outside", "2")
    assert message == "--outside must be from 0 to 1, not 2"
    message = refuse("predict", small_run, *into, "--outside", "0.1", "--false-alarms", "0.1")
    assert message.endswith("give one of them")


# Report


def test_the_report_lists_the_least_fitting_texts(result: Result, marked: Result) -> None:
    note = next(finding for finding in findings(result) if finding.kind == "outside")
    assert note.level == "note"
    assert len(note.lines) == 10
    assert result.fit is not None
    pile = np.flatnonzero(~result.labelled)
    least = pile[result.fit[pile].argmin()]
    text, told = note.lines[0]
    assert text == result.corpus.texts[least]
    assert told.startswith(" (fit ")
    check = next(finding for finding in findings(marked) if finding.kind == "outside")
    assert check.level == "check"
    assert check.title == "5 texts fit nowhere"
    page = prepare(marked)
    assert {"name": "Fit nowhere", "value": "5"}.items() <= next(
        number for number in page["numbers"] if number["name"] == "Fit nowhere"
    ).items()
    assert sum(category["fitsNowhere"] for category in page["categories"]) == 5
    assert all(0 < category["fit"] <= 1 for category in page["categories"])
