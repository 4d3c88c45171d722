"""The run folder: a `Result` on disk, with one writer and one reader.

| file | contents |
|---|---|
| assignments.csv or .parquet | one row per text: category, probability, fit score, position |
| categories.csv, categories.json | one entry per category |
| history.jsonl | one line per epoch |
| run.json | configuration, versions, timings, notes, estimate, matching |
| model/ | the model (`newfound.storage.model_files`) |
| manifest.json | sha256 of the files that are read back |
| decisions.jsonl | what a person decided (`newfound.decisions`); it grows, so it is not listed |
"""

import json
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from newfound.category import Category
from newfound.clustering.estimate import Estimate
from newfound.data.languages import Languages
from newfound.errors import DamagedFileError, InputError
from newfound.files import (
    CheckedFolder,
    check_fields,
    check_items,
    is_free,
    read_steadily,
    without_nan,
    write_folder,
    write_json,
    write_manifest,
    write_text,
)
from newfound.result import Result
from newfound.storage.assignments import TABLES, own_names, read_assignments, write_assignments
from newfound.storage.categories import categories_from, write_categories
from newfound.storage.contents import DECISIONS, HISTORY, READ_BACK, foreign_to_run
from newfound.storage.formats import MODEL_MANIFEST, RUN_FORMAT, damage_reported, open_run
from newfound.storage.lineage import lineage_from, lineage_record
from newfound.versions import __version__

NONE = type(None)
NUMBER = (int, float, NONE)  # JSON has null for NaN and infinity
# The fields of run.json that are read.
RECORDS: dict[str, type | tuple[type, ...]] = {
    "settings": dict,
    "device": str,
    "seconds": dict,
    "notes": list,
    "versions": dict,
    "estimate": (dict, NONE),
    "matching": (dict, NONE),
    "scores": (dict, NONE),
    "command": (str, NONE),
}


def check_run_folder(folder: Path, force: bool) -> None:
    """Raise InputError if a folder must not be replaced."""
    try:
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is a file; give a folder for the run")
        if not folder.exists() or is_free(folder):
            return
    except OSError as error:
        raise InputError(
            f"cannot write {folder}: {error.strerror or error}; choose another place"
        ) from error
    if not (folder / "run.json").is_file():
        raise InputError(
            f"{folder} exists and is not a run folder, so it is not replaced; choose another name"
        )
    if not force:
        raise InputError(f"the run {folder} exists; replace it with --force or choose another name")
    decisions = folder / DECISIONS
    if decisions.is_file() and decisions.stat().st_size:
        raise InputError(
            f"the run {folder} has decisions of a person ({DECISIONS}), which would be lost; "
            "choose another name, or move that file away"
        )
    foreign = foreign_to_run(folder)
    if foreign is not None:
        raise InputError(
            f"the run {folder} has a file that is not of a run ({foreign}), which would be "
            "deleted; move it away or choose another name"
        )


def new_run(folder: Path, force: bool) -> AbstractContextManager[Path]:
    """Return a context manager whose empty folder becomes `folder` if the block succeeds.

    The folder is replaced in one step. What is there at the end is checked again: if it must not be
    replaced, the new run gets another name. A second process that writes the same run is refused.

    Parameters
    ----------
    folder : Path
        A new or empty folder, or a run folder.
    force : bool
        Whether a run folder may be replaced.

    Returns
    -------
    context manager
        It yields the path of an empty folder.
    """
    check_run_folder(folder, force)
    return write_folder(folder, "run.json", lambda found: check_run_folder(found, force))


def write_run(
    result: Result,
    folder: Path,
    *,
    table_format: str = "csv",
    model: bool = True,
    raw_cells: bool = False,
) -> None:
    """Write a result into an empty folder.

    Parameters
    ----------
    result : Result
        Returned by `newfound.pipeline.discover`.
    folder : Path
        An existing empty folder, such as the one from `new_run`.
    table_format : {"csv", "parquet"}, default "csv"
        Format of the table of texts.
    model : bool, default True
        Whether to write the model. Without it, the run can be reported and exported, but cannot
        predict.
    raw_cells : bool, default False
        Whether CSV files hold texts as they are, also those that a spreadsheet would run as
        formulas (see `newfound.data.tables.formulas`).
    """
    table = folder / f"assignments.{table_format}"
    write_assignments(result, table, raw_cells=raw_cells)
    write_categories(result.categories, folder, raw_cells=raw_cells)
    lines = [json.dumps(without_nan(line)) for line in result.history]
    write_text(folder / HISTORY, "".join(line + "\n" for line in lines))
    if model and result.model is not None:
        from newfound.storage.model_files import save_model  # imports torch

        save_model(result.model, folder / "model")
    # Written last, because a folder with a run.json is a complete run.
    write_json(folder / "run.json", {**_records(result), "raw_cells": raw_cells})
    names = [*READ_BACK, f"assignments.{table_format}"]
    if (folder / MODEL_MANIFEST).is_file():
        names.append(MODEL_MANIFEST)
    write_manifest(folder, names)


def _records(result: Result) -> dict[str, Any]:
    """Return the content of run.json: everything needed to understand and repeat the run."""
    known = int(result.is_known.sum())
    return {
        "format": RUN_FORMAT,
        "newfound": result.versions.get("newfound", __version__),
        "command": result.command,
        "settings": dict(result.config),
        "versions": dict(result.versions),
        "environment": dict(result.environment),
        "seed": result.config.get("seed"),
        "device": result.device,
        "seconds": {"total": round(sum(result.seconds.values()), 3), **result.seconds},
        "notes": list(result.notes),
        "texts": len(result.corpus),
        "labelled": int(result.labelled.sum()),
        "categories": {
            "known": known,
            "novel": len(result.categories) - known,
            "total": len(result.categories),
            "given": result.config.get("n_categories") != "auto",
        },
        "estimate": result.estimate.to_dict() if result.estimate else None,
        "matching": None
        if result.matching is None
        else {
            "labelled": result.names[:known].tolist(),
            "prototypes": result.names.tolist(),
            "distances": result.matching.tolist(),
        },
        "scores": None if result.scores is None else dict(result.scores),
        "fits_nowhere": None if result.fits_nowhere is None else int(result.fits_nowhere.sum()),
        "languages": None if result.languages is None else result.languages.to_dict(),
        "time_column": _time_column(result),
        "lineage": lineage_record(result.lineage),
        "changes": None if result.changes is None else dict(result.changes),
        "long_texts": result.long_texts,
        "sample": None if result.sample is None else dict(result.sample),
    }


def _time_column(result: Result) -> str | None:
    """Return the name under which the table holds the dates."""
    corpus = result.corpus
    names = dict(zip(corpus.columns, own_names(corpus), strict=True))
    return None if corpus.time_column is None else names[corpus.time_column]


def read_run(folder: Path) -> Result:
    """Read a run folder.

    Parameters
    ----------
    folder : Path
        Written by `newfound discover` or `write_run`.

    Returns
    -------
    Result
        Without the model, which `newfound.storage.model_files.load_model` reads, and without
        training features, which are not stored.
    """
    return read_steadily(folder, lambda: _read_run(folder))


def _read_run(folder: Path) -> Result:
    """Read a run folder, all of whose files are opened first."""
    files, records = open_run(folder)
    with files:
        return _read_files(folder, files, records)


def _read_files(folder: Path, files: CheckedFolder, records: dict[str, Any]) -> Result:
    """Return the result in the files of a run folder and its run.json."""
    with damage_reported(folder / "categories.json"):
        categories = categories_from(files.json("categories.json", list), "categories.json")
    with damage_reported(folder / "run.json"):
        check_fields(records, RECORDS, "run.json")
        check_items(list(records["seconds"].values()), NUMBER, "run.json, seconds")
        check_items(records["notes"], str, "run.json, notes")
        check_items(list((records["scores"] or {}).values()), NUMBER, "run.json, scores")
        estimate = records["estimate"] and Estimate.from_dict(records["estimate"], "run.json")
        matching = _matching(records["matching"], categories)
        # Missing in files of earlier versions.
        raw_cells, environment = records.get("raw_cells", True), records.get("environment", {})
        long_texts = records.get("long_texts")
        later = {"raw_cells": raw_cells, "environment": environment, "long_texts": long_texts}
        kinds: dict[str, type | tuple[type, ...]] = {"raw_cells": bool, "environment": dict}
        check_fields(later, {**kinds, "long_texts": (int, NONE)}, "run.json")
        languages = _languages(records.get("languages"))
        time_column = records.get("time_column")
        check_fields({"time_column": time_column}, {"time_column": (str, NONE)}, "run.json")
        lineage = lineage_from(records.get("lineage"), categories, "run.json, lineage")
        changes = records.get("changes")
        check_fields({"changes": changes}, {"changes": (dict, NONE)}, "run.json")
        sample = _sample(records.get("sample"))
    name = next((name for name in TABLES if files.has(name)), None)
    if name is None:
        raise InputError(
            f"{folder} has no assignments.csv; give the folder that `newfound discover` wrote"
        )
    with damage_reported(folder / name):
        content = files.read(name)
    read = read_assignments(
        content, folder / name, categories, raw_cells=raw_cells, time_column=time_column
    )
    with damage_reported(folder / HISTORY):
        history = _history(files.read(HISTORY) if files.has(HISTORY) else b"")
    seconds = {stage: value for stage, value in records["seconds"].items() if stage != "total"}
    return Result(
        corpus=read.corpus,
        categories=categories,
        assigned=read.assigned,
        predicted=read.predicted,
        probability=read.probability,
        best_known=read.best_known,
        best_known_probability=read.best_known_probability,
        fit=read.fit,
        fits_nowhere=read.fits_nowhere,
        reviewed=read.reviewed,
        positions=read.positions,
        config=records["settings"],
        device=records["device"],
        estimate=estimate or None,
        matching=matching,
        history=tuple(history),
        seconds={stage: value for stage, value in seconds.items() if value is not None},
        notes=tuple(records["notes"]),
        versions=records["versions"],
        scores=records["scores"],
        command=records["command"],
        environment=environment,
        languages=languages,
        lineage=lineage,
        changes=changes,
        long_texts=long_texts,
        sample=sample,
    )


def _languages(recorded: Any) -> Languages | None:
    """Return the languages of the texts; None if they are not recorded."""
    if recorded is None:
        return None
    check_fields(recorded, {"shares": dict, "texts": int}, "run.json, languages")
    check_items(list(recorded["shares"].values()), (int, float), "run.json, languages")
    return Languages(recorded["shares"], recorded["texts"])


def _sample(recorded: Any) -> dict[str, int] | None:
    """Return the numbers of texts of a fit on a sample; None if all texts were fitted on."""
    if recorded is None:
        return None
    fields = ("texts", "different", "fitted")
    check_fields(recorded, dict.fromkeys(fields, int), "run.json, sample")
    return {name: recorded[name] for name in fields}


def _matching(
    recorded: dict[str, Any] | None, categories: tuple[Category, ...]
) -> np.ndarray | None:
    """Return the distances [M, K] of labelled prototypes to all prototypes."""
    if recorded is None:
        return None
    check_fields(recorded, {"distances": list}, "run.json, matching")
    rows = recorded["distances"]
    check_items(rows, list, "run.json, distances")
    for row in rows:
        check_items(row, NUMBER, "run.json, distances")
    known = sum(category.kind == "known" for category in categories)
    if [len(row) for row in rows] != [len(categories)] * known:
        raise DamagedFileError("its matching does not fit categories.json")
    return np.array(rows, np.float64).reshape(known, len(categories))


def _history(content: bytes) -> list[dict[str, Any]]:
    """Return the complete lines; an interrupted run may have left an incomplete one."""
    entries = []
    for line in content.decode("utf-8", errors="replace").splitlines():
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(entry, dict):
            entries.append(entry)
    return entries
