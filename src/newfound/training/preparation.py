"""How methods that fine-tune an encoder begin: tokenise, encode, count, pretrain."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from newfound.clustering.n_categories import Estimate, estimate_categories
from newfound.config import Layers, setting
from newfound.data.task import Task
from newfound.encoding.batching import Ragged, tokenize
from newfound.encoding.feature_cache import Inputs, features_of, run_frozen
from newfound.encoding.feature_maps import EncoderFeatures
from newfound.encoding.loading import Encoder
from newfound.progress import Stages
from newfound.training.pretraining import Pretrained, PretrainingConfig, frozen_count, pretrain


@dataclass(frozen=True)
class StartConfig:
    """The settings that all such methods share."""

    head: Literal["none", "tanh", "residual"] = setting(
        "none", "what stands on the pooled vector: nothing, the released DPN's tanh layer, an MLP"
    )
    normalise: bool = setting(True, "give every feature unit length")
    pretrain_layers: Layers = setting("all", "how many of the last layers learn in pretraining")
    pretrain_epochs: int = setting(100, "most epochs of pretraining")
    patience: int = setting(20, "epochs without a better validation accuracy before it stops")
    pretrain_learning_rate: float = setting(5e-5, "learning rate of pretraining")
    pretrain_batch: int = setting(128, "texts a step in pretraining", low=1)
    pretrain_labelled_batch: int = setting(32, "labelled texts a step in pretraining", low=1)
    masked_words: bool = setting(True, "masked-word modelling in pretraining (Eq. 1)")
    classifier_from_means: bool = setting(
        False, "let the classifier of pretraining start at the means of the classes, not at random"
    )
    pretrain_contrast: bool = setting(
        False, "tell texts apart by two views in pretraining, where masked words are guessed"
    )
    trainable_layers: Layers = setting(3, "how many of the last layers learn in training")

    def pretraining(self) -> PretrainingConfig:
        """The part that pretraining reads."""
        return PretrainingConfig(
            layers=self.pretrain_layers,
            epochs=self.pretrain_epochs,
            patience=self.patience,
            learning_rate=self.pretrain_learning_rate,
            batch=self.pretrain_batch,
            labelled_batch=self.pretrain_labelled_batch,
            masked_words=self.masked_words,
            contrast=self.pretrain_contrast,
            from_means=self.classifier_from_means,
        )


@dataclass
class Start:
    """A pretrained model with its layers frozen as training wants them, and what it reads."""

    model: EncoderFeatures
    tokens: Ragged
    inputs: Inputs
    pretrained: Pretrained
    k: int  # number of categories, given or estimated
    estimate: Estimate | None


def count_categories(
    task: Task, features: Callable[[], Tensor], seed: int, stages: Stages
) -> tuple[int, Estimate | None]:
    """The number of categories: the one that was given, or an estimate from `features()` [N, d]."""
    if task.n_categories is not None:
        return task.n_categories, None
    with stages.stage("counting categories"):
        vectors = features()
        targets = torch.from_numpy(task.targets).to(vectors.device)
        estimate = estimate_categories(vectors, targets, seed=seed)
    return estimate.n_categories, estimate


def begin(
    task: Task,
    encoder: Encoder,
    config: StartConfig,
    *,
    seed: int,
    stages: Stages,
    cache: Path | None,
    beside: Callable[[Ragged, Tensor], Tensor] | None = None,
) -> Start:
    """Tokenise and encode the texts, count the categories if need be, and pretrain.

    `beside` makes the points that categories are counted from of the tokens and the features.
    """
    depth = encoder.backbone.shape.layers
    device = encoder.backbone.words.weight.device
    model = EncoderFeatures(encoder, head=config.head, normalise=config.normalise).to(device)
    model.freeze(frozen_count(config.pretrain_layers, depth))
    with stages.stage("tokenising"):
        tokens = tokenize(encoder.tokenizer, task.texts, encoder.max_tokens)
    with stages.stage("encoding", len(tokens)) as advance:
        inputs = run_frozen(model, tokens, folder=cache, advance=advance)

    def points() -> Tensor:
        features = features_of(model, inputs)
        return features if beside is None else beside(tokens, features)

    # Before training: afterwards labelled texts lie closer together than others of their kind.
    k, estimate = count_categories(task, points, seed, stages)
    pretrained = pretrain(
        model,
        task,
        tokens,
        config.pretraining(),
        seed=seed,
        stages=stages,
        inputs=inputs,
        folder=cache,
    )
    if frozen_count(config.trainable_layers, depth) != model.frozen_layers:
        model.freeze(frozen_count(config.trainable_layers, depth))
        with stages.stage("encoding", len(tokens)) as advance:
            inputs = run_frozen(model, tokens, folder=cache, advance=advance)
    return Start(model, tokens, inputs, pretrained, k, estimate)
