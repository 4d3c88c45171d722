"""Methods count categories in `fit` with the features that `newfound estimate` uses.

The method `newfound` counts in a way of its own: see test_merging and test_method there.
"""

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch
from support.small_texts import KNOWN, WORDS_OF, small_task
from torch import Tensor

from newfound.data.task import make_task
from newfound.encoding.loading import load_encoder
from newfound.methods import METHODS, resolve_config
from newfound.progress import Stages
from newfound.training import autoencoder, preparation


class CountedError(Exception):
    """Raised to end a fit where it counts categories."""


@pytest.fixture
def word_vectors(tmp_path: Any) -> str:
    rng = np.random.default_rng(0)
    words = [word for group in WORDS_OF.values() for word in group.split()]
    lines = [" ".join([word, *map(str, rng.normal(size=4).round(4))]) for word in words]
    (tmp_path / "vectors.txt").write_text("\n".join(lines))
    return str(tmp_path / "vectors.txt")


@pytest.mark.parametrize("name", [name for name in METHODS if METHODS[name].estimate is None])
def test_fit_and_estimate_count_with_the_same_features(
    tiny_encoder: str, word_vectors: str, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(autoencoder, "HIDDEN", (24, 24, 32))
    counted: list[Tensor] = []

    def stop(features: Tensor, targets: Tensor, **options: Any) -> None:
        counted.append(features)
        raise CountedError

    monkeypatch.setattr(preparation, "estimate_categories", stop)
    small, place = small_task(), {label: i for i, label in enumerate(sorted(KNOWN))}
    targets = np.array([place.get(label or "", -1) for label in small.labels])
    task = make_task(small.texts, targets, sorted(KNOWN), None)
    has = {field.name for field in fields(METHODS[name].config)}
    wanted = {"vectors": word_vectors, "epochs": 3}
    settings = {key: value for key, value in wanted.items() if key in has}
    config = resolve_config(name, "fast", settings)
    features = []
    for step in (METHODS[name].counting_features, METHODS[name].fit):
        torch.manual_seed(0)
        encoder = load_encoder(tiny_encoder)
        try:
            features.append(step(task, encoder, config, seed=0, stages=Stages(False)))
        except CountedError:
            features.append(counted.pop())
    torch.testing.assert_close(*features, rtol=0, atol=0)
    assert len(features[0]) == len(task.texts)
