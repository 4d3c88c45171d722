"""Open tables; the file extension gives the format."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from newfound.data.tables.delimited import open_delimited
from newfound.data.tables.jsonlines import open_json
from newfound.data.tables.textfile import check_file
from newfound.errors import InputError


class Source(Protocol):
    """A table that can be read repeatedly, row by row, in constant memory."""

    @property
    def path(self) -> Path:
        """Path of the file."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""

    @property
    def rows(self) -> int:
        """Number of rows, without the header."""

    @property
    def notes(self) -> list[str]:
        """What the user should know about how the file was read."""

    def read(self, wanted: Sequence[str]) -> Iterator[tuple[str | None, ...]]:
        """Check the wanted columns, then yield them for every row, None where missing."""


def open_source(path: Path, *, raw_cells: bool = False) -> Source:
    """Open a table of any supported format.

    Parameters
    ----------
    path : Path
        CSV, TSV or JSON lines, each optionally compressed as .gz, or Parquet.
    raw_cells : bool, default False
        Whether apostrophes that protect formulas in CSV and TSV files are kept.

    Returns
    -------
    Source

    Raises
    ------
    InputError
        If the file is missing, empty, damaged or of another format.
    """
    check_file(path)
    suffix = path.suffix.lower()
    if suffix == ".gz":
        suffix = Path(path.stem).suffix.lower()
    elif suffix in (".parquet", ".pq"):
        # Arrow is slow to import, and only Parquet files need it.
        from newfound.data.tables.parquet import open_parquet

        return open_parquet(path)
    if suffix == ".csv":
        return open_delimited(path, ",", raw_cells=raw_cells)
    if suffix in (".tsv", ".tab"):
        return open_delimited(path, "\t", raw_cells=raw_cells)
    if suffix in (".jsonl", ".ndjson", ".json"):
        return open_json(path, may_be_array=suffix == ".json")
    raise InputError(
        f"{path}: the extension {path.suffix!r} is not a table format: use .csv, .tsv, "
        ".jsonl or .parquet"
        if path.suffix
        else f"{path}: the name has no extension: use .csv, .tsv, .jsonl or .parquet"
    )
