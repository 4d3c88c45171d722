"""Self-Labeling: a cosine classifier learns from its own labels, balanced over all K categories.

After pretraining on the labels (cross-entropy) a classifier with one direction a category reads two
views of every text. The target of a labelled text is its label; the target of any other is what
the classifier makes of the *other* view, balanced by Sinkhorn so that no category takes more than
its share: without that balance self-made labels drift into few categories. The category of a text
is the one whose direction has the largest cosine with it.

The DPN paper's table names a "self-labeling framework" without saying which. This is the form of
Fini et al., A Unified Objective for Novel Class Discovery, ICCV 2021 (swapped targets, their
temperature, epsilon and iterations), whose balance goes back to Asano et al., ICLR 2020.

Where this departs from it:
- Cosines are taken from the mean of the pretrained features. Some encoders place all texts in a
  narrow cone, where every cosine is near one and a label moves all texts towards its category.
- The categories' directions start at the centres of k-means with pinned labels, not at random. At a
  learning rate that an encoder bears, random ones hardly leave their place.
- A batch may hold fewer texts than there are categories, and balancing it alone would mean nothing:
  a queue of recent texts is balanced with it. The queue keeps features, not scores, so that the
  present classifier judges them.
- A step takes unlabelled and labelled texts in fixed numbers, and the two losses are added.
- Words are replaced only where the encoder reads them (all layers learn). Above frozen layers the
  two views are two passes with dropout.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from newfound.clustering.distances import cosines, nearest
from newfound.clustering.kmeans import seeded_kmeans
from newfound.clustering.optimal_transport import sinkhorn
from newfound.clustering.split_merge import relocate_directions
from newfound.config import Layers, setting
from newfound.data.task import Task
from newfound.encoding.batching import Batch, paired_batches
from newfound.encoding.feature_cache import Inputs, features_of
from newfound.encoding.feature_maps import EncoderFeatures, PointFeatures
from newfound.encoding.loading import Encoder
from newfound.methods.finalisation import fitted_with
from newfound.methods.fitted import Fitted
from newfound.progress import Stages
from newfound.training.masking import replace_words
from newfound.training.optimiser import Optimiser
from newfound.training.preparation import Start, StartConfig, begin


@dataclass(frozen=True)
class SelfLabellingConfig(StartConfig):
    """Settings of Self-Labeling; temperature, epsilon and iterations are the source's."""

    pretrain_layers: Layers = setting(1, "how many of the last layers learn in pretraining")
    pretrain_labelled_batch: int = setting(128, "labelled texts a step in pretraining", low=1)
    masked_words: bool = setting(False, "masked-word modelling in pretraining, too")
    trainable_layers: Layers = setting("all", "how many of the last layers learn in training")
    epochs: int = setting(50, "epochs of training")
    learning_rate: float = setting(1e-5, "learning rate of training")
    batch: int = setting(128, "unlabelled texts a step, each in two views", low=1)
    labelled_batch: int = setting(32, "labelled texts a step, each in two views", low=1)
    temperature: float = setting(0.1, "sharpness of the classifier", low=1e-3)
    epsilon: float = setting(0.05, "softness of the balanced targets", low=1e-3)
    balance: int = setting(3, "iterations of the balance; 0 leaves the targets unbalanced")
    queue: int = setting(32, "recent texts a category that are balanced with a batch")
    replaced_words: float = setting(
        0.225, "share of words replaced at random in each view, where the words are read", high=1
    )
    starts: int = setting(10, "starts of the k-means that the categories begin from", low=1)


EFFORTS: dict[str, dict[str, Any]] = {
    "fast": {
        "head": "residual",
        "pretrain_layers": 0,
        "pretrain_epochs": 20,
        "pretrain_learning_rate": 1e-4,
        "classifier_from_means": True,
        "trainable_layers": 0,
        "epochs": 10,
        "learning_rate": 5e-4,
        "queue": 16,
        "starts": 3,
    },
    "balanced": {
        "pretrain_epochs": 20,
        "classifier_from_means": True,
        "patience": 5,
        "trainable_layers": 1,
        "epochs": 3,
        "learning_rate": 3e-5,
        "starts": 5,
    },
    "best": {},
}


SETTLING = 0.2  # share of the epochs at the end in which no direction is moved elsewhere


class CosineHead(nn.Module):
    """A classifier: the cosine of a feature with one direction a category, seen from `origin`.

    A row's length does not matter to its cosines, but it does to its pace: a step of the optimiser
    is as long for a short row as for a long one, and turns the short one further. Rows begin
    `pace` times shorter than one.
    """

    def __init__(self, centres: Tensor, origin: Tensor, pace: float = 1.0) -> None:
        super().__init__()
        self.origin: Tensor
        self.register_buffer("origin", origin.clone())  # [d]
        self.pace = pace
        self.rows = nn.Parameter(F.normalize(centres - origin, dim=1) / pace)  # [K, d]

    @torch.no_grad()
    def turn(self, directions: Tensor) -> None:
        """Take these directions [K, d], of length one, in place of the rows."""
        self.rows.copy_(directions / self.pace)

    def forward(self, features: Tensor) -> Tensor:
        return cosines(features - self.origin, self.rows)

    @torch.no_grad()
    def prototypes(self, features: Tensor) -> Tensor:
        """Points [K, d] of which the nearest to a feature has the largest cosine.

        All lie equally far from the origin; as far as the features do, so that distances tell how
        sure a category is.
        """
        radius = (features - self.origin).norm(dim=1).mean()
        return self.origin + radius * F.normalize(self.rows, dim=1)


@dataclass(frozen=True, eq=False)
class Hints:
    """What a method knows of the texts beyond their features and labels."""

    odds: Tensor  # [N]: log odds that a text is of a known category, by all but the text itself
    known_prior: bool  # let self-made labels heed the odds
    relocate_every: int  # epochs after which directions move to where one is missing; 0: never
    shares: Tensor  # [K]: what each category is expected to have of the unlabelled texts
    uneven: float  # how much known categories differ in size, see `sinkhorn.unevenness`
    farthest: float  # how much farther out known prototypes may go, see `move_known_out`


def fit(
    task: Task,
    encoder: Encoder,
    config: SelfLabellingConfig,
    *,
    seed: int,
    stages: Stages,
    cache: Path | None = None,
) -> Fitted:
    """Find categories by balanced self-made labels."""
    start = begin(task, encoder, config, seed=seed, stages=stages, cache=cache)
    with stages.stage("clustering"):
        features = features_of(start.model, start.inputs)
        targets = torch.from_numpy(task.targets).to(features.device)
        found = seeded_kmeans(features, start.k, targets, starts=config.starts, seed=seed)
    return label_and_settle(start, task, config, features, found.centres, seed=seed, stages=stages)


def label_and_settle(
    start: Start,
    task: Task,
    config: SelfLabellingConfig,
    features: Tensor,
    centres: Tensor,
    *,
    seed: int,
    stages: Stages,
    hints: Hints | None = None,
    pace: float = 1.0,
) -> Fitted:
    """Start a classifier at `centres` [K, d], train it; its directions are the prototypes."""
    head = CosineHead(centres, features.mean(0), pace)
    start.pretrained.history += train(
        start.model, start.inputs, head, features, task, config, seed, stages, hints
    )
    with stages.stage("settling"):
        features = features_of(start.model, start.inputs)
        prototypes = head.prototypes(features)
        if hints is not None:
            free = features[torch.from_numpy(~task.learnable).to(features.device)]
            share = float(hints.shares[: len(task.known)].sum())
            prototypes = move_known_out(
                prototypes, head.origin, free, len(task.known), share, hints.farthest
            )
        return fitted_with(
            start.model,
            task,
            features,
            prototypes,
            estimate=start.estimate,
            history=start.pretrained.history,
        )


@torch.no_grad()
def move_known_out(
    prototypes: Tensor, origin: Tensor, features: Tensor, known: int, share: float, farthest: float
) -> Tensor:
    """Take known prototypes away from the origin until few enough texts are nearest to one.

    Labels draw texts to known categories, novel ones among them. prototypes [K, d], the first
    `known` of which go outwards together, lie on a sphere around the origin [d]; of the features
    [N, d] a `share` should be nearest to one of those. They go out by no more than `farthest` times
    the radius, and never inwards. Texts that lie between a known category and a novel one are the
    first to change.
    """
    novel = len(prototypes) - known
    if not known or not novel or not len(features) or farthest <= 0:
        return prototypes
    offsets = prototypes - origin
    radius = offsets.norm(dim=1).mean()
    # How far a text reaches along its nearest known and its nearest novel direction [N]
    reach = (features - origin).square().sum(1) + radius.square()
    first, second = (
        (reach - nearest(features, group)[1]) / (2 * radius)
        for group in (prototypes[:known], prototypes[known:])
    )
    # The radius up to which a text is nearer to its known prototype than to its novel one
    root = (first.square() + radius.square() - 2 * radius * second).clamp(min=0).sqrt()
    until = torch.where(first > second, first + root, 0.0).sort(descending=True).values
    place = min(len(until) - 1, round(share * len(until)))
    factor = (until[place] / radius).clamp(1.0, 1.0 + farthest)
    return torch.cat([origin + factor * offsets[:known], prototypes[known:]])


def train(
    model: EncoderFeatures | PointFeatures,
    inputs: Inputs,
    head: CosineHead,
    features: Tensor,
    task: Task,
    config: SelfLabellingConfig,
    seed: int,
    stages: Stages,
    hints: Hints | None = None,
    name: str = "labelling",
) -> list[dict[str, Any]]:
    """Train model and head on labels and self-made labels; `features` [N, d] fill the queue.

    What it returns are the losses of each epoch.
    """
    device, k = model.device, len(head.rows)
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
    waiting_rows = torch.from_numpy(recent).to(device)
    queue = features[waiting_rows]  # [Q, d], changed in place like its rows
    known = (torch.arange(k, device=device) < len(task.known)).float()  # [K]
    shares = None if hints is None else hints.shares
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
        first, second = head(views).chunk(2)  # [B, K] each
        with torch.no_grad():
            waiting, prior = head(queue), None
            if hints is not None and hints.known_prior:
                texts = torch.cat([rows[:size], rows[:size], waiting_rows])
                prior = hints.odds[texts, None] * known  # [2B + Q, K]
                waiting_rows.copy_(torch.cat([rows[:size], waiting_rows])[: len(queue)])
            queue.copy_(torch.cat([views[:size], queue])[: len(queue)])
        loss = swapped_loss(first[:size], second[:size], waiting, config, prior, shares)
        found = {"self_labels": loss}
        if labelled_size:
            scores = torch.cat([first[size:], second[size:]]) / config.temperature
            found["cross_entropy"] = F.cross_entropy(scores, targets[rows[size:]].repeat(2))
        return found

    optimiser = Optimiser(
        [model, head],
        config.learning_rate,
        schedule_steps=-(-len(free) // size) * config.epochs,
        graphs=inputs.resident,
    )
    with stages.stage(name, config.epochs) as advance:
        for epoch in range(1, config.epochs + 1):
            if hints is not None and relocation_due(epoch, config.epochs, hints.relocate_every):
                rows = relocate_directions(
                    features_of(model, inputs) - head.origin,
                    targets,
                    hints.odds,
                    head.rows,
                    seed=seed + epoch,
                )
                if rows is not None:
                    head.turn(rows)
                    optimiser.forget([head.rows])
            model.train()
            drawn = paired_batches(free, size, learnable, labelled_size, rng)
            if not inputs.pooled:  # every text twice
                drawn = np.concatenate([drawn, drawn], axis=1)
            for batch in inputs.batches(drawn):
                optimiser.accumulate(losses, batch)
                optimiser.step()
            means = optimiser.epoch_means()
            history.append({"stage": name, "epoch": epoch, "loss": sum(means.values())} | means)
            advance(1)
    return history


def relocation_due(epoch: int, epochs: int, every: int) -> bool:
    """Whether directions are moved before this epoch; never before the first or while settling."""
    return every > 0 and epoch > 1 and (epoch - 1) % every == 0 and epoch <= (1 - SETTLING) * epochs


def swapped_loss(
    first: Tensor,
    second: Tensor,
    waiting: Tensor,
    config: SelfLabellingConfig,
    prior: Tensor | None = None,
    shares: Tensor | None = None,
) -> Tensor:
    """Cross-entropy of each view with the balanced targets that the other view gives.

    Cosines of the two views, first and second [B, K], and of the queue, waiting [Q, K]. Both views
    are balanced together, with one solution for the two. `prior` [2B + Q, K] are log odds that
    multiply the shares before the balance; `shares` [K] are what the balance is to bring about.
    """
    scores = torch.cat([second, first, waiting])
    if prior is not None:
        scores = scores + config.epsilon * prior
    wanted = sinkhorn(scores, config.epsilon, config.balance, shares)
    scores = torch.cat([first, second]) / config.temperature
    return F.cross_entropy(scores, wanted[: len(scores)])
