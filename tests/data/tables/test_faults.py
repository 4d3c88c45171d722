"""Unusual and invalid tables: encodings, delimiters, quotes and other files."""

import gzip
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.table_files import put_parquet, refused, write_as

from newfound import InputError
from newfound.data.tables import read_tables, stream_table
from newfound.data.tables.textfile import _BLOCK

# Encodings.


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_byte_order_mark_gives_the_encoding(put: Any, encoding: str, format: str) -> None:
    content = "text,label\ncafé 😀,x\n" if format == "csv" else '{"text": "café 😀", "label": "x"}'
    read = read_tables([put(f"t.{format}", content.encode(encoding))])
    assert read.corpus.texts == ["café 😀"]
    assert read.columns[0].texts == ("text",)
    assert any("byte order mark" in note for note in read.notes) == (encoding != "utf-8-sig")


def test_big_endian_utf16_is_read(put: Any) -> None:
    content = "\ufefftext,label\ncafé,x\n".encode("utf-16-be")
    assert read_tables([put("t.csv", content)]).corpus.texts == ["café"]


def test_windows_1252_is_read_with_a_note(put: Any) -> None:
    path = put("t.csv", "text,label\nplain,x\n“café” 5 €,y\n".encode("cp1252"))
    read = read_tables([path])
    assert read.corpus.texts == ["plain", "“café” 5 €"]
    assert any("not UTF-8 (line 3): read as Windows-1252" in n for n in read.notes)
    (chunk,) = stream_table(path)
    assert chunk.texts == read.corpus.texts


def test_damaged_utf8_is_not_read_in_another_encoding(put: Any) -> None:
    path = put("t.csv", "text\n日本語の文\n東京\n".encode() + b"odd \xff byte\n")
    read = read_tables([path])
    assert read.corpus.texts == ["日本語の文", "東京", "odd \ufffd byte"]
    assert any("1 character is not valid UTF-8 (first: line 4)" in note for note in read.notes)


def test_unknown_encoding_is_refused(put: Any) -> None:
    message = refused(put("t.csv", b"text\nfine\n\x81\x8d\n"))
    assert "line 3 is neither UTF-8 nor Windows-1252" in message


def test_utf16_without_a_mark_is_refused(put: Any) -> None:
    assert "save it as UTF-8" in refused(put("t.csv", "text\nabc\n".encode("utf-16-le")))


def test_damaged_utf16_is_refused(put: Any) -> None:
    assert "save it as UTF-8" in refused(put("t.csv", "text\nab".encode("utf-16") + b"\0"))


def test_character_across_two_blocks_is_decoded(put: Any) -> None:
    content = b"text,label\n" + b"x" * (_BLOCK - 12) + "é,x\nb,y\n".encode()
    read = read_tables([put("t.csv", content)])
    assert read.corpus.texts[0].endswith("xé")
    assert len(read.notes) == 1


def test_line_number_of_a_late_error(put: Any) -> None:
    content = b"text\n" + b"0123456789\n" * 200_000 + b"caf\xe9\n"
    assert "(line 200002)" in read_tables([put("t.csv", content)]).notes[0]


# Delimiters and quotes.


@pytest.mark.parametrize(
    ("name", "delimiter", "word"),
    [
        ("t.csv", ";", "semicolon"),
        ("t.csv", "\t", "tab"),
        ("t.csv", "|", "vertical bar"),
        ("t.tsv", ",", "comma"),
        ("t.tsv", ";", "semicolon"),
    ],
)
def test_other_delimiter_is_detected_and_noted(
    put: Any, name: str, delimiter: str, word: str
) -> None:
    other = "," if name == "t.csv" else "\t"
    rows = [["Text", "label"], ["well" + other + " then", "x"], ["b", ""]]
    read = read_tables([put(name, "\n".join(delimiter.join(row) for row in rows))])
    assert read.corpus.texts == ["well" + other + " then", "b"]
    assert read.corpus.labels == ["x", None]
    assert any(f"separated by a {word}" in note for note in read.notes)


def test_other_delimiter_is_detected_under_unfamiliar_headers(put: Any) -> None:
    read = read_tables([put("t.csv", "foo;bar\na;x\nb;y\n")], text_column="foo")
    assert read.corpus.texts == ["a", "b"]


def test_delimiter_inside_texts_is_not_detected(put: Any) -> None:
    read = read_tables([put("t.csv", "my texts; all\none; two; three\nfour\n")])
    assert read.corpus.texts == ["one; two; three", "four"]


def test_too_many_fields_are_refused(put: Any) -> None:
    path = put("t.csv", 'text,label\n"a\nb",x\nwell, then,y\n')
    message = refused(path)
    assert "row 2 (line 4): there are 3 fields but the header names 2" in message
    assert "double quotes" in message


def test_missing_fields_are_empty(put: Any) -> None:
    read = read_tables([put("t.tsv", "text\tlabel\na\tx\nb\nc\ny\tz\n")])
    assert read.corpus.labels == ["x", None, None, "z"]
    assert any("2 rows have fewer fields" in n and "row 2" in n for n in read.notes)


def test_trailing_delimiters_are_ignored(put: Any) -> None:
    read = read_tables([put("t.csv", "text,label,\na,x,\nb,y,\n")])
    assert read.corpus.labels == ["x", "y"]
    assert len(read.notes) == 1


@pytest.mark.parametrize("bad", ['"never closed,x', '"closed" too early,x', r'"with \" slash",x'])
def test_bad_quotes_in_csv_are_refused(put: Any, bad: str) -> None:
    message = refused(put("t.csv", f"text,label\na,x\n{bad}\nc,y\n"))
    assert "line 3: a quote is misplaced or never closed" in message


def test_tsv_may_be_unquoted(put: Any) -> None:
    content = 'text\tlabel\n"never closed\tx\n"closed" too early\ty\nsaid "so"\tz\n'
    read = read_tables([put("t.tsv", content)])
    assert read.corpus.texts == ['"never closed', '"closed" too early', 'said "so"']
    assert any("line 2" in n and "ordinary characters" in n for n in read.notes)


def test_record_of_many_lines_is_noted(put: Any) -> None:
    rows = [f"t{i}\tx" for i in range(30)]
    rows[3] = '"six feet\tx'
    rows[28] = 'six feet 6"\tx'
    read = read_tables([put("t.tsv", "text\tlabel\n" + "\n".join(rows))])
    assert len(read.corpus) == 5
    assert any("row 4 spans 26 lines" in note for note in read.notes)


# Files that are not tables.


def test_missing_file_is_refused(tmp_path: Path, put: Any) -> None:
    assert "no such file" in refused(tmp_path / "nix.csv")
    assert "no such file" in refused(put("file.csv", "text\n") / "t.csv")


def test_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    assert "this is a folder" in refused(tmp_path / "folder.csv")


def test_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    assert "not a regular file" in refused(tmp_path / "pipe.csv")


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.parquet"])
def test_unreadable_file_is_refused(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_as(tmp_path / name)
    path.chmod(0)
    if os.access(path, os.R_OK):  # the superuser may read everything

        def deny(*_: object, **__: object) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "open", deny)
        monkeypatch.setattr(pq, "ParquetFile", deny)
    assert "there is no permission to read the file" in refused(path)


def test_read_error_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_as(tmp_path / "t.csv")

    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Path, "open", fail)
    assert "cannot be read (Input/output error)" in refused(path)


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.jsonl", "t.json", "t.parquet"])
def test_empty_file_is_refused(put: Any, name: str) -> None:
    assert "the file is empty" in refused(put(name, ""))


@pytest.mark.parametrize("content", ["\n\n", "\ufeff", "\r\n"])
def test_blank_file_is_refused(put: Any, content: str) -> None:
    assert "empty" in refused(put("t.csv", content))
    assert "no record" in refused(put("t.jsonl", content))


def test_header_without_rows_is_refused(put: Any, tmp_path: Path) -> None:
    assert "a header but no row" in refused(put("t.csv", "text,label\n\n"))
    assert "no record" in refused(put("t.json", "[]"))
    path = put_parquet(tmp_path / "t.parquet", text=pa.array([], pa.string()))
    assert "no row" in refused(path)


@pytest.mark.parametrize(
    ("start", "what"),
    [
        (b"PK\x03\x04rest", "Excel"),
        (b"\xd0\xcf\x11\xe0rest", "old Excel"),
        (b"PAR1rest", "Parquet"),
        (b"\x1f\x8brest", "gzip"),
        (b"%PDF-1.4", "PDF"),
        (b"<!DOCTYPE html><html>", "web page"),
        (bytes(range(256)), "neither UTF-8 nor Windows-1252"),
        (b"\0\0\1\0" * 50, "not a text file"),
    ],
)
def test_other_kinds_of_files_are_refused(put: Any, start: bytes, what: str) -> None:
    assert what in refused(put("t.csv", start))


@pytest.mark.parametrize("name", ["t.xls", "t.txt", "t.csv.zip", "t.txt.gz", "table"])
def test_unknown_extension_is_refused(put: Any, name: str) -> None:
    assert ".csv, .tsv, .jsonl, .parquet or .xlsx" in refused(put(name, "text\na\n"))


def test_invalid_json_line_is_refused(put: Any) -> None:
    message = refused(put("t.jsonl", '{"text": "a"}\n\n{"text": "b"\n{"text": "c"}\n'))
    assert "line 3: this is not valid JSON" in message


def test_invalid_json_array_is_refused(put: Any) -> None:
    message = refused(put("t.json", '[\n{"text": "a"},\n{"text": b}\n]'))
    assert "line 3: this is not valid JSON" in message


def test_deeply_nested_json_is_refused(put: Any) -> None:
    refused(put("t.jsonl", '{"text": ' + "[" * 200_000 + "]" * 200_000 + "}"))


@pytest.mark.parametrize("record", ['["a"]', '"a"', "1", "null", "true"])
def test_json_record_must_be_an_object(put: Any, record: str) -> None:
    message = refused(put("t.jsonl", f'{{"text": "a"}}\n{record}\n'))
    assert "line 2: the record is not a JSON object" in message
    message = refused(put("t.json", f'[{{"text": "a"}}, {record}]'))
    assert "record 2: the record is not a JSON object" in message


def test_nested_json_values_are_refused(put: Any) -> None:
    path = put("t.jsonl", '{"text": "a", "label": "x"}\n{"text": ["b"], "label": {"c": 1}}\n')
    assert "row 2, column 'text': the value is a list or an object" in refused(path)
    fine = put("u.jsonl", '{"text": "a", "extra": [1, 2]}\n')
    assert read_tables([fine]).corpus.texts == ["a"]
    labels = put("l.jsonl", '{"text": "a", "label": ["x", "y"]}\n')
    with pytest.raises(InputError, match="row 1, column 'label'"):
        read_tables([labels])


def test_damaged_parquet_is_refused(put: Any, tmp_path: Path) -> None:
    good = write_as(tmp_path / "good.parquet").read_bytes()
    assert "not a Parquet file" in refused(put("a.parquet", "text\na\n"))
    assert "not a Parquet file" in refused(put("b.parquet", good[: len(good) // 2]))
    big = put_parquet(tmp_path / "c.parquet", text=[os.urandom(40).hex() for _ in range(2_000)])
    damaged = bytearray(big.read_bytes())
    damaged[4:2_000] = bytes(1_996)
    refused(put("d.parquet", bytes(damaged)))


def test_nested_parquet_columns_are_refused(tmp_path: Path) -> None:
    path = put_parquet(tmp_path / "t.parquet", text=[["a"], ["b"]])
    assert "column 'text': values of type list" in refused(path)
    path = put_parquet(tmp_path / "u.parquet", text=[b"\xff\xfe"])
    refused(path)


def test_damaged_gzip_is_refused(put: Any) -> None:
    data = gzip.compress(b"text\n" + os.urandom(5_000).hex().encode())
    assert "damaged" in refused(put("a.csv.gz", data[:-2_000]))
    assert "damaged" in refused(put("b.csv.gz", b"text\na\n"))
    assert "damaged" in refused(put("c.csv.gz", data[:50] + b"\xff" * 50 + data[100:]))


def test_damaged_zstandard_is_refused(put: Any) -> None:
    data = pa.compress(b"text\n" + os.urandom(5_000).hex().encode(), "zstd", asbytes=True)
    assert "damaged" in refused(put("a.csv.zst", data[:-2_000]))
    assert "damaged" in refused(put("b.csv.zst", b"text\na\n"))
    assert "Zstandard" in refused(put("d.csv", data))


def test_zstandard_file_of_several_frames_is_read(put: Any) -> None:
    frames = [pa.compress(part, "zstd", asbytes=True) for part in (b"text\na\n", b"b\nc\xe9\n")]
    read = read_tables([put("t.csv.zst", b"".join(frames))])
    assert read.corpus.texts == ["a", "b", "cé"]
    assert "not UTF-8 (line 4)" in read.notes[0]


def test_table_without_text_is_refused(put: Any) -> None:
    path = put("t.csv", "text,label\n,x\n  ,y\n")
    with pytest.raises(InputError) as caught:
        read_tables([path])
    assert f"no text in column 'text' of {path}" in str(caught.value)
    (chunk,) = stream_table(path)  # predict writes such rows, too
    assert chunk.texts == ["", "  "]


@settings(deadline=None)
@given(
    st.binary(max_size=300),
    st.sampled_from(["csv", "tsv", "jsonl", "json", "parquet", "arrow", "csv.zst", "db"]),
)
def test_any_bytes_are_read_or_refused_with_an_input_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, format: str
) -> None:
    path = tmp_path_factory.getbasetemp() / f"any.{format}"
    start = {"arrow": b"ARROW1\0\0", "csv.zst": b"\x28\xb5\x2f\xfd", "db": b"SQLite format 3\0"}
    path.write_bytes(start.get(format, b"") + content)
    read = None
    with suppress(InputError):
        read = read_tables([path])
    assert read is None or all(text.strip() for text in read.corpus.texts)


@settings(deadline=None)
@given(
    st.text(alphabet=st.sampled_from('textlab,;\t|"\n\r {}[]:é\0'), max_size=80),
    st.sampled_from(["csv", "tsv", "jsonl", "json"]),
)
def test_streaming_and_reading_agree(
    tmp_path_factory: pytest.TempPathFactory, content: str, format: str
) -> None:
    path = tmp_path_factory.getbasetemp() / f"agree.{format}"
    path.write_bytes(("text,label\n" if format == "csv" else "").encode() + content.encode())
    try:
        corpus = read_tables([path]).corpus
    except InputError:
        return
    chunks = list(stream_table(path, chunk=2))
    rows = [pair for c in chunks for pair in zip(c.ids, c.texts, strict=True) if pair[1].strip()]
    assert rows == list(zip(corpus.ids, corpus.texts, strict=True))


@pytest.mark.parametrize("name", ["t.csv", "t.tsv"])
def test_huge_field_is_refused(put: Any, name: str) -> None:
    path = put(name, 'text\n"closed" too early\n' + "x" * (1 << 24) + "x\n")
    with pytest.raises(InputError, match=r"line [23]: a quote is misplaced or never closed"):
        read_tables([path])
