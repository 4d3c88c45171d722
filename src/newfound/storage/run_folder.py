"""The run folder: what `newfound discover` leaves on disk, and reading it back."""

import json
import platform
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import newfound
from newfound.data.corpus import Corpus
from newfound.data.tables import TableWriter
from newfound.errors import InputError
from newfound.files import without_nan, write_folder, write_json, write_text
from newfound.result import Category

if TYPE_CHECKING:
    import numpy as np

    from newfound.discovery import Discovery

FORMAT = 1
Columns = Mapping[str, "Sequence[Any] | np.ndarray"]
PACKAGES = ("numpy", "pandas", "safetensors", "scikit-learn", "scipy", "tokenizers", "torch")


def check_run_folder(folder: Path, force: bool) -> None:
    """Refuse, before any work is done, a folder that must not be replaced."""
    try:
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is a file; name a folder for the run")
        if not folder.exists() or not any(folder.iterdir()):
            return
    except OSError as error:
        raise InputError(
            f"cannot write {folder}: {error.strerror or error}; choose another place"
        ) from error
    if not (folder / "run.json").is_file():
        raise InputError(
            f"{folder} exists and is not a run of newfound; it is not touched, choose another name"
        )
    if not force:
        raise InputError(f"the run {folder} exists; replace it with --force or choose another name")


def new_run(folder: Path, force: bool) -> AbstractContextManager[Path]:
    """A context with an empty folder that takes the place of `folder` when the block succeeds."""
    check_run_folder(folder, force)
    return write_folder(folder, "run.json")


def write_run(
    folder: Path,
    discoverer: "Discovery",
    corpus: Corpus,
    *,
    table_format: str = "csv",
    notes: list[str] | None = None,
    scores: dict[str, float] | None = None,
    command: str | None = None,
    model: bool = True,
) -> None:
    """Write everything that a discovery found into an empty folder.

    Without its `model` the run can be reported but cannot predict.
    """
    rows = assignments(discoverer, corpus)
    _write_table(folder / f"assignments.{table_format}", rows, ("probability", "x", "y"))
    _write_table(
        folder / "categories.csv",
        category_columns(discoverer.category_list_),
        ("share", "confidence", "nearest_distance", "distance"),
        ("id", "size", "labelled", "nearest"),
    )
    write_json(folder / "categories.json", [asdict(c) for c in discoverer.category_list_])
    lines = [json.dumps(without_nan(line)) for line in discoverer.history_]
    write_text(folder / "history.jsonl", "".join(line + "\n" for line in lines))
    if model:
        discoverer.save(folder / "model")
    # Last: a folder with a run.json is a complete run.
    write_json(folder / "run.json", summary(discoverer, corpus, notes or [], scores, command))


def _write_table(
    path: Path, columns: Columns, numbers: Sequence[str], counts: Sequence[str] = ()
) -> None:
    """Write columns, strings but for those named, in the format that the file's name ends in."""
    kinds = {name: float if name in numbers else int if name in counts else str for name in columns}
    with TableWriter(path, kinds) as writer:
        writer.write(columns)


def category_columns(categories: Sequence[Category]) -> Columns:
    """One row a category; lists are joined by a bar."""
    rows = [asdict(category) for category in categories]
    for row in rows:
        for name in ("keywords", "examples", "border"):
            row[name] = " | ".join(row[name])
    return {name: [row[name] for row in rows] for name in rows[0]}


def assignments(discoverer: "Discovery", corpus: Corpus) -> Columns:
    """One row a text: the category, what the model itself says, how sure it is, map position."""
    from newfound.describing.text_map import map_positions

    fitted = discoverer.fitted_
    places = map_positions(
        fitted.training_features,
        fitted.prototypes,
        discoverer.assigned_,
        discoverer.config_["seed"],
    )
    return {
        "id": corpus.ids,
        "text": corpus.texts,
        "label": corpus.labels,
        "category": discoverer.labels_,
        "kind": discoverer.kinds_[discoverer.assigned_],
        "probability": discoverer.probability_.round(4),
        "predicted": discoverer.classes_[discoverer.predicted_],
        "x": places[:, 0].round(4),
        "y": places[:, 1].round(4),
    }


def summary(
    discoverer: "Discovery",
    corpus: Corpus,
    notes: list[str],
    scores: dict[str, float] | None,
    command: str | None,
) -> dict[str, Any]:
    """What run.json holds: enough to understand the run and to repeat it."""
    from newfound.discovery import matching_table

    fitted = discoverer.fitted_
    known = len(fitted.known)
    distances = matching_table(fitted)
    return {
        "format": FORMAT,
        "newfound": newfound.__version__,
        "command": command,
        "settings": discoverer.config_,
        "versions": versions(),
        "seed": discoverer.config_["seed"],
        "device": discoverer.device_,
        "seconds": {
            "total": round(sum(discoverer.seconds_.values()), 3),
            **{stage: round(value, 3) for stage, value in discoverer.seconds_.items()},
        },
        "notes": notes + discoverer.notes_,
        "texts": len(corpus.texts),
        "labelled": int((corpus.targets >= 0).sum()),
        "categories": {
            "known": known,
            "novel": discoverer.n_categories_ - known,
            "total": discoverer.n_categories_,
            "given": discoverer.config_["n_categories"] != "auto",
        },
        "estimate": fitted.estimate.to_dict() if fitted.estimate else None,
        "matching": None
        if distances is None
        else {
            "labelled": fitted.known,
            "prototypes": list(discoverer.classes_),
            "distances": distances.round(4).astype(float).tolist(),
        },
        "scores": scores,
    }


def versions() -> dict[str, str]:
    """The versions that a result depends on."""
    found = {"python": platform.python_version(), "newfound": newfound.__version__}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def read_run(folder: Path) -> dict[str, Any]:
    """The run.json of a run folder."""
    path = folder / "run.json"
    if not folder.is_dir():
        raise InputError(f"the run {folder} does not exist")
    if not path.is_file():
        raise InputError(f"{folder} is not a run of newfound (no run.json)")
    try:
        run = json.loads(path.read_text(encoding="utf-8"))
        format_number = int(run["format"])
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"{path} is damaged; run `newfound discover` again") from error
    except KeyError:
        raise InputError(f"{path} was not written by newfound: it names no format") from None
    if format_number > FORMAT:
        raise InputError(
            f"{folder} has format {format_number}, this newfound reads up to {FORMAT}: "
            "install a newer newfound"
        )
    return dict(run)
