"""Writing tables: round trips, types, and no incomplete files."""

import csv
import json
import resource
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from newfound import InputError
from newfound.data.corpus import clean_text
from newfound.data.tables import TableWriter, read_tables, stream_table

FORMATS = ["csv", "tsv", "tab", "jsonl", "ndjson", "parquet", "pq"]
COLUMNS: dict[str, type] = {"id": str, "text": str, "label": str, "probability": float}

texts = st.text(st.characters()).filter(lambda text: clean_text(text).strip())
tricky = st.text(st.sampled_from("\"',;\t|\n\r\\ aé😀\u2028\x85\ufeff{}=#")).filter(
    lambda text: text.strip()
)


@pytest.mark.parametrize("format", FORMATS)
@settings(deadline=None, max_examples=40)
@given(
    rows=st.lists(st.tuples(texts | tricky, st.none() | texts | tricky), min_size=1),
    raw_cells=st.booleans(),
)
def test_round_trip(
    tmp_path_factory: pytest.TempPathFactory,
    format: str,
    rows: list[tuple[str, str | None]],
    raw_cells: bool,
) -> None:
    path = tmp_path_factory.getbasetemp() / f"round.{format}"
    with TableWriter(path, {"text": str, "label": str}, raw_cells=raw_cells) as table:
        for text, label in rows:  # one batch per row
            table.write({"text": [text], "label": [label]})
    read = read_tables([path], raw_cells=raw_cells)
    assert read.corpus.texts == [clean_text(text) for text, _ in rows]
    assert read.corpus.labels == [label and clean_text(label) for _, label in rows]
    notes = [note for note in read.notes if "spans" not in note and "apostrophe before" not in note]
    assert len(notes) == 1
    chunks = stream_table(path, raw_cells=raw_cells)
    assert [text for chunk in chunks for text in chunk.texts] == read.corpus.texts


@pytest.mark.parametrize("format", FORMATS)
@settings(deadline=None, max_examples=40)
@given(column=st.lists(st.just("") | tricky, min_size=1).map(lambda column: [*column, "end"]))
def test_round_trip_of_one_column_with_missing_values(
    tmp_path_factory: pytest.TempPathFactory, format: str, column: list[str]
) -> None:
    path = tmp_path_factory.getbasetemp() / f"column.{format}"
    with TableWriter(path, {"text": str}) as table:
        table.write({"text": column})
    assert [text for chunk in stream_table(path) for text in chunk.texts] == column


def write_some(path: Path) -> None:
    with TableWriter(path, {"id": str, "n": int, "p": float, "known": bool}) as table:
        table.write({"id": ["a"], "n": [None], "p": np.array([0.9], np.float32), "known": [None]})
        table.write({"id": [], "n": [], "p": [], "known": []})
        table.write(
            {
                "id": np.array(["b", "c"]),
                "n": np.array([1, 2]),
                "p": [float("nan"), np.float64(0.25)],
                "known": np.array([True, False]),
            }
        )


def test_types_in_text_formats(tmp_path: Path) -> None:
    write_some(tmp_path / "t.csv")
    wanted = "id,n,p,known\na,,0.9,\nb,1,,True\nc,2,0.25,False\n"
    assert (tmp_path / "t.csv").read_bytes() == wanted.encode()
    write_some(tmp_path / "t.jsonl")
    records = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    assert records == [
        {"id": "a", "n": None, "p": 0.9, "known": None},
        {"id": "b", "n": 1, "p": None, "known": True},
        {"id": "c", "n": 2, "p": 0.25, "known": False},
    ]


def test_types_in_parquet(tmp_path: Path) -> None:
    write_some(tmp_path / "t.parquet")
    table = pq.read_table(tmp_path / "t.parquet")
    assert table.schema.types == [pa.string(), pa.int64(), pa.float64(), pa.bool_()]
    assert table.to_pydict() == {
        "id": ["a", "b", "c"],
        "n": [None, 1, 2],
        "p": [0.9, None, 0.25],
        "known": [None, True, False],
    }


def test_other_libraries_read_the_csv(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    odd = ["a\rb", "a\r\nb", 'say "hi"', "a,b", " a ", "", "é😀"]
    with TableWriter(path, {"text": str, "label": str}) as table:
        table.write({"text": odd, "label": ["x"] * len(odd)})
    with path.open(encoding="utf-8", newline="") as handle:
        assert list(csv.reader(handle)) == [["text", "label"], *([text, "x"] for text in odd)]
    assert not path.read_bytes().endswith(b"\r\n")


@pytest.mark.parametrize("format", FORMATS)
def test_table_without_rows_has_its_columns(tmp_path: Path, format: str) -> None:
    path = tmp_path / f"t.{format}"
    with TableWriter(path, COLUMNS):
        pass
    if format in ("parquet", "pq"):
        assert pq.read_table(path).column_names == list(COLUMNS)
    else:
        assert path.read_text().splitlines() in (
            [",".join(COLUMNS)],
            ["\t".join(COLUMNS)],
            [],
        )


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "error", [ValueError("mine"), OSError("of another file"), KeyboardInterrupt()]
)
def test_error_leaves_no_file_behind(tmp_path: Path, format: str, error: BaseException) -> None:
    path = tmp_path / f"t.{format}"
    path.write_text("old")

    def fail() -> None:
        with TableWriter(path, {"text": str}) as table:
            table.write({"text": ["a"] * 10})
            raise error

    with pytest.raises(type(error)) as caught:
        fail()
    assert caught.value is error
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_table_appears_only_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    with TableWriter(path, {"text": str}) as table:
        table.write({"text": ["a"]})
        assert not path.exists()
    assert list(tmp_path.iterdir()) == [path]


@pytest.fixture
def small_disk() -> Iterator[None]:
    """Limit files to 32 KiB, to simulate a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 15, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("small_disk")
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("rows", [8_000, 30_000])
def test_full_disk_is_reported(tmp_path: Path, format: str, rows: int) -> None:
    path = tmp_path / f"t.{format}"
    random = np.random.default_rng(0)
    with (
        pytest.raises(InputError, match=r"t.*cannot be written.*: free space"),
        TableWriter(path, {"text": str}) as table,
    ):
        table.write({"text": [random.bytes(10).hex() for _ in range(rows)]})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["t.xlsx", "t", "t.json", "t.csv.gz"])
def test_unknown_extension_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"use \.csv, \.tsv, \.jsonl or"):
        TableWriter(tmp_path / name, {"text": str})
    assert list(tmp_path.iterdir()) == []


def test_unwritable_paths_are_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match="this is a folder"):
        TableWriter(tmp_path / "folder.csv", {"text": str})
    with (
        pytest.raises(InputError, match="cannot write"),
        TableWriter(tmp_path / "nowhere" / "t.csv", {"text": str}),
    ):
        pass


def test_wrong_calls_raise(tmp_path: Path) -> None:
    writer = TableWriter(tmp_path / "t.csv", {"a": str, "b": str})
    with pytest.raises(RuntimeError, match="inside the with block"):
        writer.write({"a": ["x"], "b": ["y"]})
    with writer as table:
        with pytest.raises(ValueError, match="columns"):
            table.write({"a": ["x"]})
        with pytest.raises(ValueError, match="differ in length"):
            table.write({"a": ["x"], "b": []})
        table.write({"b": ["y"], "a": ["x"]})
    assert (tmp_path / "t.csv").read_text() == "a,b\nx,y\n"


def write_while_another_does(path: Path) -> None:
    with TableWriter(path, {"id": str}, replace=False) as table:
        table.write({"id": ["mine"]})
        path.write_text("theirs")


def test_file_of_another_program_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for number in (2, 3):
        with pytest.raises(InputError, match=rf"a\.csv was created .* is .*a-{number}\.csv$"):
            write_while_another_does(path)
        assert path.read_text() == "theirs"
        assert (tmp_path / f"a-{number}.csv").read_text() == "id\nmine\n"
    with TableWriter(path, {"id": str}, replace=True) as table:
        table.write({"id": ["mine"]})
    assert path.read_text() == "id\nmine\n"
    assert {each.name for each in tmp_path.iterdir()} == {"a.csv", "a-2.csv", "a-3.csv"}


def test_second_writer_of_a_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    with TableWriter(path, {"id": str}, replace=True) as table:
        table.write({"id": ["mine"]})
        with (
            pytest.raises(InputError, match=r"another process is writing .*a\.csv; wait"),
            TableWriter(path, {"id": str}, replace=True),
        ):
            raise AssertionError
    assert [each.name for each in tmp_path.iterdir()] == ["a.csv"]
