"""Read the folder that `newfound discover` writes."""

import csv
import io
import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from newfound.data.tables.delimited import LONGEST_FIELD
from newfound.errors import InputError
from newfound.result import Category

FORMAT = 1
PRIVATE = range(0xE000, 0xF900)  # characters that no language has
COLUMNS = ("text", "label", "category", "kind", "probability", "predicted", "x", "y")


@dataclass(frozen=True)
class Run:
    """One run: every text with its place among the categories, and what was recorded on the way."""

    name: str  # what the commands on the page call the folder
    texts: list[str]
    category: np.ndarray  # [N] position in `categories` of the text's category
    predicted: np.ndarray  # [N] position of the model's own answer
    given: np.ndarray  # [N] bool: the user gave the label
    probability: np.ndarray  # [N] of the model's own answer
    xy: np.ndarray  # [N, 2] place on the map
    categories: list[Category]
    info: dict[str, Any]  # run.json
    history: list[dict[str, Any]]

    @property
    def pile(self) -> np.ndarray:
        """How many texts without a label each category got, [K]."""
        return np.bincount(self.category[~self.given], minlength=len(self.categories))

    @property
    def known(self) -> np.ndarray:
        """Which categories are known, bool [K]."""
        return np.array([c.kind == "known" for c in self.categories], dtype=bool)


def read_run(folder: Path, name: str | None = None) -> Run:
    """Read and check the files of a run; a file that is missing or damaged is named."""
    if not folder.is_dir():
        raise InputError(
            f"{folder} is not a folder; give the folder that `newfound discover` wrote"
        )
    info = _read_json(folder / "run.json", dict)
    if info.get("format") != FORMAT:
        raise InputError(
            f"{folder / 'run.json'} has format {info.get('format')!r} and this version of newfound "
            f"reads {FORMAT}; run `newfound discover` again or use the version that wrote it"
        )
    categories = [
        _category(row, folder / "categories.json", position)
        for position, row in enumerate(_read_json(folder / "categories.json", list))
    ]
    path, table = _read_assignments(folder)
    positions = {(c.kind, c.name): position for position, c in enumerate(categories)}
    names = {c.name: position for position, c in enumerate(categories)}
    kinds, assigned = table["kind"], table["category"]
    category = _positions(positions, list(zip(kinds, assigned, strict=True)), path)
    # A name that both a known and a novel category carry means, for a model's answer that agrees
    # with the assignment, the same one of the two.
    predicted = [
        own if name == mine else names.get(name, own)
        for name, mine, own in zip(table["predicted"], assigned, category, strict=True)
    ]
    return Run(
        name=folder.resolve().name if name is None else name,
        texts=table["text"],
        category=np.array(category, dtype=np.int64),
        predicted=np.array(predicted, dtype=np.int64),
        given=np.array([label != "" for label in table["label"]], dtype=bool),
        probability=_numbers(table["probability"]),
        xy=np.stack([_numbers(table["x"]), _numbers(table["y"])], axis=1),
        categories=categories,
        info=info,
        history=_read_history(folder / "history.jsonl"),
    )


def _positions(
    positions: dict[tuple[str, str], int], keys: list[tuple[str, str]], path: Path
) -> list[int]:
    try:
        return [positions[key] for key in keys]
    except KeyError:
        row, (kind, name) = next(
            (row, key) for row, key in enumerate(keys, start=1) if key not in positions
        )
        raise InputError(
            f"{path}, row {row}: the {kind} category {name[:80]!r} is not in categories.json; "
            "the two files are of different runs, so run `newfound discover` again"
        ) from None


def _numbers(column: list[str]) -> np.ndarray:
    return np.array([_number(cell) for cell in column], dtype=np.float64)


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("nan")


def _category(row: Any, path: Path, position: int) -> Category:
    names = [field.name for field in fields(Category)]
    missing = [name for name in names if not isinstance(row, dict) or name not in row]
    if missing:
        raise InputError(
            f"{path}, entry {position + 1}: {missing[0]!r} is missing; "
            "run `newfound discover` again"
        )
    values = {name: row[name] for name in names}
    for name in ("keywords", "examples", "border"):
        values[name] = tuple(values[name])
    # JSON has no NaN, so a careful writer leaves null where a number is not known.
    for name in ("share", "confidence", "nearest_distance"):
        values[name] = float("nan") if values[name] is None else values[name]
    return Category(**values)


def _read_assignments(folder: Path) -> tuple[Path, dict[str, list[str]]]:
    """The table of the texts, column by column; an empty cell is ""."""
    parquet = folder / "assignments.parquet"
    path = parquet if parquet.exists() else folder / "assignments.csv"
    if not path.exists():
        raise InputError(
            f"{folder} has no assignments.csv; give the folder that `newfound discover` wrote"
        )
    try:
        table = _read_parquet(path) if path == parquet else _read_csv(path)
    except (ValueError, OSError, csv.Error) as error:
        raise InputError(
            f"{path} cannot be read ({error}); run `newfound discover` again"
        ) from error
    missing = [name for name in COLUMNS if name not in table]
    if missing:
        raise InputError(f"{path} has no column {missing[0]!r}; run `newfound discover` again")
    return path, table


def _read_parquet(path: Path) -> dict[str, list[str]]:
    import pandas as pd

    table = pd.read_parquet(path).astype(object)
    filled = table.where(table.notna(), "").astype(str)
    return {str(name): filled[name].tolist() for name in filled}


def _read_csv(path: Path) -> dict[str, list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        content = file.read()
    if not content.strip():
        raise ValueError("it is empty")
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_FIELD))
    # A lone carriage return inside a text is no line end, though it may stand there unquoted.
    stand_in = "\r"
    if not content.partition("\n")[0].endswith("\r"):
        stand_in = next(letter for letter in map(chr, PRIVATE) if letter not in content)
        content = content.replace("\r", stand_in)
    header, *rows = csv.reader(io.StringIO(content, newline=""), strict=True)
    for number, row in enumerate(rows, start=1):
        if len(row) != len(header):
            raise ValueError(f"row {number} has {len(row)} cells, not {len(header)}")
    columns = zip(*rows, strict=True) if rows else [()] * len(header)
    return {
        name: [cell.replace(stand_in, "\r") for cell in column]
        for name, column in zip(header, columns, strict=True)
    }


def _read_json(path: Path, kind: type) -> Any:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"{path.parent} has no {path.name}; give the folder that `newfound discover` wrote"
        ) from None
    except (ValueError, OSError) as error:
        raise InputError(
            f"{path} cannot be read ({error}); run `newfound discover` again"
        ) from error
    if not isinstance(value, kind):
        raise InputError(f"{path} is not a JSON {kind.__name__}; run `newfound discover` again")
    return value


def _read_history(path: Path) -> list[dict[str, Any]]:
    """Read the lines that are whole: a run that was stopped may have left half a line."""
    if not path.exists():
        return []
    rows = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            rows.append(row)
    return rows
