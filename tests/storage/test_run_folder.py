"""The run folder: what it holds, whether it may be replaced, reading it back."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.small_texts import KNOWN, QUICK, SmallTask, everything_under, small_task

from newfound import CategoryDiscoverer, InputError
from newfound.data.corpus import Corpus
from newfound.storage.run_folder import (
    FORMAT,
    check_run_folder,
    new_run,
    read_run,
    versions,
    write_run,
)


@pytest.fixture(scope="module")
def task() -> SmallTask:
    task = small_task()
    # Texts that a careless writer of CSV would break.
    odd = ['say "cash", please', "two\nlines\r\nor three\rof rain", "=1+2 song", "NA", "None"]
    return SmallTask(
        [*task.texts, *odd],
        [*task.labels, *[None] * len(odd)],
        np.append(task.truth, [None] * len(odd)),
    )


@pytest.fixture(scope="module")
def fitted(tiny_encoder: str, task: SmallTask) -> CategoryDiscoverer:
    discoverer = CategoryDiscoverer("dpn", tiny_encoder, 4, "fast", settings=QUICK)
    return discoverer.fit(task.texts, task.labels)


@pytest.fixture(scope="module")
def corpus(task: SmallTask) -> Corpus:
    ids = [f"row-{i}" for i in range(len(task.texts))]
    return Corpus.from_lists(task.texts, task.labels, ids)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_assignments(
    fitted: CategoryDiscoverer, corpus: Corpus, task: SmallTask, tmp_path: Path
) -> None:
    write_run(tmp_path, fitted, corpus)
    rows = rows_of(tmp_path / "assignments.csv")
    assert [row["id"] for row in rows] == corpus.ids
    assert [row["text"] for row in rows] == task.texts
    assert [row["label"] or None for row in rows] == task.labels
    assert [row["category"] for row in rows] == fitted.labels_.tolist()
    assert [row["predicted"] for row in rows] == fitted.predict(task.texts).tolist()
    kinds = dict(zip(fitted.classes_, fitted.kinds_, strict=True))
    assert [row["kind"] for row in rows] == [kinds[row["category"]] for row in rows]
    np.testing.assert_allclose(
        [float(row["probability"]) for row in rows], fitted.probability_, atol=1e-4
    )
    places = np.array([[float(row["x"]), float(row["y"])] for row in rows])
    assert np.abs(places).max() <= 1


def test_parquet_holds_the_same_as_csv(
    fitted: CategoryDiscoverer, corpus: Corpus, tmp_path: Path
) -> None:
    for name in ("csv", "parquet"):
        (tmp_path / name).mkdir()
        write_run(tmp_path / name, fitted, corpus, table_format=name)
    assert not (tmp_path / "parquet" / "assignments.csv").exists()
    table = pd.read_parquet(tmp_path / "parquet" / "assignments.parquet")
    rows = rows_of(tmp_path / "csv" / "assignments.csv")
    assert list(table.columns) == list(rows[0])
    for column in ("id", "text", "category", "kind", "predicted"):
        assert table[column].tolist() == [row[column] for row in rows]
    assert table["label"].isna().tolist() == [row["label"] == "" for row in rows]
    for column in ("probability", "x", "y"):
        assert table[column].tolist() == [float(row[column]) for row in rows]


def test_categories(fitted: CategoryDiscoverer, corpus: Corpus, tmp_path: Path) -> None:
    write_run(tmp_path, fitted, corpus)
    rows = rows_of(tmp_path / "categories.csv")
    entries = json.loads((tmp_path / "categories.json").read_text(encoding="utf-8"))
    table = fitted.categories_
    assert [row["name"] for row in rows] == table["name"].tolist()
    assert [int(row["size"]) for row in rows] == table["size"].tolist()
    assert [row["keywords"] for row in rows] == table["keywords"].map(" | ".join).tolist()
    assert [row["distance"] == "" for row in rows] == [kind == "novel" for kind in table["kind"]]
    assert [entry["keywords"] for entry in entries] == table["keywords"].tolist()
    assert [entry["examples"] for entry in entries] == table["examples"].tolist()


def test_the_summary_is_enough_to_repeat_the_run(
    fitted: CategoryDiscoverer, corpus: Corpus, tmp_path: Path
) -> None:
    write_run(tmp_path, fitted, corpus, notes=["a note"], scores={"all": 99.0}, command="it")
    run = read_run(tmp_path)
    assert run["format"] == FORMAT
    assert run["settings"]["method"] == "dpn"
    assert run["settings"]["effort"] == "fast"
    assert run["settings"]["settings"]["epochs"] == QUICK["epochs"]
    assert run["settings"]["settings"]["trainable_layers"] == 0  # resolved, not only what was given
    assert run["seed"] == 0
    assert run["device"] == "cpu"
    assert run["versions"] == versions()
    assert {"python", "torch", "newfound"} <= set(run["versions"])
    assert run["texts"] == len(corpus)
    assert run["labelled"] == 12
    assert run["categories"] == {"known": 2, "novel": 2, "total": 4, "given": True}
    assert run["notes"][0] == "a note"
    assert run["scores"] == {"all": 99.0}
    assert run["command"] == "it"
    assert run["estimate"] is None
    stages = {name: value for name, value in run["seconds"].items() if name != "total"}
    assert run["seconds"]["total"] == pytest.approx(sum(stages.values()), abs=0.01)
    assert {"pretraining", "training", "describing"} <= set(stages)
    assert run["matching"]["labelled"] == sorted(KNOWN)
    assert np.shape(run["matching"]["distances"]) == (2, 4)
    assert run["matching"]["prototypes"] == fitted.classes_.tolist()


def test_history_and_estimate(tiny_encoder: str, task: SmallTask, tmp_path: Path) -> None:
    discoverer = CategoryDiscoverer("dpn", tiny_encoder, effort="fast", settings=QUICK)
    discoverer.fit(task.texts)
    write_run(tmp_path, discoverer, Corpus.from_lists(task.texts))
    lines = (tmp_path / "history.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == discoverer.history_
    run = read_run(tmp_path)
    assert run["estimate"]["estimate"] == discoverer.n_categories_
    assert run["categories"]["given"] is False
    assert run["matching"] is None


def test_the_written_model_predicts(
    fitted: CategoryDiscoverer, corpus: Corpus, task: SmallTask, tmp_path: Path
) -> None:
    write_run(tmp_path, fitted, corpus)
    found = CategoryDiscoverer.load(tmp_path)
    assert (found.predict(task.texts) == fitted.predict(task.texts)).all()
    names = {"assignments.csv", "categories.csv", "categories.json", "history.jsonl", "run.json"}
    assert {path.name for path in tmp_path.iterdir()} == names | {"model"}


# May it be replaced?


def test_a_run_is_replaced_only_by_force(tmp_path: Path) -> None:
    with new_run(tmp_path / "run", force=False) as folder:
        (folder / "run.json").write_text("{}")
    with pytest.raises(InputError, match="exists; replace it with --force"):
        check_run_folder(tmp_path / "run", force=False)
    with new_run(tmp_path / "run", force=True) as folder:
        (folder / "run.json").write_text("[]")
    assert (tmp_path / "run" / "run.json").read_text() == "[]"
    assert everything_under(tmp_path) == {"run", "run/run.json"}


def test_what_is_not_a_run_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter").write_text("years of work")
    for force in (False, True):
        with pytest.raises(InputError, match="is not a run of newfound; it is not touched"):
            check_run_folder(tmp_path / "thesis", force)
        with pytest.raises(InputError, match="is a file; name a folder"):
            check_run_folder(tmp_path / "thesis" / "chapter", force)
        with pytest.raises(InputError, match=r"cannot write .*run: Not a directory"):
            new_run(tmp_path / "thesis" / "chapter" / "x" / "run", force).__enter__()
    assert (tmp_path / "thesis" / "chapter").exists()


def test_an_empty_or_new_folder_is_free(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("empty", "new", "deep/and/new"):
        check_run_folder(tmp_path / name, force=False)
    assert everything_under(tmp_path) == {"empty"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "is not a run of newfound"),
        ("{", "is damaged"),
        ("[]", "is damaged"),
        ("", "is damaged"),
        ('{"format": "two"}', "is damaged"),
        ('{"name": "somebody else\'s"}', "was not written by newfound"),
        ('{"format": 2}', "has format 2, this newfound reads up to 1: install a newer"),
    ],
)
def test_reading_what_is_no_run(content: str | None, message: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "run.json").write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        read_run(tmp_path)
    assert str(tmp_path) in str(caught.value)


def test_reading_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        read_run(tmp_path / "run")


def test_numbers_that_are_none_are_written_as_null(
    fitted: CategoryDiscoverer, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history: list[dict[str, Any]] = [{"stage": "training", "loss": float("nan")}]
    monkeypatch.setattr(fitted, "history_", history)
    write_run(tmp_path, fitted, corpus, model=False)
    line = (tmp_path / "history.jsonl").read_text()
    assert json.loads(line) == {"stage": "training", "loss": None}
    assert not (tmp_path / "model").exists()
