"""k-means on the features of a frozen encoder."""

from typing import Any

import numpy as np
import pytest
import torch
from support.small_texts import SmallTask, small_task

from newfound.clustering.assignment import assign
from newfound.clustering.kmeans import kmeans
from newfound.clustering.metrics import accuracy
from newfound.data.task import make_task
from newfound.encoding.feature_maps import EncoderFeatures
from newfound.encoding.loading import load_encoder
from newfound.methods import frozen_kmeans, resolve_config
from newfound.methods.fitted import Fitted
from newfound.progress import Stages


@pytest.fixture(scope="module")
def task() -> SmallTask:
    return small_task()


def fit(folder: str, texts: list[str], k: int | None = 4, **changes: Any) -> Fitted:
    wanted = make_task(texts, np.full(len(texts), -1), [], k)
    config = resolve_config("bert", "best", changes)
    encoder = load_encoder(folder, pooling="mean")
    return frozen_kmeans.fit(wanted, encoder, config, seed=0, stages=Stages(False))


def predicted(fitted: Fitted) -> np.ndarray:
    return assign(fitted.training_features, fitted.prototypes, fitted.temperature)[0]


def test_easy_task_is_solved(tiny_encoder: str, task: SmallTask) -> None:
    fitted = fit(tiny_encoder, task.texts)
    assert accuracy(predicted(fitted), task.truth, set()).all > 90
    # Unknown words are equal to the encoder, so nothing can be found.
    unknown = [" ".join(f"zz{word}" for word in text.split()) for text in task.texts]
    assert accuracy(predicted(fit(tiny_encoder, unknown)), task.truth, set()).all < 60


def test_encoder_is_unchanged(tiny_encoder: str, task: SmallTask) -> None:
    fitted = fit(tiny_encoder, task.texts)
    after = fitted.features.backbone.state_dict()  # type: ignore[attr-defined]
    for name, weight in load_encoder(tiny_encoder).backbone.state_dict().items():
        assert torch.equal(weight, after[name])
    assert fitted.history == []


def test_prototypes_equal_the_kmeans_centres(tiny_encoder: str, task: SmallTask) -> None:
    for normalise in (True, False):
        fitted = fit(tiny_encoder, task.texts, normalise=normalise)
        encoder = load_encoder(tiny_encoder, pooling="mean")
        features = EncoderFeatures(encoder, normalise=normalise, frozen_layers=3)(task.texts)
        assert np.allclose(np.linalg.norm(features, axis=1), 1) == normalise
        wanted = kmeans(torch.from_numpy(features), 4, starts=10, seed=0).centres
        np.testing.assert_allclose(fitted.prototypes, wanted, atol=1e-4)
