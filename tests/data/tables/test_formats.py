"""Reading tables: formats, unusual texts, several tables, ids."""

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.table_files import ROWS, put_parquet, refused, write_as

from newfound import InputError
from newfound.data.tables import Columns, read_tables, stream_table

# Formats.


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
        "t.tsv.gz",
        "t.jsonl.gz",
        "t.csv.zst",
        "T.TSV.ZST",
        "t.jsonl.zst",
        "t.json.zst",
    ],
)
def test_every_format_reads_the_same_rows(tmp_path: Path, name: str) -> None:
    path = write_as(tmp_path / name)
    read = read_tables([path])
    assert list(zip(read.corpus.texts, read.corpus.labels, strict=True)) == ROWS
    assert read.corpus.ids == ["1", "2", "3"]
    assert read.columns == [Columns(("text",), "label", None, ("text", "label"))]
    (note,) = read.notes
    assert note == (
        f"{path}: guessed the text column 'text', label column 'label' "
        "(choose with --text-column, --label-column)"
    )


def test_json_lines_in_a_json_file(put: Any) -> None:
    path = put("t.json", '{"text": "a"}\n\n{"text": "b", "label": "x"}\n')
    assert read_tables([path]).corpus.labels == [None, "x"]


def test_field_of_late_records_is_a_column(put: Any) -> None:
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
def test_parquet_types_become_strings(
    tmp_path: Path, values: Any, wanted: list[str | None]
) -> None:
    path = put_parquet(tmp_path / "t.parquet", **{"a.b": ["p", "q", "r"], "label": values})
    read = read_tables([path], text_column="a.b")
    assert read.corpus.texts == ["p", "q", "r"]
    assert read.corpus.labels == wanted


def test_parquet_with_many_batches_and_row_groups(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    texts = [f"text {i}" for i in range(20_000)]
    pq.write_table(pa.table({"text": texts}), path, row_group_size=9_000)
    assert read_tables([path]).corpus.texts == texts


def test_cells_stay_strings(put: Any) -> None:
    names = ["NA", "nan", "null", "None", "007", "1.0", "TRUE", "-1", "1e5"]
    path = put("t.csv", "id,text,label\n" + "".join(f"0{n},{n},{n}\n" for n in names))
    corpus = read_tables([path]).corpus
    assert corpus.texts == corpus.labels == names
    assert corpus.ids == [f"0{name}" for name in names]


def test_quoted_record_may_span_lines(put: Any) -> None:
    content = 'text\tlabel\r\n"one\r\ntwo\nthree, ""quoted""\t."\tx\r\nsay "hi" now\ty\r\n'
    corpus = read_tables([put("t.tsv", content)]).corpus
    assert corpus.texts == ['one\r\ntwo\nthree, "quoted"\t.', 'say "hi" now']
    assert corpus.labels == ["x", "y"]


def test_unicode_line_separators_do_not_end_a_record(put: Any) -> None:
    odd = "a\u2028b\x0bc\x0cd\x85e\x1cf"
    assert read_tables([put("t.csv", f"text\n{odd}\ng\n")]).corpus.texts == [odd, "g"]
    line = json.dumps({"text": odd}, ensure_ascii=False)
    # JSON escapes control characters, but not the line separators of Unicode.
    assert read_tables([put("t.jsonl", f"{line}\n{line}\n")]).corpus.texts == [odd, odd]


def test_carriage_returns_end_lines(put: Any) -> None:
    assert read_tables([put("t.csv", "text,label\ra,x\rb,y")]).corpus.labels == ["x", "y"]


def test_paper_tables_are_read() -> None:
    if not os.environ.get("NEWFOUND_DATA"):
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


# Unusual texts.


@pytest.mark.parametrize(
    "text", ["x" * 100_000, "y" * 1_000_000, "42", "😀👩‍👩‍👧", "مرحبا שלום", " kept ", "{}", "=1+1"]
)
@pytest.mark.parametrize("format", ["csv", "jsonl", "parquet"])
def test_unusual_texts_are_kept(tmp_path: Path, put: Any, text: str, format: str) -> None:
    if format == "csv":
        path = put("t.csv", f"text,label\n{text},a\nb,\n")
    elif format == "jsonl":
        path = put("t.jsonl", json.dumps({"text": text, "label": "a"}) + '\n{"text": "b"}\n')
    else:
        path = put_parquet(tmp_path / "t.parquet", text=[text, "b"], label=["a", None])
    read = read_tables([path])
    assert read.corpus.texts == [text, "b"]
    assert len(read.notes) == 1  # on guessed columns


def test_nul_becomes_a_space(put: Any) -> None:
    path = put("t.csv", b"text,label\nfine,x\na\0b,y\0y\n\0,z\n")
    read = read_tables([path])
    assert read.corpus.texts == ["fine", "a b"]
    assert read.corpus.labels == ["x", "y y"]
    assert any("2 texts in column 'text' contain NUL" in n and "row 2" in n for n in read.notes)


def test_unpaired_surrogate_is_replaced(put: Any) -> None:
    read = read_tables([put("t.jsonl", '{"text": "a\\ud83d"}\n{"text": "\\ud83d\\ude00"}\n')])
    assert read.corpus.texts == ["a\ufffd", "😀"]
    assert any("invalid character" in note and "row 1" in note for note in read.notes)


def test_rows_without_text_are_skipped_but_counted(put: Any) -> None:
    path = put("t.csv", 'text,label\na,x\n   ,y\n,z\n"\u3000\n",z\nb,\n\n\nc,x\n')
    read = read_tables([path])
    assert read.corpus.texts == ["a", "b", "c"]
    assert read.corpus.ids == ["1", "5", "6"]  # blank lines are not rows
    assert f"{path}: 3 rows have no text in column 'text' (first: row 2): skipped" in (read.notes)


def test_blank_lines_of_a_single_column_are_rows_except_at_the_end(put: Any) -> None:
    read = read_tables([put("t.csv", "\n\ntext\na\n\nb\n\n\n")])
    assert read.corpus.ids == ["1", "3"]
    (chunk,) = stream_table(put("u.csv", "\n\ntext\na\n\nb\n\n\n"))
    assert chunk.texts == ["a", "", "b"]


def test_blank_label_means_unlabelled_and_others_keep_their_spaces(put: Any) -> None:
    corpus = read_tables([put("t.csv", "text,label\na,  \nb, x\n")]).corpus
    assert corpus.labels == [None, " x"]


# Several tables.


def test_several_tables_make_one_corpus(put: Any, tmp_path: Path) -> None:
    labelled = put("l.csv", "utterance,intent\na,x\n,y\nb,y\n")
    plain = put("u.jsonl", '{"message": "c"}\n{"message": "d"}\n')
    read = read_tables([labelled, put_parquet(tmp_path / "p.parquet", text=["e"]), plain])
    assert read.corpus.texts == ["a", "b", "e", "c", "d"]
    assert read.corpus.labels == ["x", "y", None, None, None]
    assert read.corpus.ids == ["1", "3", "4", "5", "6"]  # the row without text is counted
    assert [columns.texts for columns in read.columns] == [("utterance",), ("text",), ("message",)]
    assert any(
        str(plain) in note and "texts are unlabelled (choose one with" in note
        for note in read.notes
    )


def test_named_label_column_may_be_in_one_table_only(put: Any) -> None:
    labelled, plain = put("l.csv", "text,kind\na,x\n"), put("u.csv", "text,label\nb,y\n")
    read = read_tables([plain, labelled], label_column="kind")
    assert read.corpus.labels == [None, "x"]
    assert any(str(plain) in note and "no column 'kind'" in note for note in read.notes)
    with pytest.raises(InputError, match="no column 'nix'"):
        read_tables([plain, labelled], label_column="nix")


def test_same_table_twice_is_refused(put: Any, tmp_path: Path) -> None:
    path = put("t.csv", "text\na\n")
    with pytest.raises(InputError, match="given twice"):
        read_tables([path, tmp_path / "." / "x" / ".." / "t.csv"])


def test_empty_list_of_tables_is_refused() -> None:
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


def test_unusable_guessed_ids_are_replaced_by_row_numbers(put: Any) -> None:
    twice = read_tables([put("t.csv", "id,text\n7,a\n7,b\n")])
    assert twice.corpus.ids == ["1", "2"]
    assert any("both have the id '7': the guessed" in note for note in twice.notes)
    empty = read_tables([put("e.csv", "id,text\n7,a\n,b\n")])
    assert empty.corpus.ids == ["1", "2"]
    some = read_tables([put("s.csv", "id,text\n7,a\n"), put("n.csv", "text\nb\n")])
    assert some.corpus.ids == ["1", "2"]
    assert any("not every table has an id column" in note for note in some.notes)
