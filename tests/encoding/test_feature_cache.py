"""The feature cache gives the features, losses and gradients of the full model."""

import dataclasses
import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import save_tiny_encoder

from newfound.encoding.batching import tokenize
from newfound.encoding.feature_cache import cache_folder, features_of, run_frozen
from newfound.encoding.feature_maps import EncoderFeatures
from newfound.encoding.loading import load_encoder
from newfound.files.leftovers import FILE, make_temporary

TEXTS = ["lost my card", "pay the bill please", "play a loud song", "rain", "cold warm day now"]


def make(tiny_encoder: str, frozen: int, head: str = "residual") -> EncoderFeatures:
    torch.manual_seed(0)
    model = EncoderFeatures(load_encoder(tiny_encoder), head=head, frozen_layers=frozen)
    with torch.no_grad():
        for weight in model.head.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    return model


def reference_features(model: EncoderFeatures, text: str) -> torch.Tensor:
    """Return the features of a text from the full model, without cache and padding.

    Rounding to half precision after the frozen layers is part of the feature map.
    """
    ids = torch.tensor([model.encoder.tokenizer.encode(text).ids])
    backbone, mask = model.backbone, torch.ones_like(ids, dtype=torch.bool)
    hidden = backbone.embed(ids)
    for number in range(backbone.shape.layers):
        if number == model.frozen_layers:
            hidden = hidden.half().float()
        hidden = backbone.run(hidden, mask, number, number + 1)
    pooled = hidden[:, 0]
    if model.frozen_layers == backbone.shape.layers:
        pooled = pooled.half().float()
    return model.finish(model.head(pooled))[0]


@pytest.mark.parametrize("frozen", [-1, 0, 1, 2, 3])
def test_features_equal_those_of_single_texts(frozen: int, tiny_encoder: str) -> None:
    model = make(tiny_encoder, frozen).eval()
    tokens = tokenize(model.encoder.tokenizer, TEXTS, 16)
    with torch.inference_mode():
        wanted = torch.stack([reference_features(model, text) for text in TEXTS])
    cached = features_of(model, run_frozen(model, tokens))
    assert torch.allclose(cached, wanted, atol=1e-5)
    assert np.allclose(model(TEXTS), wanted.numpy(), atol=1e-5)


@pytest.mark.parametrize("frozen", [-1, 0, 1, 2, 3])
def test_loss_and_gradients_equal_the_full_model(frozen: int, tiny_encoder: str) -> None:
    model = make(tiny_encoder, frozen)
    model.train()
    for part in model.modules():  # dropout would make results random
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
        if hasattr(part, "attention_dropout"):
            part.attention_dropout = 0.0
    inputs = run_frozen(model, tokenize(model.encoder.tokenizer, TEXTS, 16))
    model.train()
    direction = torch.linspace(-1, 1, model.width)
    (batch,) = inputs.batches(np.arange(len(TEXTS))[None])
    fast = (model.finish(model.from_states(*inputs.batch(batch))) @ direction).square().sum()
    fast.backward()
    found = {n: w.grad.clone() for n, w in model.named_parameters() if w.grad is not None}
    model.zero_grad()
    slow = (
        (torch.stack([reference_features(model, text) for text in TEXTS]) @ direction)
        .square()
        .sum()
    )
    slow.backward()
    assert fast.item() == pytest.approx(slow.item(), rel=1e-4)
    assert found
    for name, weight in model.named_parameters():
        if name in found:
            assert torch.allclose(found[name], weight.grad, atol=1e-4), name
        else:
            assert not weight.requires_grad


@pytest.mark.parametrize("family", ["bert", "mpnet"])
@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("frozen", [-1, 1])
def test_packed_and_padded_texts_have_equal_features(
    family: str, pooling: str, frozen: int, tmp_path: Path
) -> None:
    save_tiny_encoder(tmp_path, family)
    encoder = dataclasses.replace(load_encoder(str(tmp_path)), pooling=pooling)
    model = EncoderFeatures(encoder, frozen_layers=frozen).eval()
    texts = [*TEXTS, "", "pay " * 30, "card"]
    inputs = run_frozen(model, tokenize(encoder.tokenizer, texts, 32))
    drawn = np.random.default_rng(0).integers(len(texts), size=(3, 12))
    wanted = features_of(model, inputs)
    with torch.inference_mode():
        for rows, batch in zip(drawn, inputs.batches(drawn), strict=True):
            found = model.finish(model.from_states(*inputs.batch(batch)))
            assert batch.grid[0] < 12  # several texts per row
            assert torch.allclose(found, wanted[torch.from_numpy(rows)], atol=1e-5)


@pytest.mark.parametrize("frozen", [1, 3])
def test_cache_is_reused_and_memory_mapped_beyond_the_limit(
    frozen: int, tiny_encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make(tiny_encoder, frozen)
    tokens = tokenize(model.encoder.tokenizer, TEXTS, 16)
    in_memory = run_frozen(model, tokens)
    on_disk = run_frozen(model, tokens, memory_limit=0)
    first = run_frozen(model, tokens, folder=tmp_path)
    (kept,) = tmp_path.iterdir()

    def never(*_: object) -> None:
        raise AssertionError("the frozen layers ran again")

    monkeypatch.setattr(EncoderFeatures, "lower", never)
    again = run_frozen(model, tokens, folder=tmp_path)
    rows = torch.arange(len(TEXTS))
    wanted, mask = in_memory.padded(rows, int(tokens.lengths.max()))
    for inputs in (on_disk, first, again):
        found, _ = inputs.padded(rows, int(tokens.lengths.max()))
        assert torch.equal(
            found if mask is None else found[mask], wanted if mask is None else wanted[mask]
        )
    monkeypatch.undo()
    other = tokenize(model.encoder.tokenizer, TEXTS[::-1], 16)
    run_frozen(model, other, folder=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    with torch.no_grad():
        model.backbone.words.weight.add_(1)
    run_frozen(model, tokens, folder=tmp_path)
    assert len(list(tmp_path.iterdir())) == 3
    assert kept.exists()


def test_temporary_caches_of_dead_processes_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left = make_temporary("cache", tmp_path, FILE)
    (left / "old.features").write_text("old")
    with cache_folder(None) as one, cache_folder(None) as other:
        assert {path.name for path in tmp_path.iterdir()} == {Path(one).name, Path(other).name}
    assert list(tmp_path.iterdir()) == []
