"""DPN: Decoupled Prototypical Network (An et al., AAAI 2023).

Known and novel categories are separated first and trained with different goals: labels guide the
known ones, the structure of the texts the novel ones.

1. Pretrain on labels and masked words (Eq. 1).
2. Run k-means over the unlabelled texts; its centres are the unlabelled prototypes.
3. Match the means of the known categories to them one to one (Eqs. 2-3). Texts of matched clusters
   are taken to be known, the others novel.
4. Train the two parts with the decoupled losses (Eqs. 4-10).
5. After every epoch, move the labelled prototypes towards the new means (Eq. 11).
6. Fit the final prototypes by k-means with pinned labels.

Departures from the published form:

- The default learning rate, temperature and transfer weight suit features of unit length from a
  sentence encoder; each setting states the paper's value.
- K-means starts its first centres at the labelled prototypes (`start_at_labels`).
- The classifier of pretraining is trained further: a new one would take most of the training to
  adapt to the features.
- `coupled` follows the released code instead of the paper.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from newfound.clustering.kmeans import kmeans
from newfound.clustering.prototypes import class_means, match_prototypes, moving_average
from newfound.config import Layers, setting
from newfound.data.task import Task
from newfound.encoding.batching import Batch, paired_batches
from newfound.encoding.feature_cache import features_of
from newfound.encoding.vectors.frozen_encoder import AnyEncoder
from newfound.methods.finalisation import finalise_with_kmeans
from newfound.methods.fitted import Fitted
from newfound.progress import Stages
from newfound.training.losses.dpn import (
    dpn_loss,
    hard_prototypical_loss,
    known_loss,
    masked_mean,
    novel_loss,
    soft_prototypical_loss,
    transfer_loss,
)
from newfound.training.optimiser import Optimiser
from newfound.training.preparation import PreparationConfig, Prepared, prepare
from newfound.training.resuming import resumable_epochs


@dataclass(frozen=True)
class DPNConfig(PreparationConfig):
    """Settings of DPN; defaults follow the paper's for BANKING unless noted."""

    trainable_layers: Layers = setting(3, "how many of the last layers learn in training")
    epochs: int = setting(60, "epochs of training")
    learning_rate: float = setting(3e-5, "learning rate of training (the paper's for BERT: 1e-5)")
    batch: int = setting(256, "unlabelled texts per step in training", low=1)
    labelled_batch: int = setting(64, "labelled texts per step for the cross-entropy", low=1)
    temperature: float = setting(
        0.015,
        "tau: temperature of the soft assignment (Eqs. 6, 8); the paper's 0.07 leaves much weight "
        "on wrong prototypes with the cosines of a sentence encoder",
        low=1e-3,
    )
    transfer_weight: float = setting(
        5.0,
        "gamma: weight of the transfer from labels (Eq. 9); the paper's 10 to 90 suit features "
        "without normalisation, whose distances are that much larger",
    )
    momentum: float = setting(0.9, "alpha: how slowly labelled prototypes move (Eq. 11)", high=1)
    starts: int = setting(10, "k-means starts", low=1)
    start_at_labels: bool = setting(
        True, "start the first centres of k-means at the labelled prototypes, not at random"
    )
    coupled: bool = setting(
        False,
        "follow the released code: compare every text with all prototypes, average the transfer "
        "over the whole batch, cluster labelled texts with the others",
    )
    cross_entropy: bool = setting(True, "ablation: cross-entropy on labelled texts in Eq. 9")
    moving_average: bool = setting(True, "ablation: let labelled prototypes move (Eq. 11)")
    decoupling: bool = setting(True, "ablation: False trains one coupled set without transfer")
    soft_assignment: bool = setting(True, "ablation: False uses the hard loss of Eq. 4")
    semantic_weights: bool = setting(True, "ablation: False weights all prototypes equally")


EFFORTS: dict[str, dict[str, Any]] = {
    "fast": {
        "head": "residual",
        "classifier_from_means": True,
        "pretrain_layers": 0,
        "pretrain_epochs": 20,
        "pretrain_learning_rate": 1e-4,
        "trainable_layers": 0,
        "epochs": 10,
        "learning_rate": 1e-4,
        "temperature": 0.05,
        "transfer_weight": 1.0,
        "starts": 3,
    },
    "balanced": {
        "classifier_from_means": True,
        "pretrain_layers": 1,
        "pretrain_epochs": 20,
        "patience": 5,
        "masked_words": False,
        "trainable_layers": 1,
        "epochs": 2,
        "starts": 5,
    },
    "best": {},
}

# The paper's epochs per data set, for the benchmark only.
PAPER: dict[str, dict[str, Any]] = {
    "banking": {"epochs": 60},
    "clinc": {"epochs": 80},
    "stackoverflow": {"epochs": 10},
}


def fit(
    task: Task,
    encoder: AnyEncoder,
    config: DPNConfig,
    *,
    seed: int,
    stages: Stages,
    cache: Path | None = None,
) -> Fitted:
    """Find categories with DPN."""
    prepared = prepare(
        task,
        encoder,
        config,
        trainable_layers=config.trainable_layers,
        seed=seed,
        stages=stages,
        cache=cache,
    )
    train(prepared, task, config, seed, stages)
    return finalise_with_kmeans(prepared, task, seed=seed, stages=stages)


def cluster_and_match(
    features: Tensor, task: Task, k: int, config: DPNConfig, seed: int
) -> tuple[np.ndarray, Tensor, Tensor]:
    """Steps 2 and 3: return clusters [N], unlabelled and labelled prototypes [K, d], [M, d].

    Clusters and prototypes are renumbered so that 0..M-1 stand for the known categories, in their
    order. A labelled text belongs to its own category.
    """
    targets = torch.from_numpy(task.targets).to(features.device)
    labelled = class_means(features, targets, len(task.known))
    rows = np.arange(len(features)) if config.coupled else task.unlabelled
    if len(rows) < k:  # nearly everything is labelled
        rows = np.arange(len(features))
    found = kmeans(
        features[torch.from_numpy(rows).to(features.device)],
        k,
        starts=config.starts,
        seed=seed,
        initial=labelled if config.start_at_labels and len(labelled) else None,
    )
    matching = match_prototypes(labelled, found.centres)
    new_number = np.empty(k, np.int64)
    new_number[matching.order] = np.arange(k)
    clusters = task.targets.copy()
    clusters[rows] = new_number[found.labels.cpu().numpy()]
    return clusters, found.centres[torch.from_numpy(matching.order).to(features.device)], labelled


def train(prepared: Prepared, task: Task, config: DPNConfig, seed: int, stages: Stages) -> None:
    """Steps 2-5: train the model with the decoupled losses, in place."""
    model, inputs, classifier = prepared.model, prepared.inputs, prepared.pretrained.classifier
    device, known = model.device, len(task.known)
    with stages.stage("clustering"):
        features = features_of(model, inputs)
        clusters, unlabelled, labelled = cluster_and_match(features, task, prepared.k, config, seed)
    rows = np.arange(len(task.texts)) if config.coupled else task.unlabelled
    if config.epochs == 0 or len(rows) == 0 or not any(w.requires_grad for w in model.parameters()):
        return
    torch.manual_seed(seed)  # the same whether pretraining ran or was found in the cache
    targets = torch.from_numpy(task.targets).to(device)
    cluster_of = torch.from_numpy(clusters).to(device)
    learnable = np.flatnonzero(task.learnable) if config.cross_entropy else rows[:0]
    size, labelled_size = min(config.batch, len(rows)), min(config.labelled_batch, len(learnable))

    def losses(batch: Batch) -> dict[str, Tensor]:
        rows, raw = batch.rows, model.from_states(*inputs.batch(batch))
        apart = separation_loss(
            model.finish(raw[:size]), cluster_of[rows[:size]], unlabelled, labelled, config
        )
        if len(rows) == size:
            return {"prototypes": apart}
        scores = classifier(raw[size:]).float()
        return {
            "prototypes": apart,
            "cross_entropy": F.cross_entropy(scores, targets[rows[size:]]),
        }

    rng = np.random.default_rng(seed)
    optimiser = Optimiser(
        [model, classifier] if len(learnable) else [model],
        config.learning_rate,
        schedule_steps=-(-len(rows) // size) * config.epochs,
        graphs=inputs.resident,
    )
    with stages.stage("training", config.epochs) as advance:
        for epoch in resumable_epochs(
            range(1, config.epochs + 1),
            stages.checkpoints,
            "training",
            optimiser,
            rng,
            prepared.pretrained.history,
            advance,
            tensors={"labelled": labelled},
        ):
            model.train()
            for batch in inputs.batches(paired_batches(rows, size, learnable, labelled_size, rng)):
                optimiser.accumulate(losses, batch)
                optimiser.step()
            if config.moving_average and known:
                now = features_of(model, inputs, task.labelled, half=True)
                means = class_means(now, targets[targets >= 0], known)
                labelled.copy_(moving_average(labelled, means, config.momentum))
            means_by_loss = optimiser.epoch_means()
            line = {"stage": "training", "epoch": epoch, "loss": sum(means_by_loss.values())}
            prepared.pretrained.history.append(line | means_by_loss)
            advance(1)


def separation_loss(
    features: Tensor, clusters: Tensor, unlabelled: Tensor, labelled: Tensor, config: DPNConfig
) -> Tensor:
    """Eqs. 7-10 for a batch of unlabelled texts (cross-entropy comes from its own batches).

    unlabelled [K, d] holds the prototypes of known categories first; labelled [M, d].
    """
    known = len(labelled)
    is_known = clusters < known
    if not config.soft_assignment:
        own = hard_prototypical_loss(features, unlabelled, clusters)
    elif not config.semantic_weights or config.coupled or not config.decoupling:
        own = soft_prototypical_loss(
            features, unlabelled, config.temperature, uniform=not config.semantic_weights
        ).mean()
    else:
        no_cross_entropy = features.new_zeros(())
        return dpn_loss(
            novel_loss(features, unlabelled[known:], ~is_known, config.temperature),
            known_loss(
                features,
                unlabelled[:known],
                labelled,
                is_known,
                no_cross_entropy,
                config.temperature,
                config.transfer_weight,
            ),
        )
    if known == 0 or not config.decoupling:
        return own
    transfer = transfer_loss(features, labelled, config.temperature)
    if config.coupled:
        return own + config.transfer_weight * (transfer * is_known).mean()
    return own + config.transfer_weight * masked_mean(transfer, is_known)
