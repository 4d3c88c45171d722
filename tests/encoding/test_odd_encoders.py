"""Odd encoder folders: each gets one sentence, without a traceback and without a hang."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import save_tiny_encoder
from safetensors.numpy import load_file, save_file
from support.odd_files import LYING, PLACES, no_hang  # noqa: F401

from newfound.encoding.loading import load_encoder
from newfound.errors import InputError

FILES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")


@pytest.fixture
def copy(tiny_encoder: str, tmp_path: Path) -> Path:
    shutil.copytree(tiny_encoder, tmp_path / "encoder")
    return tmp_path / "encoder"


def refused(folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        load_encoder(str(folder))
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 500
    return message


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("what", PLACES)
def test_other_things_in_place_of_a_file(copy: Path, name: str, what: str) -> None:
    (copy / name).unlink()
    PLACES[what](copy / name)
    refused(copy)


@pytest.mark.parametrize("what", [*PLACES])
def test_other_things_in_place_of_the_pooling(copy: Path, what: str) -> None:
    (copy / "1_Pooling" / "config.json").unlink()
    PLACES[what](copy / "1_Pooling" / "config.json")
    refused(copy)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("name", [*FILES, "."])
def test_files_without_permission(copy: Path, name: str) -> None:
    (copy / name).chmod(0)
    refused(copy)
    (copy / name).chmod(0o700)


@pytest.mark.parametrize("name", ["", "\0", "a\0b", "/", "/dev/null", "loop"])
def test_names_that_are_no_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "huggingface_hub", None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    refused(Path(name) if name else Path())
    with pytest.raises(InputError):
        load_encoder(name)


# config.json


def edit(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


SIZES = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
)


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize(
    "value", [0, -1, 10**9, 10**30, 32.0, 32.5, "32", None, True, [], {}, float("nan")], ids=str
)
def test_sizes_that_no_encoder_has(copy: Path, name: str, value: Any) -> None:
    if name == "max_position_embeddings" and value is True:
        value = 1
    edit(copy / "config.json", lambda config: config.update({name: value}))
    refused(copy)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model_type", ["bert"]),
        ("model_type", {}),
        ("model_type", 7),
        ("hidden_act", ["gelu"]),
        ("hidden_act", None),
        ("hidden_act", "softsign"),
        ("position_embedding_type", "relative_key"),
        ("layer_norm_eps", 0),
        ("layer_norm_eps", -1e-12),
        ("layer_norm_eps", float("nan")),
        ("layer_norm_eps", "small"),
        ("hidden_dropout_prob", 1.5),
        ("hidden_dropout_prob", "some"),
        ("attention_probs_dropout_prob", -0.1),
        ("attention_probs_dropout_prob", float("inf")),
        ("max_position_embeddings", 2),
        ("num_attention_heads", 5),
    ],
)
def test_options_that_no_encoder_has(copy: Path, name: str, value: Any) -> None:
    edit(copy / "config.json", lambda config: config.update({name: value}))
    refused(copy)


@pytest.mark.parametrize(
    ("family", "name", "value"),
    [
        ("roberta", "pad_token_id", None),
        ("roberta", "pad_token_id", "one"),
        ("roberta", "pad_token_id", 10**6),
        ("roberta", "max_position_embeddings", None),
        ("mpnet", "relative_attention_num_buckets", 0.5),
        ("mpnet", "relative_attention_num_buckets", 1),
        ("mpnet", "relative_attention_num_buckets", 10**9),
        ("mpnet", "relative_attention_num_buckets", "many"),
        ("distilbert", "dim", 10**12),
        ("distilbert", "n_layers", 10**9),
        ("distilbert", "n_heads", 0),
        ("distilbert", "dropout", 2),
        ("distilbert", "max_position_embeddings", "long"),
    ],
)
def test_options_of_other_families(tmp_path: Path, family: str, name: str, value: Any) -> None:
    save_tiny_encoder(tmp_path, family)
    edit(tmp_path / "config.json", lambda config: config.update({name: value}))
    refused(tmp_path)


# model.safetensors


@pytest.mark.parametrize("what", LYING)
def test_weights_with_lying_headers(copy: Path, what: str) -> None:
    (copy / "model.safetensors").write_bytes(LYING[what])
    refused(copy)


def weights_changed(copy: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    path = copy / "model.safetensors"
    weights = {name: value.copy() for name, value in load_file(path).items()}
    change(weights)
    save_file(weights, path)


WORDS = "bert.embeddings.word_embeddings.weight"
POSITIONS = "bert.embeddings.position_embeddings.weight"
SEGMENTS = "bert.embeddings.token_type_embeddings.weight"
QUERY = "bert.encoder.layer.1.attention.self.query.weight"
DOWN = "bert.encoder.layer.2.output.dense.bias"
HEAD = "cls.predictions.transform.LayerNorm.weight"
NAMES = (WORDS, POSITIONS, SEGMENTS, QUERY, DOWN, HEAD)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "change",
    ["NaN", "infinite", "scalar", "no rows", "one row less", "flat", "one more axis", "integers"],
)
def test_weights_that_do_not_fit(copy: Path, name: str, change: str) -> None:
    import numpy as np

    changes: dict[str, Callable[[Any], Any]] = {
        "NaN": lambda w: np.where(np.arange(w.size).reshape(w.shape) == 5, np.nan, w),
        "infinite": lambda w: np.where(np.arange(w.size).reshape(w.shape) == 5, np.inf, w),
        "scalar": lambda w: np.float32(1.0).reshape(()),
        "no rows": lambda w: w[:0],
        "one row less": lambda w: w[:-1],
        "flat": lambda w: w.reshape(-1)[:-1],
        "one more axis": lambda w: w[None],
        "integers": lambda w: w.astype(np.int32),
    }
    if name == SEGMENTS and change in ("one row less", "integers"):
        pytest.skip("only the first segment is needed, and none if there is none")

    def apply(weights: dict[str, Any]) -> None:
        kind = np.int32 if change == "integers" else np.float32
        weights[name] = np.ascontiguousarray(changes[change](weights[name]), kind)
        if change == "scalar":
            weights[name] = weights[name].reshape(())

    weights_changed(copy, apply)
    refused(copy)


@pytest.mark.parametrize("name", [name for name in NAMES if name != SEGMENTS])
def test_weights_that_are_missing(copy: Path, name: str) -> None:
    weights_changed(copy, lambda weights: weights.pop(name))
    refused(copy)


def test_word_embeddings_of_zeros(copy: Path) -> None:
    weights_changed(copy, lambda weights: weights[WORDS].fill(0))
    assert "all zeros" in refused(copy)


# tokenizer.json


def with_model(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda value: value["model"].update(changes)


TOKENIZERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no model": lambda value: value.pop("model"),
    "model of null": lambda value: value.update(model=None),
    "model of no type": lambda value: value.update(model={}),
    "unknown model": lambda value: value.update(model={"type": "Oracle", "vocab": {}}),
    "no vocabulary": with_model(vocab={}),
    "vocabulary of a list": with_model(vocab=["a"]),
    "id beyond the weights": lambda value: value["model"]["vocab"].update(song=10**6),
    "id beyond 32 bits": lambda value: value["model"]["vocab"].update(song=2**40),
    "negative id": lambda value: value["model"]["vocab"].update(song=-1),
    "id of text": lambda value: value["model"]["vocab"].update(song="one"),
    "no unknown word": with_model(unk_token="[NONE]"),
    "added token beyond the weights": lambda value: value["added_tokens"].append(
        {**value["added_tokens"][0], "id": 10**6, "content": "[FAR]"}
    ),
    "special token beyond the weights": lambda value: value["post_processor"]["special_tokens"][
        "[CLS]"
    ].update(ids=[10**6]),
    "template without its token": lambda value: value["post_processor"].update(special_tokens={}),
    "more special tokens than positions": lambda value: value["post_processor"].update(
        single=value["post_processor"]["single"][:1] * 200 + value["post_processor"]["single"]
    ),
    "unknown post-processor": lambda value: value.update(post_processor={"type": "Oracle"}),
    "unknown normaliser": lambda value: value.update(normalizer={"type": "Oracle"}),
    "broken expression": lambda value: value.update(
        pre_tokenizer={
            "type": "Split",
            "pattern": {"Regex": "("},
            "behavior": "Isolated",
            "invert": False,
        }
    ),
    "version of the future": lambda value: value.update(version="9.9"),
}


@pytest.mark.parametrize("what", TOKENIZERS)
def test_tokenisers_that_cannot_be_used(copy: Path, what: str) -> None:
    edit(copy / "tokenizer.json", TOKENIZERS[what])
    assert "tokenis" in refused(copy)


@pytest.mark.parametrize("named", [5, ["[MASK]"], {"content": 3}, {}, None, "", "[NONE]", "\ud800"])
def test_odd_mask_tokens_are_ignored(copy: Path, named: Any) -> None:
    edit(copy / "tokenizer_config.json", lambda value: value.update(mask_token=named))
    assert load_encoder(str(copy)).mask_id == 4
