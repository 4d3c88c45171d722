"""Semi-KM: pretrain with labels and masked words, then k-means; nothing is learnt after that.

The pretraining is DPN's with DPN's settings (Eq. 1), because the DPN paper places Semi-KM above
methods that pretrain on labels alone, and does not say which pretraining it had; that other reading
is `masked_words=False`. The prototypes come from k-means that holds labelled texts in their
category, so that known categories come out under their own names.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from newfound.config import Layers, setting
from newfound.data.task import Task
from newfound.encoding.loading import Encoder
from newfound.methods.finalisation import settle
from newfound.methods.fitted import Fitted
from newfound.progress import Stages
from newfound.training.preparation import StartConfig, begin


@dataclass(frozen=True)
class SemiKMConfig(StartConfig):
    """Settings of Semi-KM; those of pretraining are DPN's."""

    trainable_layers: Layers = setting("all", "of no effect: nothing learns after pretraining")
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
    encoder: Encoder,
    config: SemiKMConfig,
    *,
    seed: int,
    stages: Stages,
    cache: Path | None = None,
) -> Fitted:
    """Find categories by k-means on pretrained features."""
    # The layers that learnt stay the ones that are run: nothing has to be encoded again.
    config = replace(config, trainable_layers=config.pretrain_layers)
    start = begin(task, encoder, config, seed=seed, stages=stages, cache=cache)
    return settle(start, task, seed=seed, stages=stages, starts=config.starts)
