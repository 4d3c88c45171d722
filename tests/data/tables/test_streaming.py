"""Streaming tables and lines: every row once, in constant memory."""

import gzip
import io
import itertools
import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from newfound import InputError
from newfound.data.tables import TableChunk, TableWriter, read_tables, stream_lines, stream_table

SOME = {"id": ["a7", "b8", "c9"], "text": ["one", "", "th\nree"], "label": ["x", None, "y"]}


def table(path: Path, **columns: list[Any]) -> Path:
    with TableWriter(path, dict.fromkeys(columns, str)) as writer:
        writer.write(columns)
    return path


@pytest.mark.parametrize("format", ["csv", "tsv", "jsonl", "parquet"])
def test_every_row_is_yielded_once_including_empty_ones(tmp_path: Path, format: str) -> None:
    stream = stream_table(table(tmp_path / f"t.{format}", **SOME), chunk=2)
    assert stream.rows == 3
    assert list(stream) == [
        TableChunk(["a7", "b8"], ["one", ""], {"label": ["x", ""]}),
        TableChunk(["c9"], ["th\nree"], {"label": ["y"]}),
    ]
    assert any("1 row has no text in column 'text' (first: row 2)" in n for n in stream.notes)


@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("rows", [1, 4, 5, 8])
def test_all_chunks_but_the_last_are_full(tmp_path: Path, format: str, rows: int) -> None:
    path = table(tmp_path / f"t.{format}", text=[f"t{i}" for i in range(rows)])
    chunks = list(stream_table(path, chunk=4))
    assert [len(chunk.texts) for chunk in chunks] == [4] * (rows // 4) + [rows % 4] * (rows % 4 > 0)
    assert [name for chunk in chunks for name in chunk.ids] == [str(i + 1) for i in range(rows)]


def test_stream_can_be_iterated_twice(tmp_path: Path) -> None:
    stream = stream_table(table(tmp_path / "t.csv", **SOME))
    assert list(stream) == list(stream)


def test_named_columns_are_used(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", **SOME)
    (chunk,) = stream_table(path, text_column="label", id_column="text")
    assert chunk == TableChunk(["one", "", "th\nree"], ["x", "", "y"], {"id": ["a7", "b8", "c9"]})


def test_nul_is_replaced_and_noted(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"text\na\0b\nc\n")
    stream = stream_table(path)
    assert next(iter(stream)).texts == ["a b", "c"]
    list(stream)
    assert any(
        "1 text in column 'text' contains NUL" in note and "row 1" in note for note in stream.notes
    )


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "text,label\n" + "a,x\n" * 9_000 + "a,b,c\n"),
        ("b.csv", "text,label\n" + "a,x\n" * 9_000 + '"a,x\n'),
        ("c.jsonl", '{"text": "a"}\n' * 9_000 + "{\n"),
        ("d.jsonl", '{"text": "a"}\n' * 9_000 + '{"text": []}\n'),
    ],
)
def test_errors_at_the_end_are_raised_before_the_first_row(
    tmp_path: Path, name: str, content: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=r"(line|row) 9001|line 9002"):
        stream_table(tmp_path / name)


@pytest.mark.parametrize("format", ["csv", "jsonl", "csv.gz", "csv.zst"])
def test_memory_does_not_grow_with_the_table(tmp_path: Path, format: str) -> None:
    def peak(batches: int) -> int:
        path = tmp_path / f"{batches}.{format.partition('.')[0]}"
        with TableWriter(path, {"text": str}) as writer:
            for batch in range(batches):
                writer.write({"text": [f"{batch} " + "long text " * 1_000] * 100})  # 1 MB
        path = packed(path, tmp_path / f"{batches}.{format}")
        tracemalloc.start()
        for _ in stream_table(path, chunk=64):
            pass
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    assert peak(24) < peak(4) + 1_000_000


def packed(path: Path, target: Path) -> Path:
    """Compress a file as the name of the target says."""
    if target.suffix == ".gz":
        target.write_bytes(gzip.compress(path.read_bytes(), compresslevel=1))
    elif target.suffix == ".zst":
        target.write_bytes(pa.compress(path.read_bytes(), "zstd", asbytes=True))
    return target


# Lines.


def lines_of(*lines: str | bytes, chunk: int = 100, **options: Any) -> list[tuple[str, str]]:
    chunks = stream_lines(lines, chunk, **options)
    return [pair for c in chunks for pair in zip(c.ids, c.texts, strict=True)]


def test_each_line_is_a_text() -> None:
    lines = lines_of("one\n", "\n", "two\r\n", ' {"half": \n', "[1]\n", "last")
    assert lines == [
        ("1", "one"),
        ("2", ""),
        ("3", "two"),
        ("4", ' {"half": '),
        ("5", "[1]"),
        ("6", "last"),
    ]


def test_line_chunks_are_yielded_without_waiting() -> None:
    endless = (f"line {i}\n" for i in itertools.count(1))
    chunk = next(stream_lines(endless, 3))
    assert chunk == TableChunk(["1", "2", "3"], ["line 1", "line 2", "line 3"])
    assert [len(c.texts) for c in stream_lines(["a"] * 5, 2)] == [2, 2, 1]
    assert list(stream_lines([], 2)) == []


def test_json_object_gives_text_and_id() -> None:
    assert lines_of(
        '{"text": "a"}\n',
        ' {"Utterance": "b", "id": 7, "n": [1]}\n',
        '{"text": null}\n',
        '{"text": 1.50}\n',
        '{"text": "a\\u0000b\\nc"}\n',
        '{"no": "such field", "as": "that"}\n',
    ) == [
        ("1", "a"),
        ("7", "b"),
        ("3", ""),
        ("4", "1.50"),
        ("5", "a b\nc"),
        ("6", '{"no": "such field", "as": "that"}'),
    ]


def test_several_fields_are_joined() -> None:
    line = '{"subject": "a", "body": "b", "id": "c"}'
    (chunk,) = stream_lines([line, "plain"], text_column=["subject", "body"])
    assert chunk == TableChunk(
        ["c", "2"], ["a\nb", "plain"], {"subject": ["a", ""], "body": ["b", ""]}
    )


def test_named_field_is_used() -> None:
    line = '{"text": "a", "other": "b", "code": "c"}'
    assert lines_of(line, text_column="other", id_column="code") == [("c", "b")]
    assert lines_of("plain", text_column="other") == [("1", "plain")]
    with pytest.raises(InputError, match="standard input, line 2: there is no column 'nix'"):
        lines_of("plain", line, text_column="nix")


def test_ambiguous_objects_are_refused() -> None:
    with pytest.raises(InputError, match="line 2: the text column may be 'title' or 'body'"):
        lines_of("fine", '{"title": "a", "body": "b"}')
    with pytest.raises(InputError, match="line 1: 'text' is a list or an object"):
        lines_of('{"text": ["a"]}')


def test_lines_that_are_not_utf8_are_decoded() -> None:
    lines = lines_of(b"\xef\xbb\xbffirst\r\n", "café\n".encode(), "café\n".encode("cp1252"))
    assert [text for _, text in lines] == ["first", "café", "café"]


def test_standard_input_is_read_as_bytes() -> None:
    handle = io.TextIOWrapper(io.BytesIO(b"caf\xe9\nb\n"), encoding="utf-8")
    assert [chunk.texts for chunk in stream_lines(handle, 10)] == [["café", "b"]]
    assert [chunk.texts for chunk in stream_lines(io.StringIO("a\nb\n"), 10)] == [["a", "b"]]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.text(st.characters(exclude_characters="\n\r\0\ufeff", codec="utf-8"))))
def test_json_lines_and_json_tables_agree(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    texts = [text for text in texts if text.strip()]
    lines = [json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts]
    assert [text for _, text in lines_of(*lines)] == texts
    if texts:
        path = tmp_path_factory.getbasetemp() / "agree.jsonl"
        path.write_text("".join(lines), encoding="utf-8")
        assert read_tables([path]).corpus.texts == texts


def test_pipe_is_read_as_lines_arrive() -> None:
    end, start = os.pipe()
    with os.fdopen(end, "rb") as reader:
        chunks = stream_lines(reader, 100)
        os.write(start, b"one\ntw")
        assert next(chunks).texts == ["one"]
        os.write(start, b"o\n\nthree")
        assert next(chunks).texts == ["two", ""]
        os.close(start)
        last = next(chunks)
        assert (last.ids, last.texts) == (["4"], ["three"])
        assert list(chunks) == []
