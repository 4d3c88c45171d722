"""Read texts chunk by chunk, in flat memory however many there are."""

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
    """Some rows that follow each other; a row without text is there with an empty one."""

    ids: list[str]
    texts: list[str]


@dataclass
class TableStream:
    """A table whose faults have been looked for and whose rows are still to be read."""

    source: Source
    columns: Columns
    chunk: int
    notes: list[str] = field(default_factory=list)  # some come only at the end of the table

    @property
    def rows(self) -> int:
        """How many rows will come."""
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
                f"(first: row {first_empty}): without a category"
            )


def stream_table(
    path: Path,
    *,
    text_column: str | None = None,
    id_column: str | None = None,
    chunk: int = 4096,
) -> TableStream:
    """Look through a table for faults, then let its rows be read chunk by chunk.

    All that can be wrong with the file is found here, before the first row is worked on.
    """
    source = open_source(Path(path))
    columns = find_columns(
        source.path, source.columns, text=text_column, id=id_column, with_label=False
    )
    source.read([name for name in (columns.text, columns.id) if name is not None])  # only checks
    notes = [*source.notes, *filter(None, [columns.note(source.path)])]
    return TableStream(source, columns, chunk, notes)


def stream_lines(
    handle: Iterable[str | bytes],
    chunk: int = 4096,
    *,
    text_column: str | None = None,
    id_column: str | None = None,
) -> Iterator[TableChunk]:
    """Read lines, each a text, or a JSON object that has a field for the text.

    Every line gives one text, a blank line an empty one, so that answers can be laid beside lines.
    A pipe is answered as its lines come in: a chunk is not waited for.
    """
    # Standard input's own decoder would stop at the first byte that is not UTF-8.
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
    """The lines in the portions in which they come through a pipe; any other source whole."""
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
    """Return a line's id and text."""
    record = _object(line)
    if record is None or (text_column is None and not text_candidates(list(record))):
        return str(number), line
    place = f"standard input, line {number}"
    columns = find_columns(place, list(record), text=text_column, id=id_column, with_label=False)
    values = []
    for name in (columns.text, columns.id):
        value = None if name is None else record[name]
        if isinstance(value, list | dict):
            raise InputError(f"{place}: {name!r} is a list or an object: give a string there")
        values.append(as_string(value))
    text, given = values
    return given or str(number), text or ""


def _object(line: str) -> dict[str, Any] | None:
    """Return the JSON object that a line is, None where it is something else."""
    if not line.lstrip().startswith("{"):
        return None
    try:
        record = DECODER.decode(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None
