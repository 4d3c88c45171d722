"""DeepCluster, Semi-DC and DAC: cluster the features, learn the clusters as if they were labels.

Every epoch: k-means over the features of all texts; one epoch of cross-entropy in which the cluster
of a text is its label; go on while the silhouette of the clusters rises, and give back the weights
under which it was highest. The number that k-means gives to a cluster means nothing, and the three
methods differ in what they do about it.

DeepCluster (Caron et al., ECCV 2018) makes the classifier anew every epoch. It has no use for
labels. The original's whitening and even sampling are settings, off by default: all three run with
DAC's settings.
Semi-DC is DeepCluster after pretraining on labels.
DAC, or DeepAligned (Zhang et al., AAAI 2021), pretrains on labels, keeps the classifier and
renumbers the clusters: each new centroid takes the number of the previous one that it is matched
to, one to one by least total distance.

Where we depart from the authors of DAC: their silhouette is of an epoch's start, so that the last
epoch counts for nothing; ours is also taken after it. The best weights are restored even if
patience never ended (their code then keeps the last).

Training can cost accuracy while the silhouette rises. Part of it is the random classifier, which
moves the features before it has learnt the clusters. `classifier_start=centroids` starts it as the
rule of the nearest centroid instead; that is ours, and no default, so that Semi-DC and DAC differ
only in how they treat the numbers of clusters.

Prototypes of the two methods with labels come from k-means that holds labelled texts in their
category, which names the known ones.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from newfound.clustering.distances import full_precision
from newfound.clustering.kmeans import kmeans
from newfound.clustering.lloyd import Clustering
from newfound.clustering.prototypes import align_centroids, class_means
from newfound.clustering.silhouette import silhouette_score
from newfound.config import Layers, setting
from newfound.data.task import Task
from newfound.encoding.batching import Batch, shuffled_batches
from newfound.encoding.feature_cache import features_of
from newfound.encoding.loading import Encoder
from newfound.methods.finalisation import settle, settle_on
from newfound.methods.fitted import Fitted
from newfound.progress import Stages
from newfound.training.optimiser import Optimiser
from newfound.training.preparation import Start, StartConfig, begin
from newfound.training.pretraining import Best


@dataclass(frozen=True)
class DACConfig(StartConfig):
    """Settings of the loop; the defaults are those of DAC in the TEXTOIR toolkit but two.

    The learning rates were chosen again (benchmarks/search.md): theirs, 5e-5 for both, go with
    BERT. We think that features of a small sentence encoder are too small for them.
    """

    pretrain_layers: Layers = setting(1, "how many of the last layers learn in pretraining")
    pretrain_learning_rate: float = setting(5e-4, "learning rate of pretraining (theirs: 5e-5)")
    pretrain_labelled_batch: int = setting(128, "labelled texts a step in pretraining", low=1)
    masked_words: bool = setting(False, "masked-word modelling in pretraining, too")
    trainable_layers: Layers = setting(1, "how many of the last layers learn in training")
    epochs: int = setting(100, "most epochs of training; each begins with k-means")
    silhouette_patience: int = setting(
        20, "epochs without a higher silhouette before training stops", low=1
    )
    silhouette_texts: int = setting(
        20_000, "at most so many texts, the same in every epoch, have their silhouette taken", low=2
    )
    learning_rate: float = setting(2e-4, "learning rate of training (theirs: 5e-5)")
    batch: int = setting(128, "texts a step in training", low=1)
    starts: int = setting(10, "k-means starts in every epoch", low=1)
    alignment: bool = setting(True, "renumber clusters by the centroids of the epoch before")
    new_classifier: bool = setting(False, "make the classifier anew every epoch")
    classifier_start: Literal["random", "centroids"] = setting(
        "random",
        "what a new classifier is: random, or (not the authors') the nearest centroid's rule",
    )
    whitening: int = setting(
        0, "whiten this many principal components for k-means (DeepCluster's own: 256); 0: do not"
    )
    even_sampling: bool = setting(False, "draw equally many texts of every cluster")


@dataclass(frozen=True)
class SemiDCConfig(DACConfig):
    """Settings of Semi-DC: DAC's, but the classifier is new in every epoch."""

    alignment: bool = setting(False, "renumber clusters by the centroids of the epoch before")
    new_classifier: bool = setting(True, "make the classifier anew every epoch")


@dataclass(frozen=True)
class DeepClusterConfig(SemiDCConfig):
    """Settings of DeepCluster: Semi-DC's without pretraining."""

    pretrain_epochs: int = setting(0, "most epochs of pretraining; by masked words, if by anything")


EFFORTS: dict[str, dict[str, Any]] = {
    "fast": {
        "head": "residual",
        "pretrain_layers": 0,
        "pretrain_epochs": 20,
        "pretrain_learning_rate": 1e-4,
        "trainable_layers": 0,
        "epochs": 10,
        "learning_rate": 1e-4,
        "starts": 3,
        "silhouette_texts": 2000,
    },
    "balanced": {
        "pretrain_epochs": 20,
        "patience": 5,
        "epochs": 4,
        "starts": 3,
        "silhouette_texts": 2000,
    },
    "best": {},
}
DEEPCLUSTER_EFFORTS: dict[str, dict[str, Any]] = {
    effort: {**changes, "pretrain_epochs": 0} for effort, changes in EFFORTS.items()
}


def fit(
    task: Task,
    encoder: Encoder,
    config: DACConfig,
    *,
    seed: int,
    stages: Stages,
    cache: Path | None = None,
) -> Fitted:
    """Find categories with DAC or Semi-DC: they differ in their settings alone."""
    start = begin(task, encoder, config, seed=seed, stages=stages, cache=cache)
    train(start, config, seed, stages)
    return settle(start, task, seed=seed, stages=stages)


def fit_unsupervised(
    task: Task,
    encoder: Encoder,
    config: DeepClusterConfig,
    *,
    seed: int,
    stages: Stages,
    cache: Path | None = None,
) -> Fitted:
    """Find categories with DeepCluster."""
    notes = []
    if len(task.known):
        notes.append("deepcluster ignores labels: they only name the clusters nearest to them")
    # Nothing is learnt from labels: those that stay give their names and, if need be, a number.
    task = replace(
        task,
        learnable=np.zeros_like(task.learnable),
        validation_texts=[],
        validation_targets=task.validation_targets[:0],
    )
    start = begin(task, encoder, config, seed=seed, stages=stages, cache=cache)
    train(start, config, seed, stages)
    with stages.stage("settling"):
        features = features_of(start.model, start.inputs)
        found = kmeans(features, start.k, seed=seed)
        return settle_on(
            start.model,
            task,
            features,
            found.centres,
            estimate=start.estimate,
            history=start.pretrained.history,
            notes=notes,
        )


def train(start: Start, config: DACConfig, seed: int, stages: Stages) -> None:
    """Learn from clusters, epoch by epoch; the model ends with the weights of best silhouette."""
    model, inputs, k = start.model, start.inputs, start.k
    n, device = len(inputs.lengths), model.device
    if config.epochs == 0 or k < 2 or not any(w.requires_grad for w in model.parameters()):
        return
    torch.manual_seed(seed)  # the same whether pretraining ran or was found in the cache
    rng = np.random.default_rng(seed)
    judged = torch.from_numpy(np.sort(rng.permutation(n)[: config.silhouette_texts])).to(device)
    size = min(config.batch, n)
    classifier = nn.Linear(model.width, k).to(device)
    pseudo_labels = torch.zeros(n, dtype=torch.int64, device=device)

    def losses(batch: Batch) -> dict[str, Tensor]:
        scores = classifier(model.from_states(*inputs.batch(batch))).float()
        return {"cross_entropy": F.cross_entropy(scores, pseudo_labels[batch.rows])}

    def cluster() -> tuple[Clustering, float]:
        features = features_of(model, inputs)
        points = whitened(features, config.whitening) if config.whitening else features
        found = kmeans(points, k, starts=config.starts, seed=int(rng.integers(2**31)))
        if config.whitening:  # its axes change from epoch to epoch, those of features do not
            found = replace(found, centres=class_means(features, found.labels, k))
        return found, silhouette_score(points[judged], found.labels[judged])

    optimiser = Optimiser(
        [model, classifier],
        config.learning_rate,
        schedule_steps=-(-n // size) * config.epochs,
        graphs=inputs.resident,
    )
    best = Best([model], config.silhouette_patience)
    centroids: Tensor | None = None
    with stages.stage("training", config.epochs) as advance:
        found, score = cluster()
        best.saw(score)
        for epoch in range(1, config.epochs + 1):
            labels = found.labels
            if config.alignment:
                centroids, labels = aligned(centroids, found)
            pseudo_labels.copy_(labels)
            if config.new_classifier or epoch == 1:
                optimiser.forget(classifier.parameters())
                if config.classifier_start == "random":
                    start_at_random(classifier)
                else:
                    raw = features_of(model, inputs, finished=False)
                    start_at_centroids(classifier, raw, pseudo_labels)
            rows = even_rows(labels.cpu().numpy(), rng) if config.even_sampling else np.arange(n)
            model.train()
            for batch in inputs.batches(shuffled_batches(rows, size, rng)):
                optimiser.accumulate(losses, batch)
                optimiser.step()
            means = optimiser.epoch_means()
            # The score belongs to the weights that gave the features, so it comes after the steps.
            found, score = cluster()
            line = {"stage": "training", "epoch": epoch, "loss": sum(means.values())}
            start.pretrained.history.append(line | means | {"silhouette": score})
            advance(1)
            if best.saw(score):
                break
        best.restore()


@torch.no_grad()
def start_at_random(classifier: nn.Linear) -> None:
    """A classifier that knows nothing, in place of the present one."""
    nn.init.normal_(classifier.weight, std=0.01)
    nn.init.zeros_(classifier.bias)


@torch.no_grad()
def start_at_centroids(classifier: nn.Linear, raw: Tensor, labels: Tensor) -> None:
    """The rule of the nearest centroid, in place of the present classifier.

    raw [N, d] are features before normalisation, labels [N] their clusters. Scores are
    -distance^2 / (2 temperature), up to a term that all clusters share; the temperature is an
    eighth of the mean squared distance, under which most texts are fairly sure of their cluster.
    """
    means = class_means(raw, labels, len(classifier.bias))
    temperature = (raw - means[labels]).square().sum(1).mean() / 8 + 1e-6
    classifier.weight.copy_(means / temperature)
    classifier.bias.copy_(-means.square().sum(1) / (2 * temperature))


def aligned(previous: Tensor | None, found: Clustering) -> tuple[Tensor, Tensor]:
    """Centroids [K, d] and labels [N] under the numbers of the previous centroids, if any."""
    if previous is None:
        return found.centres, found.labels
    order = torch.from_numpy(align_centroids(previous, found.centres)).to(found.labels.device)
    return found.centres[order], order.argsort()[found.labels]


def even_rows(clusters: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """As many rows as there are texts, spread evenly over the clusters that hold any."""
    _, counts = np.unique(clusters, return_counts=True)
    groups = np.split(np.argsort(clusters, kind="stable"), np.cumsum(counts)[:-1])
    share = -(-len(clusters) // len(groups))
    drawn = [rng.choice(group, share, replace=share > len(group)) for group in groups]
    return rng.permutation(np.concatenate(drawn))[: len(clusters)]


def whitened(features: Tensor, dimensions: int) -> Tensor:
    """Principal components of variance one, then of unit length: no direction outweighs another."""
    with full_precision(features.device):
        centred = features - features.mean(0)
        variances, directions = torch.linalg.eigh(centred.T @ centred / len(centred))  # ascending
        kept = variances[-dimensions:].clamp(min=1e-6 * float(variances[-1]) + 1e-12)
        return F.normalize(centred @ directions[:, -dimensions:] / kept.sqrt(), dim=1)
