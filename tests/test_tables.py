"""Reading tables: formats, columns, encodings, and the sentence that each bad input gets."""

import gzip
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from newfound import InputError
from newfound.tables import Columns, read_tables, stream_table
from newfound.tables.textfile import _BLOCK

ROWS = [("where is my card", "card"), ("send money", "transfer"), ("hello", None)]


@pytest.fixture
def put(tmp_path: Path) -> Any:
    """Write a file and return its path."""

    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def put_parquet(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def refused(path: Path, **options: Any) -> str:
    """Return the message of the error, after checking that it is one sentence with the file."""
    with pytest.raises(InputError) as caught:
        read_tables([path], **options)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    # predict must refuse what discover refuses, unless it is about labels or ids
    if not {"label_column", "id_column"} & set(options) and "label" not in message:
        with pytest.raises(InputError) as caught:
            list(stream_table(path, **options))
        assert str(caught.value) == message
    return message


# Formats.


def write_as(path: Path) -> Path:
    """Write ROWS in the format that the name says."""
    name = path.name.removesuffix(".gz")
    if name.endswith((".parquet", ".pq")):
        texts, labels = zip(*ROWS, strict=True)
        return put_parquet(path, text=texts, label=labels)
    if name.endswith((".jsonl", ".ndjson")):
        lines = [json.dumps({"text": text, "label": label}) for text, label in ROWS]
    elif name.endswith(".json"):
        lines = [json.dumps([{"text": text, "label": label} for text, label in ROWS], indent=1)]
    else:
        tab = "," if ".csv" in name.lower() else "\t"
        lines = [f"text{tab}label", *(f"{text}{tab}{label or ''}" for text, label in ROWS)]
    data = ("\n".join(lines) + "\n").encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize(
    "name",
    [
        "t.csv",
        "T.CSV",
        "t.tsv",
        "t.tab",
        "t.jsonl",
        "t.ndjson",
        "t.json",
        "t.parquet",
        "t.pq",
        "t.csv.gz",
        "t.jsonl.gz",
    ],
)
def test_formats(tmp_path: Path, name: str) -> None:
    path = write_as(tmp_path / name)
    read = read_tables([path])
    assert list(zip(read.corpus.texts, read.corpus.labels, strict=True)) == ROWS
    assert read.corpus.ids == ["1", "2", "3"]
    assert read.columns == [Columns("text", "label", None, ("text", "label"))]
    (note,) = read.notes
    assert note == (
        f"{path}: guessed the text column 'text', label column 'label' "
        "(choose with --text-column, --label-column)"
    )


def test_json_lines_in_a_json_file(put: Any) -> None:
    path = put("t.json", '{"text": "a"}\n\n{"text": "b", "label": "x"}\n')
    assert read_tables([path]).corpus.labels == [None, "x"]


def test_a_field_that_only_late_records_have_is_a_column(put: Any) -> None:
    lines = [json.dumps({"text": f"t{i}"}) for i in range(5000)]
    path = put("t.jsonl", "\n".join([*lines, '{"text": "last", "intent": "x"}']))
    assert read_tables([path]).corpus.labels[-1] == "x"


def test_json_values_keep_their_digits(put: Any) -> None:
    path = put(
        "t.jsonl",
        '{"text": 1.10, "label": 7}\n{"text": "b", "label": true}\n{"text": "c", "label": NaN}\n'
        '{"text": "d", "label": null}\n{"text": "e", "label": ""}\n'
        '{"text": 123456789012345678901234567890, "label": "007"}',
    )
    corpus = read_tables([path]).corpus
    assert corpus.texts == ["1.10", "b", "c", "d", "e", "123456789012345678901234567890"]
    assert corpus.labels == ["7", "true", None, None, None, "007"]


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        (pa.array([1, None, 7]), ["1", None, "7"]),
        (pa.array([1.0, float("nan"), 2.5]), ["1", None, "2.5"]),
        (pa.array(["x", None, ""]).dictionary_encode(), ["x", None, None]),
        (pa.array(["x", "NA", " "], pa.large_string()), ["x", "NA", None]),
        (pa.array([b"x", None, b"y"]), ["x", None, "y"]),
        (pa.array([True, None, False]), ["true", None, "false"]),
        (pa.nulls(3), [None, None, None]),
    ],
)
def test_parquet_types(tmp_path: Path, values: Any, wanted: list[str | None]) -> None:
    path = put_parquet(tmp_path / "t.parquet", **{"a.b": ["p", "q", "r"], "label": values})
    read = read_tables([path], text_column="a.b")
    assert read.corpus.texts == ["p", "q", "r"]
    assert read.corpus.labels == wanted


def test_parquet_of_many_batches_and_row_groups(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    texts = [f"text {i}" for i in range(20_000)]
    pq.write_table(pa.table({"text": texts}), path, row_group_size=9_000)
    assert read_tables([path]).corpus.texts == texts


def test_everything_stays_a_string(put: Any) -> None:
    names = ["NA", "nan", "null", "None", "007", "1.0", "TRUE", "-1", "1e5"]
    path = put("t.csv", "id,text,label\n" + "".join(f"0{n},{n},{n}\n" for n in names))
    corpus = read_tables([path]).corpus
    assert corpus.texts == corpus.labels == names
    assert corpus.ids == [f"0{name}" for name in names]


def test_quoted_records_of_several_lines(put: Any) -> None:
    content = 'text\tlabel\r\n"one\r\ntwo\nthree, ""quoted""\t."\tx\r\nsay "hi" now\ty\r\n'
    corpus = read_tables([put("t.tsv", content)]).corpus
    assert corpus.texts == ['one\r\ntwo\nthree, "quoted"\t.', 'say "hi" now']
    assert corpus.labels == ["x", "y"]


def test_lines_end_only_where_they_do(put: Any) -> None:
    odd = "a\u2028b\x0bc\x0cd\x85e\x1cf"
    assert read_tables([put("t.csv", f"text\n{odd}\ng\n")]).corpus.texts == [odd, "g"]
    line = json.dumps({"text": odd}, ensure_ascii=False)
    # control characters are escaped in JSON, the line separators of Unicode are not
    assert read_tables([put("t.jsonl", f"{line}\n{line}\n")]).corpus.texts == [odd, odd]


def test_old_line_ends_and_no_end(put: Any) -> None:
    assert read_tables([put("t.csv", "text,label\ra,x\rb,y")]).corpus.labels == ["x", "y"]


def test_the_papers_tables() -> None:
    if "NEWFOUND_DATA" not in os.environ:
        pytest.skip("NEWFOUND_DATA names no folder")
    folder = Path(os.environ["NEWFOUND_DATA"])
    sizes = {
        "banking": (77, {"train": 9_003, "dev": 1_000, "test": 3_080}),
        "stackoverflow": (20, {"train": 18_000, "dev": 1_000, "test": 1_000}),
        "clinc": (150, {"train": 18_000, "dev": 2_250, "test": 2_250}),
    }
    for name, (categories, parts) in sizes.items():
        for part, rows in parts.items():
            corpus = read_tables([folder / name / f"{part}.tsv"]).corpus
            assert len(corpus) == rows
            assert len(corpus.known) == categories
            assert None not in corpus.labels
    assert (folder / "banking" / "train.tsv").read_bytes().count(b"\n") == 9_017  # with the header


# Odd texts.


@pytest.mark.parametrize(
    "text", ["x" * 100_000, "y" * 1_000_000, "42", "😀👩‍👩‍👧", "مرحبا שלום", " kept ", "{}", "=1+1"]
)
@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
def test_odd_texts_are_fine(tmp_path: Path, put: Any, text: str, format: str) -> None:
    if format == "csv":
        path = put("t.csv", f"text,label\n{text},a\nb,\n")
    elif format == "jsonl":
        path = put("t.jsonl", json.dumps({"text": text, "label": "a"}) + '\n{"text": "b"}\n')
    else:
        path = put_parquet(tmp_path / "t.parquet", text=[text, "b"], label=["a", None])
    read = read_tables([path])
    assert read.corpus.texts == [text, "b"]
    assert len(read.notes) == 1  # the guess


def test_nul_becomes_a_space(put: Any) -> None:
    path = put("t.csv", b"text,label\nfine,x\na\0b,y\0y\n\0,z\n")
    read = read_tables([path])
    assert read.corpus.texts == ["fine", "a b"]
    assert read.corpus.labels == ["x", "y y"]
    assert any("2 text(s) in column 'text' hold NUL" in n and "row 2" in n for n in read.notes)


def test_half_a_surrogate_pair(put: Any) -> None:
    read = read_tables([put("t.jsonl", '{"text": "a\\ud83d"}\n{"text": "\\ud83d\\ude00"}\n')])
    assert read.corpus.texts == ["a\ufffd", "😀"]
    assert any("broken character" in note and "row 1" in note for note in read.notes)


def test_rows_without_text_are_left_out_and_keep_their_numbers(put: Any) -> None:
    path = put("t.csv", 'text,label\na,x\n   ,y\n,z\n"\u3000\n",z\nb,\n\n\nc,x\n')
    read = read_tables([path])
    assert read.corpus.texts == ["a", "b", "c"]
    assert read.corpus.ids == ["1", "5", "6"]  # blank lines are no rows
    assert f"{path}: 3 row(s) left out, the first is row 2: column 'text' is empty there" in (
        read.notes
    )


def test_blank_lines_of_a_single_column_are_rows_except_at_the_end(put: Any) -> None:
    read = read_tables([put("t.csv", "\n\ntext\na\n\nb\n\n\n")])
    assert read.corpus.ids == ["1", "3"]
    (chunk,) = stream_table(put("u.csv", "\n\ntext\na\n\nb\n\n\n"))
    assert chunk.texts == ["a", "", "b"]


def test_white_space_labels_mean_unlabelled_but_labels_are_kept_as_given(put: Any) -> None:
    corpus = read_tables([put("t.csv", "text,label\na,  \nb, x\n")]).corpus
    assert corpus.labels == [None, " x"]


# Columns.


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("utterance,intent", Columns("utterance", "intent", None, ("text", "label"))),
        (" Text , LABEL,ID", Columns("Text", "LABEL", "ID", ("text", "label", "id"))),
        ("uuid,Message,Category", Columns("Message", "Category", "uuid", ("text", "label", "id"))),
        ("title,text,extra", Columns("text", None, None, ("text",))),  # "text" wins
        ("text,category,label", Columns("text", "label", None, ("text", "label"))),
        ("uid,key,query", Columns("query", None, None, ("text",))),  # two ids: none
        (",question,Unnamed: 0", Columns("question", None, None, ("text",))),
    ],
)
def test_guesses(put: Any, header: str, columns: Columns) -> None:
    path = put("t.csv", f"{header}\n1,2,3\n4,5,6\n")
    if header.count(",") == 1:
        path = put("t.csv", f"{header}\n1,2\n4,5\n")
    read = read_tables([path])
    assert read.columns == [columns]
    guess = next(note for note in read.notes if "guessed" in note)
    for role in columns.guessed:
        assert f"{role} column {getattr(columns, role)!r}" in guess
        assert f"--{role}-column" in guess
    stream = stream_table(path)
    assert (stream.columns.text, stream.columns.id) == (columns.text, columns.id)


def test_named_columns_are_not_guessed(put: Any) -> None:
    path = put("t.csv", "id,text,label,body,group,code\n1,a,b,c,d,e\n2,f,g,h,i,j\n")
    read = read_tables([path], text_column="body", label_column="group", id_column="code")
    assert (read.corpus.texts, read.corpus.labels, read.corpus.ids) == (
        ["c", "h"],
        ["d", "i"],
        ["e", "j"],
    )
    assert read.notes == []


def test_a_named_column_is_out_of_the_guesses_for_others(put: Any) -> None:
    path = put("t.csv", "title,body,topic\na,b,c\nd,e,f\n")
    assert read_tables([path], label_column="title").columns[0].text == "body"
    assert read_tables([path], text_column="topic").columns[0].label is None


def test_a_single_column_is_the_text_column(put: Any) -> None:
    read = read_tables([put("t.csv", "anything\na\nb\n")])
    assert read.corpus.texts == ["a", "b"]
    assert any("'anything'" in n and "put a header line above it" in n for n in read.notes)


def test_a_single_column_that_says_it_is_something_else(put: Any) -> None:
    path = put("t.csv", "label\na\nb\n")
    assert "name one of 'label' with --text-column" in refused(path)
    assert read_tables([path], text_column="label").corpus.texts == ["a", "b"]


def test_no_text_column(put: Any) -> None:
    message = refused(put("t.csv", "foo,bar,label\na,b,c\n"))
    assert "name one of 'foo', 'bar', 'label' with --text-column" in message


def test_no_header(put: Any) -> None:
    message = refused(put("t.csv", "where is my card,card\nsend money,transfer\n"))
    assert "add a header line" in message


def test_ambiguous_text_column(put: Any) -> None:
    message = refused(put("t.csv", "title,body,label\na,b,c\n"))
    assert "'title' or 'body': choose with --text-column" in message


def test_ambiguous_label_column(put: Any) -> None:
    path = put("t.csv", "text,intent,topic\na,b,c\n")
    assert "'intent' or 'topic': choose with --label-column" in refused(path)
    assert [chunk.texts for chunk in stream_table(path)] == [["a"]]  # predict needs no labels


def test_two_columns_of_one_name(put: Any) -> None:
    path = put("t.csv", "text,text\na,b\n")
    assert "'text' or 'text': rename one" in refused(path)
    assert "two columns are called 'text': rename" in refused(path, text_column="text")


@pytest.mark.parametrize("role", ["text", "label", "id"])
def test_a_named_column_that_is_not_there(put: Any, role: str) -> None:
    message = refused(put("t.csv", "text,intent\na,b\n"), **{f"{role}_column": "nix"})
    assert "no column 'nix'" in message
    assert f"'text', 'intent' with --{role}-column" in message


def test_one_column_for_two_purposes(put: Any) -> None:
    path = put("t.csv", "text,label\na,b\n")
    assert "two purposes" in refused(path, text_column="text", label_column="text")


# Several tables.


def test_several_tables_are_one_corpus(put: Any, tmp_path: Path) -> None:
    labelled = put("l.csv", "utterance,intent\na,x\n,y\nb,y\n")
    plain = put("u.jsonl", '{"message": "c"}\n{"message": "d"}\n')
    read = read_tables([labelled, put_parquet(tmp_path / "p.parquet", text=["e"]), plain])
    assert read.corpus.texts == ["a", "b", "e", "c", "d"]
    assert read.corpus.labels == ["x", "y", None, None, None]
    assert read.corpus.ids == ["1", "3", "4", "5", "6"]  # the row without text is counted
    assert [columns.text for columns in read.columns] == ["utterance", "text", "message"]
    assert any(
        str(plain) in note and "texts are unlabelled (choose with" in note for note in read.notes
    )


def test_a_named_label_column_need_only_be_in_one_table(put: Any) -> None:
    labelled, plain = put("l.csv", "text,kind\na,x\n"), put("u.csv", "text,label\nb,y\n")
    read = read_tables([plain, labelled], label_column="kind")
    assert read.corpus.labels == [None, "x"]
    assert any(str(plain) in note and "no column 'kind'" in note for note in read.notes)
    with pytest.raises(InputError, match="no column 'nix'"):
        read_tables([plain, labelled], label_column="nix")


def test_the_same_table_twice(put: Any, tmp_path: Path) -> None:
    path = put("t.csv", "text\na\n")
    with pytest.raises(InputError, match="given twice"):
        read_tables([path, tmp_path / "." / "x" / ".." / "t.csv"])


def test_no_table() -> None:
    with pytest.raises(InputError, match="no table is given"):
        read_tables([])


# Ids.


def test_ids_must_be_unique_over_all_tables(put: Any) -> None:
    one = put("one.csv", "text,code\na,7\nb,8\n")
    two = put("two.csv", "text,code\nc,9\nd,8\n")
    with pytest.raises(InputError) as caught:
        read_tables([one, two], id_column="code")
    assert f"{one}, row 2 and {two}, row 2: both have the id '8' in column 'code'" in str(
        caught.value
    )
    assert "row 1: the id is empty" in refused(put("e.csv", "text,code\na,\n"), id_column="code")


def test_guessed_ids_that_do_not_serve_give_way_to_row_numbers(put: Any) -> None:
    twice = read_tables([put("t.csv", "id,text\n7,a\n7,b\n")])
    assert twice.corpus.ids == ["1", "2"]
    assert any("both have the id '7', so" in note for note in twice.notes)
    empty = read_tables([put("e.csv", "id,text\n7,a\n,b\n")])
    assert empty.corpus.ids == ["1", "2"]
    some = read_tables([put("s.csv", "id,text\n7,a\n"), put("n.csv", "text\nb\n")])
    assert some.corpus.ids == ["1", "2"]
    assert any("not every table has an id column" in note for note in some.notes)


# Encodings.


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_byte_order_marks(put: Any, encoding: str, format: str) -> None:
    content = "text,label\ncafé 😀,x\n" if format == "csv" else '{"text": "café 😀", "label": "x"}'
    read = read_tables([put(f"t.{format}", content.encode(encoding))])
    assert read.corpus.texts == ["café 😀"]
    assert read.columns[0].text == "text"
    assert any("byte order mark" in note for note in read.notes) == (encoding != "utf-8-sig")


def test_big_endian(put: Any) -> None:
    content = "\ufefftext,label\ncafé,x\n".encode("utf-16-be")
    assert read_tables([put("t.csv", content)]).corpus.texts == ["café"]


def test_windows_1252(put: Any) -> None:
    path = put("t.csv", "text,label\nplain,x\n“café” 5 €,y\n".encode("cp1252"))
    read = read_tables([path])
    assert read.corpus.texts == ["plain", "“café” 5 €"]
    assert any("not UTF-8 (line 3), so it was read as Windows-1252" in n for n in read.notes)
    (chunk,) = stream_table(path)
    assert chunk.texts == read.corpus.texts


def test_damaged_utf8_is_not_taken_for_another_encoding(put: Any) -> None:
    path = put("t.csv", "text\n日本語の文\n東京\n".encode() + b"odd \xff byte\n")
    read = read_tables([path])
    assert read.corpus.texts == ["日本語の文", "東京", "odd \ufffd byte"]
    assert any("1 damaged character(s), the first in line 4" in note for note in read.notes)


def test_neither_utf8_nor_windows_1252(put: Any) -> None:
    message = refused(put("t.csv", b"text\nfine\n\x81\x8d\n"))
    assert "line 3 is neither UTF-8 nor Windows-1252" in message


def test_utf16_without_a_mark(put: Any) -> None:
    assert "save it as UTF-8" in refused(put("t.csv", "text\nabc\n".encode("utf-16-le")))


def test_damaged_utf16(put: Any) -> None:
    assert "save it as UTF-8" in refused(put("t.csv", "text\nab".encode("utf-16") + b"\0"))


def test_a_character_across_two_blocks_is_no_fault(put: Any) -> None:
    content = b"text,label\n" + b"x" * (_BLOCK - 12) + "é,x\nb,y\n".encode()
    read = read_tables([put("t.csv", content)])
    assert read.corpus.texts[0].endswith("xé")
    assert len(read.notes) == 1


def test_the_line_of_a_fault_far_into_a_file(put: Any) -> None:
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
def test_another_delimiter_is_found_and_said(
    put: Any, name: str, delimiter: str, word: str
) -> None:
    other = "," if name == "t.csv" else "\t"
    rows = [["Text", "label"], ["well" + other + " then", "x"], ["b", ""]]
    read = read_tables([put(name, "\n".join(delimiter.join(row) for row in rows))])
    assert read.corpus.texts == ["well" + other + " then", "b"]
    assert read.corpus.labels == ["x", None]
    assert any(f"separated by a {word}" in note for note in read.notes)


def test_another_delimiter_between_unusual_names(put: Any) -> None:
    read = read_tables([put("t.csv", "foo;bar\na;x\nb;y\n")], text_column="foo")
    assert read.corpus.texts == ["a", "b"]


def test_a_delimiter_inside_texts_is_no_delimiter(put: Any) -> None:
    read = read_tables([put("t.csv", "my texts; all\none; two; three\nfour\n")])
    assert read.corpus.texts == ["one; two; three", "four"]


def test_too_many_fields(put: Any) -> None:
    path = put("t.csv", 'text,label\n"a\nb",x\nwell, then,y\n')
    message = refused(path)
    assert "row 2 (line 4): there are 3 fields but the header names 2" in message
    assert "double quotes" in message


def test_too_few_fields_count_as_empty(put: Any) -> None:
    read = read_tables([put("t.tsv", "text\tlabel\na\tx\nb\nc\ny\tz\n")])
    assert read.corpus.labels == ["x", None, None, "z"]
    assert any("2 row(s) have fewer fields" in n and "row 2" in n for n in read.notes)


def test_a_delimiter_at_the_end_of_each_line(put: Any) -> None:
    read = read_tables([put("t.csv", "text,label,\na,x,\nb,y,\n")])
    assert read.corpus.labels == ["x", "y"]
    assert len(read.notes) == 1


@pytest.mark.parametrize("bad", ['"never closed,x', '"closed" too early,x', r'"with \" slash",x'])
def test_bad_quotes_in_csv(put: Any, bad: str) -> None:
    message = refused(put("t.csv", f"text,label\na,x\n{bad}\nc,y\n"))
    assert "line 3: a quote is out of place or never closed" in message


def test_tsv_without_quoting(put: Any) -> None:
    content = 'text\tlabel\n"never closed\tx\n"closed" too early\ty\nsaid "so"\tz\n'
    read = read_tables([put("t.tsv", content)])
    assert read.corpus.texts == ['"never closed', '"closed" too early', 'said "so"']
    assert any("line 2" in n and "ordinary characters" in n for n in read.notes)


def test_a_record_that_swallows_many_lines_is_mentioned(put: Any) -> None:
    rows = [f"t{i}\tx" for i in range(30)]
    rows[3] = '"six feet\tx'
    rows[28] = 'six feet 6"\tx'
    read = read_tables([put("t.tsv", "text\tlabel\n" + "\n".join(rows))])
    assert len(read.corpus) == 5
    assert any("row 4 runs over 26 lines" in note for note in read.notes)


# What is no table.


def test_missing(tmp_path: Path, put: Any) -> None:
    assert "no such file" in refused(tmp_path / "nix.csv")
    assert "no such file" in refused(put("file.csv", "text\n") / "t.csv")


def test_a_folder(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    assert "this is a folder" in refused(tmp_path / "folder.csv")


def test_no_ordinary_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    assert "not an ordinary file" in refused(tmp_path / "pipe.csv")


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.parquet"])
def test_no_permission(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_as(tmp_path / name)
    path.chmod(0)
    if os.access(path, os.R_OK):  # the superuser may read everything

        def deny(*_: object, **__: object) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "open", deny)
        monkeypatch.setattr(pq, "ParquetFile", deny)
    assert "permission to read the file is denied" in refused(path)


def test_a_disk_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_as(tmp_path / "t.csv")

    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Path, "open", fail)
    assert "cannot be read (Input/output error)" in refused(path)


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.jsonl", "t.json", "t.parquet"])
def test_empty(put: Any, name: str) -> None:
    assert "the file is empty" in refused(put(name, ""))


@pytest.mark.parametrize("content", ["\n\n", "\ufeff", "\r\n"])
def test_as_good_as_empty(put: Any, content: str) -> None:
    assert "empty" in refused(put("t.csv", content))
    assert "no record" in refused(put("t.jsonl", content))


def test_header_only(put: Any, tmp_path: Path) -> None:
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
def test_not_a_table(put: Any, start: bytes, what: str) -> None:
    assert what in refused(put("t.csv", start))


@pytest.mark.parametrize("name", ["t.xlsx", "t.txt", "t.csv.zip", "t.txt.gz", "table"])
def test_unknown_ending(put: Any, name: str) -> None:
    assert ".csv, .tsv, .jsonl or .parquet" in refused(put(name, "text\na\n"))


def test_broken_json_line(put: Any) -> None:
    message = refused(put("t.jsonl", '{"text": "a"}\n\n{"text": "b"\n{"text": "c"}\n'))
    assert "line 3: this is not valid JSON" in message


def test_broken_json_array(put: Any) -> None:
    message = refused(put("t.json", '[\n{"text": "a"},\n{"text": b}\n]'))
    assert "line 3: this is not valid JSON" in message


def test_deeply_nested_json(put: Any) -> None:
    refused(put("t.jsonl", '{"text": ' + "[" * 200_000 + "]" * 200_000 + "}"))


@pytest.mark.parametrize("record", ['["a"]', '"a"', "1", "null", "true"])
def test_a_json_record_that_is_no_object(put: Any, record: str) -> None:
    message = refused(put("t.jsonl", f'{{"text": "a"}}\n{record}\n'))
    assert "line 2: the record is not a JSON object" in message
    message = refused(put("t.json", f'[{{"text": "a"}}, {record}]'))
    assert "record 2: the record is not a JSON object" in message


def test_json_values_that_are_no_texts(put: Any) -> None:
    path = put("t.jsonl", '{"text": "a", "label": "x"}\n{"text": ["b"], "label": {"c": 1}}\n')
    assert "row 2, column 'text': the value is a list or an object" in refused(path)
    fine = put("u.jsonl", '{"text": "a", "extra": [1, 2]}\n')
    assert read_tables([fine]).corpus.texts == ["a"]
    labels = put("l.jsonl", '{"text": "a", "label": ["x", "y"]}\n')
    with pytest.raises(InputError, match="row 1, column 'label'"):
        read_tables([labels])


def test_broken_parquet(put: Any, tmp_path: Path) -> None:
    good = write_as(tmp_path / "good.parquet").read_bytes()
    assert "not a Parquet file" in refused(put("a.parquet", "text\na\n"))
    assert "not a Parquet file" in refused(put("b.parquet", good[: len(good) // 2]))
    big = put_parquet(tmp_path / "c.parquet", text=[os.urandom(40).hex() for _ in range(2_000)])
    damaged = bytearray(big.read_bytes())
    damaged[4:2_000] = bytes(1_996)
    refused(put("d.parquet", bytes(damaged)))


def test_parquet_columns_that_are_no_texts(tmp_path: Path) -> None:
    path = put_parquet(tmp_path / "t.parquet", text=[["a"], ["b"]])
    assert "column 'text': values of type list" in refused(path)
    path = put_parquet(tmp_path / "u.parquet", text=[b"\xff\xfe"])
    refused(path)


def test_broken_gzip(put: Any) -> None:
    data = gzip.compress(b"text\n" + os.urandom(5_000).hex().encode())
    assert "damaged" in refused(put("a.csv.gz", data[:-2_000]))
    assert "damaged" in refused(put("b.csv.gz", b"text\na\n"))
    assert "damaged" in refused(put("c.csv.gz", data[:50] + b"\xff" * 50 + data[100:]))


def test_no_usable_text(put: Any) -> None:
    path = put("t.csv", "text,label\n,x\n  ,y\n")
    with pytest.raises(InputError) as caught:
        read_tables([path])
    assert f"no text in column 'text' of {path}" in str(caught.value)
    (chunk,) = stream_table(path)  # predict gives such rows back
    assert chunk.texts == ["", "  "]


@settings(deadline=None)
@given(st.binary(max_size=300), st.sampled_from(["csv", "tsv", "jsonl", "json", "parquet"]))
def test_whatever_the_bytes_it_reads_or_says_why(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, format: str
) -> None:
    path = tmp_path_factory.getbasetemp() / f"any.{format}"
    path.write_bytes(content)
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
def test_a_field_beyond_all_measure(put: Any, name: str) -> None:
    path = put(name, 'text\n"closed" too early\n' + "x" * (1 << 24) + "x\n")
    with pytest.raises(InputError, match=r"line [23]: a quote is out of place or never closed"):
        read_tables([path])
