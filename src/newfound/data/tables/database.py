"""Read the result of a query on a DuckDB or SQLite database, which is opened for reading only.

DuckDB is the library of that name (extra `sql`); SQLite is part of Python. A query can read the
tables of its database, but no other file, and it cannot write.
"""

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from newfound.data.tables.cells import cell_text
from newfound.data.tables.textfile import reading
from newfound.errors import EmptyTableError, InputError, reason

_BATCH = 4096
_READS = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}
_TABLES = {
    "sqlite": "select name from sqlite_master where type in ('table', 'view') order by name",
    "duckdb": "select table_name from information_schema.tables order by table_name",
}


@dataclass(frozen=True)
class QueryResult:
    """The result of a query that has been run once without errors."""

    path: Path
    columns: list[str]
    rows: int
    notes: list[str]
    query: str
    kind: str
    unreadable: dict[str, tuple[int, str]]  # by column: first row that is not a text, and its type
    bad_rows: dict[int, str] | None = None  # None: the first bad row is an error

    @property
    def unfit(self) -> Collection[str]:
        """Columns with values that are not texts."""
        return self.unreadable.keys()

    def read(self, wanted: Sequence[str]) -> Iterator[tuple[str | None, ...]]:
        """Run the query again, and yield the wanted columns of every row."""
        for name in wanted:
            if name in self.unreadable and self.bad_rows is None:
                raise InputError(self._no_text(name, *self.unreadable[name]))
        return self._read([self.columns.index(name) for name in wanted])

    def _read(self, places: list[int]) -> Iterator[tuple[str | None, ...]]:
        with _run(self.path, self.kind, self.query) as (_, rows):
            for number, row in enumerate(rows, start=1):
                yield tuple([self._cell(number, place, row[place]) for place in places])

    def _cell(self, row: int, place: int, value: Any) -> str | None:
        """Return a cell as a text; if it is none, collect its row."""
        try:
            return cell_text(value)
        except TypeError:
            if self.bad_rows is None:
                raise
            self.bad_rows[row] = self._no_text(self.columns[place], row, type(value).__name__)
            return None

    def _no_text(self, name: str, row: int, kind: str) -> str:
        """Return the message on a value that is not a text."""
        return (
            f"{self.path}, row {row}, column {name!r}: the value is of type {kind}: cast it to "
            "text in the query, or choose another column"
        )


def database_kind(path: Path) -> str | None:
    """Return "sqlite" or "duckdb" if a file begins as such a database does, else None."""
    with reading(path), path.open("rb") as handle:
        start = handle.read(16)
    if start == b"SQLite format 3\0":
        return "sqlite"
    return "duckdb" if start[8:12] == b"DUCK" else None


def open_query(
    path: Path, kind: str, query: str | None, bad_rows: dict[int, str] | None = None
) -> QueryResult:
    """Run a query once, for its columns, its number of rows and its errors.

    Parameters
    ----------
    path : Path
        The database.
    kind : {"sqlite", "duckdb"}
    query : str or None
        One SELECT statement.
    bad_rows : dict of int to str, optional
        Receives the number of each row with a wanted value that is not a text, with the reason,
        when it is read. Without it, the first one raises InputError.

    Returns
    -------
    QueryResult
    """
    if query is None:
        with _run(path, kind, _TABLES[kind]) as (_, rows):
            tables = [str(row[0]) for row in rows]
        listed = ", ".join(map(repr, tables[:20])) or "none"
        raise InputError(
            f"{path}: this is a database: give a query with --query, such as "
            f'"select * from {tables[0] if tables else "messages"}" (tables: {listed})'
        )
    unreadable: dict[str, tuple[int, str]] = {}
    count = 0
    with _run(path, kind, query) as (columns, rows):
        for count, row in enumerate(rows, start=1):
            for name, value in zip(columns, row, strict=True):
                try:
                    cell_text(value)
                except TypeError:
                    unreadable.setdefault(name, (count, type(value).__name__))
    if count == 0:
        raise EmptyTableError(f"{path}: the query returns no row: correct it")
    return QueryResult(path, columns, count, [], query, kind, unreadable, bad_rows)


@contextmanager
def _run(
    path: Path, kind: str, query: str
) -> Iterator[tuple[list[str], Iterator[tuple[Any, ...]]]]:
    """Run a query; the value is its columns and an iterator over its rows."""
    connect = _connect_sqlite if kind == "sqlite" else _connect_duckdb
    try:
        with closing(connect(path)) as connection:
            if kind == "duckdb":
                _check_statement(path, connection, query)
            cursor = connection.execute(query)
            if cursor.description is None:
                raise InputError(f"{path}: the query returns no table: give one SELECT statement")
            columns = [str(column[0]) for column in cursor.description]
            yield columns, _rows(cursor)
    except InputError:
        raise
    except Exception as error:
        # Both libraries have their own classes, and DuckDB's can only be named after its import.
        if not type(error).__module__.lstrip("_").startswith(("sqlite3", "duckdb")):
            raise
        raise InputError(f"{path}: the query failed ({reason(error)}): correct it") from error


def _rows(cursor: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the rows, which are fetched in batches."""
    while batch := cursor.fetchmany(_BATCH):
        yield from batch


def _connect_sqlite(path: Path) -> Any:
    """Open a SQLite database, in which only SELECT is allowed."""
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    connection.set_authorizer(
        lambda action, *_: sqlite3.SQLITE_OK if action in _READS else sqlite3.SQLITE_DENY
    )
    return connection


def _connect_duckdb(path: Path) -> Any:
    """Open a DuckDB database for reading, without access to other files."""
    try:
        import duckdb
    except ImportError:
        raise InputError(
            f"{path}: a DuckDB database is read by an extra: install newfound[sql]"
        ) from None
    settings: Any = {"enable_external_access": "false", "lock_configuration": "true"}
    return duckdb.connect(str(path), read_only=True, config=settings)


def _check_statement(path: Path, connection: Any, query: str) -> None:
    """Raise InputError unless a query is one SELECT statement."""
    import duckdb

    kinds = [statement.type for statement in connection.extract_statements(query)]
    if kinds != [duckdb.StatementType.SELECT]:
        raise InputError(f"{path}: the query is not one SELECT statement: give one")
