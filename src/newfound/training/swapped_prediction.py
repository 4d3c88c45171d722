"""Training on labels and on pseudo-labels by swapped prediction.

Every step:

1. Draw unlabelled texts and labelled texts in fixed numbers, and make two views of each.
2. Compute pseudo-labels of the unlabelled views by optimal transport, together with a queue of
   recent texts: a batch may hold fewer texts than there are categories. The queue keeps features,
   not scores, so that the present classifier scores them.
3. Teach each view the pseudo-label of the other view (`swapped_loss`), and both views of a labelled
   text its label (cross-entropy). The two losses are added.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from newfound.data.task import Task
from newfound.encoding.batching import Batch, paired_batches
from newfound.encoding.feature_cache import Inputs
from newfound.encoding.feature_maps import EncoderFeatures, PointFeatures
from newfound.progress import Stages
from newfound.training.cosine_classifier import CosineClassifier
from newfound.training.losses.swapped import swapped_loss
from newfound.training.masking import replace_words
from newfound.training.optimiser import Optimiser
from newfound.training.resuming import resumable_epochs


@dataclass(frozen=True)
class SwappedPredictionConfig:
    """Settings of training by swapped prediction."""

    epochs: int
    learning_rate: float
    batch: int  # unlabelled texts per step
    labelled_batch: int  # labelled texts per step
    temperature: float  # of the classifier
    epsilon: float  # entropy regularisation of the optimal transport
    sinkhorn_iterations: int  # 0: no constraint on category sizes
    queue: int  # recent texts per category
    replaced_words: float  # share of words replaced at random in each view


def train_swapped(
    model: EncoderFeatures | PointFeatures,
    inputs: Inputs,
    classifier: CosineClassifier,
    features: Tensor,
    task: Task,
    config: SwappedPredictionConfig,
    *,
    seed: int,
    stages: Stages,
    stage: str = "training",
    log_prior: Callable[[Tensor], Tensor] | None = None,
    class_prior: Tensor | None = None,
    strength: float = 1.0,
) -> list[dict[str, Any]]:
    """Train a model and a classifier on labels and pseudo-labels, in place.

    Parameters
    ----------
    model, inputs
        The feature map and its cached inputs, one row per text.
    classifier : CosineClassifier
    features : Tensor of shape [N, d]
        Present features of the texts, to fill the queue with.
    task : Task
        Held-out texts count as unlabelled.
    config : SwappedPredictionConfig
    seed : int
    stages : Stages
    stage : str
        Name of the stage in timings and history.
    log_prior : callable, optional
        Gives the log prior [R, K] of each category for the texts in rows [R].
    class_prior : Tensor of shape [K], optional
        Expected share of each category; uniform by default.
    strength : float
        How strongly category sizes are held to the class prior, see `sinkhorn`.

    Returns
    -------
    list of dict
        The mean losses of each epoch.
    """
    device, k = model.device, len(classifier.rows)
    history: list[dict[str, Any]] = []
    # Held-out texts keep their label from training, so they count as unlabelled here.
    free, learnable = np.flatnonzero(~task.learnable), np.flatnonzero(task.learnable)
    if config.epochs == 0 or not len(free) or not any(w.requires_grad for w in model.parameters()):
        return history
    torch.manual_seed(seed)  # the same whether pretraining ran or was found in the cache
    rng = np.random.default_rng(seed)
    targets = torch.from_numpy(task.targets).to(device)
    size, labelled_size = min(config.batch, len(free)), min(config.labelled_batch, len(learnable))
    # No longer than the texts beside the batch, so that none is counted twice.
    recent = rng.permutation(free)[: min(config.queue * k, len(free) - size)]
    queue_rows = torch.from_numpy(recent).to(device)
    queue = features[queue_rows]  # [Q, d], changed in place like its rows
    reads_words = model.frozen_layers < 0 and config.replaced_words > 0

    def losses(batch: Batch) -> dict[str, Tensor]:
        states, cells = inputs.batch(batch)
        if cells is None:  # pooled already
            rows, raw = batch.rows, model.views_of(states, 2)
        else:
            if reads_words and isinstance(model, EncoderFeatures):
                states = replace_words(states, cells.slot >= 0, model, config.replaced_words)
            rows, raw = batch.rows.chunk(2)[0], model.from_states(states, cells)
        views = model.finish(raw)
        first, second = classifier(views).chunk(2)  # [B, K] each
        with torch.no_grad():
            queued, prior = classifier(queue), None
            if log_prior is not None:
                prior = log_prior(torch.cat([rows[:size], rows[:size], queue_rows]))
                queue_rows.copy_(torch.cat([rows[:size], queue_rows])[: len(queue)])
            queue.copy_(torch.cat([views[:size], queue])[: len(queue)])
        found = {
            "pseudo_labels": swapped_loss(
                first[:size],
                second[:size],
                queued,
                temperature=config.temperature,
                epsilon=config.epsilon,
                iterations=config.sinkhorn_iterations,
                log_prior=prior,
                class_prior=class_prior,
                strength=strength,
            )
        }
        if labelled_size:
            scores = torch.cat([first[size:], second[size:]]) / config.temperature
            found["cross_entropy"] = F.cross_entropy(scores, targets[rows[size:]].repeat(2))
        return found

    optimiser = Optimiser(
        [model, classifier],
        config.learning_rate,
        schedule_steps=-(-len(free) // size) * config.epochs,
        graphs=inputs.resident,
    )
    with stages.stage(stage, config.epochs) as advance:
        for epoch in resumable_epochs(
            range(1, config.epochs + 1),
            stages.checkpoints,
            stage,
            optimiser,
            rng,
            history,
            advance,
            tensors={"queue": queue, "queue_rows": queue_rows},
        ):
            model.train()
            drawn = paired_batches(free, size, learnable, labelled_size, rng)
            if not inputs.pooled:  # every text twice
                drawn = np.concatenate([drawn, drawn], axis=1)
            for batch in inputs.batches(drawn):
                optimiser.accumulate(losses, batch)
                optimiser.step()
            means = optimiser.epoch_means()
            history.append({"stage": stage, "epoch": epoch, "loss": sum(means.values())} | means)
            advance(1)
    return history
