"""BERT: k-means on the features of an encoder that learns nothing.

The row "BERT" of the comparison (Devlin et al., 2019; also called KM-BERT), with whatever encoder
is named. How tokens become one vector is left open there: it follows the encoder or, if the user
says so, `pooling`. Labels are not used.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from newfound.clustering.kmeans import kmeans
from newfound.config import setting
from newfound.data.task import Task
from newfound.encoding.batching import tokenize
from newfound.encoding.feature_cache import features_of, run_frozen
from newfound.encoding.feature_maps import EncoderFeatures
from newfound.encoding.loading import Encoder
from newfound.methods.finalisation import settle_on
from newfound.methods.fitted import Fitted
from newfound.progress import Stages
from newfound.training.preparation import count_categories


@dataclass(frozen=True)
class FrozenConfig:
    """Settings of k-means on the frozen encoder."""

    normalise: bool = setting(True, "give every feature unit length")
    starts: int = setting(10, "k-means starts", low=1)


EFFORTS: dict[str, dict[str, Any]] = {"fast": {"starts": 3}, "balanced": {}, "best": {}}


def fit(
    task: Task,
    encoder: Encoder,
    config: FrozenConfig,
    *,
    seed: int,
    stages: Stages,
    cache: Path | None = None,
) -> Fitted:
    """Find categories by k-means on the frozen encoder's features."""
    device, depth = encoder.backbone.words.weight.device, encoder.backbone.shape.layers
    model = EncoderFeatures(encoder, normalise=config.normalise, frozen_layers=depth).to(device)
    with stages.stage("tokenising"):
        tokens = tokenize(encoder.tokenizer, task.texts, encoder.max_tokens)
    with stages.stage("encoding", len(tokens)) as advance:
        inputs = run_frozen(model, tokens, folder=cache, advance=advance)
    features = features_of(model, inputs)
    k, estimate = count_categories(task, lambda: features, seed, stages)
    with stages.stage("clustering"):
        centres = kmeans(features, k, starts=config.starts, seed=seed).centres
    note = "bert ignores labels: they only lend their names to the nearest groups"
    notes = [note] if task.known else []
    return settle_on(model, task, features, centres, estimate=estimate, notes=notes)
