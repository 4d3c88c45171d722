"""Preparation, the common first part of all methods that fine-tune an encoder.

1. Tokenise the texts and run the frozen layers (`encode_texts`).
2. Estimate the number of categories, if it was not given (`count_categories`).
3. Pretrain on labels and masked words (`pretraining.pretrain`).
4. Freeze the layers that training leaves alone, and run them.

`counting_features` stops before step 2: `newfound estimate` counts with what it returns.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from newfound.checkpoints import Kept
from newfound.clustering.n_categories import Estimate, estimate_categories
from newfound.config import Layers, setting
from newfound.data.task import Task
from newfound.encoding.batching import Ragged
from newfound.encoding.feature_cache import Inputs, TrainableFeatures, features_of, run_frozen
from newfound.encoding.feature_maps import EncoderFeatures
from newfound.encoding.loading import Encoder
from newfound.encoding.vectors.features import VectorFeatures
from newfound.encoding.vectors.frozen_encoder import AnyEncoder
from newfound.progress import Stages
from newfound.training.pretraining import Pretrained, PretrainingConfig, frozen_count, pretrain


@dataclass(frozen=True)
class PreparationConfig:
    """Settings of preparation, which all methods that fine-tune an encoder share."""

    head: Literal["none", "tanh", "residual", "small-residual"] = setting(
        "none",
        "layer on the pooled vector: none, the tanh layer of the released DPN, or a residual MLP "
        "(of inner width 512, or 256 if small)",
    )
    normalise: bool = setting(True, "give every feature unit length")
    pretrain_layers: Layers = setting("all", "how many of the last layers learn in pretraining")
    pretrain_epochs: int = setting(100, "maximum number of epochs of pretraining")
    patience: int = setting(
        20, "epochs of pretraining without a better validation accuracy before it stops"
    )
    pretrain_learning_rate: float = setting(5e-5, "learning rate of pretraining")
    pretrain_batch: int = setting(128, "texts per step in pretraining", low=1)
    pretrain_labelled_batch: int = setting(32, "labelled texts per step in pretraining", low=1)
    masked_words: bool = setting(True, "masked-word modelling in pretraining (Eq. 1)")
    classifier_from_means: bool = setting(
        False, "initialise the classifier of pretraining with the class means, not at random"
    )
    pretrain_contrast: bool = setting(
        False, "add a contrastive loss of two views to masked-word modelling in pretraining"
    )

    def pretraining(self) -> PretrainingConfig:
        """Return the part that pretraining reads."""
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


@dataclass(frozen=True)
class Encoded:
    """A model that has not been trained yet, and its texts after the frozen layers."""

    model: TrainableFeatures
    tokens: Ragged
    inputs: Inputs


@dataclass
class Prepared:
    """A pretrained model, its layers frozen as training needs them, and its cached inputs."""

    model: TrainableFeatures
    tokens: Ragged
    inputs: Inputs
    pretrained: Pretrained
    k: int  # number of categories, given or estimated
    estimate: Estimate | None


def make_features(
    task: Task, encoder: AnyEncoder, *, head: str = "none", normalise: bool = True
) -> TrainableFeatures:
    """Return a feature map on the encoder's device, whose layers can be trained if it has any."""
    if isinstance(encoder, Encoder):
        return EncoderFeatures(encoder, head=head, normalise=normalise).to(encoder.device)
    assert task.vectors is not None
    width = task.vectors.shape[1]
    return VectorFeatures(encoder, width, head=head, normalise=normalise).to(encoder.device)


def encode_texts(
    task: Task,
    encoder: AnyEncoder,
    config: PreparationConfig,
    *,
    stages: Stages,
    cache: Path | None,
) -> Encoded:
    """Tokenise the texts and run the layers that pretraining leaves frozen."""
    model = make_features(task, encoder, head=config.head, normalise=config.normalise)
    model.freeze(frozen_count(config.pretrain_layers, encoder.layers))
    return run_encoder(model, task, stages=stages, cache=cache)


def run_encoder(
    model: TrainableFeatures, task: Task, *, stages: Stages, cache: Path | None
) -> Encoded:
    """Tokenise the texts and run the frozen layers of a model; long texts are reported."""
    with stages.stage("tokenising"):
        tokens = model.encoder.tokens(task.texts)
    if isinstance(model.encoder, Encoder):
        stages.long_texts = tokens.long
        note = model.encoder.long_text_note(tokens)
        if note is not None:
            stages.note(note)
    with stages.stage("encoding", tokens.n_texts) as advance:
        inputs = run_frozen(
            model,
            tokens,
            vectors=task.vectors,
            folder=cache,
            advance=advance,
            note=stages.note,
            checkpoints=stages.checkpoints,
        )
    return Encoded(model, tokens, inputs)


def encoded_features(encoded: Encoded) -> Tensor:
    """Return the features [N, d] of the texts, before any training."""
    return features_of(encoded.model, encoded.inputs)


def counting_features(
    task: Task,
    encoder: AnyEncoder,
    config: PreparationConfig,
    *,
    seed: int,
    stages: Stages,
    cache: Path | None = None,
) -> Tensor:
    """Return the features [N, d] that a method with these settings counts categories with."""
    return encoded_features(encode_texts(task, encoder, config, stages=stages, cache=cache))


def count_categories(
    task: Task, features: Callable[[], Tensor], seed: int, stages: Stages
) -> tuple[int, Estimate | None]:
    """Return the given number of categories, or an estimate from `features()` [N, d]."""
    if task.n_categories is not None:
        return task.n_categories, None

    def work() -> Kept:
        vectors = features()
        targets = torch.from_numpy(task.targets).to(vectors.device)
        return Kept(estimate_categories(vectors, targets, seed=seed).to_dict())

    with stages.stage("counting categories"):
        kept = stages.checkpoints.compute("counting", work)
    estimate = Estimate.from_dict(kept.value, "the kept count")
    return estimate.n_categories, estimate


def prepare(
    task: Task,
    encoder: AnyEncoder,
    config: PreparationConfig,
    *,
    trainable_layers: Layers | None,
    seed: int,
    stages: Stages,
    cache: Path | None,
    estimate: Callable[[Encoded], Estimate] | None = None,
) -> Prepared:
    """Encode the texts, count the categories if need be, and pretrain.

    Parameters
    ----------
    task : Task
    encoder : Encoder
    config : PreparationConfig
    trainable_layers : int, "all" or None
        How many of the last layers training will change; None: no training follows, so the layers
        stay frozen as pretraining had them and nothing is encoded again.
    seed : int
    stages : Stages
    cache : Path, optional
        Folder for the output of frozen layers and for pretrained weights.
    estimate : callable, optional
        Estimates the number of categories in place of `count_categories`.

    Returns
    -------
    Prepared
    """
    encoded = encode_texts(task, encoder, config, stages=stages, cache=cache)
    model, tokens, inputs = encoded.model, encoded.tokens, encoded.inputs
    # Before training: afterwards labelled texts lie closer together than others of their category.
    if estimate is None or task.n_categories is not None:
        k, found = count_categories(task, lambda: encoded_features(encoded), seed, stages)
    else:
        with stages.stage("counting categories"):
            found = estimate(encoded)
        k = found.n_categories
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
    depth = encoder.layers
    if (
        trainable_layers is not None
        and frozen_count(trainable_layers, depth) != model.frozen_layers
    ):
        model.freeze(frozen_count(trainable_layers, depth))
        with stages.stage("encoding", tokens.n_texts) as advance:
            inputs = run_frozen(
                model,
                tokens,
                folder=cache,
                advance=advance,
                note=stages.note,
                checkpoints=stages.checkpoints,
            )
    return Prepared(model, tokens, inputs, pretrained, k, found)
