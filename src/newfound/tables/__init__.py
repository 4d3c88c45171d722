"""Read, stream and write tables of texts: CSV, TSV, JSON lines and Parquet."""

from newfound.tables.columns import Columns
from newfound.tables.reading import TableRead, read_tables
from newfound.tables.streaming import TableChunk, TableStream, stream_lines, stream_table
from newfound.tables.writing import TableWriter

__all__ = [
    "Columns",
    "TableChunk",
    "TableRead",
    "TableStream",
    "TableWriter",
    "read_tables",
    "stream_lines",
    "stream_table",
]
