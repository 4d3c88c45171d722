"""Write tables batch by batch; the file extension gives the format."""

import csv
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, TextIO

import numpy as np

from newfound.data.corpus import clean_text
from newfound.data.tables.formulas import protected
from newfound.errors import InputError
from newfound.files import write_alone, write_atomically

Cell = str | int | float | bool | None


class _Sink(Protocol):
    """A file of one format that rows are written to."""

    def write(self, columns: list[list[Cell]]) -> None:
        """Write a batch, given column by column."""

    def close(self) -> None:
        """Finish the file."""


class _Aborted(Exception):
    """Raised inside the context of the temporary file to discard it."""


class TableWriter:
    """Context manager that writes a table; the file appears only if the block succeeds.

    Parameters
    ----------
    path : Path
        CSV, TSV, JSON lines or Parquet, by the file extension.
    columns : mapping of str to type
        Type of each column: str, int, float or bool.
    raw_cells : bool, default False
        Whether CSV and TSV files hold texts as they are. By default, an apostrophe protects a text
        that a spreadsheet would run as a formula (see `newfound.data.tables.formulas`).
    replace : bool, optional
        Whether a file that is there at the end is replaced, while other processes that write the
        same file are refused. By default it is replaced, and nobody is refused.

    Notes
    -----
    None, NaN and infinity are written as missing values: an empty cell, or null.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "table.csv"
    >>> with TableWriter(path, {"id": str, "probability": float}) as table:
    ...     table.write({"id": ["a", "b"], "probability": [0.5, None]})
    >>> path.read_text().splitlines()
    ['id,probability', 'a,0.5', 'b,']
    """

    def __init__(
        self,
        path: Path,
        columns: Mapping[str, type],
        *,
        raw_cells: bool = False,
        replace: bool | None = None,
    ) -> None:
        self.path, self._replace = Path(path), replace
        self.columns = dict(columns)
        self._open = _sink_for(self.path, raw_cells)
        if self.path.is_dir():
            raise InputError(f"{self.path}: this is a folder: give the name of a file")
        self._temporary: AbstractContextManager[Path] | None = None
        self._sink: _Sink | None = None

    def __enter__(self) -> "TableWriter":
        if self._replace is None:
            self._temporary = write_atomically(self.path)
        else:
            self._temporary = write_alone(self.path, replace=self._replace)
        with ExitStack() as stack:
            name = stack.enter_context(self._temporary)
            self._sink = self._open(name, self.columns)
            stack.pop_all()  # stays open until __exit__
        return self

    def write(self, batch: Mapping[str, Sequence[Any] | np.ndarray]) -> None:
        """Write a batch of rows, given as one sequence per column."""
        if self._sink is None:
            raise RuntimeError("TableWriter.write must be called inside the with block")
        if batch.keys() != self.columns.keys():
            raise ValueError(f"expected the columns {list(self.columns)}, not {list(batch)}")
        if len({len(values) for values in batch.values()}) > 1:
            raise ValueError("the columns of a batch differ in length")
        cells = [_cells(batch[name], kind) for name, kind in self.columns.items()]
        try:
            self._sink.write(cells)
        except OSError as error:
            raise InputError(self._cannot_write(error)) from error

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._sink is not None
        assert self._temporary is not None
        sink, self._sink = self._sink, None
        if kind is not None:
            # Closing may fail for the same reason as writing; the first error is the one to raise.
            with suppress(Exception):
                sink.close()
            self._discard()
            return
        try:
            sink.close()
        except BaseException as failed:
            self._discard()
            if isinstance(failed, OSError):
                raise InputError(self._cannot_write(failed)) from failed
            raise
        self._temporary.__exit__(None, None, None)

    def _discard(self) -> None:
        """Delete the temporary file."""
        # Not with the error of the block: an OSError there may be about another file.
        assert self._temporary is not None
        aborted = _Aborted()
        self._temporary.__exit__(_Aborted, aborted, None)

    def _cannot_write(self, error: OSError) -> str:
        """Return the message on a file that cannot be written."""
        return (
            f"{self.path}: cannot be written ({error.strerror or error}): "
            "free space or choose another place"
        )


def _sink_for(path: Path, raw_cells: bool) -> Callable[[Path, Mapping[str, type]], _Sink]:
    """Return the function that opens a file of the format that the extension gives."""
    suffix = path.suffix.lower()
    if suffix == ".csv":
        return lambda name, columns: _DelimitedSink(name, columns, ",", raw_cells)
    if suffix in (".tsv", ".tab"):
        return lambda name, columns: _DelimitedSink(name, columns, "\t", raw_cells)
    if suffix in (".jsonl", ".ndjson"):
        return _JsonSink
    if suffix in (".parquet", ".pq"):
        return _ParquetSink
    raise InputError(
        f"{path}: the file extension gives no table format: use .csv, .tsv, .jsonl or .parquet"
    )


class _DelimitedSink:
    """A CSV or TSV file."""

    def __init__(
        self, path: Path, columns: Mapping[str, type], delimiter: str, raw_cells: bool
    ) -> None:
        self._raw_cells = raw_cells
        self._handle = path.open("w", encoding="utf-8", newline="")
        # The csv module quotes a carriage return only if the line terminator contains one;
        # _LineFeeds removes it from the terminator again.
        self._writer = csv.writer(
            _LineFeeds(self._handle), delimiter=delimiter, lineterminator="\r\n"
        )
        self._writer.writerow(columns if raw_cells else map(protected, columns))

    def write(self, columns: list[list[Cell]]) -> None:
        if not self._raw_cells:
            columns = [
                [protected(cell) if isinstance(cell, str) else cell for cell in column]
                for column in columns
            ]
        self._writer.writerows(zip(*columns, strict=True))

    def close(self) -> None:
        self._handle.close()


class _LineFeeds:
    """Replaces the line terminator of each row that the csv module writes by a line feed."""

    def __init__(self, handle: TextIO) -> None:
        self._handle = handle

    def write(self, row: str) -> int:
        return self._handle.write(row[:-2] + "\n")


class _JsonSink:
    """A JSON lines file."""

    def __init__(self, path: Path, columns: Mapping[str, type]) -> None:
        self._handle = path.open("w", encoding="utf-8", newline="\n")
        self._names = list(columns)
        self._encode = json.JSONEncoder(ensure_ascii=False).encode

    def write(self, columns: list[list[Cell]]) -> None:
        for row in zip(*columns, strict=True):
            record = dict(zip(self._names, row, strict=True))
            self._handle.write(self._encode(record) + "\n")

    def close(self) -> None:
        self._handle.close()


class _ParquetSink:
    """A Parquet file."""

    def __init__(self, path: Path, columns: Mapping[str, type]) -> None:
        # Arrow is slow to import, and only Parquet files need it.
        import pyarrow as pa
        import pyarrow.parquet as pq

        kinds = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
        self._schema = pa.schema([(name, kinds[kind]) for name, kind in columns.items()])
        self._batch = pa.RecordBatch.from_arrays
        self._array = pa.array
        self._writer = pq.ParquetWriter(path, self._schema)

    def write(self, columns: list[list[Cell]]) -> None:
        arrays = [
            self._array(values, field.type)
            for values, field in zip(columns, self._schema, strict=True)
        ]
        self._writer.write_batch(self._batch(arrays, schema=self._schema))

    def close(self) -> None:
        self._writer.close()


def _cells(values: Iterable[Any], kind: type) -> list[Cell]:
    """Return the values as Python values of the column's type, None where missing."""
    return [None if value is None else _cell(value, kind) for value in values]


def _cell(value: Any, kind: type) -> Cell:
    """Return one value as a Python value of the column's type, None if it is not finite."""
    if kind is str:
        return clean_text(str(value))
    if not math.isfinite(value):
        return None
    if isinstance(value, np.float32):
        return float(str(value))  # 0.9, not 0.8999999761581421
    cell: Cell = kind(value)
    return cell
