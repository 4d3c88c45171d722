"""The lineage of a run on disk: a part of run.json."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from newfound.category import Category
from newfound.errors import DamagedFileError
from newfound.files import check_fields, check_items
from newfound.lineage import Lineage, Retired, following_number

RETIRED: dict[str, type | tuple[type, ...]] = {
    "id": str,
    "name": str,
    "status": str,
    "into": list,
    "texts": list,
}


def lineage_record(lineage: Lineage) -> dict[str, Any]:
    """Return a lineage as a JSON object."""
    return asdict(lineage)


def lineage_from(recorded: Any, categories: Sequence[Category], where: str) -> Lineage:
    """Return the lineage in a JSON object; in files of earlier versions, it begins with the run."""
    first = following_number(category.id for category in categories)
    if recorded is None:
        return Lineage(next_number=first)
    check_fields(recorded, {"run": int, "next_number": int, "retired": list}, where)
    for entry in recorded["retired"]:
        check_fields(entry, RETIRED, where)
        check_items([*entry["into"], *entry["texts"]], str, where)
    retired = tuple(
        Retired(
            entry["id"], entry["name"], entry["status"], tuple(entry["into"]), tuple(entry["texts"])
        )
        for entry in recorded["retired"]
    )
    taken = max(first, following_number(each.id for each in retired))
    if recorded["run"] < 1 or recorded["next_number"] < taken:
        raise DamagedFileError(f"{where}: an id would be given twice")
    return Lineage(recorded["run"], recorded["next_number"], retired)
