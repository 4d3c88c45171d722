"""BERT: k-means on the features of a frozen encoder, without labels.

The method "BERT" of the comparison (Devlin et al., 2019; also called KM-BERT), with any encoder.

1. Encode the texts with the frozen encoder.
2. Run k-means; a text belongs to the nearest centre.

The paper does not specify the pooling; here it is that of the encoder, or `pooling`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from newfound.clustering.kmeans import kmeans
from newfound.config import setting
from newfound.data.task import Task
from newfound.encoding.feature_cache import TrainableFeatures
from newfound.encoding.vectors.frozen_encoder import AnyEncoder
from newfound.methods.finalisation import finalise_with_centres
from newfound.methods.fitted import Fitted
from newfound.progress import Stages
from newfound.training.preparation import (
    count_categories,
    encoded_features,
    make_features,
    run_encoder,
)


@dataclass(frozen=True)
class FrozenConfig:
    """Settings of k-means on the frozen encoder."""

    normalise: bool = setting(True, "scale every feature to unit length")
    starts: int = setting(10, "k-means starts", low=1)


EFFORTS: dict[str, dict[str, Any]] = {"fast": {"starts": 3}, "balanced": {}, "best": {}}


def fit(
    task: Task,
    encoder: AnyEncoder,
    config: FrozenConfig,
    *,
    seed: int,
    stages: Stages,
    cache: Path | None = None,
) -> Fitted:
    """Find categories by k-means on the frozen encoder's features."""
    model, features = _frozen_features(task, encoder, config, stages, cache)
    k, estimate = count_categories(task, lambda: features, seed, stages)
    with stages.stage("clustering"):
        centres = kmeans(features, k, starts=config.starts, seed=seed).centres
    note = "bert ignores labels: they only name the nearest clusters"
    notes = [note] if task.known else []
    return finalise_with_centres(model, task, features, centres, estimate=estimate, notes=notes)


def counting_features(
    task: Task,
    encoder: AnyEncoder,
    config: FrozenConfig,
    *,
    seed: int,
    stages: Stages,
    cache: Path | None = None,
) -> Tensor:
    """Return the features [N, d] of the frozen encoder, which categories are counted with."""
    return _frozen_features(task, encoder, config, stages, cache)[1]


def _frozen_features(
    task: Task, encoder: AnyEncoder, config: FrozenConfig, stages: Stages, cache: Path | None
) -> tuple[TrainableFeatures, Tensor]:
    """Return the feature map, and the features of the texts [N, d]."""
    model = make_features(task, encoder, normalise=config.normalise)
    model.freeze(encoder.layers)
    encoded = run_encoder(model, task, stages=stages, cache=cache)
    return model, encoded_features(encoded)
