"""The assignments of a run on disk: assignments.csv or assignments.parquet."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from newfound.category import Category
from newfound.data.corpus import Corpus
from newfound.data.tables import TableWriter
from newfound.data.tables.columns import free_names
from newfound.data.tables.formulas import unprotected
from newfound.errors import InputError
from newfound.result import Result
from newfound.storage.formats import AGAIN

PRIVATE = range(0xE000, 0xF900)  # private-use characters
TABLES = ("assignments.parquet", "assignments.csv")  # names in a run folder, first match first
COLUMNS = ("text", "label", "category", "kind", "predicted", "probability", "x", "y")
# All columns that a run may have; others are columns of the user's table.
OWN = {
    *COLUMNS,
    "id",
    "category_id",
    "best_known",
    "best_known_probability",
    "fit",
    "fits_nowhere",
    "reviewed",
}
NUMBERS = ("probability", "best_known_probability", "fit", "x", "y")
MARKS = {"yes": True, "no": False}  # values of the columns fits_nowhere and reviewed
ROWS = 65_536  # written at a time, which limits memory


@dataclass(frozen=True)
class Assignments:
    """The columns of the table, as a `Result` stores them."""

    corpus: Corpus
    assigned: np.ndarray  # int64 [N]
    predicted: np.ndarray  # int64 [N]
    probability: np.ndarray  # float64 [N]
    positions: np.ndarray  # float64 [N, 2]
    # None if the table has no such column, as in runs of earlier versions.
    best_known: np.ndarray | None  # int64 [N]
    best_known_probability: np.ndarray | None  # float64 [N]
    fit: np.ndarray | None  # float64 [N]
    fits_nowhere: np.ndarray | None  # bool [N]; also None without outside and false_alarms
    reviewed: np.ndarray | None  # bool [N]; also None if no person decided on a text


def write_assignments(result: Result, path: Path, *, raw_cells: bool = False) -> None:
    """Write one row per text, in the format given by the file extension."""
    own = result.corpus.columns
    columns = {
        "id": result.corpus.ids,
        "text": result.corpus.texts,
        "label": result.corpus.labels,
        "category": result.labels,
        "category_id": result.ids[result.assigned],
        "kind": result.kinds[result.assigned],
        "probability": result.probability,
        "predicted": result.names[result.predicted],
        **_optional_columns(result),
        "x": result.map_positions[:, 0],
        "y": result.map_positions[:, 1],
        **dict(zip(own_names(result.corpus), own.values(), strict=True)),
    }
    kinds = {name: float if name in NUMBERS else str for name in columns}
    with TableWriter(path, kinds, raw_cells=raw_cells) as writer:
        for start in range(0, max(1, len(result.corpus)), ROWS):
            part = slice(start, start + ROWS)
            writer.write({name: column[part] for name, column in columns.items()})


def own_names(corpus: Corpus) -> list[str]:
    """Return the names under which the table holds the columns of the user."""
    return free_names(list(corpus.columns), OWN)


def _optional_columns(result: Result) -> dict[str, Sequence[object] | np.ndarray]:
    """Return the columns that a Result from a run of an earlier version may lack."""
    columns: dict[str, Sequence[object] | np.ndarray] = {}
    if result.best_known is not None and result.best_known_probability is not None:
        columns["best_known"] = [result.names[i] if i >= 0 else None for i in result.best_known]
        columns["best_known_probability"] = result.best_known_probability
    if result.fit is not None:
        columns["fit"] = result.fit
    if result.fits_nowhere is not None:
        columns["fits_nowhere"] = np.where(result.fits_nowhere, "yes", "no")
    if result.reviewed is not None:
        columns["reviewed"] = np.where(result.reviewed, "yes", "no")
    return columns


def has_assignments(folder: Path) -> bool:
    """Return whether a run folder has a table of assignments."""
    return any((folder / name).is_file() for name in TABLES)


def read_assignments(
    content: bytes,
    path: Path,
    categories: Sequence[Category],
    *,
    raw_cells: bool = False,
    time_column: str | None = None,
) -> Assignments:
    """Read and check the content of the table at `path`; errors name the row."""
    table = _read_columns(content, path)
    if path.suffix == ".csv" and not raw_cells:
        table = {
            unprotected(name): list(map(unprotected, column)) for name, column in table.items()
        }
    by_name = {c.name: position for position, c in enumerate(categories)}
    assigned = _assigned(table, path, categories)
    # If a known and a novel category have the same name, a prediction with that name means the
    # assigned one of the two.
    predicted = [
        own if name == mine else by_name.get(name, own)
        for name, mine, own in zip(table["predicted"], table["category"], assigned, strict=True)
    ]
    texts = table["text"]
    return Assignments(
        corpus=Corpus(
            texts=texts,
            labels=[label or None for label in table["label"]],
            ids=table.get("id", [str(number) for number in range(1, len(texts) + 1)]),
            columns={name: column for name, column in table.items() if name not in OWN},
            time_column=time_column if time_column in table else None,
        ),
        assigned=np.array(assigned, np.int64),
        predicted=np.array(predicted, np.int64),
        probability=_numbers(table["probability"]),
        positions=np.stack([_numbers(table["x"]), _numbers(table["y"])], axis=1),
        best_known=_best_known(table.get("best_known"), categories),
        best_known_probability=_optional_numbers(table.get("best_known_probability")),
        fit=_optional_numbers(table.get("fit")),
        fits_nowhere=_marks(table.get("fits_nowhere"), path, "fits_nowhere"),
        reviewed=_marks(table.get("reviewed"), path, "reviewed"),
    )


def _assigned(table: dict[str, list[str]], path: Path, categories: Sequence[Category]) -> list[int]:
    """Return the position of each text's category, by id or, in earlier versions, by name."""
    by_kind = {(c.kind, c.name): position for position, c in enumerate(categories)}
    by_id = {c.id: position for position, c in enumerate(categories)}
    keys = list(zip(table["kind"], table["category"], strict=True))
    found = [by_kind.get(key) for key in keys]
    if "category_id" in table:
        found = [by_id.get(id_) for id_ in table["category_id"]]
    for row, (key, position) in enumerate(zip(keys, found, strict=True), start=1):
        if position is None:
            raise InputError(
                f"{path}, row {row}: the {key[0]} category {key[1][:80]!r} is not in "
                f"categories.json; the files belong to different runs, so {AGAIN}"
            )
    return [position for position in found if position is not None]


def _best_known(column: list[str] | None, categories: Sequence[Category]) -> np.ndarray | None:
    """Return the indices of the named known categories, -1 if the cell is empty."""
    if column is None:
        return None
    places = {c.name: at for at, c in enumerate(categories) if c.kind == "known"}
    return np.array([places.get(name, -1) for name in column], np.int64)


def _marks(column: list[str] | None, path: Path, name: str) -> np.ndarray | None:
    """Return where a column says yes, or None if it is missing."""
    if column is None:
        return None
    for row, cell in enumerate(column, start=1):
        if cell not in MARKS:
            raise InputError(
                f"{path}, row {row}: {name} cannot be {cell[:40]!r}, only yes or no; {AGAIN}"
            )
    return np.array([MARKS[cell] for cell in column], bool)


def _optional_numbers(column: list[str] | None) -> np.ndarray | None:
    return None if column is None else _numbers(column)


def _read_columns(content: bytes, path: Path) -> dict[str, list[str]]:
    """Return the columns by name; an empty cell is an empty string."""
    try:
        table = _read_parquet(content) if path.suffix == ".parquet" else _read_csv(content)
    except (ValueError, OSError, csv.Error) as error:  # ValueError: not UTF-8, or not Parquet
        raise InputError(f"{path} cannot be read ({error}); {AGAIN}") from error
    missing = [name for name in COLUMNS if name not in table]
    if missing:
        raise InputError(f"{path} has no column {missing[0]!r}; {AGAIN}")
    return table


def _read_parquet(content: bytes) -> dict[str, list[str]]:
    import pandas as pd

    table = pd.read_parquet(io.BytesIO(content)).astype(object)
    filled = table.where(table.notna(), "").astype(str)
    return {str(name): filled[name].tolist() for name in filled}


def _read_csv(encoded: bytes) -> dict[str, list[str]]:
    content = encoded.decode("utf-8")
    if not content.strip():
        raise ValueError("it is empty")
    # An unquoted carriage return inside a text does not end a row.
    stand_in = "\r"
    if not content.partition("\n")[0].endswith("\r"):
        stand_in = next(letter for letter in map(chr, PRIVATE) if letter not in content)
        content = content.replace("\r", stand_in)
    limit = csv.field_size_limit(len(content) + 1)  # a text may be as long as it likes
    try:
        header, *rows = csv.reader(io.StringIO(content, newline=""), strict=True)
    finally:
        csv.field_size_limit(limit)
    for number, row in enumerate(rows, start=1):
        if len(row) != len(header):
            raise ValueError(f"row {number} has {len(row)} cells, not {len(header)}")
    columns = zip(*rows, strict=True) if rows else [()] * len(header)
    return {
        name: [cell.replace(stand_in, "\r") for cell in column]
        for name, column in zip(header, columns, strict=True)
    }


def _numbers(column: list[str]) -> np.ndarray:
    return np.array([_number(cell) for cell in column], dtype=np.float64)


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("nan")
