"""DeepCluster, Semi-DC and DAC: train on the clusters of k-means as pseudo-labels.

DeepCluster (Caron et al., ECCV 2018) uses no labels; Semi-DC is DeepCluster after pretraining on
labels; DAC, or DeepAligned (Zhang et al., AAAI 2021), also aligns the clusters between epochs.

1. Semi-DC and DAC: pretrain on the labels (cross-entropy).
2. Every epoch, run k-means over the features of all texts.
3. The numbers of the clusters change arbitrarily between epochs. DeepCluster and Semi-DC start a
   new classifier every epoch. DAC keeps the classifier and renumbers the clusters: each new
   centroid takes the number of the previous one that it is matched to, one to one by least total
   distance.
4. Train for one epoch on the clusters as pseudo-labels (cross-entropy).
5. Stop when the silhouette of the clusters has not risen for some epochs; restore the best epoch.
6. DeepCluster: run k-means. Semi-DC and DAC: run k-means with pinned labels, which names the known
   categories.

Departures from the published code:

- The authors of DAC compute the silhouette at the start of an epoch, so that the last epoch never
  counts; here it is also computed after the last epoch. The best weights are restored even if
  patience never ran out (their code keeps the last).
- DeepCluster's whitening and even sampling are settings, off by default: all three run with DAC's
  settings.
- `classifier_start=centroids` starts the classifier as a nearest-centroid classifier. A random one
  moves the features before it has learnt the clusters, which can cost accuracy while the silhouette
  rises. It is not the default, so that Semi-DC and DAC differ in step 3 only.
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
from newfound.encoding.vectors.frozen_encoder import AnyEncoder
from newfound.methods.finalisation import finalise_with_centres, finalise_with_kmeans
from newfound.methods.fitted import Fitted
from newfound.progress import Stages
from newfound.training.best_weights import BestWeights
from newfound.training.optimiser import Optimiser
from newfound.training.preparation import PreparationConfig, Prepared, prepare
from newfound.training.resuming import resumable_epochs


@dataclass(frozen=True)
class DeepClusteringConfig(PreparationConfig):
    """Settings that DeepCluster, Semi-DC and DAC share; defaults follow DAC in TEXTOIR but two.

    TEXTOIR's learning rates, 5e-5 for both, suit BERT. They were chosen again for a small sentence
    encoder (benchmarks/search.md).
    """

    pretrain_layers: Layers = setting(1, "how many of the last layers learn in pretraining")
    pretrain_learning_rate: float = setting(5e-4, "learning rate of pretraining (theirs: 5e-5)")
    pretrain_labelled_batch: int = setting(128, "labelled texts per step in pretraining", low=1)
    masked_words: bool = setting(False, "add masked-word modelling to pretraining")
    trainable_layers: Layers = setting(1, "how many of the last layers learn in training")
    epochs: int = setting(100, "maximum number of epochs of training; each begins with k-means")
    silhouette_patience: int = setting(
        20, "epochs without a higher silhouette before training stops", low=1
    )
    silhouette_texts: int = setting(
        20_000,
        "maximum number of texts, the same in every epoch, that the silhouette is computed on",
        low=2,
    )
    learning_rate: float = setting(2e-4, "learning rate of training (theirs: 5e-5)")
    batch: int = setting(128, "texts per step in training", low=1)
    starts: int = setting(10, "k-means starts in every epoch", low=1)
    classifier_start: Literal["random", "centroids"] = setting(
        "random",
        "how a classifier starts: at random, or (not published) as a nearest-centroid classifier",
    )
    whitening: int = setting(
        0, "whiten this many principal components for k-means (DeepCluster's own: 256); 0: do not"
    )
    even_sampling: bool = setting(False, "draw equally many texts from every cluster")
    alignment: bool = setting(True, "renumber clusters by the centroids of the epoch before")
    new_classifier: bool = setting(False, "start a new classifier every epoch")


@dataclass(frozen=True)
class DACConfig(DeepClusteringConfig):
    """Settings of DAC."""


@dataclass(frozen=True)
class SemiDCConfig(DeepClusteringConfig):
    """Settings of Semi-DC: a new classifier every epoch in place of the alignment."""

    alignment: bool = setting(False, "renumber clusters by the centroids of the epoch before")
    new_classifier: bool = setting(True, "start a new classifier every epoch")


@dataclass(frozen=True)
class DeepClusterConfig(DeepClusteringConfig):
    """Settings of DeepCluster: no pretraining, and a new classifier every epoch."""

    pretrain_epochs: int = setting(
        0, "maximum number of epochs of pretraining, by masked words if at all"
    )
    alignment: bool = setting(False, "renumber clusters by the centroids of the epoch before")
    new_classifier: bool = setting(True, "start a new classifier every epoch")


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
    encoder: AnyEncoder,
    config: DACConfig | SemiDCConfig,
    *,
    seed: int,
    stages: Stages,
    cache: Path | None = None,
) -> Fitted:
    """Find categories with DAC or Semi-DC, which differ in their settings only."""
    prepared = prepare(
        task,
        encoder,
        config,
        trainable_layers=config.trainable_layers,
        seed=seed,
        stages=stages,
        cache=cache,
    )
    train(prepared, config, seed, stages)
    return finalise_with_kmeans(prepared, task, seed=seed, stages=stages)


def fit_unsupervised(
    task: Task,
    encoder: AnyEncoder,
    config: DeepClusterConfig,
    *,
    seed: int,
    stages: Stages,
    cache: Path | None = None,
) -> Fitted:
    """Find categories with DeepCluster."""
    notes = []
    if len(task.known):
        notes.append("deepcluster ignores labels: they only name the nearest clusters")
    # Labels are not learnt from; they only name clusters and help to count categories.
    task = replace(
        task,
        learnable=np.zeros_like(task.learnable),
        validation_texts=[],
        validation_targets=task.validation_targets[:0],
    )
    prepared = prepare(
        task,
        encoder,
        config,
        trainable_layers=config.trainable_layers,
        seed=seed,
        stages=stages,
        cache=cache,
    )
    train(prepared, config, seed, stages)
    with stages.stage("finalising"):
        features = features_of(prepared.model, prepared.inputs)
        found = kmeans(features, prepared.k, seed=seed)
        return finalise_with_centres(
            prepared.model,
            task,
            features,
            found.centres,
            inputs=prepared.inputs,
            estimate=prepared.estimate,
            history=prepared.pretrained.history,
            notes=notes,
        )


def train(prepared: Prepared, config: DeepClusteringConfig, seed: int, stages: Stages) -> None:
    """Steps 2-5: train the model on clusters; restore the epoch of the highest silhouette."""
    model, inputs, k = prepared.model, prepared.inputs, prepared.k
    n, device = inputs.n_texts, model.device
    if config.epochs == 0 or k < 2 or not any(w.requires_grad for w in model.parameters()):
        return
    torch.manual_seed(seed)  # the same whether pretraining ran or was found in the cache
    rng = np.random.default_rng(seed)
    sample = torch.from_numpy(np.sort(rng.permutation(n)[: config.silhouette_texts])).to(device)
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
        if config.whitening:  # centroids in feature space, whose axes do not change between epochs
            found = replace(found, centres=class_means(features, found.labels, k))
        return found, silhouette_score(points[sample], found.labels[sample])

    optimiser = Optimiser(
        [model, classifier],
        config.learning_rate,
        schedule_steps=-(-n // size) * config.epochs,
        graphs=inputs.resident,
    )
    best = BestWeights([model], config.silhouette_patience)
    with stages.stage("training", config.epochs) as advance:
        found, score = cluster()
        best.update(score)
        centroids = found.centres.clone()  # of the epoch before, renumbered
        for epoch in resumable_epochs(
            range(1, config.epochs + 1),
            stages.checkpoints,
            "training",
            optimiser,
            rng,
            prepared.pretrained.history,
            advance,
            tensors={"labels": found.labels, "centres": found.centres, "centroids": centroids},
            best=best,
        ):
            labels = found.labels
            if config.alignment:
                renumbered, labels = aligned(None if epoch == 1 else centroids, found)
                centroids.copy_(renumbered)
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
            # After the steps, because the score belongs to the weights of this epoch.
            new, score = cluster()
            found.labels.copy_(new.labels)
            found.centres.copy_(new.centres)
            line = {"stage": "training", "epoch": epoch, "loss": sum(means.values())}
            prepared.pretrained.history.append(line | means | {"silhouette": score})
            advance(1)
            if best.update(score):
                break
        best.restore()


@torch.no_grad()
def start_at_random(classifier: nn.Linear) -> None:
    """Initialise the classifier at random, in place."""
    nn.init.normal_(classifier.weight, std=0.01)
    nn.init.zeros_(classifier.bias)


@torch.no_grad()
def start_at_centroids(classifier: nn.Linear, raw: Tensor, labels: Tensor) -> None:
    """Initialise the classifier as a nearest-centroid classifier, in place.

    raw [N, d] are features before normalisation, labels [N] their clusters. Scores are
    -distance^2 / (2 temperature), up to a term that all clusters share; the temperature is an
    eighth of the mean squared distance, at which most texts are confident of their cluster.
    """
    means = class_means(raw, labels, len(classifier.bias))
    temperature = (raw - means[labels]).square().sum(1).mean() / 8 + 1e-6
    classifier.weight.copy_(means / temperature)
    classifier.bias.copy_(-means.square().sum(1) / (2 * temperature))


def aligned(previous: Tensor | None, found: Clustering) -> tuple[Tensor, Tensor]:
    """Return centroids [K, d] and labels [N] renumbered as the previous centroids, if any."""
    if previous is None:
        return found.centres, found.labels
    order = torch.from_numpy(align_centroids(previous, found.centres)).to(found.labels.device)
    return found.centres[order], order.argsort()[found.labels]


def even_rows(clusters: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw as many rows as there are texts, evenly over the clusters that hold any."""
    _, counts = np.unique(clusters, return_counts=True)
    groups = np.split(np.argsort(clusters, kind="stable"), np.cumsum(counts)[:-1])
    share = -(-len(clusters) // len(groups))
    drawn = [rng.choice(group, share, replace=share > len(group)) for group in groups]
    return rng.permutation(np.concatenate(drawn))[: len(clusters)]


def whitened(features: Tensor, dimensions: int) -> Tensor:
    """Return principal components [N, dimensions] of variance one, scaled to unit length."""
    with full_precision(features.device):
        centred = features - features.mean(0)
        variances, directions = torch.linalg.eigh(centred.T @ centred / len(centred))  # ascending
        kept = variances[-dimensions:].clamp(min=1e-6 * float(variances[-1]) + 1e-12)
        return F.normalize(centred @ directions[:, -dimensions:] / kept.sqrt(), dim=1)
