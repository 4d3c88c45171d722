"""Read tables into one corpus."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from newfound.data.corpus import Corpus, clean_text
from newfound.data.tables.columns import Columns, find_columns, join_cells, missing_column
from newfound.data.tables.others import with_others
from newfound.data.tables.sources import Source, open_sources
from newfound.data.times import check_times
from newfound.errors import InputError
from newfound.wording import plural

MOST_NOTES = 3  # of the same kind on different tables; more are given as one
SOME_IDS = "not every table has an id column: the ids are row numbers"


@dataclass(frozen=True)
class TableRead:
    """The result of reading tables.

    Attributes
    ----------
    corpus : Corpus
    notes : list of str
        What the user should know about how the tables were read.
    columns : list of Columns
        Columns read from each table.
    paths : list of Path
        Each table; a folder or a pattern may stand for several.
    numbers : list of int
        Row number of each text over all tables, from 1; rows without text are counted.
    sizes : list of int
        Rows of each table.
    """

    corpus: Corpus
    notes: list[str]
    columns: list[Columns]
    paths: list[Path]
    numbers: list[int]
    sizes: list[int]


@dataclass
class _Rows:
    """Rows read so far, from all tables."""

    texts: list[str]
    labels: list[str | None]
    ids: list[str | None]
    columns: dict[str, list[str]]  # columns that outputs keep
    numbers: list[int]  # row numbers over all tables, skipped rows included
    places: list[tuple[Path, int]]  # path of each table, and number of rows before it


def read_tables(
    paths: Sequence[Path],
    *,
    text_column: str | Sequence[str] | None = None,
    label_column: str | None = None,
    id_column: str | None = None,
    time_column: str | None = None,
    raw_cells: bool = False,
    sheet: str | None = None,
    query: str | None = None,
) -> TableRead:
    """Read tables into one corpus.

    Rows without text are skipped. An empty label means unlabelled. Columns without a role are kept
    as they are.

    Parameters
    ----------
    paths : sequence of Path
        Files, folders, or patterns such as ``tickets/*.csv``.
    text_column : str or sequence of str, optional
        Names of text columns; several are joined, each on its own line.
    label_column, id_column : str, optional
        Names of columns; by default they are guessed for each table. Without an id column the ids
        are row numbers over all tables.
    time_column : str, optional
        Name of the column with the date of each text.
    raw_cells : bool, default False
        Whether apostrophes that protect formulas in CSV and TSV files are kept.
    sheet : str, optional
        Sheet of the Excel workbooks; the first one by default.
    query : str, optional
        Query on the databases.

    Returns
    -------
    TableRead

    Raises
    ------
    InputError
        If a table cannot be read, a column is missing or ambiguous, or there is no text.
    """
    sources = open_sources(
        [Path(path) for path in paths], raw_cells=raw_cells, sheet=sheet, query=query
    )
    columns = [
        find_columns(
            source.path, source.columns, text=text_column, label=label_column, id=id_column
        )
        for source in sources
    ]
    columns, more = with_others(sources, columns, time_column)
    if label_column is not None and all(chosen.label is None for chosen in columns):
        raise InputError(
            missing_column(sources[0].path, label_column, "--label-column", sources[0].columns)
        )
    tables = list(zip(sources, columns, strict=True))
    notes = [*table_notes(tables, label_column, with_label=True), *more]
    rows = _Rows([], [], [], {}, [], [])
    before = 0
    for source, chosen in tables:
        rows.places.append((source.path, before))
        notes += _read_one(source, chosen, before, rows)
        before += source.rows
    if not rows.texts:
        where = ", ".join(f"{chosen.described} of {source.path}" for source, chosen in tables)
        raise InputError(
            f"there is no text in {where}: every row is empty; choose another column "
            "with --text-column"
        )
    ids = _ids(rows, columns, id_column, notes)
    files, sizes = [source.path for source in sources], [source.rows for source in sources]
    corpus = Corpus(rows.texts, rows.labels, ids, rows.columns, time_column=time_column)
    dated = [str(s.path) for s, chosen in tables if time_column in chosen.others]
    notes += check_times(corpus, ", ".join(dated))
    return TableRead(corpus, notes, columns, files, rows.numbers, sizes)


def table_notes(
    tables: Sequence[tuple[Source, Columns]],
    label_column: str | None = None,
    *,
    with_label: bool = False,
) -> list[str]:
    """Return the notes on how tables are read; a note that many tables share is given once."""
    shared: dict[str, list[str]] = {}  # by note without the path
    for source, chosen in tables:
        found = [*source.notes, *filter(None, [chosen.note(source.path)])]
        if with_label and chosen.label is None:
            found.append(_unlabelled_note(source.path, label_column))
        for note in found:
            shared.setdefault(note.removeprefix(str(source.path)), []).append(note)
    notes: list[str] = []
    for same in shared.values():
        if len(same) <= MOST_NOTES:
            notes += same
        else:
            notes.append(f"{same[0]} (and in {plural(len(same) - 1, 'more table')})")
    return notes


def _unlabelled_note(path: Path, label_column: str | None) -> str:
    """Return the note on a table without labels."""
    if label_column is not None:
        return f"{path}: there is no column {label_column!r}: its texts are unlabelled"
    return (
        f"{path}: no label column was found: its texts are unlabelled "
        "(choose one with --label-column)"
    )


def _read_one(source: Source, chosen: Columns, before: int, rows: _Rows) -> list[str]:
    """Add the rows of one table to `rows`; return notes on skipped and changed ones."""
    has_label, has_id = chosen.label is not None, chosen.id is not None
    joined = len(chosen.texts)
    kept = [rows.columns.setdefault(name, [""] * len(rows.texts)) for name in chosen.kept]
    same: dict[str, str] = {}  # one string object per label or other cell saves memory
    empty = first_empty = cleaned = first_cleaned = 0
    for row, cells in enumerate(source.read(chosen.wanted), start=1):
        given = (cells[0] or "") if joined == 1 else join_cells(cells[:joined])
        text = clean_text(given)
        if text != given:
            cleaned += 1
            first_cleaned = first_cleaned or row
        if not text or text.isspace():
            empty += 1
            first_empty = first_empty or row
            continue
        label = clean_text(cells[joined] or "") if has_label else ""
        rows.texts.append(text)
        rows.labels.append(same.setdefault(label, label) if label.strip() else None)
        rows.ids.append(cells[joined + has_label] if has_id else None)
        rows.numbers.append(before + row)
        for column, cell in zip(kept, chosen.kept_cells(cells), strict=True):
            value = clean_text(cell or "")
            column.append(same.setdefault(value, value))
    for column in rows.columns.values():  # of other tables
        column += [""] * (len(rows.texts) - len(column))
    notes = []
    if cleaned:
        notes.append(cleaned_note(source.path, chosen.described, cleaned, first_cleaned))
    if empty:
        notes.append(
            f"{source.path}: {plural(empty, 'row has', 'rows have')} no text in "
            f"{chosen.described} (first: row {first_empty}): skipped"
        )
    return notes


def cleaned_note(path: Path, columns: str, count: int, first: int) -> str:
    """Return the note on texts with replaced characters."""
    return (
        f"{path}: {plural(count, 'text', 'texts')} in {columns} "
        f"{'contains' if count == 1 else 'contain'} NUL or invalid characters (first: row {first})"
        ": NUL is read as a space, an invalid character as '\ufffd'"
    )


def _ids(
    rows: _Rows, columns: Sequence[Columns], id_column: str | None, notes: list[str]
) -> list[str]:
    """Return the ids of the tables if they are usable, else row numbers."""
    numbers = [str(number) for number in rows.numbers]
    if all(chosen.id is None for chosen in columns):
        return numbers
    if any(chosen.id is None for chosen in columns):
        notes.append(SOME_IDS)
        return numbers
    seen: dict[str, int] = {}
    fault = ""
    for name, number in zip(rows.ids, rows.numbers, strict=True):
        if name is None or not name.strip():
            fault = f"{_place(rows, number)}: the id is empty"
            break
        earlier = seen.setdefault(name, number)
        if earlier != number:
            fault = f"{_place(rows, earlier)} and {_place(rows, number)}: both have the id {name!r}"
            break
    if not fault:
        return [clean_text(name) for name in rows.ids if name is not None]
    if id_column is not None:
        raise InputError(
            f"{fault} in column {id_column!r}: give every row its own id, or omit "
            "--id-column to number the rows"
        )
    notes.append(f"{fault}: the guessed id column is not used, the ids are row numbers")
    return numbers


def _place(rows: _Rows, number: int) -> str:
    """Return the table and the row in it of a row number over all tables."""
    path, before = next(place for place in reversed(rows.places) if place[1] < number)
    return f"{path}, row {number - before}"
