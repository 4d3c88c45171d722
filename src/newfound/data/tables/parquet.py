"""Read Parquet files batch by batch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from newfound.data.tables.arrow import check_types, column_as_strings, reading_arrow
from newfound.errors import EmptyTableError, InputError

_BATCH = 8192
_KIND = "a Parquet file"


@dataclass(frozen=True)
class Parquet:
    """A Parquet file whose metadata has been read."""

    path: Path
    columns: list[str]
    rows: int
    notes: list[str]
    schema: Any
    bad_rows: dict[int, str] | None = None  # None: the first bad row is an error

    def read(self, wanted: Sequence[str]) -> Iterator[tuple[str | None, ...]]:
        """Yield the wanted columns of every row, as strings."""
        check_types(self.path, self.schema, wanted)
        return self._read(list(wanted))

    def _read(self, wanted: list[str]) -> Iterator[tuple[str | None, ...]]:
        with (
            reading_arrow(self.path, _KIND),
            pq.ParquetFile(self.path, pre_buffer=False) as file,
        ):
            before = 0
            for batch in file.iter_batches(batch_size=_BATCH, columns=wanted):
                lists = [
                    column_as_strings(batch.column(name), self.path, name, before, self.bad_rows)
                    for name in wanted
                ]
                yield from zip(*lists, strict=True)
                before += batch.num_rows


def open_parquet(path: Path, bad_rows: dict[int, str] | None = None) -> Parquet:
    """Read the metadata of a file: its columns and its number of rows.

    Parameters
    ----------
    path : Path
    bad_rows : dict of int to str, optional
        Receives the number of each row with a cell that is not text, with the reason, while rows
        are read; such a cell is empty. Without it, the first one raises InputError, and so does a
        table without rows.

    Returns
    -------
    Parquet
    """
    with reading_arrow(path, _KIND), pq.ParquetFile(path) as file:
        schema = file.schema_arrow
        rows = file.metadata.num_rows
    if rows == 0 and bad_rows is None:
        raise EmptyTableError(f"{path}: the table has columns but no rows: give a table with rows")
    return Parquet(path, list(schema.names), rows, [], schema, bad_rows)


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
    with (
        reading_arrow(source.path, _KIND),
        pq.ParquetFile(source.path, pre_buffer=False) as file,
    ):
        for batch in file.iter_batches(batch_size=_BATCH, columns=[column]):
            found = batch.column(0)
            lengths = pc.fill_null(pc.list_value_length(found), -1)
            values = pc.list_flatten(found).cast(pa.float32(), safe=False)
            yield (
                values.to_numpy(zero_copy_only=False),
                lengths.to_numpy(zero_copy_only=False).astype("int64"),
            )
