"""What commands write into the folders of runs and models: nothing else in them is ever deleted."""

import os
from pathlib import Path

from newfound.errors import DamagedFileError
from newfound.files import is_beside
from newfound.files.leftovers import is_temporary_file
from newfound.files.manifest import MANIFEST, read_manifest
from newfound.storage.assignments import TABLES

HISTORY = "history.jsonl"
DECISIONS = "decisions.jsonl"  # written by `newfound.decisions`; not a part of the immutable run
READ_BACK = ("run.json", "categories.json", HISTORY)  # listed in the manifest, with the table
RUN_FILES = {
    *READ_BACK,
    *TABLES,
    DECISIONS,
    MANIFEST,
    "categories.csv",
    "check.json",
    "model",
    "report.html",
}
CONVERTED = ("int8", "static")  # folders in a model that `newfound predict` adds
SYSTEM = (".DS_Store", "Thumbs.db", "desktop.ini")  # written by file browsers


def foreign_to_run(folder: Path) -> str | None:
    """Return the path in a run folder of something that no command writes there, None without."""
    found = _foreign(folder, RUN_FILES, folder.resolve().name, "model")
    if found is not None:
        return found
    found = foreign_to_model(folder / "model")
    return None if found is None else f"model/{found}"


def foreign_to_model(folder: Path) -> str | None:
    """Return the same of a model folder; None where it has no manifest to compare with."""
    try:
        listed = read_manifest(folder) if folder.is_dir() else None
    except (OSError, DamagedFileError):
        return None
    if listed is None:
        return None
    return _foreign(folder, {*listed, *CONVERTED, MANIFEST}, folder.name, *CONVERTED)


def _foreign(folder: Path, ours: set[str], *names: str) -> str | None:
    """Return the first entry that is neither ours nor kept by this package for one of the names."""
    for entry in sorted(os.listdir(folder)):
        kept = is_temporary_file(entry) or any(is_beside(entry, name) for name in names)
        if entry not in ours and entry not in SYSTEM and not kept:
            return entry
    return None
