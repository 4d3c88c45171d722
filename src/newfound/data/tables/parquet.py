"""Read Parquet files batch by batch."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from newfound.data.tables.textfile import reading
from newfound.errors import InputError

_BATCH = 8192


@dataclass(frozen=True)
class Parquet:
    """A Parquet file whose metadata has been read."""

    path: Path
    columns: list[str]
    rows: int
    notes: list[str]
    schema: Any

    def read(self, wanted: Sequence[str]) -> Iterator[tuple[str | None, ...]]:
        """Yield the wanted columns of every row, as strings."""
        for name in wanted:
            kind = self.schema.field(name).type
            try:
                _strings(pa.nulls(0, kind))
            except pa.ArrowException as error:
                raise InputError(
                    f"{self.path}, column {name!r}: values of type {kind} cannot be read as "
                    "texts: give strings, or choose another column"
                ) from error
        return self._read(list(wanted))

    def _read(self, wanted: list[str]) -> Iterator[tuple[str | None, ...]]:
        with _reading(self.path), pq.ParquetFile(self.path, pre_buffer=False) as file:
            for batch in file.iter_batches(batch_size=_BATCH, columns=wanted):
                lists = [_strings(batch.column(name)).to_pylist() for name in wanted]
                yield from zip(*lists, strict=True)


def open_parquet(path: Path) -> Parquet:
    """Read the metadata of a file: its columns and its number of rows."""
    with _reading(path), pq.ParquetFile(path) as file:
        schema = file.schema_arrow
        rows = file.metadata.num_rows
    if rows == 0:
        raise InputError(f"{path}: the table has columns but no rows: give a table with rows")
    return Parquet(path, list(schema.names), rows, [], schema)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn errors of reading a Parquet file inside the block into InputErrors."""
    try:
        with reading(path):
            try:
                yield
            except OSError as error:
                # Arrow raises OSError for invalid content, too, but then without a number.
                if error.errno is None:
                    raise pa.ArrowInvalid(str(error)) from error
                raise
    except pa.ArrowException as error:
        raise InputError(
            f"{path}: this is not a Parquet file, or it is damaged: write the table again"
        ) from error


def _strings(values: Any) -> Any:
    """Cast an Arrow array to strings; NaN, pandas' missing value, becomes null."""
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), None, values)
    return values.cast(pa.string())


def read_lists(source: Parquet, column: str) -> Iterator[tuple[Any, Any]]:
    """Yield the values and the lengths of a column of lists of numbers, batch by batch.

    Parameters
    ----------
    source : Parquet
    column : str

    Yields
    ------
    values : ndarray of float32
        All numbers of the batch, one list after the other; NaN where one is missing.
    lengths : ndarray of int64
        Length of each list, -1 where it is missing.
    """
    kind = source.schema.field(column).type
    lists = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if not (lists or pa.types.is_fixed_size_list(kind)) or not (
        pa.types.is_floating(kind.value_type) or pa.types.is_signed_integer(kind.value_type)
    ):
        raise InputError(
            f"{source.path}, column {column!r}: values of type {kind} are not vectors: give a "
            "column of lists of numbers"
        )
    with _reading(source.path), pq.ParquetFile(source.path, pre_buffer=False) as file:
        for batch in file.iter_batches(batch_size=_BATCH, columns=[column]):
            found = batch.column(0)
            lengths = pc.fill_null(pc.list_value_length(found), -1)
            values = pc.list_flatten(found).cast(pa.float32(), safe=False)
            yield (
                values.to_numpy(zero_copy_only=False),
                lengths.to_numpy(zero_copy_only=False).astype("int64"),
            )
