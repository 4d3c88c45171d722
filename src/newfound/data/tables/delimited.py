"""Read CSV and TSV files, quoted as spreadsheets and pandas write them."""

import csv
from collections import deque
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from newfound.data.tables.columns import looks_like_header
from newfound.data.tables.formulas import unprotected
from newfound.data.tables.textfile import TextFile, find_encoding
from newfound.errors import EmptyTableError, InputError
from newfound.wording import plural

_DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "vertical bar"}
# A longer field means an unclosed quote, which would otherwise read the whole file into memory.
LONGEST_FIELD = 1 << 24
_LONG_RECORD = 20  # lines
_MOST_BAD = 1000  # records with bad quotes; a file with more is not quoted as CSV files are


class _BadQuote(InputError):
    """A quote is misplaced or never closed."""


@dataclass(frozen=True)
class Delimited:
    """A CSV or TSV file that has been scanned once and is free of errors."""

    path: Path
    columns: list[str]
    rows: int
    notes: list[str]
    file: TextFile
    delimiter: str
    quoted: bool  # False: quotes are ordinary characters
    protected: bool = False  # apostrophes before formulas are removed
    bad_rows: Container[int] = ()  # read as empty

    def read(self, wanted: Sequence[str]) -> Iterator[tuple[str | None, ...]]:
        """Yield the wanted columns of every row."""
        places = [self.columns.index(name) for name in wanted]
        return self._read(places)

    def _read(self, places: list[int]) -> Iterator[tuple[str | None, ...]]:
        tolerant = isinstance(self.bad_rows, dict) and self.quoted and self.delimiter != "\t"
        records = _records(self.file, self.delimiter, self.quoted, {} if tolerant else None)
        _header(records)
        for row, (_, record) in enumerate(_rows(records, len(self.columns)), start=1):
            size = 0 if row in self.bad_rows else len(record)
            cells = [record[place] if place < size else None for place in places]
            if self.protected:
                cells = [None if cell is None else unprotected(cell) for cell in cells]
            yield tuple(cells)


def open_delimited(
    path: Path,
    expected: str,
    *,
    raw_cells: bool = False,
    bad_rows: dict[int, str] | None = None,
) -> Delimited:
    """Scan a file once for its columns, delimiter and errors.

    Parameters
    ----------
    path : Path
    expected : str
        Delimiter that the file extension suggests.
    raw_cells : bool, default False
        Whether apostrophes that protect formulas are kept (see `newfound.data.tables.formulas`).
    bad_rows : dict of int to str, optional
        Receives the number of each row with too many fields or a bad quote, with the reason; such a
        row is read as empty. Without it, the first one raises InputError, and so does a table
        without rows.

    Returns
    -------
    Delimited
    """
    # The limit is global to the csv module, so it is never lowered.
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_FIELD))
    file = find_encoding(path, tolerant=bad_rows is not None)
    delimiter = _find_delimiter(file, expected)
    notes = list(file.notes)
    if delimiter != expected:
        notes.append(f"{path}: the columns are separated by a {_DELIMITERS[delimiter]}")
    quoted = True
    try:
        scanned = _scan(file, delimiter, True, bad_rows)
    except _BadQuote as error:
        # TSV files are often written without quoting; in a CSV file that is an error.
        if delimiter != "\t":
            raise InputError(
                f"{error}: write each quote inside a quoted field twice, and close every quote"
            ) from error
        if bad_rows is not None:
            bad_rows.clear()  # those of the rows as they were read with quotes
        scanned = _scan(file, delimiter, False, bad_rows)
        notes.append(f"{error}: quotes in this file are read as ordinary characters")
        quoted = False
    notes += scanned.notes
    protected = scanned.protected > 0 and not raw_cells
    if protected:
        notes.append(
            f"{path}: {plural(scanned.protected, 'cell has', 'cells have')} an apostrophe before "
            f"a formula (first: row {scanned.first_protected}): it is not read as part of the cell "
            "(--raw-cells keeps it)"
        )
    return Delimited(
        path,
        scanned.columns if raw_cells else list(map(unprotected, scanned.columns)),
        scanned.rows,
        notes,
        file,
        delimiter,
        quoted,
        protected,
        () if bad_rows is None else bad_rows,
    )


@dataclass(frozen=True)
class _Scanned:
    """What is known of a file after a first pass."""

    columns: list[str]
    rows: int
    notes: list[str]  # on unusual rows
    protected: int  # cells with an apostrophe before a formula
    first_protected: int  # row of the first one


def _scan(
    file: TextFile, delimiter: str, quoted: bool, bad_rows: dict[int, str] | None
) -> _Scanned:
    """Read the file once and check its rows."""
    path = file.path
    # TSV files are often written without quoting.
    tolerant = bad_rows is not None and quoted and delimiter != "\t"
    bad_lines: dict[int, str] | None = {} if tolerant else None
    records = _records(file, delimiter, quoted, bad_lines)
    header = _header(records)
    if bad_lines:
        raise _BadQuote(next(iter(bad_lines.values())))
    if not header:
        raise EmptyTableError(f"{path}: the file is empty: give a table with a header and rows")
    columns = [name.replace("\0", " ").strip() for name in header]
    while len(columns) > 1 and not columns[-1]:
        columns.pop()  # a delimiter at the end of each line
    width = len(columns)
    rows = short = first_short = 0
    previous = longest = long_row = 0
    protected = first_protected = 0
    for rows, (line, record) in enumerate(_rows(records, width), start=1):
        size = len(record)
        if bad_lines and bad_rows is not None and line in bad_lines:
            bad_rows[rows] = bad_lines[line]
            previous = 0
            continue
        if size > width and any(record[width:]):
            wide = (
                f"{path}, row {rows} (line {line}): there are {size} fields but the header names "
                f"{width} columns: put texts that contain a {_DELIMITERS[delimiter]} in "
                "double quotes"
            )
            if bad_rows is None:
                raise InputError(wide)
            bad_rows[rows] = wide
        if size < width:
            short += 1
            first_short = first_short or rows
        if previous and line - previous > longest:
            longest, long_row = line - previous, rows - 1
        previous = line
        if found := sum(cell[:1] == "'" and unprotected(cell) != cell for cell in record):
            protected += found
            first_protected = first_protected or rows
    if rows == 0 and bad_rows is None:
        raise EmptyTableError(f"{path}: there is a header but no row: give a table with rows")
    notes = []
    if short:
        notes.append(
            f"{path}: {plural(short, 'row has', 'rows have')} fewer fields than the header (first: "
            f"row {first_short}): missing fields are read as empty"
        )
    if longest > _LONG_RECORD:
        notes.append(
            f"{path}: row {long_row} spans {longest:,} lines: "
            "if that is wrong, close the quote in it"
        )
    return _Scanned(columns, rows, notes, protected, first_protected)


def _header(records: Iterator[tuple[int, list[str]]]) -> list[str]:
    """Return the first record that is not a blank line."""
    return next((record for _, record in records if record), [])


def _rows(records: Iterator[tuple[int, list[str]]], width: int) -> Iterator[tuple[int, list[str]]]:
    """Skip blank lines, except in a single column, where a blank line is an empty text."""
    blank: list[tuple[int, list[str]]] = []
    for line, record in records:
        if record:
            yield from blank
            blank.clear()
            yield line, record
        elif width == 1:
            blank.append((line, [""]))  # a row only if another row follows


class _Lines:
    """The lines of a file, which can be read again from the second line of a record on."""

    def __init__(self, handle: Iterable[str]) -> None:
        self._rest, self._again = iter(handle), deque[str]()
        self._record: list[str] = []  # lines of the current record so far
        self.number = 1  # of its first line

    def __iter__(self) -> "_Lines":
        return self

    def __next__(self) -> str:
        self._record.append(self._again.popleft() if self._again else next(self._rest))
        return self._record[-1]

    def end_record(self) -> None:
        """Begin the next record after what was read."""
        self.number += len(self._record)
        self._record.clear()

    def skip_line(self) -> None:
        """Begin the next record after the first line of this one."""
        self._again.extendleft(reversed(self._record[1:]))
        self.number += 1
        self._record.clear()


def _records(
    file: TextFile, delimiter: str, quoted: bool, bad_lines: dict[int, str] | None = None
) -> Iterator[tuple[int, list[str]]]:
    """Yield each record with the number of its first line.

    `bad_lines` receives the lines at which a record with a bad quote begins, with the reason. Such
    a line is a record with one empty cell, and the next line begins another record. Without it, the
    first one raises InputError.
    """
    with file.open() as handle:
        lines = _Lines(handle)
        while True:
            reader = csv.reader(
                lines,
                delimiter=delimiter,
                quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
                strict=True,
            )
            try:
                for record in reader:
                    yield lines.number, record
                    lines.end_record()
                return
            except csv.Error as error:
                wrong = f"{file.path}, line {lines.number}: a quote is misplaced or never closed"
                if bad_lines is None or len(bad_lines) == _MOST_BAD:
                    raise _BadQuote(wrong) from error
                bad_lines[lines.number] = wrong
            yield lines.number, [""]
            lines.skip_line()


def _find_delimiter(file: TextFile, expected: str) -> str:
    """Return the expected delimiter, or another one if only that one gives several columns."""
    if len(_sample(file, expected)[0]) > 1:
        return expected
    for delimiter in _DELIMITERS:
        header, *rows = _sample(file, delimiter)
        # A familiar header is enough; otherwise the rows must be as wide as the header.
        if len(header) > 1 and (
            looks_like_header(header) or (rows and all(len(row) == len(header) for row in rows))
        ):
            return delimiter
    return expected


def _sample(file: TextFile, delimiter: str) -> list[list[str]]:
    """Return the first records, split at this delimiter; at least one, which may be empty."""
    records: list[list[str]] = []
    with file.open() as handle, suppress(csv.Error):
        records.extend(islice(filter(None, csv.reader(handle, delimiter=delimiter)), 20))
    return records or [[]]
