"""A model on disk: safetensors and JSON; nothing is unpickled."""

from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import save_file

from newfound.clustering.fit_scores import FitReference
from newfound.config import RunConfig
from newfound.devices import find_device, seeded
from newfound.encoding.feature_maps import EncoderFeatures, FeatureMap
from newfound.encoding.vectors.features import VectorFeatures
from newfound.encoding.weights import check_finite_array, parse_arrays
from newfound.encoding.word_vectors import WordVectors
from newfound.errors import DamagedFileError, InputError
from newfound.files import (
    CheckedFolder,
    check_fields,
    check_items,
    is_free,
    read_steadily,
    write_atomically,
    write_folder,
    write_json,
    write_manifest,
)
from newfound.files.manifest import parse_manifest
from newfound.model import Model
from newfound.storage.categories import categories_from
from newfound.storage.contents import foreign_to_model
from newfound.storage.fit_reference import FIT_REFERENCE, parse_reference, save_reference
from newfound.storage.formats import (
    AGAIN,
    MODEL_FORMAT,
    MODEL_MANIFEST,
    damage_reported,
    open_checked,
    open_run,
)
from newfound.training.autoencoder import AutoencoderFeatures
from newfound.versions import __version__

# The reader of each kind of feature map.
FEATURE_MAPS: dict[str, Callable[[CheckedFolder], FeatureMap]] = {
    EncoderFeatures.kind: EncoderFeatures.load,
    WordVectors.kind: WordVectors.load,
    AutoencoderFeatures.kind: AutoencoderFeatures.load,
    VectorFeatures.kind: VectorFeatures.load,
}
# The fields of model.json.
ABOUT: dict[str, type | tuple[type, ...]] = {
    "kind": str,
    "known": list,
    "temperature": (int, float),
    "config": dict,
    "parameters": dict,
    "categories": list,
}
PROTOTYPES = "prototypes.safetensors"
# Below the one and beyond the other, distances and probabilities mean nothing.
LEAST, MOST = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)


def save_model(model: Model, folder: Path) -> None:
    """Write a model into `folder`, which appears complete or not at all.

    Parameters
    ----------
    model : Model
        The model to save; an int8 model is saved in full precision.
    folder : Path
        A new or empty folder, or one that holds a model, which is replaced.
    """
    _check_target(folder)
    arrays = {"prototypes": model.prototypes}
    if model.labelled_prototypes is not None:
        arrays["labelled_prototypes"] = model.labelled_prototypes
    about = {
        "format": MODEL_FORMAT,
        "newfound": __version__,
        "kind": model.features.kind,
        "known": list(model.known),
        "temperature": model.temperature,
        "config": dict(model.config),
        "parameters": dict(model.parameters),
        "categories": [asdict(category) for category in model.categories],
        "fit_reference": model.fit_reference is not None,
    }
    try:
        with write_folder(folder, "model.json", _check_target) as temporary:
            model.features.save(temporary)
            with write_atomically(temporary / PROTOTYPES) as path:
                save_file(arrays, path)
            if model.fit_reference is not None:
                save_reference(model.fit_reference, temporary / FIT_REFERENCE)
            write_json(temporary / "model.json", about)
            write_manifest(temporary, [path.name for path in temporary.iterdir()])
    except SafetensorError as error:
        raise InputError(
            f"cannot write {folder}: {error}; free space or choose another place"
        ) from error


def _check_target(folder: Path) -> None:
    """Raise InputError if the folder has other contents than a model."""
    if folder.is_dir() and (folder / "model.json").is_file():
        foreign = foreign_to_model(folder)
        if foreign is None:
            return
        raise InputError(
            f"{folder} has a file that is not of a model ({foreign}), which would be deleted; move "
            "it away or choose another name"
        )
    if folder.exists() and not (folder.is_dir() and is_free(folder)):
        raise InputError(f"{folder} exists and is not a model of newfound; choose another name")


def load_model(
    folder: Path,
    device: torch.device | str | None = None,
    *,
    trust_remote_code: bool = False,
) -> Model:
    """Read a model folder, or a run folder that holds one.

    Parameters
    ----------
    folder : Path
        Written by `save_model` or `newfound discover`.
    device : torch.device or str, optional
        cpu, cuda or cuda:N; by default a GPU if available.
    trust_remote_code : bool, default False
        Whether code that comes with a frozen encoder may run; the model itself cannot allow it,
        because it may be someone else's.

    Returns
    -------
    Model
    """
    place = device if isinstance(device, torch.device) else find_device(device)
    model = read_steadily(folder, lambda: _load(folder, place))
    if trust_remote_code and isinstance(model.features, VectorFeatures):
        model.features.encoder.trust_remote_code()
    return model


def _load(folder: Path, device: torch.device) -> Model:
    """Read a model folder, or a run folder that holds one."""
    if not folder.exists():
        raise InputError(f"the run {folder} does not exist; give a run folder or a saved model")
    digests = None
    if (folder / "run.json").is_file():
        run, _ = open_run(folder)  # checks the format of the whole run
        with run, damage_reported(folder / "model"):
            if run.digests is not None and run.has(MODEL_MANIFEST):
                digests = parse_manifest(run.read(MODEL_MANIFEST))
    if (folder / "model" / "model.json").is_file():
        folder = folder / "model"
    if not (folder / "model.json").is_file():
        raise InputError(
            f"{folder} is not a model of newfound (no model.json); give a run folder or a saved "
            "model"
        )
    files, about = open_checked(folder, "model.json", MODEL_FORMAT, digests)
    with files:
        try:
            return _read_model(files, about, device)
        except DamagedFileError as error:
            raise InputError(f"the model in {folder} is damaged ({error}); {AGAIN}") from error


def _read_model(files: CheckedFolder, about: dict[str, Any], device: torch.device) -> Model:
    """Read the files; a DamagedFileError names the part that is not valid."""
    check_fields(about, ABOUT, "model.json")
    check_items(about["known"], str, "model.json, known")
    if about["kind"] not in FEATURE_MAPS:
        raise DamagedFileError(f"model.json: the kind {about['kind'][:40]!r} does not exist")
    if not LEAST <= about["temperature"] <= MOST:
        found = str(about["temperature"])[:40]
        raise DamagedFileError(f"model.json: the temperature cannot be {found}")
    _check_marking(about["config"])
    parameters = _checked_parameters(about["parameters"])
    categories = categories_from(about["categories"], "model.json")
    arrays = parse_arrays(files.read(PROTOTYPES), PROTOTYPES)
    if "prototypes" not in arrays:
        raise DamagedFileError(f"{PROTOTYPES} holds no prototypes")
    if arrays["prototypes"].ndim != 2 or len(categories) != len(arrays["prototypes"]):
        raise DamagedFileError("categories and prototypes differ in number")
    if len(about["known"]) > len(categories) or not categories:
        raise DamagedFileError("categories and prototypes differ in number")
    with seeded(0, device):  # modules are initialised at random before their weights are loaded
        feature_map = FEATURE_MAPS[about["kind"]](files)
    if isinstance(feature_map, torch.nn.Module):
        feature_map.to(device)
    if isinstance(feature_map, VectorFeatures):
        feature_map.encoder.to(device)
    reference = None
    if about.get("fit_reference"):  # missing in models of earlier versions
        reference = parse_reference(files.read(FIT_REFERENCE), len(categories))
    _check_features(feature_map, arrays, len(about["known"]), reference)
    return Model(
        features=feature_map,
        prototypes=arrays["prototypes"],
        known=tuple(about["known"]),
        temperature=float(about["temperature"]),
        categories=categories,
        labelled_prototypes=arrays.get("labelled_prototypes"),
        config=about["config"],
        parameters={**parameters, "device": str(device)},
        device=str(device),
        fit_reference=reference,
    )


def _check_features(
    feature_map: FeatureMap,
    arrays: dict[str, np.ndarray],
    known: int,
    reference: FitReference | None,
) -> None:
    """Raise DamagedFileError unless prototypes and reference texts fit the features of a text."""
    probe: Any = ["a text"]
    if isinstance(feature_map, VectorFeatures):  # its encoder is loaded when texts are encoded
        probe = np.ones((1, feature_map.width), np.float32)
    features, frozen = feature_map.with_frozen(probe)
    width = features.shape[1]
    if reference is not None and reference.frozen:
        if frozen is None or reference.vectors.shape[1] != frozen.shape[1]:
            raise DamagedFileError(f"{FIT_REFERENCE} belongs to another encoder")
    elif reference is not None and reference.vectors.shape[1] != width:
        raise DamagedFileError(f"{FIT_REFERENCE} belongs to other features")
    prototypes = arrays["prototypes"]
    for name, rows in {"prototypes": len(prototypes), "labelled_prototypes": known}.items():
        if name in arrays and arrays[name].shape != (rows, width):
            raise DamagedFileError(f"{name} of shape {arrays[name].shape}, not {(rows, width)}")
        if name in arrays:
            check_finite_array(arrays[name], f"{PROTOTYPES}: {name}")
            _check_lengths(arrays[name], f"{PROTOTYPES}: {name}")
    # Without an encoder, texts without a known word have zeros as features, and so may prototypes.
    encoder = feature_map.kind in (EncoderFeatures.kind, VectorFeatures.kind)
    if not prototypes.any() and (encoder or len(prototypes) > 1):
        raise DamagedFileError(f"{PROTOTYPES}: all prototypes are zero")
    if not np.isfinite(features).all() or (encoder and not features.any()):
        raise DamagedFileError("its features are zero or not finite")


def _check_lengths(vectors: np.ndarray, where: str) -> None:
    """Raise DamagedFileError if a squared length, or the squared distance of two, is infinite."""
    if 4 * np.square(vectors, dtype=np.float64).sum(1).max(initial=0) > MOST:
        raise DamagedFileError(f"{where} has vectors that are too long")


def _check_marking(config: dict[str, Any]) -> None:
    """Raise DamagedFileError for an invalid rule for texts that fit nowhere."""
    rules = {name: config.get(name) for name in ("outside", "false_alarms")}
    check_fields(rules, dict.fromkeys(rules, (int, float, type(None))), "model.json, config")
    if any(rule is not None and not 0 <= rule <= 1 for rule in rules.values()):
        raise DamagedFileError("model.json, config: a share must be from 0 to 1")


def _checked_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of the constructor after checking their names."""
    names = {*(field.name for field in fields(RunConfig)), "settings", "verbose"}
    for name in parameters:
        if name not in names:
            raise DamagedFileError(f"model.json: there is no parameter {name!r}")
    if not isinstance(parameters.get("settings"), dict | None):
        raise DamagedFileError("model.json: the settings are not a JSON object")
    return parameters
