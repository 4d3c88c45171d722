"""Columns of a table: named, guessed, or refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.table_files import refused

from newfound.data.tables import Columns, read_tables, stream_table


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("utterance,intent", Columns(("utterance",), "intent", None, ("text", "label"))),
        (" Text , LABEL,ID", Columns(("Text",), "LABEL", "ID", ("text", "label", "id"))),
        (
            "uuid,Message,Category",
            Columns(("Message",), "Category", "uuid", ("text", "label", "id")),
        ),
        ("title,text,extra", Columns(("text",), guessed=("text",), others=("title", "extra"))),
        (
            "text,category,label",
            Columns(("text",), "label", guessed=("text", "label"), others=("category",)),
        ),
        (
            "uid,key,query",
            Columns(("query",), guessed=("text",), others=("uid", "key")),
        ),  # two candidates: no id column
        (",question,Unnamed: 0", Columns(("question",), None, None, ("text",))),
    ],
)
def test_columns_are_guessed_by_name(put: Any, header: str, columns: Columns) -> None:
    path = put("t.csv", f"{header}\n1,2,3\n4,5,6\n")
    if header.count(",") == 1:
        path = put("t.csv", f"{header}\n1,2\n4,5\n")
    read = read_tables([path])
    assert read.columns == [columns]
    guess = next(note for note in read.notes if "guessed" in note)
    found = {"text": columns.texts[0], "label": columns.label, "id": columns.id}
    for role in columns.guessed:
        assert f"{role} column {found[role]!r}" in guess
        assert f"--{role}-column" in guess
    ((_, streamed),) = stream_table(path).tables
    assert (streamed.texts, streamed.id) == (columns.texts, columns.id)


def test_named_columns_are_not_guessed(put: Any) -> None:
    path = put("t.csv", "id,text,label,body,group,code\n1,a,b,c,d,e\n2,f,g,h,i,j\n")
    read = read_tables([path], text_column="body", label_column="group", id_column="code")
    assert (read.corpus.texts, read.corpus.labels, read.corpus.ids) == (
        ["c", "h"],
        ["d", "i"],
        ["e", "j"],
    )
    assert read.notes == []


def test_named_column_is_not_guessed_for_another_role(put: Any) -> None:
    path = put("t.csv", "title,body,topic\na,b,c\nd,e,f\n")
    assert read_tables([path], label_column="title").columns[0].texts == ("body",)
    assert read_tables([path], text_column="topic").columns[0].label is None


def test_single_column_is_the_text_column(put: Any) -> None:
    read = read_tables([put("t.csv", "anything\na\nb\n")])
    assert read.corpus.texts == ["a", "b"]
    assert any("'anything'" in n and "add a header line" in n for n in read.notes)


def test_single_column_with_a_label_name_is_refused(put: Any) -> None:
    path = put("t.csv", "label\na\nb\n")
    assert "name one of 'label' with --text-column" in refused(path)
    assert read_tables([path], text_column="label").corpus.texts == ["a", "b"]


def test_missing_text_column_is_refused(put: Any) -> None:
    message = refused(put("t.csv", "foo,bar,label\na,b,c\n"))
    assert "name one of 'foo', 'bar', 'label' with --text-column" in message


def test_missing_header_is_refused(put: Any) -> None:
    message = refused(put("t.csv", "where is my card,card\nsend money,transfer\n"))
    assert "add a header line" in message


def test_ambiguous_text_column_is_refused(put: Any) -> None:
    message = refused(put("t.csv", "title,body,label\na,b,c\n"))
    assert "'title' or 'body': choose with --text-column" in message


def test_ambiguous_label_column_is_refused(put: Any) -> None:
    path = put("t.csv", "text,intent,topic\na,b,c\n")
    assert "'intent' or 'topic': choose with --label-column" in refused(path)
    assert [chunk.texts for chunk in stream_table(path)] == [["a"]]  # predict needs no labels


def test_duplicate_column_name_is_refused(put: Any) -> None:
    path = put("t.csv", "text,text\na,b\n")
    assert "'text' or 'text': rename one" in refused(path)
    assert "two columns have the name 'text': rename" in refused(path, text_column="text")


@pytest.mark.parametrize("role", ["text", "label", "id"])
def test_missing_named_column_is_refused(put: Any, role: str) -> None:
    message = refused(put("t.csv", "text,intent\na,b\n"), **{f"{role}_column": "nix"})
    assert "no column 'nix'" in message
    assert f"'text', 'intent' with --{role}-column" in message


def test_column_named_for_two_roles_is_refused(put: Any) -> None:
    path = put("t.csv", "text,label\na,b\n")
    assert "named twice" in refused(path, text_column="text", label_column="text")


# Several text columns.


def test_several_text_columns_are_joined_on_lines(put: Any) -> None:
    rows = "1,Refund,I want it back,x\n2,,Only a body,\n3,Only a subject, ,y\n4,,,z\n"
    path = put("t.csv", "id,subject,body,label\n" + rows)
    read = read_tables([path], text_column=["subject", "body"])
    assert read.corpus.texts == ["Refund\nI want it back", "Only a body", "Only a subject"]
    assert read.corpus.labels == ["x", None, "y"]
    assert read.corpus.ids == ["1", "2", "3"]
    assert read.corpus.columns == {
        "subject": ["Refund", "", "Only a subject"],
        "body": ["I want it back", "Only a body", " "],
    }
    assert any("no text in columns 'subject', 'body' (first: row 4)" in n for n in read.notes)
    (chunk,) = stream_table(path, text_column=["body", "subject"])
    assert chunk.texts[0] == "I want it back\nRefund"
    assert chunk.columns["subject"] == ["Refund", "", "Only a subject", ""]


def test_several_text_columns_must_all_be_there(put: Any) -> None:
    path = put("t.csv", "subject,body\na,b\n")
    assert "there is no column 'bdy': did you mean 'body'?" in refused(
        path, text_column=["subject", "bdy"]
    )
    assert "'body' is named twice" in refused(path, text_column=["body", "body"])


# Columns without a role.


def test_columns_without_a_role_are_kept(put: Any) -> None:
    path = put("t.csv", "subject,body,,date\na,b,3,2024-05-31\nc,,4,\ne,f,5,soon\n")
    corpus = read_tables([path], text_column=["body"]).corpus
    assert corpus.columns == {"subject": ["a", "e"], "date": ["2024-05-31", "soon"]}
    (chunk,) = stream_table(path, text_column=["body"])
    assert chunk.columns == {"subject": ["a", "c", "e"], "date": ["2024-05-31", "", "soon"]}


def test_columns_of_several_tables_are_filled_up(put: Any) -> None:
    one = put("a.csv", "id,text,channel\n1,a,chat\n2,b,mail\n")
    two = put("b.csv", "date,text,id\n2024-05-31,c,3\n")
    three = put("c.csv", "text,channel,id\nd,mail,4\n")
    paths = [one, two, three]
    wanted = {"channel": ["chat", "mail", "", "mail"], "date": ["", "", "2024-05-31", ""]}
    read = read_tables(paths)
    assert read.corpus.columns == wanted
    assert read.corpus.ids == ["1", "2", "3", "4"]
    chunks = list(stream_table(*paths, chunk=3))
    assert [chunk.columns for chunk in chunks] == [
        {name: cells[:3] for name, cells in wanted.items()},
        {name: cells[3:] for name, cells in wanted.items()},
    ]
    taken = read.corpus.take(np.array([2, 0]))
    assert taken.columns == {"channel": ["", "chat"], "date": ["2024-05-31", ""]}


def test_lists_bytes_and_doubled_columns_are_not_kept(put: Any, tmp_path: Path) -> None:
    frame = pd.DataFrame({"text": ["a", "b"], "vector": [[1.0], [2.0]], "raw": [b"\xff", b"x"]})
    frame["stars"] = [4, 5]
    frame.to_parquet(tmp_path / "t.parquet")
    for columns in (
        read_tables([tmp_path / "t.parquet"]).corpus.columns,
        next(iter(stream_table(tmp_path / "t.parquet"))).columns,
    ):
        assert columns == {"stars": ["4", "5"]}
    path = put("t.jsonl", '{"text": "a", "tags": ["x"], "n": 1}\n{"text": "b", "tags": "y"}\n')
    assert read_tables([path]).corpus.columns == {"n": ["1", ""]}
    assert read_tables([put("t.csv", "text,a,a\nx,1,2\n")]).corpus.columns == {}


def test_very_many_columns_are_not_all_kept(put: Any) -> None:
    names = [f"c{i}" for i in range(60)]
    row = ",".join(["x", *["2024-05-31"] * 60])
    path = put("t.csv", ",".join(["text", *names]) + f"\n{row}\n")
    read = read_tables([path], time_column="c59")
    assert list(read.corpus.columns) == [*names[:49], "c59"]
    assert any("60 other columns: the first 50 are kept" in note for note in read.notes)


def test_time_column_must_be_there_and_have_no_other_role(put: Any) -> None:
    path = put("t.csv", "id,text,date\n1,a,2024-05-31\n")
    assert read_tables([path], time_column="date").corpus.time_column == "date"
    assert "no column 'dat': did you mean 'date'" in refused(path, time_column="dat")
    assert "'text' holds the texts" in refused(path, time_column="text")
    assert "not dates" in refused(put("x.csv", "text,when\na,b\n"), time_column="when")
