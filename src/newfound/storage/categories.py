"""The categories of a run on disk: categories.json, and categories.csv for spreadsheets."""

from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from newfound.category import EVENTS, STATUSES, Category, Event
from newfound.data.tables import TableWriter
from newfound.errors import DamagedFileError
from newfound.files import check_fields, check_items, read_json, write_json
from newfound.lineage import id_of_number, number_of_id

LISTS = ("keywords", "examples", "border")
COUNTS = ("size", "labelled")
NUMBERS = ("share", "confidence", "nearest_distance", "distance")
LATER = ("fit", "fits_nowhere")  # missing in files of earlier versions
NUMBER = (int, float, type(None))  # JSON has null for NaN and infinity
KINDS: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(COUNTS, int),
    **dict.fromkeys(NUMBERS, NUMBER),
    **dict.fromkeys(LISTS, list),
    "id": (int, str),  # in earlier versions, ids were positions, from 0
    "nearest": (int, str, type(None)),
    "name": str,
    "kind": str,
}
EVENT: dict[str, type | tuple[type, ...]] = {
    "event": str,
    "run": int,
    "by": str,
    "time": (str, type(None)),
    "of": list,
}


def write_categories(
    categories: Sequence[Category], folder: Path, *, raw_cells: bool = False
) -> None:
    """Write categories.csv and categories.json."""
    rows = [asdict(category) for category in categories]
    for row in rows:
        row.update({name: " | ".join(row[name]) for name in LISTS})
        row["groups"] = " | ".join(row["groups"])
        row["volume"] = " | ".join(f"{period}: {count}" for period, count in row["volume"])
    for row, category in zip(rows, categories, strict=True):
        row["history"] = " | ".join(map(str, category.history))
    names = [field.name for field in fields(Category)]
    kinds: dict[str, type] = dict.fromkeys(names, str)
    kinds |= dict.fromkeys((*NUMBERS, "fit"), float)
    kinds |= dict.fromkeys((*COUNTS, "fits_nowhere"), int)
    with TableWriter(folder / "categories.csv", kinds, raw_cells=raw_cells) as writer:
        writer.write({name: [row[name] for row in rows] for name in names})
    write_json(folder / "categories.json", [asdict(category) for category in categories])


def read_categories(path: Path) -> tuple[Category, ...]:
    """Read categories.json; raise DamagedFileError if it is not valid."""
    return categories_from(read_json(path, list), path.name)


def categories_from(entries: list[Any], where: str) -> tuple[Category, ...]:
    """Return the categories in a JSON list, or raise DamagedFileError about file `where`."""
    found = tuple(_category(entry, f"{where}, entry {i}") for i, entry in enumerate(entries, 1))
    if len({category.id for category in found}) < len(found):
        raise DamagedFileError(f"{where}: two categories have the same id")
    return found


def _category(entry: Any, where: str) -> Category:
    check_fields(entry, KINDS, where)
    later = {name: entry.get(name) for name in LATER}
    check_fields(later, dict.fromkeys(LATER, NUMBER), where)
    if entry["kind"] not in ("known", "novel"):
        raise DamagedFileError(f"{where}: 'kind' cannot be {entry['kind'][:40]!r}")
    values = {name: entry[name] for name in KINDS}
    values["id"] = _id(entry["id"], where)
    values["nearest"] = None if entry["nearest"] in (None, -1) else _id(entry["nearest"], where)
    # Missing in files of earlier versions, which had no decisions.
    values["status"] = entry.get("status", "known" if entry["kind"] == "known" else "proposed")
    if values["status"] not in STATUSES:
        raise DamagedFileError(f"{where}: 'status' cannot be {str(values['status'])[:40]!r}")
    values["history"] = _history(entry.get("history", []), f"{where}, history")
    for name in LISTS:
        check_items(values[name], str, f"{where}, {name}")
        values[name] = tuple(values[name])
    for name in ("share", "confidence", "nearest_distance"):
        values[name] = float("nan") if values[name] is None else values[name]
    groups = entry.get("groups", [])
    check_fields({"groups": groups}, {"groups": list}, where)
    check_items(groups, str, f"{where}, groups")
    volume = _volume(entry.get("volume", []), where)
    return Category(**values, **later, volume=volume, groups=tuple(groups))


def _volume(entries: Any, where: str) -> tuple[tuple[str, int], ...]:
    """Return the number of texts per period."""
    check_fields({"volume": entries}, {"volume": list}, where)
    check_items(entries, list, f"{where}, volume")
    for entry in entries:
        if len(entry) != 2 or not isinstance(entry[0], str) or not isinstance(entry[1], int):
            raise DamagedFileError(f"{where}, volume: an entry is not a period and a number")
    return tuple((period, number) for period, number in entries)


def _id(value: int | str, where: str) -> str:
    """Return the id of a category; a position, as in earlier versions, becomes an id."""
    id_ = id_of_number(value + 1) if isinstance(value, int) else value
    if number_of_id(id_) is None:
        raise DamagedFileError(f"{where}: an id cannot be {str(value)[:40]!r}")
    return id_


def _history(entries: Any, where: str) -> tuple[Event, ...]:
    """Return the events in a JSON list."""
    check_items([entries], list, where)
    for entry in entries:
        check_fields(entry, EVENT, where)
        check_items(entry["of"], str, where)
        if entry["event"] not in EVENTS:
            raise DamagedFileError(f"{where}: 'event' cannot be {entry['event'][:40]!r}")
    return tuple(
        Event(**{**{name: entry[name] for name in EVENT}, "of": tuple(entry["of"])})
        for entry in entries
    )
