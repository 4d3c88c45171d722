"""Pretraining (Eq. 1): cross-entropy on the labels plus masked-word modelling.

1. Initialise a linear classifier, at random or with the class means (`start_from_means`).
2. Every epoch, train on batches of masked texts and of labelled texts; the losses are added.
3. Stop when validation accuracy has not risen for `patience` epochs; restore the best epoch.

With a folder, pretrained weights are cached under a hash of everything that they depend on.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from newfound.clustering.assignment import fit_temperature
from newfound.clustering.prototypes import class_means
from newfound.config import Layers, setting
from newfound.data.task import Task
from newfound.encoding.batching import Batch, Ragged, paired_batches
from newfound.encoding.feature_cache import Inputs, TrainableFeatures, features_of, run_frozen
from newfound.encoding.feature_maps import EncoderFeatures, pool
from newfound.progress import Stages
from newfound.training.best_weights import BestWeights
from newfound.training.losses.contrastive import contrastive_loss
from newfound.training.masking import MaskedWords, replace_words
from newfound.training.optimiser import Optimiser
from newfound.training.resuming import resumable_epochs
from newfound.training.weight_cache import read_cached_weights, write_cached_weights

REPLACED = 0.25  # share of words replaced in a view
CONTRAST_TEMPERATURE = 0.07


@dataclass(frozen=True)
class PretrainingConfig:
    """Settings of representation learning."""

    layers: Layers = setting("all", "how many of the last layers learn in pretraining")
    epochs: int = setting(100, "maximum number of epochs of pretraining")
    patience: int = setting(
        20, "epochs without a better validation accuracy before pretraining stops"
    )
    learning_rate: float = setting(
        5e-5, "learning rate of AdamW, after a warm-up of a tenth of the steps"
    )
    batch: int = setting(128, "texts per step for the masked-word loss")
    labelled_batch: int = setting(32, "labelled texts per step for the cross-entropy")
    masked_words: bool = setting(True, "add masked-word modelling")
    mask_share: float = setting(0.15, "share of words that are masked")
    from_means: bool = setting(False, "initialise the classifier with the class means")
    contrast: bool = setting(False, "add a contrastive loss of two views")


@dataclass
class Pretrained:
    """The classifier and the history of pretraining; the model is trained in place."""

    classifier: nn.Linear  # features before normalisation to known categories
    history: list[dict[str, Any]]


def frozen_count(layers: Layers, depth: int) -> int:
    """Return how many layers are frozen if the last `layers` are trained; -1 for "all"."""
    return -1 if layers == "all" else max(0, depth - int(layers))


def pretrain(
    model: TrainableFeatures,
    task: Task,
    tokens: Ragged,
    config: PretrainingConfig,
    *,
    seed: int,
    stages: Stages,
    inputs: Inputs | None = None,
    folder: Path | None = None,
) -> Pretrained:
    """Fine-tune a model by Eq. 1 and restore the epoch with the best validation accuracy.

    Parameters
    ----------
    model : EncoderFeatures
        Trained in place.
    task : Task
    tokens : Ragged
        The tokenised texts.
    config : PretrainingConfig
    seed : int
    stages : Stages
    inputs : Inputs, optional
        Output of the frozen layers, if the caller has it.
    folder : Path, optional
        Folder that caches the result for runs with the same weights, data and settings.

    Returns
    -------
    Pretrained
    """
    model.freeze(frozen_count(config.layers, model.layers))
    classifier = nn.Linear(model.width, max(1, len(task.known))).to(model.device)
    both = nn.ModuleDict({"model": model, "classifier": classifier})
    kept: Path | None = None
    if folder and config.epochs:
        kept = folder / f"pretrained-{_key(both, task, tokens, config, seed)}"
    if kept is not None and kept.with_suffix(".json").is_file():
        with stages.stage("pretraining (kept)"):
            found = read_cached_weights(kept, both, stages)
        if found is not None:
            return Pretrained(classifier, found)
    inputs = inputs or run_frozen(model, tokens, vectors=task.vectors)
    if config.from_means:
        start_from_means(classifier, model, task, inputs)
    history = _train(model, classifier, task, tokens, config, seed, stages, inputs)
    if kept is not None:
        write_cached_weights(kept, both, history)
    return Pretrained(classifier, history)


@torch.no_grad()
def start_from_means(
    classifier: nn.Linear, model: TrainableFeatures, task: Task, inputs: Inputs
) -> None:
    """Initialise the classifier as a nearest-class-mean classifier.

    A random classifier first pulls the features towards random directions, which costs the novel
    categories most when training is short or only a head is trained. Scores are
    -distance^2 / (2 temperature), up to a term that all classes share.
    """
    rows = np.flatnonzero(task.learnable)
    if not len(rows):
        return
    raw = features_of(model, inputs, rows, finished=False)
    targets = task.targets[rows]
    means = class_means(raw, torch.from_numpy(targets).to(raw.device), len(task.known))
    temperature = fit_temperature(raw.cpu().numpy(), means.cpu().numpy(), targets)
    classifier.weight.copy_(means / temperature)
    classifier.bias.copy_(-means.square().sum(1) / (2 * temperature))


def _train(
    model: TrainableFeatures,
    classifier: nn.Linear,
    task: Task,
    tokens: Ragged,
    config: PretrainingConfig,
    seed: int,
    stages: Stages,
    inputs: Inputs,
) -> list[dict[str, Any]]:
    """Train model and classifier; return the losses of each epoch."""
    learnable = np.flatnonzero(task.learnable)
    # A head alone cannot learn from masked words.
    has_words = config.masked_words and not inputs.pooled and model.encoder.mask_id is not None
    if config.epochs == 0 or not (has_words or len(learnable)):
        return []
    device, rng = model.device, np.random.default_rng(seed)
    tokens = tokens.to(device)
    targets = torch.from_numpy(task.targets).to(device)
    words = None
    if has_words and isinstance(model, EncoderFeatures):
        words = MaskedWords(model, config.mask_share)
    # Batches hold texts for the masked words first, then labelled ones for the cross-entropy.
    rows = np.arange(tokens.n_texts) if words else learnable
    size = min(config.batch if words else config.labelled_batch, len(rows))
    labelled = learnable if words else learnable[:0]
    labelled_size = min(config.labelled_batch, len(learnable))

    def labels_only(batch: Batch) -> dict[str, Tensor]:
        scores = classifier(model.from_states(*inputs.batch(batch))).float()
        return {"cross_entropy": F.cross_entropy(scores, targets[batch.rows])}

    def words_and_labels(batch: Batch) -> dict[str, Tensor]:
        assert words is not None
        assert isinstance(model, EncoderFeatures)
        ids, cells = tokens.packed(batch)
        end = size + labelled_size
        ids, places, wanted = words.mask(ids, cells.within(0, size))
        if config.contrast:  # the masked texts are the first view, these the second
            ids = replace_words(ids, cells.within(end, end + size), model, REPLACED)
        hidden = model.upper(model.lower(ids, cells), cells)
        losses = {"masked_words": words.loss(hidden, places, wanted)}
        raw = model.head(pool(hidden, cells, model.encoder.pooling).float())
        if labelled_size:
            scores = classifier(raw[size:end]).float()
            losses["cross_entropy"] = F.cross_entropy(scores, targets[batch.rows[size:end]])
        if config.contrast:
            one, other = F.normalize(raw[:size], dim=1), F.normalize(raw[end:], dim=1)
            itself = torch.eye(size, dtype=torch.bool, device=device)
            losses["contrast"] = contrastive_loss(one, other, itself, CONTRAST_TEMPERATURE)
        return losses

    term = words_and_labels if words else labels_only
    modules: list[nn.Module] = [model, classifier] + ([words.head] if words else [])
    optimiser = Optimiser(
        modules,
        config.learning_rate,
        schedule_steps=-(-len(rows) // size) * config.epochs,
        graphs=inputs.resident,
    )
    validation = validation_inputs(model, task)
    best = BestWeights(modules, config.patience)
    history: list[dict[str, Any]] = []
    with stages.stage("pretraining", config.epochs) as advance:
        for epoch in resumable_epochs(
            range(1, config.epochs + 1),
            stages.checkpoints,
            "pretraining",
            optimiser,
            rng,
            history,
            advance,
            best=best,
        ):
            model.train()
            drawn = paired_batches(rows, size, labelled, labelled_size, rng)
            if words and config.contrast:
                drawn = np.concatenate([drawn, drawn[:, :size]], axis=1)
            for batch in inputs.batches(drawn):
                optimiser.accumulate(term, batch)
                optimiser.step()
            losses = optimiser.epoch_means()
            total = sum(losses.values())
            line = {"stage": "pretraining", "epoch": epoch, "loss": total, **losses}
            score = -total  # without validation texts the loss decides when to stop
            if validation is not None:
                score = _accuracy(model, classifier, *validation)
                line["validation_accuracy"] = score
            history.append(line)
            advance(1)
            if best.update(score):
                break
        best.restore()
    return history


def _key(both: nn.Module, task: Task, tokens: Ragged, config: PretrainingConfig, seed: int) -> str:
    """Return a hash of everything that pretraining depends on."""
    digest = hashlib.sha256()
    for weight in both.state_dict().values():
        digest.update(weight.detach().cpu().numpy().tobytes())
    for part in (*tokens.digested(), task.targets.tobytes(), task.learnable.tobytes()):
        digest.update(part)
    digest.update(repr((task.validation_texts, task.validation_targets.tolist())).encode())
    digest.update(repr((config, seed)).encode())
    return digest.hexdigest()[:32]


def validation_inputs(model: TrainableFeatures, task: Task) -> tuple[Inputs, Tensor] | None:
    """Return the validation texts after the frozen layers, and their targets; None without any."""
    if not task.validation_texts:
        return None
    tokens = model.encoder.tokens(task.validation_texts)
    inputs = run_frozen(model, tokens, vectors=task.validation_vectors)
    return inputs, torch.from_numpy(task.validation_targets).to(model.device)


@torch.inference_mode()
def _accuracy(
    model: TrainableFeatures, classifier: nn.Module, inputs: Inputs, targets: Tensor
) -> float:
    """Return the accuracy of the classifier, from 0 to 1."""
    raw = features_of(model, inputs, finished=False, half=True)
    return float((classifier(raw).argmax(1) == targets).float().mean())
