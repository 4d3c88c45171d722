"""KM-GloVe and AG-GloVe: cluster the mean word vectors of the texts.

The two oldest rows of the comparison. A text is the unweighted mean of its words' GloVe vectors;
KM-GloVe runs k-means on these (MacQueen, 1967), AG-GloVe merges them bottom-up by Ward's criterion
(Gowda & Krishna, 1978). Labels are not used.

Departures from TEXTOIR's version, which the paper took: all words of the vector table count, not
the 10,000 most frequent ones of training and test texts together, for test texts are not there to
be read; and a word without a vector is left out, where TEXTOIR gives it random numbers (with the
50-dimensional vectors that moves no score by more than its own spread over seeds).

Agglomerative clustering has no rule for new texts: they go to the nearest cluster mean.
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
from newfound.encoding.loading import Encoder
from newfound.encoding.word_vectors import WordVectors, read_vectors
from newfound.methods.finalisation import settle_on
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
        "most texts that are merged, as memory grows with their square (20,000: 3 GB); of more, a "
        "random sample is, and the others go to the nearest mean",
        low=2,
    )


# Neither trains anything: every effort is the same few seconds.
EFFORTS: dict[str, dict[str, Any]] = {"fast": {}, "balanced": {}, "best": {}}


def fit_km(
    task: Task,
    encoder: Encoder,
    config: KMGloVeConfig,
    *,
    seed: int,
    stages: Stages,
    cache: Path | None = None,
) -> Fitted:
    """Find categories by k-means on mean word vectors; the encoder only says on which device."""
    feature_map, points = _vectors(task, encoder, config.vectors, stages)
    k, estimate = count_categories(task, lambda: points, seed, stages)
    with stages.stage("clustering"):
        centres = kmeans(points, k, starts=config.starts, seed=seed).centres
    note = "km-glove ignores labels: they only lend their names to the nearest groups"
    notes = [note] if task.known else []
    return settle_on(feature_map, task, points, centres, estimate=estimate, notes=notes)


def fit_ag(
    task: Task,
    encoder: Encoder,
    config: AGGloVeConfig,
    *,
    seed: int,
    stages: Stages,
    cache: Path | None = None,
) -> Fitted:
    """Find categories by Ward's agglomeration of mean word vectors."""
    feature_map, points = _vectors(task, encoder, config.vectors, stages)
    k, estimate = count_categories(task, lambda: points, seed, stages)
    rows = np.arange(len(points))
    notes = []
    if task.known:
        notes.append("ag-glove ignores labels: they only lend their names to the nearest groups")
    if len(rows) > config.largest:
        rows = np.random.default_rng(seed).permutation(rows)[: max(k, config.largest)]
        notes.append(
            f"ag-glove merged a random {len(rows)} of the {len(points)} texts, the others went to "
            "the nearest group; --set largest=N takes more"
        )
    with stages.stage("clustering"):
        chosen = points[torch.from_numpy(rows).to(points.device)]
        clusters = torch.from_numpy(ward(chosen.cpu().numpy(), k, seed)).to(points.device)
        centres = class_means(chosen, clusters, k)
    return settle_on(feature_map, task, points, centres, estimate=estimate, notes=notes)


def ward(features: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Ward's agglomeration of features [N, d] into k clusters [N]; it draws nothing from `seed`."""
    from sklearn.cluster import AgglomerativeClustering  # here: it costs every start a while

    if k == 1 or len(features) < 2:
        return np.zeros(len(features), np.int64)
    return AgglomerativeClustering(k, linkage="ward").fit_predict(features).astype(np.int64)


def _vectors(
    task: Task, encoder: Encoder, source: str, stages: Stages
) -> tuple[WordVectors, Tensor]:
    """The feature map, and the vectors of the task's texts [N, d] on the encoder's device."""
    with stages.stage("reading word vectors"):
        feature_map = read_vectors(source, task.texts)
    with stages.stage("encoding", len(task.texts)) as advance:
        features = feature_map(task.texts, advance)
    return feature_map, torch.from_numpy(features).to(encoder.backbone.words.weight.device)
