"""Vectors on the command line: a .npy file beside the table, or a column of a Parquet table."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.commands import Command, Refuse
from support.given_vectors import vectors_of_task
from support.small_texts import QUICK_FLAGS, SmallTask

WIDTH = 12


@pytest.fixture
def table(task: SmallTask, tmp_path: Path) -> Path:
    """A Parquet table with a column of vectors, and the same as CSV and .npy; one row is empty."""
    vectors = vectors_of_task(task, WIDTH)
    frame = pd.DataFrame({"text": task.texts, "label": task.labels, "vector": list(vectors)})
    hole = pd.DataFrame({"text": [None], "label": [None], "vector": [None]})
    frame = pd.concat([frame[:5], hole, frame[5:]], ignore_index=True)
    frame.to_parquet(tmp_path / "table.parquet")
    frame.drop(columns="vector").to_csv(tmp_path / "table.csv", index=False)
    np.save(tmp_path / "table.npy", np.insert(vectors, 5, 0, axis=0))
    return tmp_path / "table.parquet"


def test_column_and_file_give_the_same_run_and_predictions(
    command: Command, table: Path, tmp_path: Path
) -> None:
    flags = ["--categories", "4", *QUICK_FLAGS]
    column = ["--vector-column", "vector"]
    file = ["--vectors", table.with_suffix(".npy")]
    done = command("discover", table, "-o", tmp_path / "one", *column, *flags)
    assert done.code == 0, done.err
    assert "1 row has no text" in done.err
    done = command("discover", table.with_suffix(".csv"), "-o", tmp_path / "two", *file, *flags)
    assert done.code == 0, done.err
    assert "the text column 'text'" in done.err
    one, two = ((tmp_path / run / "assignments.csv").read_text() for run in ("one", "two"))
    assert one == two
    for name, source, flag in (("a", table, column), ("b", table.with_suffix(".csv"), file)):
        out = tmp_path / f"{name}.csv"
        done = command("predict", tmp_path / "one", source, *flag, "-o", out)
        assert done.code == 0, done.err
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()
    predicted = pd.read_csv(tmp_path / "a.csv", dtype=str, keep_default_na=False)
    assert (predicted["category"] == "").sum() == 1
    assert len(predicted) == 65


def test_predict_reads_vectors_in_chunks(
    command: Command, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from newfound.data.tables import streaming

    flags = ["--categories", "4", *QUICK_FLAGS, "--vector-column", "vector"]
    assert command("discover", table, "-o", tmp_path / "run", *flags).code == 0
    for name in ("whole", "parts"):
        out = tmp_path / f"{name}.csv"
        assert (
            command("predict", tmp_path / "run", table, "--vector-column", "vector", "-o", out).code
            == 0
        )
        monkeypatch.setitem(streaming.stream_table.__kwdefaults__, "chunk", 7)
    assert (tmp_path / "whole.csv").read_text() == (tmp_path / "parts.csv").read_text()


@pytest.mark.parametrize("name", ["estimate", "check"])
def test_other_commands_take_vectors(command: Command, table: Path, name: str) -> None:
    frame = pd.read_parquet(table)
    topics = {"card": "bank", "music": "music", "rain": "weather", "hotel": "travel"}
    frame["label"] = [
        next((topics[w] for w in str(text).split() if w in topics), None) for text in frame["text"]
    ]
    frame.to_parquet(table)
    draws = ["--draws", "1"] if name == "check" else []
    done = command(
        name, table, "--vector-column", "vector", "--method", "bert", "--device", "cpu", *draws
    )
    assert done.code == 0, done.err


def test_bad_vectors_get_one_sentence(refuse: Refuse, table: Path, tmp_path: Path) -> None:
    run = ["discover", table, "-o", tmp_path / "run", *QUICK_FLAGS]
    file = tmp_path / "table.npy"
    vectors = np.load(file)

    def refused_with(values: np.ndarray) -> str:
        np.save(tmp_path / "bad.npy", values)
        return refuse(*run, "--vectors", tmp_path / "bad.npy")

    assert "bad.npy has 3 rows but the table has 65" in refused_with(vectors[:3])
    assert "the array has 1 dimension" in refused_with(vectors[:, 0])
    bad = vectors.copy()
    bad[7], bad[9] = np.nan, np.inf
    assert "2 vectors have missing, NaN or infinite values (rows 8, 10)" in refused_with(bad)
    bad = vectors.copy()
    bad[7] = 0
    assert "1 vector is zero (row 8)" in refused_with(bad)
    np.save(tmp_path / "pickled.npy", np.array([{"a": 1}], object), allow_pickle=True)
    assert "not a .npy file of numbers" in refuse(*run, "--vectors", tmp_path / "pickled.npy")
    np.savez(tmp_path / "several.npz", vectors)
    assert "an archive of arrays" in refuse(*run, "--vectors", tmp_path / "several.npz")
    assert "there is no such file" in refuse(*run, "--vectors", tmp_path / "none.npy")
    assert "are not vectors" in refuse(*run, "--vector-column", "text")
    assert "there is no column 'vectors'" in refuse(*run, "--vector-column", "vectors")
    csv = ["discover", table.with_suffix(".csv"), *run[2:]]
    assert "only Parquet files have columns" in refuse(*csv, "--vector-column", "vector")
    assert "--vectors holds no vectors of the texts of --validation" in refuse(
        *run, "--vectors", file, "--validation", table
    )
    assert "not allowed with argument" in refuse(
        *run, "--vectors", file, "--vector-column", "vector"
    )
    assert "name the table instead of -" in refuse("predict", tmp_path, "-", "--vectors", file)


def test_vectors_of_different_lengths_are_named(refuse: Refuse, tmp_path: Path) -> None:
    ragged = pd.DataFrame({"text": ["a", "b", "c"], "vector": [None, [1.0, 2.0], [1.0]]})
    ragged.to_parquet(tmp_path / "ragged.parquet")
    flags = ["--vector-column", "vector", "-o", tmp_path / "run"]
    message = refuse("discover", tmp_path / "ragged.parquet", *flags)
    assert "row 3: the vector has 1 dimension, but others have 2" in message
    empty = pd.DataFrame({"text": ["a", "b"], "vector": [[1.0], [2.0]]})
    empty["vector"] = pd.Series([None, None], dtype=object)
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {"text": ["a", "b"], "vector": pa.array([None, None], pa.list_(pa.float32()))}
    pq.write_table(pa.table(columns), tmp_path / "empty.parquet")
    assert "every vector is missing" in refuse("discover", tmp_path / "empty.parquet", *flags)


def test_run_says_where_the_vectors_are_from(command: Command, table: Path, tmp_path: Path) -> None:
    flags = ["--categories", "4", *QUICK_FLAGS, "--vector-column", "vector", "--encoder", "mpnet"]
    done = command("discover", table, "-o", tmp_path / "run", *flags)
    assert "the vectors are given, so the encoder mpnet is not used" in done.err
    assert "vectors of the user (12 dimensions)" in (tmp_path / "run" / "run.json").read_text()


@pytest.mark.parametrize("kind", ["pipe", "device", "shape"])
def test_odd_files_of_vectors_are_refused(
    kind: str, refuse: Refuse, table: Path, tmp_path: Path
) -> None:
    path = Path("/dev/zero") if kind == "device" else tmp_path / "odd.npy"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "shape":
        header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (64, -16), }"
        header = header.ljust(117) + b"\n"
        path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    said = refuse("discover", table, "-o", tmp_path / "run", "--vectors", path, *QUICK_FLAGS)
    assert ("damaged" if kind == "shape" else "is not a regular file") in said
    if kind != "shape":
        glove = ["--method", "km-glove", "--set", f"vectors={path}", "--categories", "4"]
        said = refuse("discover", table, "-o", tmp_path / "run", *glove)
        assert f"the word vectors {path} cannot be read" in said
