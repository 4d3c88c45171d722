"""Read, stream and write tables of texts, with one module per format."""

from newfound.data.tables.columns import Columns
from newfound.data.tables.reading import TableRead, read_tables
from newfound.data.tables.streaming import TableChunk, TableStream, stream_lines, stream_table
from newfound.data.tables.writing import TableWriter

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
