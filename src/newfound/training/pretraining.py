"""Representation learning (Eq. 1): cross-entropy on the labels plus masked-word modelling."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from newfound.clustering.assignment import fit_temperature
from newfound.clustering.prototypes import class_means
from newfound.config import Layers, setting
from newfound.data.task import Task
from newfound.encoding.batching import Batch, Ragged, paired_batches, tokenize
from newfound.encoding.feature_cache import Inputs, features_of, run_frozen
from newfound.encoding.feature_maps import EncoderFeatures, pool
from newfound.files import write_atomically, write_json
from newfound.progress import Stages
from newfound.training.losses.contrastive import contrastive_loss
from newfound.training.masking import MaskedWords, replace_words
from newfound.training.optimiser import Optimiser

REPLACED = 0.25  # share of words that a view replaces
CONTRAST_TEMPERATURE = 0.07


@dataclass(frozen=True)
class PretrainingConfig:
    """Settings of representation learning."""

    layers: Layers = setting("all", "how many of the last layers learn in pretraining")
    epochs: int = setting(100, "most passes over the texts in pretraining")
    patience: int = setting(20, "stop when validation accuracy has not risen for so many epochs")
    learning_rate: float = setting(5e-5, "AdamW's in pretraining, after a warm-up of a tenth")
    batch: int = setting(128, "texts a step for the masked-word loss")
    labelled_batch: int = setting(32, "labelled texts a step for the cross-entropy")
    masked_words: bool = setting(True, "learn by guessing masked words, too")
    mask_share: float = setting(0.15, "share of words that are masked")
    from_means: bool = setting(False, "let the classifier start at the means of the classes")
    contrast: bool = setting(False, "tell each text from the others by two views, too")


@dataclass
class Pretrained:
    """What pretraining leaves beside the model's weights."""

    classifier: nn.Linear  # features before normalisation to known categories
    history: list[dict[str, Any]]


def frozen_count(layers: Layers, depth: int) -> int:
    """How many layers stay frozen when the last `layers` learn; -1 if even the embeddings learn."""
    return -1 if layers == "all" else max(0, depth - int(layers))


def pretrain(
    model: EncoderFeatures,
    task: Task,
    tokens: Ragged,
    config: PretrainingConfig,
    *,
    seed: int,
    stages: Stages,
    inputs: Inputs | None = None,
    folder: Path | None = None,
) -> Pretrained:
    """Fine-tune `model` by Eq. 1 and restore the epoch with the best validation accuracy.

    `inputs` are the frozen layers' cached states if the caller has them. With a `folder` the result
    is kept there, and found again by a run with the same start and settings.
    """
    model.freeze(frozen_count(config.layers, model.backbone.shape.layers))
    classifier = nn.Linear(model.width, max(1, len(task.known))).to(model.device)
    both = nn.ModuleDict({"model": model, "classifier": classifier})
    kept: Path | None = None
    if folder and config.epochs:
        kept = folder / f"pretrained-{_key(both, task, tokens, config, seed)}"
    if kept is not None and kept.with_suffix(".json").is_file():
        with stages.stage("pretraining (kept)"):
            both.load_state_dict(load_file(kept.with_suffix(".safetensors")))
            history = json.loads(kept.with_suffix(".json").read_text(encoding="utf-8"))
            return Pretrained(classifier, history)
    inputs = inputs or run_frozen(model, tokens)
    if config.from_means:
        start_from_means(classifier, model, task, inputs)
    history = _train(model, classifier, task, tokens, config, seed, stages, inputs)
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        with write_atomically(kept.with_suffix(".safetensors")) as temporary:
            save_file({k: v.cpu().contiguous() for k, v in both.state_dict().items()}, temporary)
        write_json(kept.with_suffix(".json"), history)
    return Pretrained(classifier, history)


@torch.no_grad()
def start_from_means(
    classifier: nn.Linear, model: EncoderFeatures, task: Task, inputs: Inputs
) -> None:
    """Let the classifier start as the rule of the nearest class mean.

    A random start first bends the features towards random directions, which costs the novel
    categories most when training is short or has only a head to bend. Scores are
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
    model: EncoderFeatures,
    classifier: nn.Linear,
    task: Task,
    tokens: Ragged,
    config: PretrainingConfig,
    seed: int,
    stages: Stages,
    inputs: Inputs,
) -> list[dict[str, Any]]:
    learnable = np.flatnonzero(task.learnable)
    # With only a head to learn there is nothing that masked words could teach.
    has_words = config.masked_words and not inputs.pooled and model.encoder.mask_id is not None
    if config.epochs == 0 or not (has_words or len(learnable)):
        return []
    device, rng = model.device, np.random.default_rng(seed)
    tokens = tokens.to(device)
    targets = torch.from_numpy(task.targets).to(device)
    words = MaskedWords(model, config.mask_share) if has_words else None
    # Batches hold texts for the masked words first, then labelled ones for the cross-entropy.
    rows = np.arange(len(tokens)) if words else learnable
    size = min(config.batch if words else config.labelled_batch, len(rows))
    labelled = learnable if words else learnable[:0]
    labelled_size = min(config.labelled_batch, len(learnable))

    def labels_only(batch: Batch) -> dict[str, Tensor]:
        scores = classifier(model.from_states(*inputs.batch(batch))).float()
        return {"cross_entropy": F.cross_entropy(scores, targets[batch.rows])}

    def words_and_labels(batch: Batch) -> dict[str, Tensor]:
        assert words is not None
        ids, cells = tokens.packed(batch)
        end = size + labelled_size
        ids, places, wanted = words.mask(ids, cells.within(0, size))
        if config.contrast:  # the masked texts are one view of themselves, this is another
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
    best = Best(modules, config.patience)
    history: list[dict[str, Any]] = []
    with stages.stage("pretraining", config.epochs) as advance:
        for epoch in range(1, config.epochs + 1):
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
            score = -total  # without a validation part the loss says when to stop
            if validation is not None:
                score = _accuracy(model, classifier, *validation)
                line["validation_accuracy"] = score
            history.append(line)
            advance(1)
            if best.saw(score):
                break
        best.restore()
    return history


class Best:
    """Keeps the weights of the best epoch, or try; says when patience is over."""

    def __init__(self, modules: list[nn.Module], patience: int) -> None:
        self.weights: list[Tensor] = [
            weight for module in modules for weight in module.parameters() if weight.requires_grad
        ]
        self.kept: list[Tensor] | None = None
        self.best = -np.inf
        self.patience, self.waited = patience, 0

    def saw(self, score: float) -> bool:
        """Note an epoch's score; True if it is time to stop."""
        if score > self.best:
            self.best, self.waited = score, 0
            self.kept = [weight.detach().clone() for weight in self.weights]
        else:
            self.waited += 1
        return self.waited >= self.patience

    def restore(self) -> None:
        """Put the best epoch's weights back."""
        if self.kept is not None:
            with torch.no_grad():
                torch._foreach_copy_(self.weights, self.kept)


def _key(both: nn.Module, task: Task, tokens: Ragged, config: PretrainingConfig, seed: int) -> str:
    """A hash of all that pretraining depends on."""
    digest = hashlib.sha256()
    for weight in both.state_dict().values():
        digest.update(weight.detach().cpu().numpy().tobytes())
    for part in (tokens.values.cpu().numpy(), tokens.lengths, task.targets, task.learnable):
        digest.update(part.tobytes())
    digest.update(repr((task.validation_texts, task.validation_targets.tolist())).encode())
    digest.update(repr((config, seed)).encode())
    return digest.hexdigest()[:32]


def validation_inputs(model: EncoderFeatures, task: Task) -> tuple[Inputs, Tensor] | None:
    """The validation texts' frozen states and their targets; None if there are no such texts."""
    if not task.validation_texts:
        return None
    tokens = tokenize(model.encoder.tokenizer, task.validation_texts, model.encoder.max_tokens)
    return run_frozen(model, tokens), torch.from_numpy(task.validation_targets).to(model.device)


@torch.inference_mode()
def _accuracy(
    model: EncoderFeatures, classifier: nn.Module, inputs: Inputs, targets: Tensor
) -> float:
    raw = features_of(model, inputs, finished=False, half=True)
    return float((classifier(raw).argmax(1) == targets).float().mean())
