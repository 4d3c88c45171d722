"""Read one sheet of an Excel workbook (.xlsx, .xlsm) with openpyxl, which the extra `excel` has."""

import warnings
import zipfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from newfound.data.tables.cells import cell_text
from newfound.data.tables.textfile import reading
from newfound.errors import EmptyTableError, InputError, reason
from newfound.wording import suggestion

# Texts of a workbook are held in memory, and a small archive can unpack to a very large file.
MOST_BYTES = 1 << 30


@dataclass(frozen=True)
class Sheet:
    """A sheet that has been scanned once."""

    path: Path
    columns: list[str]
    rows: int
    notes: list[str]
    name: str
    faults: dict[int, str]  # by column: message on its first cell that cannot be read
    bad_rows: dict[int, str] | None = None  # None: the first bad row is an error

    @property
    def unfit(self) -> Collection[str]:
        """Columns with cells that cannot be read."""
        return {self.columns[place] for place in self.faults}

    def read(self, wanted: Sequence[str]) -> Iterator[tuple[str | None, ...]]:
        """Yield the wanted columns of every row."""
        places = [self.columns.index(name) for name in wanted]
        for place in places:
            if place in self.faults and self.bad_rows is None:
                raise InputError(self.faults[place])
        return self._read(places)

    def _read(self, places: list[int]) -> Iterator[tuple[str | None, ...]]:
        with _opened(self.path) as book:
            rows = _rows(book[self.name])
            next(rows)  # the header
            for number, row in enumerate(rows, start=1):
                cells = [row[place] if place < len(row) else None for place in places]
                if self.bad_rows is not None:
                    for at, cell in enumerate(cells):
                        if cell is not None and cell.data_type == "e":
                            column = self.columns[places[at]]
                            self.bad_rows[number] = _fault(self.path, number, cell, column)
                            cells[at] = None
                yield tuple([None if cell is None else _text(cell) for cell in cells])


@dataclass
class _Scan:
    """What a pass over a sheet finds; columns are counted from 0."""

    columns: list[str]
    rows: int = 0
    faults: dict[int, str] = field(default_factory=dict)
    formulas: dict[int, str] = field(default_factory=dict)  # cell of the first one
    filled: set[int] = field(default_factory=set)  # columns with a value below the header


def open_excel(path: Path, sheet: str | None, bad_rows: dict[int, str] | None = None) -> Sheet:
    """Scan a sheet once for its columns and errors.

    Parameters
    ----------
    path : Path
    sheet : str, optional
        Name of the sheet; by default the first one, with a note if there are several.
    bad_rows : dict of int to str, optional
        Receives the number of each row with an error in a wanted cell, with the reason, when it is
        read. Without it, the first one raises InputError.

    Returns
    -------
    Sheet

    Raises
    ------
    InputError
        If the file is not a workbook, or has no such sheet.
    """
    _check_archive(path)
    notes = []
    with _opened(path, formulas=True) as book:
        sheets = [each.title for each in book.worksheets]
        if not sheets:
            raise InputError(f"{path}: the workbook has no sheet with cells: give another one")
        if sheet is None:
            name = sheets[0]
            if len(sheets) > 1:
                listed = ", ".join(map(repr, sheets[1:11])) + (" ..." if len(sheets) > 11 else "")
                notes.append(
                    f"{path}: read the first sheet, {name!r}, and not {listed} "
                    "(choose with --sheet)"
                )
        elif sheet in sheets:
            name = sheet
        else:
            listed = ", ".join(map(repr, sheets))
            advice = suggestion(sheet, sheets, f"choose one of {listed}")
            raise InputError(f"{path}: there is no sheet {sheet!r}: {advice}")
        scanned = _scan(path, book[name])
    if scanned.formulas:
        formulas = scanned.formulas
        with _opened(path) as book:
            scanned = _scan(path, book[name])
        for place in sorted(set(formulas) - scanned.filled):
            scanned.faults[place] = (
                f"{path}, cell {formulas[place]}, column {scanned.columns[place]!r}: no formula "
                "has a computed value: open the workbook in a spreadsheet program and save it"
            )
    if not scanned.columns or scanned.rows == 0:
        raise EmptyTableError(
            f"{path}: the sheet {name!r} has no row below a header: give a table with rows"
        )
    return Sheet(path, scanned.columns, scanned.rows, notes, name, scanned.faults, bad_rows)


def _check_archive(path: Path) -> None:
    """Raise InputError for a file that is not a workbook, or is too large in memory."""
    with reading(path), path.open("rb") as handle:
        if handle.read(4) == b"\xd0\xcf\x11\xe0":
            raise InputError(
                f"{path}: this workbook has a password or the old format .xls: save it as .xlsx "
                "without a password"
            )
    try:
        with reading(path), zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(_damaged(path, error)) from error
    if size > MOST_BYTES:
        raise InputError(
            f"{path}: the workbook unpacks to {size / 2**30:.1f} GB, more than "
            f"{MOST_BYTES >> 30} GB: save the sheet as CSV"
        )


@contextmanager
def _opened(path: Path, *, formulas: bool = False) -> Iterator[Any]:
    """Open a workbook for reading row by row: computed values, or the formulas themselves."""
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise InputError(
            f"{path}: an Excel workbook is read by an extra: install newfound[excel], or save the "
            "sheet as CSV"
        ) from None
    try:
        with warnings.catch_warnings(), reading(path):
            warnings.simplefilter("ignore")  # on drop-down lists and other parts that are not read
            with closing(load_workbook(path, read_only=True, data_only=not formulas)) as book:
                yield book
    except InputError:
        raise
    except Exception as error:  # openpyxl raises what it happens to meet in a damaged file
        raise InputError(_damaged(path, error)) from error


def _damaged(path: Path, error: Exception) -> str:
    """Return the message on a file that is not a readable workbook."""
    return (
        f"{path}: this is not an Excel workbook, or it is damaged ({reason(error)}): save it again"
    )


def _rows(sheet: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the rows that are not blank, the header first."""
    sheet.reset_dimensions()  # some programs write wrong ones, which would cut columns off
    for row in sheet.iter_rows():
        if any(cell.value is not None for cell in row):
            yield row


def _scan(path: Path, sheet: Any) -> _Scan:
    """Read a sheet once."""
    rows = _rows(sheet)
    header = next(rows, ())
    columns = [(_text(cell) or "").strip() for cell in header]
    formulas = {place: cell.coordinate for place, cell in enumerate(header) if _is_formula(cell)}
    while columns and not columns[-1]:
        columns.pop()
    scanned = _Scan(columns, formulas=formulas)
    for row in rows:
        scanned.rows += 1
        for place, cell in enumerate(row[: len(columns)]):
            if cell.value is None:
                continue
            scanned.filled.add(place)
            if _is_formula(cell):
                scanned.formulas.setdefault(place, cell.coordinate)
            elif cell.data_type == "e" and place not in scanned.faults:
                scanned.faults[place] = _fault(path, scanned.rows, cell, columns[place])
    return scanned


def _fault(path: Path, row: int, cell: Any, column: str) -> str:
    """Return the message on a cell that holds an error."""
    return (
        f"{path}, row {row} (cell {cell.coordinate}), column {column!r}: the cell holds the error "
        f"{cell.value}: correct or empty it"
    )


def _is_formula(cell: Any) -> bool:
    """Return whether a cell holds a formula, not its value."""
    return bool(cell.data_type == "f")


def _text(cell: Any) -> str | None:
    """Return the value of a cell as a text."""
    from openpyxl.utils.escape import unescape

    value = cell_text(cell.value)
    # Line ends and control characters are stored as _x000D_ and the like.
    return unescape(value) if value is not None and "_x" in value else value
