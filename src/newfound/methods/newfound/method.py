"""Our own method: a draft of the categories, contrast with neighbours, balanced self-made labels.

K-means, with the labelled texts held in their categories, hides novel categories in known ones that
are like them. So centres are moved to where one is missing (`relocation`), and how many labels lie
near a text says whether it is known or novel (`neighbours.known_odds`). Then a small head makes its
own labels on the encoder's features, balanced over all K (`self_labelling`), a few times from its
last labels and from nothing else (`drafting`).

An encoder may lay two categories on one another that people tell apart by a name. So words stand
beside its features where categories are counted and drafted, with as much weight as labels bear out
(`lexical`).

Where the encoder itself may learn, it first does so by supervised contrast, for a text's nearest
neighbours mostly share its category: each text is pulled to one of its neighbours and to all texts
of the batch that are its neighbours or carry its label, and pushed from the rest; where two labels
disagree they override the neighbourhood. Cross-entropy on the labels goes on beside it.

The draft only gives the start to a classifier by cosines, which then learns with the encoder, or
with a head on it, from the labels and from its own labels of the other texts. These are balanced,
by how many labels known categories have (`sinkhorn.expected_shares`, `sinkhorn.unevenness`). The
directions of this classifier are the prototypes: known ones carry their labels' names, and a text
belongs to the nearest. Known ones that draw too many texts lie farther out than novel ones.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from newfound.clustering.neighbours import known_odds, nearest_neighbours
from newfound.clustering.optimal_transport import expected_shares, unevenness
from newfound.clustering.prototypes import class_means
from newfound.config import Layers, setting
from newfound.data.task import Task
from newfound.encoding.batching import Batch, Ragged, shuffled_batches
from newfound.encoding.feature_cache import features_of
from newfound.encoding.loading import Encoder
from newfound.methods.fitted import Fitted
from newfound.methods.newfound import initialisation as drafting
from newfound.methods.newfound.initialisation import best_draft
from newfound.methods.newfound.lsa_features import joined, weigh_words
from newfound.methods.self_labelling import Hints, SelfLabellingConfig, label_and_settle
from newfound.progress import Stages
from newfound.training.losses.contrastive import contrastive_loss
from newfound.training.masking import replace_words
from newfound.training.optimiser import Optimiser
from newfound.training.preparation import Start, StartConfig, begin

LEAST_STEPS = 48  # of contrast and of self-made labels: a small table has few in an epoch
MOST_NEIGHBOURS = 512  # so that memory grows no faster than the texts


@dataclass(frozen=True)
class NewfoundConfig(StartConfig):
    """Settings of the method; nothing depends on a data set's name."""

    pretrain_epochs: int = setting(
        0, "most passes over the texts in pretraining; an encoder of sentences needs none"
    )
    classifier_from_means: bool = setting(
        True, "let the classifier of pretraining start at the means of the classes, not at random"
    )
    pretrain_contrast: bool = setting(
        True, "tell texts apart by two views in pretraining, where masked words are guessed"
    )
    trainable_layers: Layers = setting("all", "how many of the last layers learn from contrast")
    epochs: int = setting(20, "epochs of contrast; more for a small table, which has few steps")
    learning_rate: float = setting(5e-5, "learning rate of contrast")
    batch: int = setting(256, "texts a step, each with one neighbour", low=1)
    labelled_batch: int = setting(64, "labelled texts a step for the cross-entropy", low=1)
    temperature: float = setting(0.07, "sharpness of the contrast", low=1e-3)
    projection: int = setting(
        0, "width of the space that the contrast is computed in; 0: that of the features itself"
    )
    neighbour_share: float = setting(
        0.4, "neighbours of a text, as a share of the mean size of a category"
    )
    words: bool = setting(
        True,
        "let words that texts share tell categories apart at the start, as far as labels bear out",
    )
    rounds: int = setting(
        3,
        "rounds of the draft that the categories begin from; 0: they begin from k-means",
    )
    tries: int = setting(
        10, "drafts made with other seeds; the one whose self-made labels agree best is kept", low=1
    )
    refresh: int = setting(5, "find the neighbours again every so many epochs", low=1)
    replaced_words: float = setting(
        0.1, "share of words replaced at random in each view, where the words are read"
    )
    relocate: int = setting(
        2, "in a draft, move centres to where one is missing every so many epochs; 0: never"
    )
    known_prior: bool = setting(
        True, "let the labels near a text say whether its self-made label is known or novel"
    )
    label_epochs: int = setting(45, "epochs of self-made labels; more for a small table")
    label_steps: int = setting(
        1600, "steps of self-made labels at most; a large table needs no more", low=1
    )
    label_rate: float = setting(1e-5, "learning rate of self-made labels")
    pace: float = setting(
        10.0, "how many times faster the classifier's directions learn than the encoder", low=0.1
    )
    label_temperature: float = setting(0.1, "sharpness of their classifier", low=1e-3)
    balance: int = setting(10, "iterations of their balance; 0 leaves them unbalanced")
    label_shares: bool = setting(
        True, "let numbers of labels say how many texts the balance expects of a category"
    )
    queue: int = setting(32, "recent texts a category that are balanced with a batch")
    known_farther: float = setting(
        0.2,
        "how much farther out prototypes of known categories may lie, where they draw more texts "
        "than expected; 0: not at all",
    )


_FAST: dict[str, Any] = {
    "head": "residual",
    "pretrain_layers": 0,
    "trainable_layers": 0,
    "epochs": 0,
    "learning_rate": 1e-3,
    "rounds": 2,
    "tries": 1,
    "label_epochs": drafting.EPOCHS,
    "label_rate": drafting.RATE,
    "pace": 1.0,
    "queue": drafting.QUEUE,
}
EFFORTS: dict[str, dict[str, Any]] = {
    "fast": _FAST,
    "balanced": {**_FAST, "tries": 5},
    "best": {},
}


def fit(
    task: Task,
    encoder: Encoder,
    config: NewfoundConfig,
    *,
    seed: int,
    stages: Stages,
    cache: Path | None = None,
) -> Fitted:
    """Find categories by a draft, contrast with neighbours and balanced self-made labels."""

    def with_words(tokens: Ragged, features: Tensor) -> Tensor:
        return joined(features, words_of(tokens, task, config, features))

    start = begin(task, encoder, config, seed=seed, stages=stages, cache=cache, beside=with_words)
    with stages.stage("comparing texts"):
        features = features_of(start.model, start.inputs)
        words = words_of(start.tokens, task, config, features)
        points = joined(features, words)
        hints = Hints(
            odds_of(points, task, start.k, config),
            config.known_prior,
            config.relocate,
            shares_of(task, start.k, config).to(points.device),
            unevenness(torch.from_numpy(task.targets)) if config.label_shares else 0.0,
            config.known_farther,
        )
    draft = best_draft(
        points,
        task,
        labelling(config, task, drafting.EPOCHS, drafting.RATE, drafting.QUEUE),
        hints,
        rounds=config.rounds,
        tries=config.tries,
        seed=seed,
        stages=stages,
    )
    if config.epochs:
        train(start, features, task, config, seed, stages)
        with stages.stage("comparing texts"):
            features = features_of(start.model, start.inputs)
            hints = replace(hints, odds=odds_of(joined(features, words), task, start.k, config))
    # From here on features move to where the labels put them, and distances between them say what
    # the labels have said: what looks like one category cut in two are two that lie close.
    hints = replace(hints, relocate_every=0, shares=draft.shares)
    return label_and_settle(
        start,
        task,
        labelling(config, task, config.label_epochs, config.label_rate, config.queue),
        features,
        class_means(features, draft.labels, start.k),
        seed=seed,
        stages=stages,
        hints=hints,
        pace=config.pace,
    )


def words_of(tokens: Ragged, task: Task, config: NewfoundConfig, features: Tensor) -> Tensor:
    """What the texts' words say [N, w], weighted as the labels bear out; w is 0 without words."""
    if not config.words:
        return features.new_empty(len(features), 0)
    targets = torch.from_numpy(task.targets).to(features.device)
    return weigh_words(tokens, features, targets, config.neighbour_share)


def odds_of(points: Tensor, task: Task, k: int, config: NewfoundConfig) -> Tensor:
    """The log odds [N] that a text is of a known category, by the labels near its point [N, d]."""
    count = neighbour_count(len(points), k, config.neighbour_share)
    targets = torch.from_numpy(task.targets).to(points.device)
    return known_odds(nearest_neighbours(points, count), targets)


def shares_of(task: Task, k: int, config: NewfoundConfig) -> Tensor:
    """What each category is expected to have of the texts that no label is read of [K]."""
    read = torch.from_numpy(np.where(task.learnable, task.targets, -1))
    return expected_shares(read, k, by_labels=config.label_shares)


def labelling(
    config: NewfoundConfig, task: Task, epochs: int, rate: float, queue: int
) -> SelfLabellingConfig:
    """How labels are made: in the draft and afterwards alike, but for epochs, rate and queue."""
    return SelfLabellingConfig(
        epochs=enough_epochs(epochs, len(task.texts), config.batch, config.label_steps),
        learning_rate=rate,
        batch=config.batch,
        labelled_batch=config.labelled_batch,
        temperature=config.label_temperature,
        balance=config.balance,
        queue=queue,
        replaced_words=config.replaced_words,
    )


def enough_epochs(epochs: int, texts: int, batch: int, most: int | None = None) -> int:
    """So many epochs, but as many as LEAST_STEPS steps need, and only those that begin by `most`.

    None remain none.
    """
    steps = max(1, -(-texts // batch))
    least = -(-LEAST_STEPS // steps)
    if most is not None:
        epochs = min(epochs, -(-most // steps))
    return max(epochs, least) if epochs else 0


def neighbour_count(texts: int, categories: int, share: float) -> int:
    """How many neighbours a text has: a share of the mean size of a category, at least one."""
    return max(1, min(texts - 1, MOST_NEIGHBOURS, round(share * texts / categories)))


def train(
    start: Start, features: Tensor, task: Task, config: NewfoundConfig, seed: int, stages: Stages
) -> None:
    """Train the model by contrast with neighbours and cross-entropy on the labels.

    The first neighbours are those among `features` [N, d], which the model gives untrained.
    """
    model, inputs, classifier = start.model, start.inputs, start.pretrained.classifier
    n, device = len(task.texts), model.device
    if n < 3 or not any(w.requires_grad for w in model.parameters()):
        return
    epochs = enough_epochs(config.epochs, n, config.batch)
    torch.manual_seed(seed)  # the same whether pretraining ran or was found in the cache
    rng = np.random.default_rng(seed)
    projection: nn.Module = nn.Identity()
    if config.projection:
        inner = nn.Linear(model.width, model.width)
        outer = nn.Linear(model.width, config.projection)
        projection = nn.Sequential(inner, nn.GELU(), outer).to(device)
    # What may be read of a label: held-out texts count as unlabelled here.
    labels = np.where(task.learnable, task.targets, -1)
    targets = torch.from_numpy(labels).to(device)
    learnable = np.flatnonzero(task.learnable)
    size, labelled_size = min(config.batch, n), min(config.labelled_batch, len(learnable))
    count = neighbour_count(n, start.k, config.neighbour_share)
    neighbours = nearest_neighbours(features, count)  # [N, k]

    def losses(batch: Batch) -> dict[str, Tensor]:
        rows, (states, cells) = batch.rows, inputs.batch(batch)
        if model.frozen_layers < 0 and cells is not None and config.replaced_words > 0:
            views = cells.within(0, 2 * size)
            states = replace_words(states, views, model, config.replaced_words)
        raw = model.from_states(states, cells)
        unit = F.normalize(projection(raw[: 2 * size]).float(), dim=1)
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
        [model, projection, classifier] if labelled_size else [model, projection],
        config.learning_rate,
        schedule_steps=-(-n // size) * epochs,
        graphs=inputs.resident,
    )
    with stages.stage("training", epochs) as advance:
        for epoch in range(1, epochs + 1):
            if epoch > 1 and (epoch - 1) % config.refresh == 0:
                # In place, where recorded steps read them
                neighbours.copy_(nearest_neighbours(features_of(model, inputs), count))
            model.train()
            near = neighbours.cpu().numpy()
            drawn = contrast_batches(size, near, labels, learnable, labelled_size, rng)
            for batch in inputs.batches(drawn):
                optimiser.accumulate(losses, batch)
                optimiser.step()
            means = optimiser.epoch_means()
            line = {"stage": "training", "epoch": epoch, "loss": sum(means.values())}
            start.pretrained.history.append(line | means)
            advance(1)


def contrast_batches(
    size: int,
    neighbours: np.ndarray,
    labels: np.ndarray,
    labelled: np.ndarray,
    labelled_size: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """One epoch of rows [batches, B]: `size` anchors, a neighbour of each, then labelled texts.

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
    """Which texts of a batch are positives of each other [B, B].

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
