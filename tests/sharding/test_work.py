"""Rows that cannot be read or predicted are set aside; the others are predicted."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from support.commands import Command, rows_of
from support.shards import manifest

from newfound.data.tables import TableChunk
from newfound.data.tables.vectors import stream_vector_column
from newfound.errors import InputError
from newfound.model import Model, Predictions
from newfound.sharding.work import ShardError, predict_rows
from newfound.storage.model_files import load_model


def failing(small_run: Path, is_bad: Any, calls: list[int] | None = None) -> Any:
    """Return the model of a run, which fails on batches with a bad text."""
    model = load_model(small_run)

    def predict(texts: list[str], **more: Any) -> Predictions:
        if calls is not None:
            calls.append(len(texts))
        if any(map(is_bad, texts)):
            raise RuntimeError("the encoder fails")
        return model.predict(texts, **more)

    return SimpleNamespace(predict=predict)


def chunk_of(texts: list[str]) -> TableChunk:
    return TableChunk([str(i) for i in range(len(texts))], texts, {"channel": texts})


@pytest.mark.parametrize("bad", [[], [0], [36], [0, 1, 17, 36], list(range(1, 37))])
def test_bad_rows_are_found_and_the_others_keep_their_order(
    small_run: Path, bad: list[int]
) -> None:
    texts = [f"bad {i}" if i in bad else f"rain {i}" for i in range(37)]
    found, failed = predict_rows(failing(small_run, lambda t: t.startswith("bad")), chunk_of(texts))
    assert failed == dict.fromkeys(bad, "RuntimeError: the encoder fails")
    good = [i for i in range(37) if i not in bad]
    assert found["id"] == [str(i) for i in good]
    assert found["text"] == found["channel"] == [f"rain {i}" for i in good]
    assert all(found["category"])


def test_one_bad_row_costs_few_calls(small_run: Path) -> None:
    calls: list[int] = []
    model = failing(small_run, lambda text: text == "bad", calls)
    texts = ["rain"] * 1023 + ["bad"]
    assert predict_rows(model, chunk_of(texts))[1] == {1023: "RuntimeError: the encoder fails"}
    assert len(calls) <= 2 * 10 + 2  # two per halving, the whole, and the probe


def test_a_model_that_fails_on_every_text_is_no_fault_of_the_rows(small_run: Path) -> None:
    calls: list[int] = []
    with pytest.raises(ShardError, match="the model cannot predict: RuntimeError"):
        predict_rows(failing(small_run, lambda text: True, calls), chunk_of(["rain"] * 100))
    assert calls == [100, 1]


def test_rows_that_were_not_read_are_not_predicted(small_run: Path) -> None:
    model = failing(small_run, lambda text: text == "")
    found, failed = predict_rows(model, chunk_of(["rain", "", "sun"]), bad={1: "damaged"})
    assert found["text"] == ["rain", "sun"]
    assert failed == {1: "damaged"}
    assert predict_rows(model, chunk_of([""]), bad={0: "damaged"}) == ({}, {0: "damaged"})


def test_vectors_follow_their_rows(small_run: Path) -> None:
    seen: list[tuple[list[str], list[float]]] = []
    model = load_model(small_run)

    def predict(texts: list[str], *, vectors: np.ndarray, first_row: int) -> Predictions:
        if np.isnan(vectors).any():
            raise InputError("a vector is missing")
        seen.append((texts, vectors[:, 0].tolist()))
        return model.predict(texts)

    vectors = np.arange(4, dtype=float).reshape(4, 1)
    vectors[2] = np.nan
    _, failed = predict_rows(
        SimpleNamespace(predict=predict),  # type: ignore[arg-type]
        chunk_of(["a", "b", "c", "d"]),
        vectors,
    )
    assert failed == {2: "a vector is missing"}
    assert seen == [(["a", "b"], [0, 1]), (["d"], [3])]


BAD_TABLES = {
    "nested.jsonl": (
        b'{"text": "rain", "tags": []}\n{"text": ["sun"]}\n{"text": {"a": 1}}\n{"text": "card"}\n'
        b'{"text": ""}\n'
    ),
    "quotes.csv": b'text\nrain\n"sun" warm\n"card, cash\n"card ""lost"""\n" "\n',
    "lines.jsonl": b'{"text": "rain"}\n{"text": \n["sun"]\n{"text": "card"}\n{"text": ""}\n',
    "wide.csv": b"text,channel\nrain,a\nsun,warm,b\ncard,cash,c\ncard,d\n,e\n",
}


@pytest.mark.parametrize("name", [*BAD_TABLES, "bytes.parquet", "bytes.arrow"])
def test_rows_that_cannot_be_read_are_set_aside_with_their_reason(
    command: Command, small_run: Path, tmp_path: Path, name: str
) -> None:
    table = pa.table(
        {"text": pa.array([b"rain", b"\xff\xfe", b"\xff", b"card", None], pa.binary())}
    )
    if name == "bytes.parquet":
        pq.write_table(table, tmp_path / name)
    elif name == "bytes.arrow":
        feather.write_feather(table, tmp_path / name)
    else:
        (tmp_path / name).write_bytes(BAD_TABLES[name])
    out = tmp_path / "out"
    done = command("predict", small_run, tmp_path / name, "-o", out, "--engine", "local")
    assert done.code == 0, done.err
    assert "; 2 rows are set aside: " in done.out
    assert "1 row has no text" in done.err
    (lines_file,) = (out / "set-aside").iterdir()
    lines = lines_file.read_text().splitlines()
    aside = [json.loads(line) for line in lines]
    assert [(line["row"], line["text"]) for line in aside] == [(2, ""), (3, "")]
    assert all(str(tmp_path / name) in line["reason"] for line in aside)
    output = f"{name}.parquet" if name == "bytes.arrow" else name
    entry = manifest(out)["shards"][output]
    counts = ("rows", "written", "empty", "set_aside")
    assert [entry[count] for count in counts] == [5, 3, 1, 2]
    if name == "wide.csv":
        assert [row["text"] for row in rows_of(out / name)] == ["rain", "card", ""]
    # Without --engine, such a table is refused.
    words = ["predict", small_run, tmp_path / name, "-o", tmp_path / "table.csv"]
    assert command(*words).code == 2


def test_bad_cells_of_workbooks_and_databases_are_set_aside(
    command: Command, small_run: Path, tmp_path: Path
) -> None:
    book = openpyxl.Workbook()
    for row in (["text"], ["rain"], ["#N/A"], ["sun"]):
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    with closing(sqlite3.connect(tmp_path / "t.sqlite")) as database, database:
        database.execute("create table t (text)")
        values = [("rain",), (b"\x00",), ("sun",)]
        database.executemany("insert into t values (?)", values)
    for name, flags in (("t.xlsx", []), ("t.sqlite", ["--query", "select text from t"])):
        out = tmp_path / f"out-{name}"
        words = ["predict", small_run, tmp_path / name, "-o", out, "--engine", "local", *flags]
        done = command(*words)
        assert done.code == 0, done.err
        assert done.out == f"2 texts in 1 shard; 1 row is set aside: {out}\n"
        aside = json.loads((out / "set-aside" / f"{name}.parquet.jsonl").read_text())
        assert aside["row"] == 2
        assert f"{tmp_path / name}, row 2" in aside["reason"]


def test_a_vector_of_another_length_is_set_aside(small_run: Path, tmp_path: Path) -> None:
    vectors = [[1.0], [1.0, 2.0], None, [3.0, 4.0], [5.0, 6.0]]
    pq.write_table(pa.table({"text": list("abcde"), "v": vectors}), tmp_path / "t.parquet")
    bad: dict[int, str] = {}
    found = np.concatenate(list(stream_vector_column(tmp_path / "t.parquet", "v", 2, bad)))
    wanted = [[np.nan] * 2, [1, 2], [np.nan] * 2, [3, 4], [5, 6]]
    np.testing.assert_array_equal(found, wanted)
    assert list(bad) == [1]
    assert "row 1: the vector has 1 dimension, but others have 2" in bad[1]
    with pytest.raises(InputError, match="row 2: the vector has 2 dimensions, but others have 1"):
        list(stream_vector_column(tmp_path / "t.parquet", "v", 2))


EMPTY_TABLES = {
    "nothing.csv": b"",
    "blank.jsonl": b"\n\n",
    "header.csv": b"id,text,channel\n",
    "header.tsv": b"text\n",
    "rows.parquet": None,
    "rows.arrow": None,
}


@pytest.mark.parametrize("name", EMPTY_TABLES)
def test_a_table_without_rows_has_predictions_without_rows(
    command: Command, small_run: Path, tmp_path: Path, name: str
) -> None:
    table = pa.table({"text": pa.array([], pa.string()), "channel": pa.array([], pa.string())})
    content = EMPTY_TABLES[name]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    elif name == "rows.parquet":
        pq.write_table(table, tmp_path / name)
    else:
        feather.write_feather(table, tmp_path / name)
    (tmp_path / "full.csv").write_text("text\nrain\n")
    out = tmp_path / "out"
    words = ["predict", small_run, tmp_path / name, tmp_path / "full.csv", "-o", out]
    done = command(*words, "--engine", "local")
    assert done.code == 0, done.err
    assert done.out == f"1 text in 2 shards: {out}\n"
    assert f"{tmp_path / name}: there are no rows" in done.err
    (output,) = [path for path in out.glob("*.*") if path.stem.split(".")[0] == Path(name).stem]
    assert manifest(out)["shards"][output.name]["rows"] == 0
    if output.suffix == ".parquet":
        names = pq.read_table(output).column_names
    else:
        names = output.read_text().strip().split("," if output.suffix == ".csv" else "\t")
    if output.suffix != ".jsonl":
        assert names[:3] == ["id", "text", "category"]
        assert ("channel" in names) == (name in ("header.csv", "rows.parquet"))
    assert "2 shards were finished before" in command(*words, "--engine", "local").out


@pytest.mark.parametrize("bad", [b"\x81 caf\xe9", b"x" * 5 + b"\0" * 4096])
def test_a_file_that_is_not_text_costs_one_row(
    command: Command, small_run: Path, tmp_path: Path, bad: bytes
) -> None:
    (tmp_path / "texts").mkdir()
    for name, content in (("a", b"rain"), ("b", bad), ("c", b"sun")):
        (tmp_path / "texts" / f"{name}.txt").write_bytes(content)
    out = tmp_path / "out"
    done = command("predict", small_run, tmp_path / "texts", "-o", out, "--engine", "local")
    assert done.code == 0
    texts = pq.read_table(out / "texts.parquet").column("text").to_pylist()
    assert texts == (["rain", "sun"] if b"\0" in bad else ["rain", "\ufffd caf\ufffd", "sun"])


def test_rows_that_cannot_be_predicted_are_set_aside_with_id_and_text(
    command: Command, small_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Model.predict

    def predict(self: Model, texts: list[str], *rest: Any, **more: Any) -> Predictions:
        if "loud song" in texts:
            raise RuntimeError("too loud")
        return plain(self, texts, *rest, **more)

    monkeypatch.setattr(Model, "predict", predict)
    table = pd.DataFrame({"key": ["a", "b", "c"], "text": ["rain", "loud song", "sun"]})
    table.to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "out"
    flags = ["-o", out, "--engine", "local", "--json"]
    done = command("predict", small_run, tmp_path / "t.csv", *flags)
    assert done.code == 0
    value = json.loads(done.out)
    assert (value["rows"], value["texts"], value["set_aside"]) == (3, 2, 1)
    assert [row["id"] for row in rows_of(out / "t.csv")] == ["a", "c"]
    aside = json.loads((out / "set-aside" / "t.csv.jsonl").read_text())
    assert aside == {"row": 2, "id": "b", "text": "loud song", "reason": "RuntimeError: too loud"}
