"""Pseudo-label training with priors: which prior each text gets."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from support.small_texts import KNOWN, small_task
from torch import Tensor

from newfound.data.task import make_task
from newfound.encoding.feature_cache import features_of
from newfound.encoding.loading import load_encoder
from newfound.methods import resolve_config
from newfound.methods.newfound.class_prior import ClassPrior
from newfound.methods.newfound.pseudo_labels import Priors, train_pseudo_labels
from newfound.progress import Stages
from newfound.training import swapped_prediction
from newfound.training.cosine_classifier import CosineClassifier
from newfound.training.preparation import prepare


def test_log_odds_follow_the_texts_of_the_batch_and_of_the_queue(
    tiny_encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The prior of a row is that of its text, on known categories only, step after step."""
    small = small_task()
    place = {name: i for i, name in enumerate(sorted(KNOWN))}
    targets = np.array([place.get(label or "", -1) for label in small.labels])
    task = make_task(small.texts, targets, sorted(KNOWN), 4, validation_share=0)
    seen: list[Tensor] = []
    class_priors: list[tuple[Tensor, float]] = []
    real = swapped_prediction.swapped_loss

    def watched(*given: Any, log_prior: Tensor, class_prior: Tensor, **more: Any) -> Tensor:
        seen.append(log_prior.clone())
        class_priors.append((class_prior, more["strength"]))
        return real(*given, log_prior=log_prior, class_prior=class_prior, **more)

    monkeypatch.setattr(swapped_prediction, "swapped_loss", watched)
    config = resolve_config(
        "self-labeling", "fast", {"pretrain_epochs": 3, "epochs": 2, "batch": 3, "queue": 6}
    )
    prepared = prepare(
        task,
        load_encoder(tiny_encoder),
        config,
        trainable_layers=0,
        seed=0,
        stages=Stages(False),
        cache=None,
    )
    features = features_of(prepared.model, prepared.inputs)
    log_odds = torch.arange(len(task.texts), dtype=torch.float32) + 1  # identifies each text
    class_prior = torch.tensor([0.1, 0.2, 0.3, 0.4])
    history = train_pseudo_labels(
        prepared.model,
        prepared.inputs,
        CosineClassifier(features[:4], features.mean(0)),
        features,
        task,
        config.swapped_prediction(),
        Priors(log_odds, True, ClassPrior(class_prior, 0.3)),
        seed=0,
        stages=Stages(False),
        stage="pseudo-labels",
    )
    assert [line["stage"] for line in history] == ["pseudo-labels"] * 2
    assert all(torch.equal(given, class_prior) and f == 0.3 for given, f in class_priors)
    labelled = torch.from_numpy(task.labelled) + 1.0
    for now, then in pairwise(seen):
        assert (now[:, 2:] == 0).all()
        assert torch.equal(now[:, 0], now[:, 1])
        assert torch.equal(now[:3], now[3:6])  # two views of the same texts
        assert torch.equal(then[6:9], now[:3])  # they are in the queue next
        assert torch.equal(then[9:], now[6:-3])
        assert not torch.isin(now[:, 0], labelled).any()
