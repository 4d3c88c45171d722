"""Read JSON lines, one object per line; a .json file may also hold one array of objects."""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from newfound.data.tables.textfile import TextFile, find_encoding
from newfound.errors import EmptyTableError, InputError

# Numbers keep their digits as written. NaN is not JSON, but Python writes it for missing values.
DECODER = json.JSONDecoder(
    parse_int=str,
    parse_float=str,
    parse_constant=lambda name: None if name == "NaN" else name,
)


@dataclass(frozen=True)
class JsonRecords:
    """A file of JSON objects that has been scanned once and is free of errors."""

    path: Path
    columns: list[str]
    rows: int
    notes: list[str]
    file: TextFile
    is_array: bool
    nested: dict[str, int]  # by column: first row whose value is a list or an object
    bad_rows: dict[int, str] | None = None  # None: the first bad row is an error

    @property
    def unfit(self) -> Collection[str]:
        """Columns with values that are not texts."""
        return self.nested.keys()

    def read(self, wanted: Sequence[str]) -> Iterator[tuple[str | None, ...]]:
        """Yield the wanted columns of every record."""
        for name in wanted:
            if name in self.nested and self.bad_rows is None:
                raise InputError(self._is_nested(self.nested[name], name))
        return self._read(wanted)

    def _read(self, wanted: Sequence[str]) -> Iterator[tuple[str | None, ...]]:
        some_nested = any(name in self.nested for name in wanted)
        records = _records(self.file, self.is_array, self.bad_rows)
        for row, record in enumerate(records, start=1):
            cells = [record.get(name) for name in wanted]
            if some_nested and self.bad_rows is not None:
                for at, value in enumerate(cells):
                    if isinstance(value, list | dict):
                        self.bad_rows[row] = self._is_nested(row, wanted[at])
                        cells[at] = None
            yield tuple([as_string(cell) for cell in cells])

    def _is_nested(self, row: int, name: str) -> str:
        """Return the message on a value that is not a text."""
        return (
            f"{self.path}, row {row}, column {name!r}: the value is a list or an object: give a "
            "string, or choose another column"
        )


def open_json(
    path: Path, may_be_array: bool, bad_rows: dict[int, str] | None = None
) -> JsonRecords:
    """Scan a file once for its columns and errors.

    Parameters
    ----------
    path : Path
    may_be_array : bool
        Whether the file may hold one array of objects instead of one object per line.
    bad_rows : dict of int to str, optional
        Receives the number of each row that is not a JSON object, or whose text or id is a list or
        an object, with the reason, at the latest when it is read; such a row is read as empty.
        Without it, the first one raises InputError.

    Returns
    -------
    JsonRecords
    """
    file = find_encoding(path, tolerant=bad_rows is not None)
    is_array = may_be_array and _first_character(file) == "["
    columns: dict[str, None] = {}  # an ordered set
    nested: dict[str, int] = {}
    rows = 0
    for rows, record in enumerate(_records(file, is_array, bad_rows), start=1):
        columns.update(dict.fromkeys(record))
        for name, value in record.items():
            if isinstance(value, list | dict):
                nested.setdefault(name, rows)
    if rows == 0:
        raise EmptyTableError(f"{path}: the file has no records: give a table with rows")
    notes = list(file.notes)
    return JsonRecords(path, list(columns), rows, notes, file, is_array, nested, bad_rows)


def as_string(value: Any) -> str | None:
    """Return a scalar that DECODER has read as a string; None stays None."""
    if value is None or isinstance(value, str):
        return value
    return "true" if value else "false"


def _records(
    file: TextFile, is_array: bool, bad_rows: dict[int, str] | None
) -> Iterator[dict[str, Any]]:
    """Yield the objects of the file; an empty one in place of a bad row, if they are collected."""
    items = _array(file) if is_array else _lines(file)
    for row, (place, record) in enumerate(items, start=1):
        if isinstance(record, dict):
            yield record
            continue
        if not isinstance(record, InputError):
            record = InputError(
                f"{file.path}, {place}: the record is not a JSON object: "
                'write each as {"text": "...", "label": "..."}'
            )
        if bad_rows is None:
            raise record
        bad_rows[row] = str(record)
        yield {}


def _lines(file: TextFile) -> Iterator[tuple[str, Any]]:
    """Yield the place and the value of each line that is not blank, or the error in the line."""
    with file.open() as handle:
        for number, line in enumerate(handle, start=1):
            if line.isspace():
                continue
            try:
                value = _decode(file.path, number, line.rstrip())
            except InputError as error:
                value = error
            yield f"line {number}", value


def _array(file: TextFile) -> Iterator[tuple[str, Any]]:
    """Yield the place and the value of each item of the array."""
    with file.open() as handle:
        records = _decode(file.path, 1, handle.read())
    for number, record in enumerate(records, start=1):
        yield f"record {number}", record


def _decode(path: Path, line: int, text: str) -> Any:
    """Return the decoded JSON; `line` is the number of its first line."""
    try:
        return DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path}, line {line + error.lineno - 1}: this is not valid JSON ({error.msg}, "
            f"character {error.colno}): write one JSON object per line"
        ) from error
    except RecursionError as error:
        raise InputError(
            f"{path}, line {line}: the JSON is nested too deeply: write one flat object per line"
        ) from error


def _first_character(file: TextFile) -> str:
    """Return the first character that is not white space, "" in a blank file."""
    with file.open() as handle:
        return next((line.lstrip()[0] for line in handle if not line.isspace()), "")
