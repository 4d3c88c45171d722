"""Odd model folders: each gets one sentence, without a traceback and without a hang."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from support.odd_files import LYING, PLACES, no_hang  # noqa: F401
from support.sealing import reseal

from newfound.errors import DamagedFileError, InputError
from newfound.files import CheckedFolder
from newfound.storage.model_files import load_model

JSON_FILES = ("model.json", "encoder.json", "tokenizer.json", "manifest.json")
TENSOR_FILES = ("encoder.safetensors", "prototypes.safetensors", "fit_reference.safetensors")


@pytest.fixture
def model(small_run: Path, tmp_path: Path) -> Path:
    shutil.copytree(small_run / "model", tmp_path / "model")
    return tmp_path / "model"


def refused(folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        load_model(folder, "cpu")
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 600
    return message


@pytest.mark.parametrize("name", [*JSON_FILES, *TENSOR_FILES])
@pytest.mark.parametrize("what", PLACES)
@pytest.mark.parametrize("sealed", [True, False])
def test_other_things_in_place_of_a_file(model: Path, name: str, what: str, sealed: bool) -> None:
    (model / name).unlink()
    PLACES[what](model / name)
    if sealed and (model / name).is_file() and name != "manifest.json":
        reseal(model)
    refused(model)


@pytest.mark.parametrize("what", PLACES)
def test_other_things_in_place_of_the_folder(tmp_path: Path, what: str) -> None:
    PLACES[what](tmp_path / "model")
    refused(tmp_path / "model")
    refused(tmp_path)


@pytest.mark.parametrize("name", TENSOR_FILES)
@pytest.mark.parametrize("what", LYING)
def test_tensors_with_lying_headers(model: Path, name: str, what: str) -> None:
    (model / name).write_bytes(LYING[what])
    reseal(model)
    refused(model)


def edit(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))
    reseal(path.parent)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kind", "glove"),
        ("kind", "autoencoder"),
        ("kind", None),
        ("known", [1, 2]),
        ("known", [["bank"]]),
        ("temperature", True),
        ("temperature", 10**400),
        ("temperature", 1e-320),
        ("temperature", 1e300),
        ("temperature", []),
        ("config", []),
        ("config", {"outside": "some"}),
        ("config", {"outside": 2}),
        ("config", {"false_alarms": -1}),
        ("config", {"false_alarms": float("nan")}),
        ("config", {"outside": [0.1]}),
        ("parameters", []),
        ("parameters", {"settings": []}),
        ("categories", None),
        ("categories", [None] * 4),
        ("format", 10**30),
        ("format", -1),
    ],
)
def test_values_that_no_model_has(model: Path, name: str, value: Any) -> None:
    edit(model / "model.json", lambda about: about.update({name: value}))
    refused(model)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("id", "one"),
        ("name", None),
        ("name", ["bank"]),
        ("kind", "old"),
        ("size", 1.5),
        ("share", "half"),
        ("keywords", "card"),
        ("keywords", [1]),
        ("fit", "good"),
        ("nearest", "one"),
        ("nearest", 1.5),
        ("status", "old"),
        ("history", "found"),
        ("history", [{"event": "found"}]),
    ],
)
def test_values_that_no_category_has(model: Path, name: str, value: Any) -> None:
    edit(model / "model.json", lambda about: about["categories"][1].update({name: value}))
    refused(model)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_tokens", 2),
        ("max_tokens", 10**6),
        ("max_tokens", 16.0),
        ("frozen_layers", -2),
        ("frozen_layers", 99),
        ("logits", 10**12),
        ("logits", True),
        ("head", "tanh"),
        ("head", None),
        ("pooling", ["cls"]),
        ("normalise", "yes"),
        ("fingerprint", None),
        ("architecture", None),
    ],
)
def test_values_that_no_encoder_has(model: Path, name: str, value: Any) -> None:
    edit(model / "encoder.json", lambda about: about.update({name: value}))
    refused(model)


SIZES = ("vocabulary", "width", "layers", "heads", "inner", "positions", "relative_buckets")


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("value", [-1, 7, 10**9, 10**30, 4.5, "4", None, [], True], ids=str)
def test_sizes_that_do_not_fit_the_weights(model: Path, name: str, value: Any) -> None:
    edit(model / "encoder.json", lambda about: about["architecture"].update({name: value}))
    refused(model)


@pytest.mark.parametrize("name", ["norm_epsilon", "dropout", "attention_dropout"])
@pytest.mark.parametrize("value", [-1, 2, float("nan"), float("inf"), "small", None], ids=str)
def test_numbers_out_of_range(model: Path, name: str, value: Any) -> None:
    edit(model / "encoder.json", lambda about: about["architecture"].update({name: value}))
    refused(model)


ARRAYS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "scalar": lambda array: array.flat[0].reshape(()),
    "flat": lambda array: array.reshape(-1),
    "no rows": lambda array: array[:0],
    "one row less": lambda array: array[:-1],
    "one more axis": lambda array: array[None],
    "integers": lambda array: np.ones(array.shape, np.int32),
    "Boolean": lambda array: np.ones(array.shape, bool),
    "narrow": lambda array: array[..., :-1],
}


@pytest.mark.parametrize("change", ARRAYS)
@pytest.mark.parametrize("name", ["prototypes", "labelled_prototypes"])
def test_prototypes_that_do_not_fit(model: Path, name: str, change: str) -> None:
    path = model / "prototypes.safetensors"
    arrays = {key: value.copy() for key, value in load_file(path).items()}
    arrays[name] = np.array(ARRAYS[change](arrays[name]))
    save_file(arrays, path)
    reseal(model)
    refused(model)


@pytest.mark.parametrize("change", ARRAYS)
@pytest.mark.parametrize("name", ["vectors", "categories", "given"])
def test_reference_texts_that_do_not_fit(model: Path, name: str, change: str) -> None:
    path = model / "fit_reference.safetensors"
    arrays = {key: value.copy() for key, value in load_file(path).items()}
    if change == "flat" and arrays[name].ndim == 1:
        pytest.skip("it is flat")
    arrays[name] = np.array(ARRAYS[change](arrays[name]))
    save_file(arrays, path)
    reseal(model)
    refused(model)


@pytest.mark.parametrize("change", ARRAYS)
@pytest.mark.parametrize("name", ["backbone.words.weight", "backbone.layers.0.qkv.bias"])
def test_weights_that_do_not_fit(model: Path, name: str, change: str) -> None:
    path = model / "encoder.safetensors"
    arrays = {key: value.copy() for key, value in load_file(path).items()}
    if change == "flat" and arrays[name].ndim == 1:
        pytest.skip("it is flat")
    arrays[name] = np.array(ARRAYS[change](arrays[name]))
    save_file(arrays, path)
    reseal(model)
    refused(model)


# Feature maps without an encoder.


@pytest.mark.parametrize(
    "changes",
    [
        {"code": 10**12},
        {"code": 0},
        {"code": True},
        {"activation": "tanh"},
        {"words": []},
        {"words": ["rain", "rain", "sun"]},
        {"words": [1, 2, 3]},
        {"words": "rain"},
        {"tensors": np.nan},
    ],
    ids=str,
)
def test_odd_autoencoders(tmp_path: Path, changes: dict[str, Any]) -> None:
    from newfound.training.autoencoder import AutoencoderFeatures

    AutoencoderFeatures(["rain", "sun", "song"], np.ones(3), code=2).save(tmp_path)
    AutoencoderFeatures.load(CheckedFolder(tmp_path))
    if "tensors" in changes:
        spoil(tmp_path / "autoencoder.safetensors", "rarity")
    else:
        edit(tmp_path / "autoencoder.json", lambda about: about.update(changes))
    with pytest.raises(DamagedFileError):
        AutoencoderFeatures.load(CheckedFolder(tmp_path))


@pytest.mark.parametrize("words", [None, {}, [], ["rain"], ["rain", 2], "rain"], ids=str)
def test_odd_word_vectors(tmp_path: Path, words: Any) -> None:
    from newfound.encoding.word_vectors import WordVectors

    WordVectors(["rain", "sun"], np.ones((2, 3))).save(tmp_path)
    WordVectors.load(CheckedFolder(tmp_path))
    if words is None:
        spoil(tmp_path / "words.safetensors", "vectors")
    else:
        (tmp_path / "words.json").write_text(json.dumps(words))
    with pytest.raises(DamagedFileError):
        WordVectors.load(CheckedFolder(tmp_path))


def spoil(path: Path, name: str) -> None:
    """Write NaN into an array of a file."""
    arrays = {key: value.copy() for key, value in load_file(path).items()}
    arrays[name].flat[0] = np.nan
    save_file(arrays, path)


@pytest.mark.parametrize("name", ["prototypes", "labelled_prototypes"])
def test_prototypes_whose_squared_length_is_infinite(model: Path, name: str) -> None:
    arrays = load_file(model / "prototypes.safetensors")
    arrays[name] = arrays[name] / np.abs(arrays[name]).max() * np.float32(1e38)
    save_file(arrays, model / "prototypes.safetensors")
    reseal(model)
    assert "too long" in refused(model)
