"""A model on disk: safetensors and JSON; nothing is ever unpickled."""

import json
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

import newfound
from newfound.config import RunConfig
from newfound.devices import seeded
from newfound.encoding.feature_maps import EncoderFeatures, FeatureMap
from newfound.encoding.word_vectors import WordVectors
from newfound.errors import InputError, reason
from newfound.files import write_atomically, write_folder, write_json
from newfound.methods.fitted import Fitted
from newfound.result import Category
from newfound.training.autoencoder import AutoencoderFeatures

if TYPE_CHECKING:
    from newfound.discovery import Discovery

FORMAT = 1
# How each kind of feature map is read back.
FEATURE_MAPS: dict[str, Callable[[Path], Any]] = {
    EncoderFeatures.kind: EncoderFeatures.load,
    WordVectors.kind: WordVectors.load,
    AutoencoderFeatures.kind: AutoencoderFeatures.load,
}

# What reading a file that is cut short or was changed may raise.
_DAMAGE = (
    OSError,
    SafetensorError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)

DiscovererType = TypeVar("DiscovererType", bound="Discovery")


def save_model(discoverer: "Discovery", folder: Path) -> None:
    """Write the model into `folder`, which appears complete or not at all."""
    fitted = discoverer.fitted_
    _check_target(folder)
    arrays = {"prototypes": fitted.prototypes}
    if fitted.labelled_prototypes is not None:
        arrays["labelled_prototypes"] = fitted.labelled_prototypes
    about = {
        "format": FORMAT,
        "newfound": newfound.__version__,
        "kind": fitted.features.kind,
        "known": fitted.known,
        "temperature": fitted.temperature,
        "config": discoverer.config_,
        "parameters": _parameters(discoverer),
        "categories": [asdict(category) for category in discoverer.category_list_],
    }
    try:
        with write_folder(folder, "model.json") as temporary:
            fitted.features.save(temporary)
            with write_atomically(temporary / "prototypes.safetensors") as path:
                save_file(arrays, path)
            write_json(temporary / "model.json", about)
    except SafetensorError as error:
        raise InputError(
            f"cannot write {folder}: {error}; free space or choose another place"
        ) from error


def _check_target(folder: Path) -> None:
    """Refuse to replace what is not a model."""
    if folder.is_dir() and (folder / "model.json").is_file():
        return
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} exists and is no model of newfound; choose another name")


def _parameters(discoverer: "Discovery") -> dict[str, Any]:
    """The constructor's arguments, in the plain types that their check gave them."""
    resolved = discoverer.config_
    names = [f.name for f in fields(RunConfig)]
    given = {name: resolved.get(name, getattr(discoverer, name)) for name in names}
    chosen = {name: resolved["settings"][name] for name in discoverer.settings or {}}
    own = {"effort": discoverer.effort, "settings": chosen or None, "verbose": discoverer.verbose}
    return given | own


def load_model(cls: type[DiscovererType], folder: Path, device: torch.device) -> DiscovererType:
    """Read a model folder, or a run folder that holds one."""
    if not folder.exists():
        raise InputError(f"the run {folder} does not exist")
    if (folder / "model" / "model.json").is_file():
        folder = folder / "model"
    about = _read_about(folder)
    try:
        arrays = load_file(folder / "prototypes.safetensors")
        with seeded(0, device):  # modules draw random weights before the stored ones replace them
            feature_map: FeatureMap = FEATURE_MAPS[about["kind"]](folder)
        if isinstance(feature_map, torch.nn.Module):
            feature_map.to(device)
        categories = [_read_category(entry) for entry in about["categories"]]
        fitted = Fitted(
            features=feature_map,
            prototypes=arrays["prototypes"],
            known=about["known"],
            temperature=float(about["temperature"]),
            training_features=np.empty((0, arrays["prototypes"].shape[1]), np.float32),
            labelled_prototypes=arrays.get("labelled_prototypes"),
        )
        discoverer = cls(**{**about["parameters"], "device": str(device)})
        discoverer.config_ = about["config"]
        _check(fitted, categories)
    except InputError:
        raise
    except _DAMAGE as error:
        raise InputError(
            f"the model in {folder} is damaged ({reason(error)}); run `newfound discover` again"
        ) from error
    discoverer.fitted_ = fitted
    discoverer.category_list_ = categories
    discoverer.n_categories_ = len(categories)
    discoverer.device_ = str(device)
    discoverer._set_names()
    return discoverer


def _check(fitted: Fitted, categories: list[Category]) -> None:
    """Refuse parts that do not belong together."""
    if len(categories) != len(fitted.prototypes) or len(fitted.known) > len(categories):
        raise ValueError("categories and prototypes differ in number")
    width = fitted.features(["a text"]).shape[1]
    if fitted.prototypes.shape != (len(categories), width):
        raise ValueError(f"prototypes of shape {fitted.prototypes.shape}, features of {width}")


def _read_about(folder: Path) -> dict[str, Any]:
    path = folder / "model.json"
    if not path.is_file():
        raise InputError(f"{folder} holds no model of newfound (no model.json)")
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        version = int(about["format"])
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"{path} is damaged; run `newfound discover` again") from error
    except KeyError:
        raise InputError(f"{path} was not written by newfound: it names no format") from None
    if version > FORMAT:
        raise InputError(
            f"the model in {folder} has format {version}, this newfound reads up to {FORMAT}: "
            "install a newer newfound"
        )
    return dict(about)


def read_categories(path: Path) -> list[Category]:
    """The categories.json of a run."""
    try:
        return [_read_category(entry) for entry in json.loads(path.read_text(encoding="utf-8"))]
    except _DAMAGE as error:
        raise InputError(f"{path} is damaged; run `newfound discover` again") from error


def _read_category(entry: dict[str, Any]) -> Category:
    lists = {key: tuple(entry[key]) for key in ("keywords", "examples", "border")}
    # JSON has no NaN: a category without a neighbour has a distance of null there.
    apart = float("nan") if entry["nearest_distance"] is None else entry["nearest_distance"]
    return Category(**{**entry, **lists, "nearest_distance": apart})
