"""Our own method: contrast with neighbours, relocation, then balanced self-made labels.

A text's nearest neighbours mostly share its category. So the encoder (or only a head on it) first
learns by supervised contrast: each text is pulled to one of its neighbours and to all texts of the
batch that are its neighbours or carry its label, and pushed from the rest; where two labels
disagree they override the neighbourhood. Cross-entropy on the labels goes on beside it.

An encoder may lay two categories on one another that people tell apart by a name. So words stand
beside its features where categories are counted and where they start, with as much weight as labels
bear out (`lexical`), and where the first neighbours are found if the encoder cannot learn them.

Neighbourhoods know nothing of K, and k-means on what they leave, with the labelled texts held in
their categories, hides novel categories in known ones that are like them. So centres are moved to
where one is missing (`relocation`), and how many labels lie near a text says whether it is known or
novel (`neighbours.known_odds`).

The centres only give the start to a classifier by cosines, which then learns with the encoder from
the labels and from its own labels of the other texts (`self_labelling`). These are balanced over
all K, known categories by how many labels they have (`sinkhorn.expected_shares`). The directions of
this classifier are the prototypes: known ones carry their labels' names, and a text belongs to the
nearest. Known ones that draw too many texts lie farther out than novel ones.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from newfound.batching import Batch, Ragged, shuffled_batches
from newfound.config import Layers, setting
from newfound.encoder import Encoder
from newfound.frozen import features_of
from newfound.kmeans import seeded_kmeans
from newfound.lexical import joined, weigh_words
from newfound.losses import contrastive_loss
from newfound.masking import replace_words
from newfound.methods.self_labelling import Hints, SelfLabellingConfig, label_and_settle
from newfound.methods.starting import Start, StartConfig, begin
from newfound.neighbours import known_odds, nearest_neighbours
from newfound.optimise import Optimiser
from newfound.pretraining import Best
from newfound.prototypes import class_means
from newfound.relocation import relocate
from newfound.sinkhorn import expected_shares
from newfound.stages import Stages
from newfound.task import Fitted, Task

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
    word_neighbours: bool = setting(
        False, "let words say, too, which texts are neighbours; for an encoder that does not learn"
    )
    refresh: int = setting(5, "find the neighbours again every so many epochs", low=1)
    replaced_words: float = setting(
        0.1, "share of words replaced at random in each view, where the words are read"
    )
    starts: int = setting(10, "starts of the k-means that the categories begin from", low=1)
    relocate: int = setting(
        5,
        "move prototypes to where one is missing every so many epochs; 0: never",
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
    balance: int = setting(3, "iterations of their balance; 0 leaves them unbalanced")
    label_shares: bool = setting(
        True, "let the balance expect texts of known categories as their numbers of labels say"
    )
    queue: int = setting(32, "recent texts a category that are balanced with a batch")
    known_farther: float = setting(
        0.2,
        "how much farther out prototypes of known categories may lie, where they draw more texts "
        "than expected; 0: not at all",
    )
    tries: int = setting(
        1, "models trained with other seeds; that whose self-made labels agree best is kept", low=1
    )


_HEAD_ONLY: dict[str, Any] = {
    "head": "residual",
    "pretrain_layers": 0,
    "trainable_layers": 0,
    "learning_rate": 1e-3,
    "refresh": 100,
    "label_rate": 1e-3,
    "pace": 1.0,
    "starts": 1,
    "relocate": 2,
    "word_neighbours": True,
}
_FAST: dict[str, Any] = {**_HEAD_ONLY, "epochs": 3, "label_epochs": 4, "queue": 16}
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
    """Find categories by contrast with neighbours, relocation and balanced self-made labels."""

    def with_words(tokens: Ragged, features: Tensor) -> Tensor:
        return joined(features, words_of(tokens, task, config, features))

    start = begin(task, encoder, config, seed=seed, stages=stages, cache=cache, beside=with_words)
    count = neighbour_count(len(task.texts), start.k, config.neighbour_share)
    with stages.stage("comparing texts"):
        features = features_of(start.model, start.inputs)
        words = words_of(start.tokens, task, config, features)
        near = joined(features, words) if config.word_neighbours else features
        neighbours = nearest_neighbours(near, count)  # the same for all tries

    def attempt(own: Start, seed: int) -> Fitted:
        return fit_once(own, words, neighbours, task, config, seed, stages)

    return (
        attempt(start, seed) if config.tries == 1 else best_of(attempt, start, config.tries, seed)
    )


def words_of(tokens: Ragged, task: Task, config: NewfoundConfig, features: Tensor) -> Tensor:
    """What the texts' words say [N, w], weighted as the labels bear out; w is 0 without words."""
    if not config.words:
        return features.new_empty(len(features), 0)
    targets = torch.from_numpy(task.targets).to(features.device)
    return weigh_words(tokens, features, targets, config.neighbour_share)


def fit_once(
    start: Start,
    words: Tensor,
    neighbours: Tensor,
    task: Task,
    config: NewfoundConfig,
    seed: int,
    stages: Stages,
) -> Fitted:
    """One model, from a start whose encoder, or at least head, is yet to be trained.

    It learns from the first `neighbours` [N, k]. Weighted `words` [N, w] stand beside its features
    where the categories start; then the features learn what the words say.
    """
    config = replace(
        config,
        epochs=enough_epochs(config.epochs, len(task.texts), config.batch),
        label_epochs=enough_epochs(
            config.label_epochs, len(task.texts), config.batch, config.label_steps
        ),
    )
    train(start, neighbours, task, config, seed, stages)
    labelling = SelfLabellingConfig(
        epochs=config.label_epochs,
        learning_rate=config.label_rate,
        batch=config.batch,
        labelled_batch=config.labelled_batch,
        temperature=config.label_temperature,
        balance=config.balance,
        queue=config.queue,
        replaced_words=config.replaced_words,
        starts=config.starts,
    )
    with stages.stage("clustering"):
        features = features_of(start.model, start.inputs)
        targets = torch.from_numpy(task.targets).to(features.device)
        points = joined(features, words)
        odds = known_odds(nearest_neighbours(points, neighbours.shape[1]), targets)
        found = seeded_kmeans(points, start.k, targets, starts=config.starts, seed=seed)
        if config.relocate:
            found = relocate(points, targets, odds, found, seed=seed)
        centres = class_means(features, found.labels, start.k)
    read = torch.where(torch.from_numpy(task.learnable).to(targets.device), targets, -1)
    shares = expected_shares(read, start.k, by_labels=config.label_shares)
    hints = Hints(odds, config.known_prior, config.relocate, shares, config.known_farther)
    return label_and_settle(
        start,
        task,
        labelling,
        features,
        centres,
        seed=seed,
        stages=stages,
        hints=hints,
        pace=config.pace,
    )


def best_of(attempt: Callable[[Start, int], Fitted], start: Start, tries: int, seed: int) -> Fitted:
    """Train several models that differ by their seeds; keep the one with the least doubt."""
    fresh, best = Best([start.model], tries), Best([start.model], tries)
    fresh.saw(0.0)
    found: Fitted | None = None
    for turn in range(tries):
        fresh.restore()
        tried = attempt(replace(start, pretrained=copy.deepcopy(start.pretrained)), seed + turn)
        if found is None or doubt(tried) < doubt(found):
            found = tried
            best.saw(-doubt(tried))
    best.restore()
    assert found is not None
    return found


def doubt(fitted: Fitted) -> float:
    """The loss of self-made labels in the last epoch: how little two views of a text agree.

    It is higher where categories were merged or cut in two; without self-made labels it is 0.
    """
    lines = [line for line in fitted.history if line["stage"] == "labelling"]
    return float(lines[-1]["self_labels"]) if lines else 0.0


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
    start: Start, neighbours: Tensor, task: Task, config: NewfoundConfig, seed: int, stages: Stages
) -> None:
    """Train the model by contrast with `neighbours` [N, k] and cross-entropy on the labels."""
    model, inputs, classifier = start.model, start.inputs, start.pretrained.classifier
    n, device = len(task.texts), model.device
    if config.epochs == 0 or n < 3 or not any(w.requires_grad for w in model.parameters()):
        return
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
    neighbours = neighbours.clone()  # found again in place, where recorded steps read them

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
        schedule_steps=-(-n // size) * config.epochs,
        graphs=inputs.resident,
    )
    with stages.stage("training", config.epochs) as advance:
        for epoch in range(1, config.epochs + 1):
            if epoch > 1 and (epoch - 1) % config.refresh == 0:
                again = nearest_neighbours(features_of(model, inputs), neighbours.shape[1])
                neighbours.copy_(again)
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
