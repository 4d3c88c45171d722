"""Open a table by the ending of its name."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from newfound.data.tables.delimited import open_delimited
from newfound.data.tables.jsonlines import open_json
from newfound.data.tables.textfile import check_file
from newfound.errors import InputError


class Source(Protocol):
    """A table that can be read any number of times, row by row, in flat memory."""

    @property
    def path(self) -> Path:
        """Where it is."""

    @property
    def columns(self) -> list[str]:
        """The names of its columns."""

    @property
    def rows(self) -> int:
        """How many rows it has, the header not counted."""

    @property
    def notes(self) -> list[str]:
        """What the user should know about how it was read."""

    def read(self, wanted: Sequence[str]) -> Iterator[tuple[str | None, ...]]:
        """Check the wanted columns, then yield them for every row, None where missing."""


def open_source(path: Path) -> Source:
    """Open a table: CSV, TSV, JSON lines (each also as .gz) or Parquet."""
    check_file(path)
    suffix = path.suffix.lower()
    if suffix == ".gz":
        suffix = Path(path.stem).suffix.lower()
    elif suffix in (".parquet", ".pq"):
        # Arrow takes a moment to import: not for those who have no Parquet.
        from newfound.data.tables.parquet import open_parquet

        return open_parquet(path)
    if suffix == ".csv":
        return open_delimited(path, ",")
    if suffix in (".tsv", ".tab"):
        return open_delimited(path, "\t")
    if suffix in (".jsonl", ".ndjson", ".json"):
        return open_json(path, may_be_array=suffix == ".json")
    raise InputError(
        f"{path}: a file ending in {path.suffix!r} is not known as a table: give .csv, .tsv, "
        ".jsonl or .parquet"
        if path.suffix
        else f"{path}: the name says nothing of the format: let it end in .csv, .tsv, .jsonl "
        "or .parquet"
    )
