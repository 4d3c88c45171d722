"""Masked words, early stopping and pretraining."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from newfound.data.task import make_task
from newfound.encoding.batching import tokenize
from newfound.encoding.feature_cache import features_of, run_frozen
from newfound.encoding.feature_maps import EncoderFeatures
from newfound.encoding.loading import load_encoder
from newfound.progress import Stages
from newfound.training.best_weights import BestWeights
from newfound.training.masking import MaskedWords, mask_words
from newfound.training.pretraining import PretrainingConfig, pretrain, start_from_means

SPECIAL = torch.tensor([0, 1, 2, 3, 4])


def test_masking_follows_the_shares_and_skips_special_tokens() -> None:
    torch.manual_seed(0)
    ids = torch.randint(5, 30, (200, 40))
    ids[:, 0], ids[:, -1] = 2, 3
    mask = torch.ones_like(ids, dtype=torch.bool)
    mask[:, 30:] = False
    masked, places, words = mask_words(ids, mask, SPECIAL, 4, 30, 0.15)
    drawn = words != -100
    real = int((mask & (ids > 4)).sum())
    assert drawn.sum().item() / real == pytest.approx(0.15, abs=0.01)
    chosen = places[drawn]
    assert torch.equal(words[drawn], ids.flatten()[chosen])
    assert len(set(chosen.tolist())) == len(chosen)
    assert mask.flatten()[chosen].all()
    assert (ids.flatten()[chosen] > 4).all()
    now = masked.flatten()[chosen]
    assert (now == 4).float().mean().item() == pytest.approx(0.8, abs=0.03)
    kept = (now == words[drawn]).float().mean().item()
    assert kept == pytest.approx(0.1 + 0.1 / 30, abs=0.03)
    untouched = torch.ones(ids.numel(), dtype=torch.bool)
    untouched[chosen] = False
    assert torch.equal(masked.flatten()[untouched], ids.flatten()[untouched])


@pytest.mark.parametrize("frozen", [-1, 1, 2])
def test_loss_at_masked_tokens_equals_the_loss_over_all_tokens(
    frozen: int, tiny_encoder: str
) -> None:
    encoder = load_encoder(tiny_encoder)
    model = EncoderFeatures(encoder, frozen_layers=frozen).eval()
    tokens = tokenize(encoder.tokenizer, ["lost my card", "pay the bill please now", "rain"], 16)
    words = MaskedWords(model, 0.5)
    ids, mask = tokens.padded(torch.arange(3), 7)
    torch.manual_seed(1)
    masked, places, wanted = words.mask(ids, mask)
    hidden = model.upper(model.lower(masked, mask), mask)
    found = words.loss(hidden, places, wanted)
    every_score = words.head(hidden, model.backbone.words)  # [B, L, V]
    targets = torch.full((ids.numel(),), -100)
    targets[places] = wanted
    slow = F.cross_entropy(every_score.flatten(0, 1), targets, ignore_index=-100)
    assert found.item() == pytest.approx(slow.item(), rel=1e-5)
    assert math.isfinite(found.item())


def test_attention_mask_reaches_masked_word_loss(tiny_encoder: str) -> None:
    """Padding does not change the loss, unlike in the released code."""
    encoder = load_encoder(tiny_encoder)
    model = EncoderFeatures(encoder).eval()
    tokens = tokenize(encoder.tokenizer, ["lost my card", "pay the bill please now"], 16)
    short = model.upper(*tokens.padded(torch.tensor([0]), 5))
    wide = model.upper(*tokens.padded(torch.tensor([0]), 12))
    assert torch.allclose(short, wide[:, :5], atol=1e-5)


def test_best_weights_are_kept_and_training_stops_after_patience() -> None:
    module = torch.nn.Linear(1, 1, bias=False)
    best = BestWeights([module], patience=2)
    stops = []
    for value, score in [(1.0, 0.3), (2.0, 0.9), (3.0, 0.9), (4.0, 0.5)]:
        module.weight.data.fill_(value)
        stops.append(best.update(score))
    assert stops == [False, False, False, True]
    best.restore()
    assert module.weight.item() == 2.0


TOPICS = {
    "bank": ["lost my card", "pay the bill", "money bank cash", "my bank card", "pay cash now"],
    "travel": ["book a flight", "hotel trip", "travel book hotel", "a trip please", "flight hotel"],
}


def small_task(per_class: int = 5):  # type: ignore[no-untyped-def]
    texts = [t for topic in TOPICS.values() for t in topic] + ["rain sun", "cold day", "warm sun"]
    targets = np.array([0] * 5 + [1] * 5 + [-1] * 3)
    for topic in (0, 1):
        targets[np.flatnonzero(targets == topic)[per_class:]] = -1
    return make_task(texts, targets, list(TOPICS), None, seed=0)


@pytest.mark.parametrize("layers", ["all", 0, 1, 3, 99])
def test_pretraining_learns_the_labels(layers: int | str, tiny_encoder: str) -> None:
    encoder = load_encoder(tiny_encoder)
    torch.manual_seed(0)
    model = EncoderFeatures(encoder, head="residual")
    task = small_task()
    tokens = tokenize(encoder.tokenizer, task.texts, 16)
    config = PretrainingConfig(layers=layers, epochs=30, learning_rate=5e-3)
    history = pretrain(model, task, tokens, config, seed=0, stages=Stages(False)).history
    assert history[-1]["loss"] < history[0]["loss"]
    assert min(line["cross_entropy"] for line in history) < 0.3
    assert ("masked_words" in history[0]) == (layers != 0)
    assert "validation_accuracy" in history[0]


def test_two_labels_per_category_are_all_learnt_from() -> None:
    task = small_task(per_class=2)
    assert task.validation_texts == []
    assert task.learnable.sum() == 4


def test_held_out_texts_keep_their_label_but_are_not_learnt_from() -> None:
    task = small_task()
    assert len(task.validation_texts) == 2
    assert task.learnable.sum() == 8
    assert (task.targets >= 0).sum() == 10


def test_classifier_is_initialised_as_nearest_class_mean(tiny_encoder: str) -> None:
    model = EncoderFeatures(load_encoder(tiny_encoder), frozen_layers=3)
    task = small_task()
    inputs = run_frozen(model, tokenize(model.encoder.tokenizer, task.texts, 16))
    classifier = torch.nn.Linear(model.width, 2)
    start_from_means(classifier, model, task, inputs)
    raw = features_of(model, inputs, finished=False)
    rows = {c: np.flatnonzero(task.learnable & (task.targets == c)) for c in (0, 1)}
    means = torch.stack([raw[torch.from_numpy(rows[c])].mean(0) for c in (0, 1)])
    with torch.no_grad():
        chosen = classifier(raw).argmax(1).tolist()
    for x, found in zip(raw, chosen, strict=True):
        assert found == min((0, 1), key=lambda c: float((x - means[c]).norm()))


def test_pretraining_is_read_from_the_cache(tiny_encoder: str, tmp_path: Path) -> None:
    task, found = small_task(), []
    config = PretrainingConfig(layers=1, epochs=2, learning_rate=1e-2)
    for _ in range(2):
        torch.manual_seed(0)
        model = EncoderFeatures(load_encoder(tiny_encoder))
        tokens = tokenize(model.encoder.tokenizer, task.texts, 16)
        stages = Stages(False)
        pretrain(model, task, tokens, config, seed=0, stages=stages, folder=tmp_path)
        found.append((model.state_dict(), stages.seconds))
    (first, _), (second, seconds) = found
    assert "pretraining (kept)" in seconds
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_frozen_weights_do_not_change(tiny_encoder: str) -> None:
    encoder = load_encoder(tiny_encoder)
    model = EncoderFeatures(encoder)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    task = small_task()
    tokens = tokenize(encoder.tokenizer, task.texts, 16)
    config = PretrainingConfig(layers=1, epochs=2, learning_rate=1e-2)
    pretrain(model, task, tokens, config, seed=0, stages=Stages(False))
    moved = {
        name for name, weight in model.state_dict().items() if not torch.equal(weight, before[name])
    }
    assert moved
    assert all(name.startswith("backbone.layers.2.") for name in moved)
