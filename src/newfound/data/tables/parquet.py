"""Read Parquet files batch by batch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from newfound.data.tables.arrow import as_strings, check_types, reading_arrow
from newfound.errors import InputError

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

    def read(self, wanted: Sequence[str]) -> Iterator[tuple[str | None, ...]]:
        """Yield the wanted columns of every row, as strings."""
        check_types(self.path, self.schema, wanted)
        return self._read(list(wanted))

    def _read(self, wanted: list[str]) -> Iterator[tuple[str | None, ...]]:
        with (
            reading_arrow(self.path, _KIND),
            pq.ParquetFile(self.path, pre_buffer=False) as file,
        ):
            for batch in file.iter_batches(batch_size=_BATCH, columns=wanted):
                lists = [as_strings(batch.column(name)).to_pylist() for name in wanted]
                yield from zip(*lists, strict=True)


def open_parquet(path: Path) -> Parquet:
    """Read the metadata of a file: its columns and its number of rows."""
    with reading_arrow(path, _KIND), pq.ParquetFile(path) as file:
        schema = file.schema_arrow
        rows = file.metadata.num_rows
    if rows == 0:
        raise InputError(f"{path}: the table has columns but no rows: give a table with rows")
    return Parquet(path, list(schema.names), rows, [], schema)
