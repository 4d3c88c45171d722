"""Queries on databases: what they return, and that they cannot write."""

import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest
from support.table_files import refused

from newfound import InputError
from newfound.data.tables import read_tables, stream_table

duckdb = pytest.importorskip("duckdb")

TABLE = "create table tickets (number integer, subject text, queue text, weight real, raw blob)"
ROWS = (
    "insert into tickets values (7, 'where is my card', 'card', 1.0, null), "
    "(8, 'send money', null, 2.5, null), (9, null, 'card', null, null)"
)
QUERY = "select number as id, subject as text, queue as label from tickets order by number"


@pytest.fixture(params=["sqlite", "duckdb"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"support.{request.param}"
    connect: Any = sqlite3.connect if request.param == "sqlite" else duckdb.connect
    connection = connect(str(path))
    connection.execute(TABLE)
    connection.execute(ROWS)
    connection.commit()
    connection.close()
    return path


def test_query_is_read_as_a_table(database: Path) -> None:
    read = read_tables([database], query=QUERY)
    assert read.corpus.texts == ["where is my card", "send money"]
    assert read.corpus.labels == ["card", None]
    assert read.corpus.ids == ["7", "8"]
    assert any("1 row has no text in column 'text' (first: row 3)" in note for note in read.notes)
    stream = stream_table(database, query=QUERY, chunk=2)
    assert stream.rows == 3
    assert [chunk.ids for chunk in stream] == [["7", "8"], ["9"]]


def test_numbers_are_read_as_texts(database: Path) -> None:
    read = read_tables([database], query="select weight as text from tickets order by number")
    assert read.corpus.texts == ["1", "2.5"]


def test_database_without_a_query_names_its_tables(database: Path) -> None:
    message = refused(database)
    assert "give a query with --query, such as \"select * from tickets\" (tables: 'tickets')" in (
        message
    )


@pytest.mark.parametrize(
    "query",
    [
        "",
        "selec text",
        "select nothing from tickets",
        "select 1 as text; select 2 as text",
        "drop table tickets",
        "insert into tickets select * from tickets",
        "create temp table t as select 1",
        "attach 'other.db' as other",
        "pragma user_version = 3",
    ],
)
def test_bad_and_writing_queries_are_refused(
    database: Path, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(database.parent)
    before = database.read_bytes()
    message = refused(database, query=query)
    assert "the query" in message
    assert database.read_bytes() == before
    assert [path.name for path in database.parent.iterdir()] == [database.name]


def test_query_cannot_reach_other_files(tmp_path: Path, put: Any) -> None:
    path, secret = tmp_path / "d.duckdb", put("secret.csv", "text\na\n")
    duckdb.connect(str(path)).close()
    assert "the query failed" in refused(path, query=f"select * from '{secret}'")
    out = tmp_path / "out.csv"
    refused(path, query=f"copy (select 1) to '{out}'")
    assert not out.exists()


def test_query_without_rows_is_refused(database: Path) -> None:
    message = refused(database, query="select subject as text from tickets where number > 99")
    assert "the query returns no row" in message


def test_values_that_are_not_texts_are_refused(database: Path) -> None:
    connect: Any = sqlite3.connect if database.suffix == ".sqlite" else duckdb.connect
    connection = connect(str(database))
    connection.execute("update tickets set raw = cast('x' as blob) where number = 8")
    connection.commit()
    connection.close()
    query = "select subject as text, raw from tickets order by number"
    assert "row 2, column 'raw': the value is of type bytes" in refused(
        database, query=query, text_column="raw"
    )
    assert len(read_tables([database], query=query).corpus) == 2


def test_query_without_a_database_is_refused(put: Any) -> None:
    assert "--query is for databases" in refused(put("t.csv", "text\na\n"), query="select 1")


def test_damaged_database_is_refused(put: Any) -> None:
    path = put("t.db", b"SQLite format 3\0" + b"\xff" * 5_000)
    assert "the query failed" in refused(path, query="select 1 as text from t")


def test_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "d.duckdb"
    duckdb.connect(str(path)).close()
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(InputError, match=r"install newfound\[sql\]"):
        read_tables([path], query="select 1 as text")
