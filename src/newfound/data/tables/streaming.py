"""Read texts chunk by chunk, in constant memory."""

import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from newfound.data.corpus import clean_text
from newfound.data.tables.columns import Columns, find_columns, join_cells, text_candidates
from newfound.data.tables.jsonlines import DECODER, as_string
from newfound.data.tables.others import with_others
from newfound.data.tables.reading import SOME_IDS, cleaned_note, table_notes
from newfound.data.tables.sources import Source, open_sources
from newfound.errors import InputError
from newfound.wording import plural


@dataclass(frozen=True)
class TableChunk:
    """Consecutive rows; a row without text has an empty one.

    `columns` holds the columns that outputs keep, by name, as in a `Corpus`.
    """

    ids: list[str]
    texts: list[str]
    columns: dict[str, list[str]] = field(default_factory=dict)


@dataclass
class TableStream:
    """Tables that have been checked and whose rows can be iterated over in chunks."""

    tables: list[tuple[Source, Columns]]
    chunk: int
    notes: list[str] = field(default_factory=list)  # complete only after the last row
    bad_rows: Container[int] = ()  # numbers of rows that cannot be read

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(source.rows for source, _ in self.tables)

    @property
    def has_ids(self) -> bool:
        """Whether every table has an id column; otherwise ids are row numbers."""
        return all(columns.id is not None for _, columns in self.tables)

    @property
    def kept(self) -> list[str]:
        """Columns of all tables that outputs keep."""
        return list(dict.fromkeys(name for _, columns in self.tables for name in columns.kept))

    def __iter__(self) -> Iterator[TableChunk]:
        has_ids, kept = self.has_ids, self.kept
        filled = _Filled(kept)
        before = 0
        for source, columns in self.tables:
            joined = len(columns.texts)
            cleaned = first = empty = first_empty = 0
            for row, cells in enumerate(source.read(columns.wanted), start=1):
                given = (cells[0] or "") if joined == 1 else join_cells(cells[:joined])
                text = clean_text(given)
                if text != given:
                    cleaned += 1
                    first = first or row
                if (not text or text.isspace()) and row not in self.bad_rows:
                    empty += 1
                    first_empty = first_empty or row
                filled.ids.append(clean_text(cells[joined] or "") if has_ids else str(before + row))
                filled.texts.append(text)
                filled.others.append(
                    dict(zip(columns.kept, columns.kept_cells(cells), strict=True)) if kept else {}
                )
                if len(filled.texts) == self.chunk:
                    yield filled.taken()
            before += source.rows
            if cleaned:
                self.notes.append(cleaned_note(source.path, columns.described, cleaned, first))
            if empty:
                self.notes.append(
                    f"{source.path}: {plural(empty, 'row has', 'rows have')} no text in "
                    f"{columns.described} (first: row {first_empty}): no category is predicted"
                )
        if filled.texts:
            yield filled.taken()


@dataclass
class _Filled:
    """The rows of the next chunk; `kept` are the columns that every chunk has."""

    kept: list[str]
    ids: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    others: list[Mapping[str, str | None]] = field(default_factory=list)  # other cells by column

    def taken(self) -> TableChunk:
        """Return the rows as a chunk, and begin the next one."""
        names = dict.fromkeys([*self.kept, *(name for row in self.others for name in row)])
        columns = {name: [clean_text(row.get(name) or "") for row in self.others] for name in names}
        chunk = TableChunk(self.ids, self.texts, columns)
        self.ids, self.texts, self.others = [], [], []
        return chunk


def stream_table(
    *paths: Path,
    text_column: str | Sequence[str] | None = None,
    id_column: str | None = None,
    chunk: int = 4096,
    raw_cells: bool = False,
    sheet: str | None = None,
    query: str | None = None,
    bad_rows: dict[int, str] | None = None,
) -> TableStream:
    """Check tables and return a stream of their rows.

    All errors of the files are found here, before the first row is processed.

    Parameters
    ----------
    *paths : Path
        Files, folders, or patterns such as ``tickets/*.csv``.
    text_column : str or sequence of str, optional
        Names of text columns, several of which are joined; guessed by default.
    id_column : str, optional
        Name of the id column; guessed by default.
    chunk : int
        Rows per chunk.
    raw_cells : bool, default False
        Whether apostrophes that protect formulas in CSV and TSV files are kept.
    sheet : str, optional
        Sheet of the Excel workbooks; the first one by default.
    query : str, optional
        Query on the databases.
    bad_rows : dict of int to str, optional
        For a single table: receives the rows that cannot be read, by number, each with the reason,
        before the chunk with the row is yielded. Their texts are empty. Without it, they are
        errors.

    Returns
    -------
    TableStream
    """
    sources = open_sources(
        [Path(path) for path in paths],
        raw_cells=raw_cells,
        sheet=sheet,
        query=query,
        bad_rows=bad_rows,
    )
    columns = [
        find_columns(source.path, source.columns, text=text_column, id=id_column, with_label=False)
        for source in sources
    ]
    columns, more = with_others(sources, columns)
    tables = list(zip(sources, columns, strict=True))
    for source, chosen in tables:
        source.read(chosen.wanted)  # raises errors
    notes = [*table_notes(tables), *more]
    stream = TableStream(tables, chunk, notes, () if bad_rows is None else bad_rows)
    if not stream.has_ids and any(chosen.id is not None for chosen in columns):
        notes.append(SOME_IDS)
    return stream


def stream_lines(
    handle: Iterable[str | bytes],
    chunk: int = 4096,
    *,
    text_column: str | Sequence[str] | None = None,
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
    text_column : str or sequence of str, optional
        Fields of JSON objects, several of which are joined; guessed by default.
    id_column : str, optional
        Field of JSON objects; guessed by default.

    Yields
    ------
    TableChunk
    """
    # The decoder of standard input would fail at the first byte that is not UTF-8.
    lines: Iterable[str | bytes] = getattr(handle, "buffer", handle)
    names = [text_column] if isinstance(text_column, str) else list(text_column or ())
    number = 0
    for arrived in _arrivals(lines):
        filled = _Filled(names if len(names) > 1 else [])
        for line in arrived:
            number += 1
            name, cells, others = _line(number, _decoded(line, number), names, id_column)
            filled.ids.append(clean_text(name))
            filled.texts.append(clean_text(join_cells(cells)))
            filled.others.append(others)
            if len(filled.texts) == chunk:
                yield filled.taken()
        if filled.texts:
            yield filled.taken()


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
    number: int, line: str, text_columns: list[str], id_column: str | None
) -> tuple[str, list[str | None], dict[str, str | None]]:
    """Return the id, the text cells and the other cells of a line.

    A line that is no object is the text itself.
    """
    record = _object(line)
    if record is None or (not text_columns and not text_candidates(list(record))):
        return str(number), [line], {}
    place = f"standard input, line {number}"
    columns = find_columns(place, list(record), text=text_columns, id=id_column, with_label=False)
    cells = []
    for name in columns.wanted:
        if isinstance(record[name], list | dict):
            raise InputError(f"{place}: {name!r} is a list or an object: give a string")
        cells.append(as_string(record[name]))
    given = cells.pop() if columns.id is not None else None
    others = {
        name: as_string(value)
        for name, value in record.items()
        if not isinstance(value, list | dict)
        and (len(cells) > 1 if name in columns.texts else name != columns.id)
    }
    return given or str(number), cells, others


def _object(line: str) -> dict[str, Any] | None:
    """Return the JSON object in a line, None if there is none."""
    if not line.lstrip().startswith("{"):
        return None
    try:
        record = DECODER.decode(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None
