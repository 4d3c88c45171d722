"""Read texts chunk by chunk, in constant memory."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from newfound.data.corpus import clean_text
from newfound.data.tables.columns import Columns, find_columns, text_candidates
from newfound.data.tables.jsonlines import DECODER, as_string
from newfound.data.tables.reading import cleaned_note
from newfound.data.tables.sources import Source, open_source
from newfound.errors import InputError
from newfound.wording import plural


@dataclass(frozen=True)
class TableChunk:
    """Consecutive rows; a row without text has an empty one."""

    ids: list[str]
    texts: list[str]


@dataclass
class TableStream:
    """A table that has been checked and whose rows can be iterated over in chunks."""

    source: Source
    columns: Columns
    chunk: int
    notes: list[str] = field(default_factory=list)  # complete only after the last row

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.source.rows

    def __iter__(self) -> Iterator[TableChunk]:
        wanted = [name for name in (self.columns.text, self.columns.id) if name is not None]
        has_id = self.columns.id is not None
        ids: list[str] = []
        texts: list[str] = []
        cleaned = first = empty = first_empty = 0
        for row, cells in enumerate(self.source.read(wanted), start=1):
            given = cells[0] or ""
            text = clean_text(given)
            if text != given:
                cleaned += 1
                first = first or row
            if not text or text.isspace():
                empty += 1
                first_empty = first_empty or row
            texts.append(text)
            ids.append(clean_text(cells[1] or "") if has_id else str(row))
            if len(texts) == self.chunk:
                yield TableChunk(ids, texts)
                ids, texts = [], []
        if texts:
            yield TableChunk(ids, texts)
        path, column = self.source.path, self.columns.text
        if cleaned:
            self.notes.append(cleaned_note(path, column, cleaned, first))
        if empty:
            self.notes.append(
                f"{path}: {plural(empty, 'row has', 'rows have')} no text in column {column!r} "
                f"(first: row {first_empty}): no category is predicted"
            )


def stream_table(
    path: Path,
    *,
    text_column: str | None = None,
    id_column: str | None = None,
    chunk: int = 4096,
    raw_cells: bool = False,
) -> TableStream:
    """Check a table and return a stream of its rows.

    All errors of the file are found here, before the first row is processed.

    Parameters
    ----------
    path : Path
    text_column, id_column : str, optional
        Names of columns; guessed by default.
    chunk : int
        Rows per chunk.
    raw_cells : bool, default False
        Whether apostrophes that protect formulas in CSV and TSV files are kept.

    Returns
    -------
    TableStream
    """
    source = open_source(Path(path), raw_cells=raw_cells)
    columns = find_columns(
        source.path, source.columns, text=text_column, id=id_column, with_label=False
    )
    source.read([name for name in (columns.text, columns.id) if name is not None])  # raises errors
    notes = [*source.notes, *filter(None, [columns.note(source.path)])]
    return TableStream(source, columns, chunk, notes)


def stream_lines(
    handle: Iterable[str | bytes],
    chunk: int = 4096,
    *,
    text_column: str | None = None,
    id_column: str | None = None,
) -> Iterator[TableChunk]:
    """Read one text per line; a line may also be a JSON object with a field for the text.

    A blank line gives an empty text, so that outputs correspond to lines. Lines from a pipe are
    yielded as they arrive, without waiting for a full chunk.

    Parameters
    ----------
    handle : iterable of str or bytes
        Lines, such as standard input.
    chunk : int
        Maximum number of texts per chunk.
    text_column, id_column : str, optional
        Fields of JSON objects; guessed by default.

    Yields
    ------
    TableChunk
    """
    # The decoder of standard input would fail at the first byte that is not UTF-8.
    lines: Iterable[str | bytes] = getattr(handle, "buffer", handle)
    number = 0
    for arrived in _arrivals(lines):
        ids: list[str] = []
        texts: list[str] = []
        for line in arrived:
            number += 1
            name, text = _line(number, _decoded(line, number), text_column, id_column)
            ids.append(clean_text(name))
            texts.append(clean_text(text))
            if len(texts) == chunk:
                yield TableChunk(ids, texts)
                ids, texts = [], []
        if texts:
            yield TableChunk(ids, texts)


def _arrivals(lines: Iterable[str | bytes]) -> Iterator[Iterable[str | bytes]]:
    """Yield lines in the portions in which a pipe delivers them, other sources at once."""
    try:
        descriptor = lines.fileno()  # type: ignore[attr-defined]
    except (AttributeError, OSError):
        yield lines
        return
    rest = b""
    while data := os.read(descriptor, 65536):
        *whole, rest = (rest + data).split(b"\n")
        yield whole
    if rest:
        yield [rest]


def _decoded(line: str | bytes, number: int) -> str:
    """Return a line as text without its line end and byte order mark."""
    if isinstance(line, str):
        text = line
    else:
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError:
            text = line.decode("cp1252", "replace")
    text = text.removesuffix("\n").removesuffix("\r")
    return text.removeprefix("\ufeff") if number == 1 else text


def _line(
    number: int, line: str, text_column: str | None, id_column: str | None
) -> tuple[str, str]:
    """Return the id and the text of a line."""
    record = _object(line)
    if record is None or (text_column is None and not text_candidates(list(record))):
        return str(number), line
    place = f"standard input, line {number}"
    columns = find_columns(place, list(record), text=text_column, id=id_column, with_label=False)
    values = []
    for name in (columns.text, columns.id):
        value = None if name is None else record[name]
        if isinstance(value, list | dict):
            raise InputError(f"{place}: {name!r} is a list or an object: give a string")
        values.append(as_string(value))
    text, given = values
    return given or str(number), text or ""


def _object(line: str) -> dict[str, Any] | None:
    """Return the JSON object in a line, None if there is none."""
    if not line.lstrip().startswith("{"):
        return None
    try:
        record = DECODER.decode(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None
