"""Neighbour contrast: supervised contrastive training in which neighbours count as positives.

A text's nearest neighbours mostly share its category. Every step:

1. Draw anchors, one of the nearest neighbours of each, and labelled texts.
2. Pull each anchor to its neighbour and to the other neighbours and texts of the same label in the
   batch, push it from the rest (`contrastive_loss`). Where two labels disagree they override the
   neighbourhood.
3. Add cross-entropy on the labelled texts.

Neighbours are found again every few epochs.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from newfound.clustering.neighbours import nearest_neighbours, neighbour_count
from newfound.data.task import Task
from newfound.encoding.batching import Batch, shuffled_batches
from newfound.encoding.feature_cache import features_of
from newfound.encoding.feature_maps import EncoderFeatures
from newfound.methods.newfound.config import (
    LABELLED_BATCH,
    REFRESH,
    NewfoundConfig,
    enough_epochs,
)
from newfound.progress import Stages
from newfound.training.losses.contrastive import contrastive_loss
from newfound.training.masking import replace_words
from newfound.training.optimiser import Optimiser
from newfound.training.preparation import Prepared
from newfound.training.resuming import resumable_epochs


def train_contrast(
    prepared: Prepared,
    features: Tensor,
    task: Task,
    config: NewfoundConfig,
    *,
    seed: int,
    stages: Stages,
) -> None:
    """Train the model by neighbour contrast and cross-entropy, in place.

    Parameters
    ----------
    prepared : Prepared
        The model and its inputs; the losses are appended to its history.
    features : Tensor of shape [N, d]
        Features of the untrained model, among which the first neighbours are found.
    task : Task
    config : NewfoundConfig
    seed : int
    stages : Stages
    """
    model, inputs, classifier = prepared.model, prepared.inputs, prepared.pretrained.classifier
    n, device = len(task.texts), model.device
    if n < 3 or not any(w.requires_grad for w in model.parameters()):
        return
    epochs = enough_epochs(config.epochs, n, config.batch)
    torch.manual_seed(seed)  # the same whether pretraining ran or was found in the cache
    rng = np.random.default_rng(seed)
    # Held-out texts count as unlabelled: nothing may learn from their labels.
    labels = np.where(task.learnable, task.targets, -1)
    targets = torch.from_numpy(labels).to(device)
    learnable = np.flatnonzero(task.learnable)
    size, labelled_size = min(config.batch, n), min(LABELLED_BATCH, len(learnable))
    count = neighbour_count(n, prepared.k, config.neighbour_share)
    neighbours = nearest_neighbours(features, count)  # [N, k]

    def losses(batch: Batch) -> dict[str, Tensor]:
        rows, (states, cells) = batch.rows, inputs.batch(batch)
        if model.frozen_layers < 0 and cells is not None and config.replaced_words > 0:
            views = cells.within(0, 2 * size)
            assert isinstance(model, EncoderFeatures)
            states = replace_words(states, views, model, config.replaced_words)
        raw = model.from_states(states, cells)
        unit = F.normalize(raw[: 2 * size].float(), dim=1)
        anchors = rows[:size]
        positive = positives(anchors, neighbours[anchors], targets[anchors])
        found = {
            "contrast": contrastive_loss(unit[:size], unit[size:], positive, config.temperature)
        }
        if labelled_size:
            scores = classifier(raw[2 * size :]).float()
            found["cross_entropy"] = F.cross_entropy(scores, targets[rows[2 * size :]])
        return found

    optimiser = Optimiser(
        [model, classifier] if labelled_size else [model],
        config.learning_rate,
        schedule_steps=-(-n // size) * epochs,
        graphs=inputs.resident,
    )
    with stages.stage("contrast", epochs) as advance:
        for epoch in resumable_epochs(
            range(1, epochs + 1),
            stages.checkpoints,
            "contrast",
            optimiser,
            rng,
            prepared.pretrained.history,
            advance,
            tensors={"neighbours": neighbours},
        ):
            if epoch > 1 and (epoch - 1) % REFRESH == 0:
                # In place, where recorded steps read them
                neighbours.copy_(nearest_neighbours(features_of(model, inputs), count))
            model.train()
            near = neighbours.cpu().numpy()
            drawn = contrast_batches(size, near, labels, learnable, labelled_size, rng)
            for batch in inputs.batches(drawn):
                optimiser.accumulate(losses, batch)
                optimiser.step()
            means = optimiser.epoch_means()
            line = {"stage": "contrast", "epoch": epoch, "loss": sum(means.values())}
            prepared.pretrained.history.append(line | means)
            advance(1)


def contrast_batches(
    size: int,
    neighbours: np.ndarray,
    labels: np.ndarray,
    labelled: np.ndarray,
    labelled_size: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Draw an epoch of rows [batches, B]: `size` anchors, a neighbour of each, labelled texts.

    An anchor whose drawn neighbour carries another label is its own partner instead.
    """
    anchors = shuffled_batches(np.arange(len(labels)), size, rng)
    drawn = rng.integers(neighbours.shape[1], size=anchors.shape)
    partners = neighbours[anchors, drawn]
    both = (labels[anchors] >= 0) & (labels[partners] >= 0)
    partners = np.where(both & (labels[anchors] != labels[partners]), anchors, partners)
    extra = [rng.choice(labelled, labelled_size, replace=False) for _ in anchors]
    return np.concatenate([anchors, partners, np.stack(extra).astype(np.int64)], axis=1)


def positives(rows: Tensor, neighbours: Tensor, targets: Tensor) -> Tensor:
    """Return which texts of a batch are positives of each other [B, B].

    Neighbours (of one or the other) and texts with the same label are; texts with different labels
    never are. rows [B], all different, their neighbours [B, k], their targets [B] with -1 for
    unlabelled.
    """
    ordered, order = rows.sort()
    place = torch.searchsorted(ordered, neighbours).clamp(max=len(rows) - 1)  # [B, k]
    column = torch.where(ordered[place] == neighbours, order[place], len(rows))  # last: not here
    near = torch.zeros(len(rows), len(rows) + 1, dtype=torch.bool, device=rows.device)
    near = near.scatter(1, column, True)[:, :-1]
    near = near | near.T
    labelled = targets >= 0
    both = labelled[:, None] & labelled
    same = targets[:, None] == targets
    return torch.where(both, same, near)
