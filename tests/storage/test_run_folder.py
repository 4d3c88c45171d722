"""The run folder: what it holds, whether it may be replaced, reading it back."""

import csv
import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from support.commands import Command, Refuse, put_task
from support.sealing import reseal, unseal
from support.small_texts import KNOWN, QUICK, SmallTask, everything_under, small_task

from newfound import CategoryDiscoverer, InputError, pipeline
from newfound.category import Event
from newfound.checkpoints import checkpoints
from newfound.cli.main import main
from newfound.config import RunConfig
from newfound.data.corpus import Corpus
from newfound.lineage import Lineage, Retired
from newfound.pipeline import discover
from newfound.report import write_report
from newfound.result import Result
from newfound.storage.categories import read_categories
from newfound.storage.formats import RUN_FORMAT
from newfound.storage.model_files import load_model
from newfound.storage.run_folder import (
    check_run_folder,
    new_run,
    read_run,
    write_run,
)
from newfound.versions import versions


@pytest.fixture(scope="module")
def task() -> SmallTask:
    task = small_task()
    # Texts that a careless writer of CSV would break.
    odd = ['say "cash", please', "two\nlines\r\nor three\rof rain", "=1+2 song", "NA", "None",
           "'=1+2 song", "''+1 rain", "'quoted' song", "\t@sum day", " -1 sun"]  # fmt: skip
    return SmallTask(
        [*task.texts, *odd],
        [*task.labels, *[None] * len(odd)],
        np.append(task.truth, [None] * len(odd)),
    )


@pytest.fixture(scope="module")
def corpus(task: SmallTask) -> Corpus:
    ids = [f"row-{i}" for i in range(len(task.texts))]
    return Corpus.from_lists(task.texts, task.labels, ids)


@pytest.fixture(scope="module")
def result(tiny_encoder: str, corpus: Corpus) -> Result:
    config = RunConfig("dpn", tiny_encoder, 4, "fast", device="cpu")
    return discover(corpus, config, settings=QUICK)


def records_of(folder: Path) -> dict[str, Any]:
    records: dict[str, Any] = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    return records


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_assignments_have_one_row_per_text(
    result: Result, corpus: Corpus, task: SmallTask, tmp_path: Path
) -> None:
    write_run(result, tmp_path, raw_cells=True)
    rows = rows_of(tmp_path / "assignments.csv")
    assert [row["id"] for row in rows] == corpus.ids
    assert [row["text"] for row in rows] == task.texts
    assert [row["label"] or None for row in rows] == task.labels
    assert [row["category"] for row in rows] == result.labels.tolist()
    assert [row["category_id"] for row in rows] == [f"c{at + 1}" for at in result.assigned]
    assert result.model is not None
    assert [row["predicted"] for row in rows] == result.model.predict(task.texts).names.tolist()
    kinds = dict(zip(result.names, result.kinds, strict=True))
    assert [row["kind"] for row in rows] == [kinds[row["category"]] for row in rows]
    assert [float(row["probability"]) for row in rows] == result.probability.tolist()
    places = np.array([[float(row["x"]), float(row["y"])] for row in rows])
    assert np.abs(places).max() <= 1


def test_parquet_equals_csv(result: Result, corpus: Corpus, tmp_path: Path) -> None:
    for name in ("csv", "parquet"):
        (tmp_path / name).mkdir()
        write_run(result, tmp_path / name, table_format=name, raw_cells=True)
    assert not (tmp_path / "parquet" / "assignments.csv").exists()
    table = pd.read_parquet(tmp_path / "parquet" / "assignments.parquet")
    rows = rows_of(tmp_path / "csv" / "assignments.csv")
    assert list(table.columns) == list(rows[0])
    for column in ("id", "text", "category", "kind", "predicted"):
        assert table[column].tolist() == [row[column] for row in rows]
    assert table["label"].isna().tolist() == [row["label"] == "" for row in rows]
    for column in ("probability", "x", "y"):
        assert table[column].tolist() == [float(row[column]) for row in rows]


def test_categories_are_written_as_csv_and_json(
    result: Result, corpus: Corpus, tmp_path: Path
) -> None:
    write_run(result, tmp_path)
    rows = rows_of(tmp_path / "categories.csv")
    entries = json.loads((tmp_path / "categories.json").read_text(encoding="utf-8"))
    categories = result.categories
    assert [row["name"] for row in rows] == [c.name for c in categories]
    assert [int(row["size"]) for row in rows] == [c.size for c in categories]
    assert [row["keywords"] for row in rows] == [" | ".join(c.keywords) for c in categories]
    assert [row["distance"] == "" for row in rows] == [c.kind == "novel" for c in categories]
    assert [entry["keywords"] for entry in entries] == [list(c.keywords) for c in categories]
    assert [entry["examples"] for entry in entries] == [list(c.examples) for c in categories]
    assert read_categories(tmp_path / "categories.json") == categories


def test_run_json_has_settings_versions_and_counts(
    result: Result, corpus: Corpus, tmp_path: Path
) -> None:
    notes = ("a note", *result.notes)
    write_run(replace(result, notes=notes, scores={"all": 99.0}, command="it"), tmp_path)
    run = records_of(tmp_path)
    assert run["format"] == RUN_FORMAT
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
    assert run["matching"]["prototypes"] == result.names.tolist()


def test_history_and_estimate_are_written(
    tiny_encoder: str, task: SmallTask, tmp_path: Path
) -> None:
    config = RunConfig("dpn", tiny_encoder, effort="fast")
    result = discover(Corpus.from_lists(task.texts), config, settings=QUICK)
    write_run(result, tmp_path)
    lines = (tmp_path / "history.jsonl").read_text().splitlines()
    assert tuple(json.loads(line) for line in lines) == result.history
    run = records_of(tmp_path)
    assert run["estimate"]["estimate"] == len(result.categories)
    assert run["categories"]["given"] is False
    assert run["matching"] is None
    again = read_run(tmp_path)
    assert again.estimate == result.estimate
    assert again.matching is None


def test_written_model_predicts(
    result: Result, corpus: Corpus, task: SmallTask, tmp_path: Path
) -> None:
    write_run(result, tmp_path)
    assert result.model is not None
    found, wanted = (
        load_model(tmp_path, "cpu").predict(task.texts),
        result.model.predict(task.texts),
    )
    assert found.names.tolist() == wanted.names.tolist()
    np.testing.assert_array_equal(found.probability, wanted.probability)
    names = {"assignments.csv", "categories.csv", "categories.json", "history.jsonl", "run.json"}
    assert {path.name for path in tmp_path.iterdir()} == names | {"model", "manifest.json"}


# May it be replaced?


def test_run_is_replaced_only_with_force(tmp_path: Path) -> None:
    with new_run(tmp_path / "run", force=False) as folder:
        (folder / "run.json").write_text("{}")
    with pytest.raises(InputError, match="exists; replace it with --force"):
        check_run_folder(tmp_path / "run", force=False)
    with new_run(tmp_path / "run", force=True) as folder:
        (folder / "run.json").write_text("[]")
    assert (tmp_path / "run" / "run.json").read_text() == "[]"
    assert everything_under(tmp_path) == {"run", "run/run.json"}


def test_other_folders_are_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter").write_text("years of work")
    for force in (False, True):
        with pytest.raises(InputError, match="is not a run folder, so it is not replaced"):
            check_run_folder(tmp_path / "thesis", force)
        with pytest.raises(InputError, match="is a file; give a folder"):
            check_run_folder(tmp_path / "thesis" / "chapter", force)
        with pytest.raises(InputError, match=r"cannot write .*run: Not a directory"):
            new_run(tmp_path / "thesis" / "chapter" / "x" / "run", force).__enter__()
    assert (tmp_path / "thesis" / "chapter").exists()


def test_empty_or_new_folder_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("empty", "new", "deep/and/new"):
        check_run_folder(tmp_path / name, force=False)
    assert everything_under(tmp_path) == {"empty"}


@pytest.mark.parametrize("worth", [0, math.inf])
def test_folder_created_meanwhile_is_not_replaced(
    worth: float,
    command: Command,
    task: SmallTask,
    flags: list[str],
    tmp_path: Path,
    monkeypatch: Any,
) -> None:
    """What is there at the end decides, not what was there at the beginning.

    The run is complete, so no unfinished work is left, however much of it was kept.
    """
    table, real = put_task(tmp_path / "t.csv", task), pipeline.discover

    def slow(*given: Any, **named: Any) -> Result:
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "thesis").write_text("years of work")
        return real(*given, **named)

    monkeypatch.setattr(pipeline, "discover", slow)
    monkeypatch.setattr(checkpoints, "WORTH", worth)
    monkeypatch.setattr(checkpoints, "LOSS", worth)
    monkeypatch.setattr(checkpoints, "SHARE", math.inf)
    done = command("discover", table, "-o", tmp_path / "run", "--categories", 4, *flags, "--force")
    assert done.code == 2
    assert done.err.splitlines()[-1].endswith(f"the new files are in {tmp_path}/run-2")
    assert everything_under(tmp_path / "run") == {"thesis"}
    assert len(read_run(tmp_path / "run-2").corpus) == len(task.texts)
    assert {path.name for path in tmp_path.iterdir()} == {"t.csv", "run", "run-2"}


def test_file_added_to_a_run_meanwhile_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "run.json").write_text("{}")
    with new_run(folder, force=True) as new:  # what newfound itself adds does not count
        (new / "run.json").write_text("[]")
        for name in ("report.html", "check.json"):
            (folder / name).write_text("")
    assert everything_under(folder) == {"run.json"}

    def add() -> None:
        with new_run(folder, force=True) as new:
            (new / "run.json").write_text("{}")
            (folder / "thesis").write_text("years of work")

    with pytest.raises(InputError, match=r"so it is not replaced; the new files are in .*run-2"):
        add()
    assert everything_under(folder) == {"run.json", "thesis"}
    assert everything_under(tmp_path / "run-2") == {"run.json"}


@pytest.mark.parametrize("name", ["thesis", "model/thesis"])
def test_run_with_a_foreign_file_is_not_replaced(
    name: str,
    refuse: Refuse,
    small_run: Path,
    task: SmallTask,
    flags: list[str],
    tmp_path: Path,
) -> None:
    table = put_task(tmp_path / "t.csv", task)
    run = shutil.copytree(small_run, tmp_path / "run")
    (run / ".report.html.abcdefgh.newfound-file").mkdir()  # of a killed process
    (run / ".DS_Store").touch()
    check_run_folder(run, force=True)
    (run / name).write_text("years of work")
    expected = f"the run {run} has a file that is not of a run ({name}), which would be deleted"
    assert expected in refuse("discover", table, "-o", run, "--force", *flags)


def test_two_writers_of_one_run_are_refused(
    command: Command, task: SmallTask, flags: list[str], tmp_path: Path
) -> None:
    table = put_task(tmp_path / "t.csv", task)
    with new_run(tmp_path / "run", force=False) as folder:
        (folder / "run.json").write_text("{}")
        done = command("discover", table, "-o", tmp_path / "run", "--categories", 4, *flags)
    assert done.code == 2
    assert f"another process is writing {tmp_path}/run; wait until it ends" in done.err
    assert everything_under(tmp_path) == {"t.csv", "run", "run/run.json"}


def test_left_overs_in_a_mount_point_do_not_block_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "volume"
    (folder / ".volume.abcdefgh.newfound" / "model").mkdir(parents=True)
    (folder / ".volume.lock").touch()
    monkeypatch.chdir(folder)
    with new_run(Path("."), force=False) as new:
        (new / "run.json").write_text("{}")
    assert everything_under(folder) == {"run.json"}


# Reading it back.


@pytest.mark.parametrize("table_format", ["csv", "parquet"])
def test_read_run_returns_the_written_result(
    result: Result, tmp_path: Path, table_format: str
) -> None:
    wanted = replace(result, notes=("a note",), scores={"all": 99.5}, command="newfound discover")
    write_run(wanted, tmp_path, table_format=table_format)
    read = read_run(tmp_path)
    for name in ("corpus", "categories", "config", "device", "seconds", "notes", "versions",
                 "history", "scores", "command", "estimate", "environment"):  # fmt: skip
        assert getattr(read, name) == getattr(wanted, name), name
    for name in ("assigned", "predicted", "probability", "map_positions", "matching", "labels"):
        np.testing.assert_array_equal(getattr(read, name), getattr(wanted, name), name)
    assert read.model is None
    assert read.training_features is None


@pytest.mark.parametrize("raw_cells", [False, True])
def test_formulas_are_protected_in_csv_files_and_read_back_as_they_were(
    result: Result, tmp_path: Path, raw_cells: bool
) -> None:
    write_run(result, tmp_path, raw_cells=raw_cells)
    assert read_run(tmp_path).corpus == result.corpus
    cells = [row["text"] for row in rows_of(tmp_path / "assignments.csv")]
    shown = [row["examples"] for row in rows_of(tmp_path / "categories.csv")]
    if raw_cells:
        assert cells == list(result.corpus.texts)
    else:
        assert "'=1+2 song" in cells
        assert not any(cell.lstrip()[:1] in ("=", "+", "-", "@") for cell in [*cells, *shown])
    assert records_of(tmp_path)["raw_cells"] is raw_cells


def test_run_records_what_its_last_digits_depend_on(result: Result, tmp_path: Path) -> None:
    write_run(result, tmp_path)
    records = records_of(tmp_path)
    assert records["environment"]["threads"] == torch.get_num_threads()
    assert records["environment"]["instruction_set"] == torch.backends.cpu.get_cpu_capability()
    assert {"python", "torch", "numpy", "scipy", "tokenizers"} <= set(records["versions"])
    assert records["device"] == "cpu"
    assert "instruction_set" in write_report(result, tmp_path / "report.html").read_text()


def test_texts_of_any_length_are_read_back(result: Result, tmp_path: Path) -> None:
    texts = [*result.corpus.texts[:-1], "long " * 4_000_000]
    long = replace(result, corpus=replace(result.corpus, texts=texts))
    limit = csv.field_size_limit()
    write_run(long, tmp_path, model=False)
    assert read_run(tmp_path).corpus.texts == texts
    assert csv.field_size_limit() == limit


def test_run_of_an_earlier_version_gets_ids_in_order(result: Result, tmp_path: Path) -> None:
    write_run(result, tmp_path)
    entries = json.loads((tmp_path / "categories.json").read_text(encoding="utf-8"))
    position = {entry["id"]: at for at, entry in enumerate(entries)}
    for entry in entries:  # as format 2 had them
        entry["id"] = position[entry["id"]]
        entry["nearest"] = position[entry["nearest"]]
        del entry["status"], entry["history"]
    (tmp_path / "categories.json").write_text(json.dumps(entries))
    rows = rows_of(tmp_path / "assignments.csv")
    with (tmp_path / "assignments.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [name for name in rows[0] if name != "category_id"])
        writer.writeheader()
        for row in rows:
            del row["category_id"]
            writer.writerow(row)
    records = {**records_of(tmp_path), "format": 2}
    del records["lineage"]
    (tmp_path / "run.json").write_text(json.dumps(records))
    reseal(tmp_path)
    found = read_run(tmp_path)
    np.testing.assert_array_equal(found.assigned, result.assigned)
    assert found.ids.tolist() == ["c1", "c2", "c3", "c4"]
    assert [c.nearest for c in found.categories] == [c.nearest for c in result.categories]
    assert [c.status for c in found.categories] == ["known", "known", "proposed", "proposed"]
    assert found.lineage == result.lineage == Lineage(run=1, next_number=5)


@pytest.mark.parametrize(
    "lineage",
    [
        5,
        {},
        {"run": 0, "next_number": 5, "retired": []},
        {"run": 1, "next_number": 4, "retired": []},  # c4 would be given twice
        {"run": 1, "next_number": 5, "retired": [{}]},
    ],
)
def test_lineage_that_no_run_has_is_refused(result: Result, tmp_path: Path, lineage: Any) -> None:
    write_run(result, tmp_path)
    (tmp_path / "run.json").write_text(json.dumps({**records_of(tmp_path), "lineage": lineage}))
    reseal(tmp_path)
    with pytest.raises(InputError, match="is damaged"):
        read_run(tmp_path)


def test_lineage_survives_the_run_folder(result: Result, tmp_path: Path) -> None:
    gone = Retired("c9", "Old", "rejected", texts=("3", "5"))
    lineage = Lineage(2, 12, (gone, Retired("c7", "Other", "merged", into=("c1",))))
    history = (Event("found", 1, "dpn"), Event("renamed", 1, "Ada", "2026-01-02T03:04:05Z", ("A",)))
    categories = (*result.categories[:3], replace(result.categories[3], history=history))
    write_run(replace(result, lineage=lineage, categories=categories), tmp_path)
    found = read_run(tmp_path)
    assert found.lineage == lineage
    assert found.categories == categories
    assert found.lineage.find_retired("c9") == gone
    assert found.lineage.new_ids(1)[0] == ("c12",)


def test_run_of_an_earlier_version_has_raw_cells(result: Result, tmp_path: Path) -> None:
    write_run(result, tmp_path, raw_cells=True)
    records = records_of(tmp_path)
    del records["raw_cells"], records["environment"]
    (tmp_path / "run.json").write_text(json.dumps(records))
    unseal(tmp_path)
    assert read_run(tmp_path).corpus == result.corpus


@pytest.mark.parametrize("table_format", ["csv", "parquet"])
def test_report_from_memory_equals_report_from_the_folder(
    result: Result, tmp_path: Path, table_format: str
) -> None:
    write_run(result, tmp_path, table_format=table_format)
    one = write_report(result, tmp_path / "memory.html", name="run")
    other = write_report(read_run(tmp_path), tmp_path / "folder.html", name="run")
    assert one.read_text(encoding="utf-8") == other.read_text(encoding="utf-8")


def test_run_that_was_read_can_be_written_again(result: Result, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    write_run(result, tmp_path / "one", model=False)
    write_run(read_run(tmp_path / "one"), tmp_path / "two")
    names = [path.name for path in (tmp_path / "one").iterdir()]
    assert "model" not in names
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


@pytest.mark.parametrize("number", [0, -1, RUN_FORMAT + 1, "1", True, None, 1.0])
def test_all_readers_share_one_format_check(
    number: Any, small_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(small_run, tmp_path / "run")
    records = records_of(folder)
    (folder / "run.json").write_text(json.dumps({**records, "format": number}))
    reseal(folder)
    said = set()
    for command in (
        ["info", folder],
        ["report", folder, "-o", tmp_path / "r.html"],
        ["export", folder, "--to", "csv", "-o", tmp_path / "e.csv"],
        ["predict", folder, tmp_path / "t.csv", "-o", tmp_path / "p.csv"],
    ):
        (tmp_path / "t.csv").write_text("text\nrain\n")
        assert main([str(word) for word in command]) == 2
        said.add(capsys.readouterr().err)
    assert len(said) == 1
    with pytest.raises(InputError) as caught:
        CategoryDiscoverer.load(folder)
    assert said == {f"newfound: {caught.value}\n"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("settings", []),
        ("seconds", {"training": "long"}),
        ("notes", [1]),
        ("estimate", {"estimate": 4}),
        ("estimate", 4),
        ("matching", {"distances": [[0.1]]}),
        ("matching", {"distances": [["a"] * 4] * 2}),
        ("scores", {"all": "good"}),
        ("command", ["newfound"]),
        ("device", None),
        ("versions", None),
    ],
)
def test_record_of_the_wrong_type_is_an_error(
    result: Result, tmp_path: Path, key: str, value: Any
) -> None:
    write_run(result, tmp_path, model=False)
    (tmp_path / "run.json").write_text(json.dumps({**records_of(tmp_path), key: value}))
    reseal(tmp_path)
    with pytest.raises(InputError, match=r"run\.json is damaged"):
        read_run(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "is not a run folder"),
        ("{", "is damaged"),
        ("[]", "is damaged"),
        ("", "is damaged"),
        ('{"format": "two"}', "is damaged"),
        ('{"name": "somebody else\'s"}', "was not written by newfound"),
        (
            f'{{"format": {RUN_FORMAT + 1}}}',
            f"has format {RUN_FORMAT + 1}, but this version of newfound reads formats up to "
            f"{RUN_FORMAT}; install a newer",
        ),
    ],
)
def test_invalid_run_json_is_an_error(content: str | None, message: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "run.json").write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        read_run(tmp_path)
    assert str(tmp_path) in str(caught.value)


def test_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        read_run(tmp_path / "run")


def test_nan_is_written_as_null(result: Result, tmp_path: Path) -> None:
    history = ({"stage": "training", "loss": float("nan")},)
    write_run(replace(result, history=history), tmp_path, model=False)
    line = (tmp_path / "history.jsonl").read_text()
    assert json.loads(line) == {"stage": "training", "loss": None}
    assert not (tmp_path / "model").exists()
