"""CDAC+: training on pairs with moving thresholds."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from support.drawn_states import Drawn, draw
from torch import Tensor

from newfound.clustering.kmeans import kmeans
from newfound.clustering.metrics import Scores, accuracy
from newfound.encoding.batching import Batch, Cells
from newfound.encoding.feature_cache import Inputs, features_of
from newfound.methods import cdac
from newfound.methods.cdac import CDACConfig, train_on_pairs
from newfound.progress import Stages
from newfound.training.losses.pairwise import threshold_schedule
from newfound.training.self_training import start_logits

SEEDS = (0, 1, 2, 3, 4)


def begin(drawn: Drawn, how: str = "pca") -> None:
    """Add logits to the model."""
    torch.manual_seed(0)
    rows = np.arange(len(drawn.truth))
    start_logits(drawn.prepared.model, drawn.prepared.inputs, rows, drawn.prepared.k, how)


def trained(drawn: Drawn, how: str = "pca", **changes: Any) -> Scores:
    """Return the accuracy of k-means on the logits after training on pairs."""
    begin(drawn, how)
    settings = {"learning_rate": 1e-2, "batch": 64, "tightening": 0.015, **changes}
    train_on_pairs(drawn.prepared, drawn.task, CDACConfig(**settings), 0, Stages(False))
    logits = features_of(drawn.prepared.model, drawn.prepared.inputs)
    found = kmeans(logits, drawn.prepared.k, starts=3, seed=0).labels.numpy()
    hidden = drawn.hidden
    return accuracy(found[hidden], drawn.truth[hidden], set(range(len(drawn.task.known))))


def test_thresholds_find_the_novel_categories(tiny_encoder: str) -> None:
    # With random logits, as published, which hardly separate texts.
    with_them, without = (
        np.mean([trained(draw(tiny_encoder, seed=s), "random", thresholds=t).novel for s in SEEDS])
        for t in (True, False)
    )
    assert with_them > 80
    # Pairs of labelled texts alone do not find novel categories.
    assert without < with_them - 8


def test_without_thresholds_only_labelled_pairs_count(
    tiny_encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = watch_pairs(monkeypatch)
    trained(draw(tiny_encoder, each=10), thresholds=False, tightening=0.2)
    for targets, positive, negative in seen:
        both = (targets >= 0)[:, None] & (targets >= 0)
        assert torch.equal(positive | negative, both)
    assert any(positive.any() for _, positive, _ in seen)


def watch_pairs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Return targets, positive and negative pairs of each batch over all texts."""
    seen: list[tuple[Tensor, Tensor, Tensor]] = []
    real: Callable[..., tuple[Tensor, Tensor]] = cdac.choose_pairs

    def watched(similar: Tensor, targets: Tensor, upper: Any, lower: Any) -> tuple[Tensor, Tensor]:
        found = real(similar, targets, upper, lower)
        seen.append((targets, *found))
        return found

    monkeypatch.setattr(cdac, "choose_pairs", watched)
    return seen


def test_epoch_passes_over_labelled_then_all_texts_in_random_order(
    tiny_encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = draw(tiny_encoder, each=10)  # 60 texts, 15 of them labelled
    begin(drawn)
    asked: list[list[int]] = []
    real = Inputs.batch

    def watched(self: Inputs, batch: Batch) -> tuple[Tensor, Cells | None]:
        asked.append(batch.rows.tolist())
        return real(self, batch)

    monkeypatch.setattr(Inputs, "batch", watched)
    config = CDACConfig(batch=20, tightening=0.2)
    train_on_pairs(drawn.prepared, drawn.task, config, 0, Stages(False))
    epochs = [asked[i : i + 4] for i in range(0, len(asked), 4)]
    assert len(epochs) == len(threshold_schedule(0.2)) == 3
    labelled = set(drawn.task.labelled.tolist())
    for first, *others in epochs:
        assert set(first) == labelled
        assert {row for batch in others for row in batch} == set(range(60))
        # Every batch contains labelled and unlabelled texts.
        assert all(0 < len(labelled & set(batch)) < 20 for batch in others)
    assert epochs[0][1:] != epochs[1][1:]


def test_thresholds_follow_the_schedule(tiny_encoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[float, float]] = []
    real: Callable[..., tuple[Tensor, Tensor]] = cdac.choose_pairs

    def watched(similar: Tensor, targets: Tensor, upper: Any, lower: Any) -> tuple[Tensor, Tensor]:
        seen.append((float(upper), float(lower)))
        return real(similar, targets, upper, lower)

    monkeypatch.setattr(cdac, "choose_pairs", watched)
    drawn = draw(tiny_encoder, each=10)
    trained(drawn, batch=60, tightening=0.05)
    np.testing.assert_allclose(seen, threshold_schedule(0.05), rtol=1e-6)
    history = drawn.prepared.pretrained.history
    assert [(line["upper"], line["lower"]) for line in history] == threshold_schedule(0.05)
    assert CDACConfig().tightening == 0.0099  # 46 epochs


def test_held_out_labels_are_not_learnt_from(
    tiny_encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = watch_pairs(monkeypatch)
    drawn = draw(tiny_encoder, each=10)
    drawn.task.learnable[drawn.task.labelled[::2]] = False
    trained(drawn, batch=60, tightening=0.5)
    assert all(int((targets >= 0).sum()) == 7 for targets, _, _ in seen)


def test_labelled_weight_scales_the_loss_of_labelled_pairs(tiny_encoder: str) -> None:
    losses = []
    for weight in (5.0, 1.0):
        drawn = draw(tiny_encoder, each=10)
        trained(drawn, labelled_weight=weight, learning_rate=0.0, tightening=1.0)
        losses.append(drawn.prepared.pretrained.history[0]["labelled_pairs"])
    assert losses[0] == pytest.approx(5 * losses[1])
