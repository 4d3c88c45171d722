"""The autoencoder: TF-IDF input, training, dead units, files."""

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from support.small_texts import everything_under, small_task
from torch import Tensor, nn

from newfound.errors import InputError
from newfound.files import CheckedFolder
from newfound.progress import Stages
from newfound.training import autoencoder
from newfound.training.autoencoder import (
    AutoencoderFeatures,
    BagOfWords,
    batches_of,
    codes_of,
    flip_dead_units,
    tensor_cores,
    train_autoencoder,
)

CPU = torch.device("cpu")
TEXTS = ["the card is lost", "lost lost card", "rain and more rain", "the sun"]


@pytest.fixture(autouse=True)
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autoencoder, "HIDDEN", (24, 24, 32))


def made(
    texts: list[str], most_words: int = 2000, seed: int = 0, **options: object
) -> tuple[AutoencoderFeatures, BagOfWords]:
    torch.manual_seed(seed)
    model = AutoencoderFeatures.from_texts(texts, most_words, **options)
    return model, BagOfWords.from_csr(model.weights(texts), CPU)


def trained(
    model: AutoencoderFeatures, bags: BagOfWords, epochs: int = 30, **options: object
) -> tuple[nn.Sequential, list[dict[str, float]]]:
    chosen: dict[str, object] = {"batch": 16, "learning_rate": 3e-3, "seed": 0} | options
    return train_autoencoder(model, bags, epochs=epochs, stages=Stages(False), **chosen)  # type: ignore[arg-type]


def test_input_is_tf_idf_with_unit_rows() -> None:
    model, bags = made(TEXTS)
    dense = bags.dense(torch.tensor([2, 0, 1]))
    for row, text in zip(dense.tolist(), [TEXTS[2], TEXTS[0], TEXTS[1]], strict=True):
        counts = Counter(text.split())
        wanted = []
        for word in model.vocabulary:
            having = sum(word in other.split() for other in TEXTS)
            wanted.append(counts[word] * (math.log((1 + len(TEXTS)) / (1 + having)) + 1))
        length = math.sqrt(sum(x * x for x in wanted))
        assert row == pytest.approx([x / length for x in wanted], rel=1e-5)


def test_small_vocabulary_gives_a_narrow_network() -> None:
    model, bags = made(TEXTS)
    assert sorted(model.vocabulary) == sorted({word for text in TEXTS for word in text.split()})
    assert bags.width == model.encoder[0].in_features == len(model.vocabulary) == 8
    assert model.decoder()[-1].out_features == 8
    few, bags = made(TEXTS, 1)
    assert few.vocabulary == ["lost"]  # the most frequent word
    assert bags.width == 1


def test_texts_without_known_words_have_equal_codes() -> None:
    model, _ = made(TEXTS)
    codes = model(["zzz", "?!", "", "lost"])
    assert np.array_equal(codes[0], codes[1])
    assert np.array_equal(codes[0], codes[2])
    assert model([]).shape == (0, 10)
    nothing = BagOfWords.from_csr(model.weights(["zzz", "?"]), CPU)
    assert not nothing.dense(torch.arange(2)).any()


def test_texts_without_any_word_are_refused() -> None:
    with pytest.raises(InputError, match="no text contains a word"):
        made(["?!", "..."])


def test_network_is_symmetric_with_a_linear_output() -> None:
    model, _ = made(TEXTS, code=3)
    kinds = [type(layer).__name__ for layer in model.encoder]
    assert kinds == ["Linear", "ReLU"] * 4
    widths = [layer.out_features for layer in model.encoder if isinstance(layer, nn.Linear)]
    assert widths == [24, 24, 32, 3]
    back = model.decoder()
    widths = [layer.out_features for layer in back if isinstance(layer, nn.Linear)]
    assert widths == [32, 24, 24, 8]
    assert isinstance(back[-1], nn.Linear)
    first = model.encoder[0]
    assert first.weight.abs().max() <= math.sqrt(6 / (8 + 24))  # Glorot's bound
    assert not first.bias.any()
    linear, _ = made(TEXTS, activation="linear")
    assert (torch.from_numpy(linear(TEXTS)) < 0).any()


def test_training_lowers_the_reconstruction_error() -> None:
    task = small_task()
    model, bags = made(task.texts)
    decoder, history = trained(model, bags, 60)
    given = bags.dense(torch.arange(len(bags)))
    error = float((decoder(codes_of(model, bags)) - given).detach().square().mean())
    naive = float((given - given.mean(0)).square().mean())  # error of the best constant
    assert error < 0.7 * naive
    assert history[-1]["loss"] < history[0]["loss"]
    np.testing.assert_allclose(model(task.texts), codes_of(model, bags), atol=1e-5)


def test_history_stays_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autoencoder, "MAX_LINES", 3)
    _, history = trained(*made(TEXTS), 8)
    assert [line["epoch"] for line in history] == [3, 6, 8]
    assert trained(*made(TEXTS), 0)[1] == []


def test_epoch_holds_every_row_once() -> None:
    parts = batches_of(10, 4, CPU, torch.Generator().manual_seed(0))
    assert [len(part) for part in parts] == [4, 4, 2]
    assert sorted(torch.cat(parts).tolist()) == list(range(10))


# Dead units.


def kill(model: AutoencoderFeatures, units: list[int]) -> None:
    """Set weights with which these code units are zero for every text."""
    last = model.encoder[-2]
    assert isinstance(last, nn.Linear)
    with torch.no_grad():
        last.weight[units] = -last.weight[units].abs()


def alive(codes: Tensor) -> list[bool]:
    return (codes > 0).any(0).tolist()


def test_dead_units_are_flipped_and_others_unchanged() -> None:
    model, bags = made(TEXTS)
    flip_dead_units(model, bags)
    before = codes_of(model, bags)
    assert all(alive(before))
    kill(model, [1, 4])
    assert flip_dead_units(model, bags) == 2
    after = codes_of(model, bags)
    assert all(alive(after))
    untouched = [0, 2, 3, 5, 6, 7, 8, 9]
    assert torch.equal(after[:, untouched], before[:, untouched])
    assert flip_dead_units(model, bags) == 0
    linear, bags = made(TEXTS, activation="linear")
    weights = linear.encoder[-1].weight.clone()
    assert flip_dead_units(linear, bags) == 0
    assert torch.equal(linear.encoder[-1].weight, weights)


def test_dead_unit_stays_dead_without_flipping() -> None:
    task = small_task()
    for waking in (True, False):
        model, bags = made(task.texts)
        kill(model, [0, 1, 2, 3, 4])
        trained(model, bags, 20, waking=waking)
        assert all(alive(codes_of(model, bags))[:5]) == waking
        assert any(alive(codes_of(model, bags))[:5]) == waking


# Files.


def test_saved_map_gives_the_same_codes(tmp_path: Path) -> None:
    model, bags = made(TEXTS, code=4)
    trained(model, bags, 3)
    model.save(tmp_path)
    assert everything_under(tmp_path) == {"autoencoder.json", "autoencoder.safetensors"}
    later = [*TEXTS, "lost in the rain", "zzz"]
    torch.manual_seed(99)
    assert np.array_equal(AutoencoderFeatures.load(CheckedFolder(tmp_path))(later), model(later))


def test_cached_autoencoder_is_read_for_equal_settings_only(tmp_path: Path) -> None:
    def weights(seed: int = 0, **options: object) -> tuple[Tensor, set[str]]:
        model, bags = made(TEXTS, seed=seed)
        stages = Stages(False)
        chosen: dict[str, object] = {"batch": 2, "learning_rate": 1e-2, "epochs": 3} | options
        train_autoencoder(model, bags, seed=seed, stages=stages, folder=tmp_path, **chosen)  # type: ignore[arg-type]
        return codes_of(model, bags), set(stages.seconds)

    first, done = weights()
    assert done == {"autoencoder"}
    second, done = weights()
    assert done == {"autoencoder (kept)"}
    assert torch.equal(first, second)
    for other in ({"seed": 1}, {"epochs": 4}, {"batch": 3}, {"learning_rate": 2e-2}):
        assert weights(**other)[1] == {"autoencoder"}  # type: ignore[arg-type]


def test_precision_is_restored_after_training() -> None:
    before = torch.backends.cuda.matmul.fp32_precision
    with tensor_cores():
        assert torch.backends.cuda.matmul.fp32_precision == "tf32"
    assert torch.backends.cuda.matmul.fp32_precision == before
