"""Semi-KM: k-means with pinned labels on pretrained features, a baseline of the DPN paper.

1. Pretrain on labels and masked words (Eq. 1), as DPN does.
2. Run k-means with pinned labels over the features; a text belongs to the nearest centre.

The DPN paper does not specify the pretraining of Semi-KM. In its results Semi-KM is better than
methods that pretrain on labels alone, so DPN's pretraining is used here; `masked_words=False`
pretrains on labels alone.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from newfound.config import setting
from newfound.data.task import Task
from newfound.encoding.vectors.frozen_encoder import AnyEncoder
from newfound.methods.finalisation import finalise_with_kmeans
from newfound.methods.fitted import Fitted
from newfound.progress import Stages
from newfound.training.preparation import PreparationConfig, prepare


@dataclass(frozen=True)
class SemiKMConfig(PreparationConfig):
    """Settings of Semi-KM; those of pretraining are DPN's."""

    starts: int = setting(10, "k-means starts", low=1)


EFFORTS: dict[str, dict[str, Any]] = {
    "fast": {
        "head": "residual",
        "pretrain_layers": 0,
        "pretrain_epochs": 20,
        "pretrain_learning_rate": 1e-4,
        "starts": 3,
    },
    "balanced": {
        "pretrain_layers": 1,
        "pretrain_epochs": 20,
        "patience": 5,
        "masked_words": False,
        "starts": 5,
    },
    "best": {},
}


def fit(
    task: Task,
    encoder: AnyEncoder,
    config: SemiKMConfig,
    *,
    seed: int,
    stages: Stages,
    cache: Path | None = None,
) -> Fitted:
    """Find categories by k-means with pinned labels on pretrained features."""
    prepared = prepare(
        task,
        encoder,
        config,
        trainable_layers=None,
        seed=seed,
        stages=stages,
        cache=cache,
    )
    return finalise_with_kmeans(prepared, task, seed=seed, stages=stages, starts=config.starts)
