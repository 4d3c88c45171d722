"""KM-GloVe and AG-GloVe: cluster the mean GloVe vectors of the texts, without labels.

1. Represent each text by the unweighted mean of its words' GloVe vectors.
2. KM-GloVe: run k-means (MacQueen, 1967). AG-GloVe: merge texts bottom-up by Ward's criterion
   (Gowda & Krishna, 1978).
3. A text belongs to the nearest cluster mean; agglomerative clustering has no rule for new texts of
   its own.

Departures from TEXTOIR, which the DPN paper used:

- All words with a vector are used, not the 10,000 most frequent ones of training and test texts,
  because test texts are not available.
- Words without a vector are ignored; TEXTOIR gives them random vectors. With 50-dimensional vectors
  that changes no score by more than its standard deviation over seeds.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from newfound.clustering.kmeans import kmeans
from newfound.clustering.prototypes import class_means
from newfound.config import setting
from newfound.data.task import Task
from newfound.encoding.vectors.frozen_encoder import AnyEncoder
from newfound.encoding.word_vectors import WordVectors, read_vectors
from newfound.methods.finalisation import finalise_with_centres
from newfound.methods.fitted import Fitted
from newfound.progress import Stages
from newfound.training.preparation import count_categories

_VECTORS = "file of word vectors in GloVe's text form; empty: 50-d GloVe 6B, of the extra `glove`"


@dataclass(frozen=True)
class KMGloVeConfig:
    """Settings of KM-GloVe."""

    vectors: str = setting("", _VECTORS)
    starts: int = setting(10, "k-means starts", low=1)


@dataclass(frozen=True)
class AGGloVeConfig:
    """Settings of AG-GloVe."""

    vectors: str = setting("", _VECTORS)
    largest: int = setting(
        20_000,
        "maximum number of texts to merge, as memory grows with their square (20,000: 3 GB); "
        "beyond it a random sample is merged, and the others go to the nearest mean",
        low=2,
    )


# Neither trains anything: every effort takes the same few seconds.
EFFORTS: dict[str, dict[str, Any]] = {"fast": {}, "balanced": {}, "best": {}}


def fit_km(
    task: Task,
    encoder: AnyEncoder,
    config: KMGloVeConfig,
    *,
    seed: int,
    stages: Stages,
    cache: Path | None = None,
) -> Fitted:
    """Find categories by k-means on mean word vectors; the encoder only gives the device."""
    feature_map, points = _mean_vectors(task, encoder, config, stages)
    k, estimate = count_categories(task, lambda: points, seed, stages)
    with stages.stage("clustering"):
        centres = kmeans(points, k, starts=config.starts, seed=seed).centres
    note = "km-glove ignores labels: they only name the nearest clusters"
    notes = [note] if task.known else []
    return finalise_with_centres(feature_map, task, points, centres, estimate=estimate, notes=notes)


def fit_ag(
    task: Task,
    encoder: AnyEncoder,
    config: AGGloVeConfig,
    *,
    seed: int,
    stages: Stages,
    cache: Path | None = None,
) -> Fitted:
    """Find categories by Ward's agglomeration of mean word vectors."""
    feature_map, points = _mean_vectors(task, encoder, config, stages)
    k, estimate = count_categories(task, lambda: points, seed, stages)
    rows = np.arange(len(points))
    notes = []
    if task.known:
        notes.append("ag-glove ignores labels: they only name the nearest clusters")
    if len(rows) > config.largest:
        rows = np.random.default_rng(seed).permutation(rows)[: max(k, config.largest)]
        notes.append(
            f"ag-glove merged a random {len(rows)} of the {len(points)} texts and assigned the "
            "others to the nearest cluster; --set largest=N merges more"
        )
    with stages.stage("clustering"):
        chosen = points[torch.from_numpy(rows).to(points.device)]
        clusters = torch.from_numpy(ward(chosen.cpu().numpy(), k, seed)).to(points.device)
        centres = class_means(chosen, clusters, k)
    return finalise_with_centres(feature_map, task, points, centres, estimate=estimate, notes=notes)


def ward(features: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Cluster features [N, d] by Ward's criterion into k clusters [N]; `seed` is not used."""
    from sklearn.cluster import AgglomerativeClustering  # slow to import

    if k == 1 or len(features) < 2:
        return np.zeros(len(features), np.int64)
    return AgglomerativeClustering(k, linkage="ward").fit_predict(features).astype(np.int64)


def counting_features(
    task: Task,
    encoder: AnyEncoder,
    config: KMGloVeConfig | AGGloVeConfig,
    *,
    seed: int,
    stages: Stages,
    cache: Path | None = None,
) -> Tensor:
    """Return the mean word vectors [N, d] that both methods count categories with."""
    return _mean_vectors(task, encoder, config, stages)[1]


def _mean_vectors(
    task: Task, encoder: AnyEncoder, config: KMGloVeConfig | AGGloVeConfig, stages: Stages
) -> tuple[WordVectors, Tensor]:
    """Return the feature map, and the features of the texts [N, d] on the encoder's device."""
    with stages.stage("reading word vectors"):
        feature_map = read_vectors(config.vectors, task.texts)
    with stages.stage("encoding", len(task.texts)) as advance:
        features = feature_map(task.texts, advance)
    return feature_map, torch.from_numpy(features).to(encoder.device)
