"""Logits of the feature map: on any head, saved and loaded."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from newfound.encoding.batching import tokenize
from newfound.encoding.feature_cache import features_of, run_frozen
from newfound.encoding.feature_maps import EncoderFeatures
from newfound.encoding.loading import load_encoder
from newfound.files import CheckedFolder

TEXTS = ["lost my card", "book a flight please", "rain", "play the song loud now"]


def make(tiny_encoder: str, head: str, frozen: int = 2) -> EncoderFeatures:
    torch.manual_seed(0)
    return EncoderFeatures(load_encoder(tiny_encoder), head=head, frozen_layers=frozen)


@pytest.mark.parametrize("head", ["none", "tanh", "residual"])
@pytest.mark.parametrize("frozen", [-1, 2, 3])
def test_logits_are_a_layer_on_the_head(tiny_encoder: str, head: str, frozen: int) -> None:
    model = make(tiny_encoder, head, frozen)
    tokens = tokenize(model.encoder.tokenizer, TEXTS, model.encoder.max_tokens)
    inputs = run_frozen(model, tokens)
    before = features_of(model, inputs, finished=False)
    layer = model.add_logits(7)
    assert (model.width, model.outputs) == (32, 7)
    assert all(weight.requires_grad for weight in layer.parameters())
    wanted = before @ layer.weight.detach().T + layer.bias.detach()
    torch.testing.assert_close(features_of(model, inputs), wanted, atol=1e-5, rtol=1e-4)
    # The features that classifiers read keep their width.
    torch.testing.assert_close(features_of(model, inputs, finished=False), before)
    np.testing.assert_allclose(model(TEXTS), wanted.numpy(), atol=1e-4)
    assert not np.allclose(np.linalg.norm(model(TEXTS), axis=1), 1)


@pytest.mark.parametrize("head", ["none", "residual"])
def test_logits_are_saved_and_loaded(tiny_encoder: str, head: str, tmp_path: Path) -> None:
    model = make(tiny_encoder, head)
    model.add_logits(5)
    wanted = model(TEXTS)
    model.save(tmp_path)
    loaded = EncoderFeatures.load(CheckedFolder(tmp_path))
    assert loaded.outputs == 5
    assert not loaded.normalise
    np.testing.assert_allclose(loaded(TEXTS), wanted, atol=1e-6)


@pytest.mark.parametrize("head", ["none", "tanh", "residual"])
def test_model_files_without_logits_are_read(tiny_encoder: str, head: str, tmp_path: Path) -> None:
    model = make(tiny_encoder, head)
    wanted = model(TEXTS)
    model.save(tmp_path)
    settings = json.loads((tmp_path / "encoder.json").read_text())
    assert settings.pop("logits") is None
    (tmp_path / "encoder.json").write_text(json.dumps(settings))
    loaded = EncoderFeatures.load(CheckedFolder(tmp_path))
    assert loaded.logits is None
    assert loaded.outputs == loaded.width == 32
    np.testing.assert_allclose(loaded(TEXTS), wanted, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(wanted, axis=1), 1, atol=1e-5)
