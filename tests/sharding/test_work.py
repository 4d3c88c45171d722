"""Rows that cannot be read or predicted are set aside; the others are predicted."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.commands import Command, rows_of
from support.shards import manifest

from newfound.data.tables import TableChunk
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
    "lines.jsonl": b'{"text": "rain"}\n{"text": \n["sun"]\n{"text": "card"}\n{"text": ""}\n',
    "wide.csv": b"text,channel\nrain,a\nsun,warm,b\ncard,cash,c\ncard,d\n,e\n",
}


@pytest.mark.parametrize("name", ["lines.jsonl", "wide.csv", "bytes.parquet"])
def test_rows_that_cannot_be_read_are_set_aside_with_their_reason(
    command: Command, small_run: Path, tmp_path: Path, name: str
) -> None:
    if name == "bytes.parquet":
        texts = pa.array([b"rain", b"\xff\xfe", b"\xff", b"card", None], pa.binary())
        pq.write_table(pa.table({"text": texts}), tmp_path / name)
    else:
        (tmp_path / name).write_bytes(BAD_TABLES[name])
    out = tmp_path / "out"
    done = command("predict", small_run, tmp_path / name, "-o", out, "--engine", "local")
    assert done.code == 0, done.err
    assert "; 2 rows are set aside: " in done.out
    assert "1 row has no text" in done.err
    lines = (out / "set-aside" / f"{name}.jsonl").read_text().splitlines()
    aside = [json.loads(line) for line in lines]
    assert [(line["row"], line["text"]) for line in aside] == [(2, ""), (3, "")]
    assert all(str(tmp_path / name) in line["reason"] for line in aside)
    entry = manifest(out)["shards"][name]
    counts = ("rows", "written", "empty", "set_aside")
    assert [entry[count] for count in counts] == [5, 3, 1, 2]
    if name == "wide.csv":
        assert [row["text"] for row in rows_of(out / name)] == ["rain", "card", ""]
    # Without --engine, such a table is refused before anything is predicted.
    table = ["predict", small_run, tmp_path / name, "-o", tmp_path / "table.csv"]
    assert command(*table).code == 2


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
