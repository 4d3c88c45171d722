"""Open tables: files, whose extension gives the format, folders, databases and patterns."""

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from newfound.data.tables.delimited import open_delimited
from newfound.data.tables.jsonlines import open_json
from newfound.data.tables.text_folder import open_text_folder
from newfound.data.tables.textfile import check_file
from newfound.errors import InputError

_WORKBOOKS = (".xlsx", ".xlsm")
_FORMATS = ".csv, .tsv, .jsonl, .parquet or .xlsx"


class Source(Protocol):
    """A table that can be read repeatedly, row by row, in constant memory."""

    @property
    def path(self) -> Path:
        """Path of the file or folder."""

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


def open_sources(
    names: Sequence[Path],
    *,
    raw_cells: bool = False,
    sheet: str | None = None,
    query: str | None = None,
    bad_rows: dict[int, str] | None = None,
) -> list[Source]:
    """Open tables of any supported format.

    Parameters
    ----------
    names : sequence of Path
        Files, folders, or patterns such as ``tickets/*.csv``.
    raw_cells : bool, default False
        Whether apostrophes that protect formulas in CSV and TSV files are kept.
    sheet : str, optional
        Sheet of the Excel workbooks; the first one by default.
    query : str, optional
        Query on the databases.
    bad_rows : dict of int to str, optional
        For a single table: receives the rows that cannot be read, by number, each with the reason,
        at the latest when they are read. They are read as empty. Without it, they are errors, and
        so is a table with columns and without rows.

    Returns
    -------
    list of Source

    Raises
    ------
    InputError
        If a table is missing, given twice, empty, damaged or of another format, or a sheet or a
        query is given for none of them.
    """
    paths = expanded_paths(names)
    if sheet is not None and not any(path.suffix.lower() in _WORKBOOKS for path in paths):
        raise InputError(f"{paths[0]}: --sheet is for Excel workbooks: omit it")
    sources = [_open(path, raw_cells, sheet, query, bad_rows) for path in paths]
    if query is not None:
        from newfound.data.tables.database import QueryResult

        if not any(isinstance(source, QueryResult) for source in sources):
            raise InputError(f"{paths[0]}: --query is for databases: omit it")
    return sources


def expanded_paths(names: Sequence[Path]) -> list[Path]:
    """Return the files that names and patterns stand for, each of which is given once."""
    paths = [path for name in names for path in _expanded(Path(name))]
    if not paths:
        raise InputError("no table is given: give at least one file")
    seen: set[str] = set()
    for path in paths:
        real = os.path.realpath(path)  # unlike resolve(), accepts a loop of links
        if real in seen:
            raise InputError(f"{path}: the file is given twice: give it once")
        seen.add(real)
    return paths


def _expanded(name: Path) -> list[Path]:
    """Return the files that match a pattern, sorted; a name without one stands for itself."""
    if not glob.has_magic(str(name)) or os.path.lexists(name):
        return [name]
    found = sorted(glob.glob(str(name), recursive=True))
    if not found:
        raise InputError(f"{name}: no file matches this pattern: check the path")
    return [Path(each) for each in found]


def _open(
    path: Path,
    raw_cells: bool,
    sheet: str | None,
    query: str | None,
    bad_rows: dict[int, str] | None,
) -> Source:
    """Open one table; its file extension gives the format, for a database its first bytes."""
    # Libraries for formats other than text files are imported only for these formats.
    if path.is_dir():
        return _open_folder(path, bad_rows)
    check_file(path)
    suffix = path.suffix.lower()
    if suffix in (".gz", ".zst"):
        suffix = Path(path.stem).suffix.lower()
    elif suffix in (".parquet", ".pq"):
        from newfound.data.tables.parquet import open_parquet

        return open_parquet(path, bad_rows)
    elif suffix in (".arrow", ".feather"):
        from newfound.data.tables.arrow import open_arrow

        return open_arrow(path, bad_rows)
    elif suffix in _WORKBOOKS:
        from newfound.data.tables.excel import open_excel

        return open_excel(path, sheet, bad_rows)
    if suffix == ".csv":
        return open_delimited(path, ",", raw_cells=raw_cells, bad_rows=bad_rows)
    if suffix in (".tsv", ".tab"):
        return open_delimited(path, "\t", raw_cells=raw_cells, bad_rows=bad_rows)
    if suffix in (".jsonl", ".ndjson", ".json"):
        return open_json(path, suffix == ".json", bad_rows)
    from newfound.data.tables.database import database_kind, open_query

    kind = database_kind(path)
    if kind is not None:
        return open_query(path, kind, query, bad_rows)
    raise InputError(
        f"{path}: the extension {path.suffix!r} is not a table format: use {_FORMATS}"
        if path.suffix
        else f"{path}: the name has no extension: use {_FORMATS}"
    )


def _open_folder(path: Path, bad_rows: dict[int, str] | None) -> Source:
    """Open a dataset of the Hugging Face library, or a folder of texts."""
    if (path / "state.json").is_file() or (path / "dataset_dict.json").is_file():
        from newfound.data.tables.arrow import open_dataset

        return open_dataset(path, bad_rows)
    return open_text_folder(path, bad_rows)
