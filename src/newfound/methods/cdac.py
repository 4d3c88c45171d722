"""CDAC+: constrained deep adaptive clustering with cluster refinement (Lin et al., AAAI 2020).

No pretraining. Stage 1 learns K logits from pairs: two texts are alike if the cosine of their
logits says so, and the losses of `newfound.training.losses.pairwise` make alike pairs more and
unlike pairs less so. For labelled texts the labels say which is which. For all others two
thresholds do: very similar pairs are pulled together, very dissimilar ones pushed apart, those
between are left alone. The thresholds close in from epoch to epoch, so that training goes from easy
pairs to hard ones, and ends when they meet. Stage 2 refines: k-means over the logits gives centres,
and model and centres train themselves on a target that is made again after every epoch. A text
belongs to its nearest centre.

Departures from the published programs, each for a fault there: refinement trains the model that is
returned (TEXTOIR's optimiser holds a copy); validation texts, never hidden labels of training
texts, say when to stop; a pair of labelled texts is in one mask only; batches are shuffled. Logits
start as the K main directions of the features, with the mean text at zero: many encoders' vectors
all point one way, and every pair would begin above the upper threshold, to be pulled into one heap;
and of few random directions most lead away from what tells texts apart. K-means and refinement read
all texts, as the authors' do. The learning rate of refinement is constant.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from newfound.clustering.kmeans import kmeans
from newfound.config import Layers, setting
from newfound.data.task import Task
from newfound.encoding.batching import Batch, shuffled_batches
from newfound.encoding.feature_cache import features_of
from newfound.encoding.loading import Encoder
from newfound.methods.finalisation import settle_on
from newfound.methods.fitted import Fitted
from newfound.methods.self_training import RefiningConfig, refine, start_logits
from newfound.progress import Stages
from newfound.training.losses.pairwise import (
    choose_pairs,
    pair_loss,
    same_label,
    similarities,
    threshold_schedule,
)
from newfound.training.losses.student_t import target_distribution
from newfound.training.optimiser import Optimiser
from newfound.training.preparation import Start, StartConfig, begin


@dataclass(frozen=True)
class CDACConfig(StartConfig):
    """Settings of CDAC+; the defaults are TEXTOIR's but where it is said."""

    normalise: bool = setting(True, "count categories on vectors of unit length; logits have none")
    pretrain_layers: Layers = setting(1, "how many of the last layers learn in pretraining")
    pretrain_epochs: int = setting(0, "most epochs of pretraining; CDAC+ has none")
    patience: int = setting(
        6, "epochs of refinement without a better NMI of the validation texts before it stops"
    )
    masked_words: bool = setting(False, "masked-word modelling in pretraining")
    trainable_layers: Layers = setting(1, "how many of the last layers learn in training")
    logits_start: Literal["pca", "random"] = setting(
        "pca", "how the K logits start: the features' main directions, or at random"
    )
    tightening: float = setting(
        0.0099, "how far the thresholds close in each epoch; they meet after 0.45 of it", low=1e-3
    )
    labelled_weight: float = setting(5.0, "weight of the loss on pairs of labelled texts")
    thresholds: bool = setting(True, "ablation: False learns from pairs of labelled texts only")
    epochs: int = setting(100, "most epochs of refinement")
    learning_rate: float = setting(5e-5, "learning rate of both stages")
    batch: int = setting(256, "texts a step, all pairs of which are compared", low=1)
    tolerance: float = setting(
        0.001, "refinement ends when a smaller share of texts changed cluster in an epoch", high=1
    )
    starts: int = setting(10, "k-means starts", low=1)


EFFORTS: dict[str, dict[str, Any]] = {
    "fast": {
        "head": "residual",
        "pretrain_layers": 0,
        "trainable_layers": 0,
        "tightening": 0.03,
        "epochs": 10,
        "learning_rate": 5e-4,
        "starts": 3,
    },
    "balanced": {
        "tightening": 0.08,
        "epochs": 3,
        "learning_rate": 1e-4,
        "starts": 5,
    },
    "best": {},
}


def fit(
    task: Task,
    encoder: Encoder,
    config: CDACConfig,
    *,
    seed: int,
    stages: Stages,
    cache: Path | None = None,
) -> Fitted:
    """Find categories with CDAC+."""
    start = begin(task, encoder, config, seed=seed, stages=stages, cache=cache)
    torch.manual_seed(seed)  # the same whether pretraining ran or was found in the cache
    everything = np.arange(len(task.texts))
    start_logits(start.model, start.inputs, everything, start.k, config.logits_start)
    train_on_pairs(start, task, config, seed, stages)
    with stages.stage("clustering"):
        logits = features_of(start.model, start.inputs)
        centres = kmeans(logits, start.k, starts=config.starts, seed=seed).centres
    centres = refine(
        start,
        task,
        everything,
        centres,
        lambda epoch, q: target_distribution(q),
        RefiningConfig(
            warm_up=0,
            epochs=config.epochs,
            learning_rate=config.learning_rate,
            batch=config.batch,
            patience=config.patience,
            tolerance=config.tolerance,
        ),
        seed=seed,
        stages=stages,
    )
    with stages.stage("settling"):
        return settle_on(
            start.model,
            task,
            features_of(start.model, start.inputs),
            centres,
            estimate=start.estimate,
            history=start.pretrained.history,
        )


def train_on_pairs(start: Start, task: Task, config: CDACConfig, seed: int, stages: Stages) -> None:
    """Stage 1: each epoch passes over the labelled texts, then over all, and closes in."""
    model, inputs = start.model, start.inputs
    device, rng = model.device, np.random.default_rng(seed)
    # Held-out texts count as unlabelled: nothing may learn from their labels.
    labels = np.where(task.learnable, task.targets, -1)
    targets = torch.from_numpy(labels).to(device)
    everything, labelled = np.arange(len(task.texts)), np.flatnonzero(task.learnable)
    size, labelled_size = min(config.batch, len(everything)), min(config.batch, len(labelled))
    schedule = threshold_schedule(config.tightening)
    bounds = torch.zeros(2, device=device)  # upper and lower, changed in place

    def on_labels(batch: Batch) -> dict[str, Tensor]:
        similar = similarities(model.finish(model.from_states(*inputs.batch(batch))))
        _, same = same_label(targets[batch.rows])
        return {"labelled_pairs": config.labelled_weight * pair_loss(similar, same, ~same)}

    def on_all(batch: Batch) -> dict[str, Tensor]:
        similar = similarities(model.finish(model.from_states(*inputs.batch(batch))))
        upper, lower = (bounds[0], bounds[1]) if config.thresholds else (2.0, -1.0)
        chosen = choose_pairs(similar, targets[batch.rows], upper, lower)
        return {"pairs": pair_loss(similar, *chosen)}

    parts = [("labelled_pairs", on_labels, labelled, labelled_size)] if labelled_size else []
    parts += [("pairs", on_all, everything, size)]
    steps = sum(-(-len(rows) // count) for _, _, rows, count in parts)  # an epoch
    optimiser = Optimiser(
        [model],
        config.learning_rate,
        schedule_steps=steps * len(schedule),
        graphs=inputs.resident,
    )
    with stages.stage("training", len(schedule)) as advance:
        for epoch, (upper, lower) in enumerate(schedule, start=1):
            bounds.copy_(torch.tensor([upper, lower]))
            model.train()
            means = {}
            for name, term, rows, count in parts:
                for batch in inputs.batches(shuffled_batches(rows, count, rng)):
                    optimiser.accumulate(term, batch)
                    optimiser.step()
                means[name] = optimiser.epoch_means()[name]
            line = {"stage": "training", "epoch": epoch, "loss": sum(means.values()), **means}
            start.pretrained.history.append(line | {"upper": upper, "lower": lower})
            advance(1)
