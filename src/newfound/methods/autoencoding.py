"""SAE and DEC: k-means on the codes of an autoencoder, and a refinement of both.

Both, and DCN (`dcn`), read TF-IDF weights of words, not the encoder, and use no labels.

1. Train an autoencoder on the TF-IDF weights of the texts.
2. Run k-means on its codes. SAE ends here.
3. DEC (Xie et al., ICML 2016): self-train encoder and centres, so that the soft assignments of
   codes to centres approach a sharper target.
4. A text belongs to the nearest centre.

Departures from TEXTOIR:

- The vocabulary comes from the training texts only, because validation texts are of known
  categories only.
- Dead code units are negated (`autoencoder.flip_dead_units`).
- Texts are split into words as everywhere in this package, so one-letter words and scripts
  without spaces count.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from newfound.clustering.kmeans import kmeans
from newfound.clustering.n_categories import Estimate
from newfound.config import setting
from newfound.data.task import Task
from newfound.encoding.vectors.frozen_encoder import AnyEncoder
from newfound.errors import InputError
from newfound.methods.finalisation import finalise_with_centres
from newfound.methods.fitted import Fitted
from newfound.progress import Stages
from newfound.training.autoencoder import (
    AutoencoderFeatures,
    BagOfWords,
    batches_of,
    codes_of,
    tensor_cores,
    train_autoencoder,
)
from newfound.training.losses.student_t import (
    self_training_loss,
    soft_assignment,
    target_distribution,
)
from newfound.training.preparation import count_categories


@dataclass(frozen=True)
class AutoencoderConfig:
    """Settings of the autoencoder, which SAE, DEC and DCN share; defaults follow TEXTOIR."""

    vocabulary: int = setting(2000, "number of words, the most frequent ones, that are read", low=1)
    code: int = setting(10, "width of the code", low=1)
    activation: Literal["relu", "linear"] = setting("relu", "activation of the code units")
    waking: bool = setting(True, "negate the weights of code units that are zero for every text")
    epochs: int = setting(5000, "epochs of the autoencoder")
    batch: int = setting(4096, "texts per step of the autoencoder", low=1)
    learning_rate: float = setting(1e-3, "learning rate of Adam for the autoencoder")
    epsilon: float = setting(
        1e-7, "epsilon of Adam, as in Keras; gradients are so small that it limits the steps"
    )
    starts: int = setting(10, "k-means starts", low=1)

    def training(self) -> tuple[int, int, float]:
        """Return the epochs, texts per step and learning rate of the autoencoder."""
        return self.epochs, self.batch, self.learning_rate


@dataclass(frozen=True)
class SAEConfig(AutoencoderConfig):
    """Settings of SAE."""


@dataclass(frozen=True)
class RefinementConfig(AutoencoderConfig):
    """Settings of autoencoder and refinement, which DEC and DCN share; defaults follow TEXTOIR."""

    starts: int = setting(20, "k-means starts", low=1)
    iterations: int = setting(12_000, "maximum number of steps of refinement")
    refine_batch: int = setting(256, "texts per step of refinement", low=1)
    refine_learning_rate: float = setting(
        1e-3, "learning rate of the refinement, by gradient descent"
    )
    momentum: float = setting(0.9, "momentum of the refinement", high=1)
    refresh: int = setting(100, "recompute the targets every so many steps", low=1)
    tolerance: float = setting(
        0.01, "stop when a smaller share of texts changed cluster between two refreshes", high=1
    )


@dataclass(frozen=True)
class DECConfig(RefinementConfig):
    """Settings of DEC."""


# Thousands of epochs take too long on a CPU: fewer and smaller steps.
EFFORTS: dict[str, dict[str, Any]] = {
    "fast": {"epochs": 15, "batch": 256, "epsilon": 1e-8, "starts": 5},
    "balanced": {"epochs": 30, "batch": 256, "epsilon": 1e-8},
    "best": {},
}
FEWER_STEPS: dict[str, dict[str, Any]] = {
    "fast": {"iterations": 300, "refresh": 50},
    "balanced": {"iterations": 1000},
    "best": {},
}
DEC_EFFORTS = {effort: EFFORTS[effort] | FEWER_STEPS[effort] for effort in EFFORTS}


@dataclass(frozen=True)
class Trained:
    """A trained autoencoder and what it was trained on."""

    model: AutoencoderFeatures
    decoder: nn.Sequential
    bags: BagOfWords
    history: list[dict[str, Any]]


@dataclass(frozen=True)
class Coded(Trained):
    """A trained autoencoder and the centres of its codes: where DEC and DCN begin."""

    centres: Tensor  # [K, code]
    estimate: Estimate | None


def fit_sae(
    task: Task,
    encoder: AnyEncoder,
    config: SAEConfig,
    *,
    seed: int,
    stages: Stages,
    cache: Path | None = None,
) -> Fitted:
    """Find categories by k-means on the codes of an autoencoder."""
    return finalise_codes(task, cluster_codes(task, encoder, config, seed, stages, cache), "sae")


def fit_dec(
    task: Task,
    encoder: AnyEncoder,
    config: DECConfig,
    *,
    seed: int,
    stages: Stages,
    cache: Path | None = None,
) -> Fitted:
    """Find categories with DEC."""
    coded = cluster_codes(task, encoder, config, seed, stages, cache)
    refine(coded, config, 0.0, seed, stages)
    return finalise_codes(task, coded, "dec")


def counting_features(
    task: Task,
    encoder: AnyEncoder,
    config: AutoencoderConfig,
    *,
    seed: int,
    stages: Stages,
    cache: Path | None = None,
) -> Tensor:
    """Return the codes [N, code] that SAE, DEC and DCN count categories with."""
    trained = train_on_words(task, encoder, config, seed, stages, cache)
    return codes_of(trained.model, trained.bags)


def train_on_words(
    task: Task,
    encoder: AnyEncoder,
    config: AutoencoderConfig,
    seed: int,
    stages: Stages,
    cache: Path | None,
) -> Trained:
    """Train the autoencoder on the task's texts; the encoder only gives the device."""
    epochs, batch, rate = config.training()
    torch.manual_seed(seed)  # initial weights are drawn on the CPU: equal on every device
    model = AutoencoderFeatures.from_texts(
        task.texts, config.vocabulary, code=config.code, activation=config.activation
    ).to(encoder.device)
    with stages.stage("weighing words"):
        bags = BagOfWords.from_csr(model.weights(task.texts), model.device)
    decoder, history = train_autoencoder(
        model,
        bags,
        epochs=epochs,
        batch=batch,
        learning_rate=rate,
        epsilon=config.epsilon,
        waking=config.waking,
        seed=seed,
        stages=stages,
        folder=cache,
    )
    return Trained(model, decoder, bags, history)


def cluster_codes(
    task: Task,
    encoder: AnyEncoder,
    config: AutoencoderConfig,
    seed: int,
    stages: Stages,
    cache: Path | None,
) -> Coded:
    """Train the autoencoder and find the centres of its codes by k-means."""
    trained = train_on_words(task, encoder, config, seed, stages, cache)
    codes = codes_of(trained.model, trained.bags)
    k, estimate = count_categories(task, lambda: codes, seed, stages)
    with stages.stage("clustering"):
        centres = kmeans(codes, k, starts=config.starts, seed=seed).centres
    return Coded(**vars(trained), centres=centres, estimate=estimate)


def refine(
    coded: Coded, config: RefinementConfig, reconstruction: float, seed: int, stages: Stages
) -> None:
    """Train encoder and centres towards a sharper target, in place.

    With a weight for the `reconstruction` error the decoder is trained, too (IDEC).
    """
    model, decoder, bags, centres = coded.model, coded.decoder, coded.bags, coded.centres
    weights = [*model.encoder.parameters(), centres.requires_grad_()]
    weights += list(decoder.parameters()) if reconstruction > 0 else []
    speeds = [torch.zeros_like(weight) for weight in weights]
    before: Tensor | None = None
    with stages.stage("refining", config.iterations) as advance, tensor_cores():
        for step, rows in enumerate(_endless(bags, config, seed)):
            if step % config.refresh == 0:
                targets, labels, line = _refreshed(model, bags, centres, before)
                coded.history.append(line | {"stage": "refining", "step": step})
                # The first refresh has no earlier clusters to compare with.
                if before is not None and line["moved"] < config.tolerance:
                    break
                before = labels
            if step == config.iterations:
                break
            given = bags.dense(rows)
            codes = model.encoder(given)
            # Targets are indexed by text, because batches are in random order.
            loss = self_training_loss(soft_assignment(codes, centres), targets[rows])
            if reconstruction > 0:
                loss = loss + reconstruction * F.mse_loss(decoder(codes), given)
            _descend(weights, speeds, torch.autograd.grad(loss, weights), config)
            advance(1)
    centres.requires_grad_(False)


def _endless(bags: BagOfWords, config: RefinementConfig, seed: int) -> Iterator[Tensor]:
    """Yield batches of rows, epoch after epoch."""
    draw = torch.Generator().manual_seed(seed)
    while True:
        yield from batches_of(len(bags), config.refine_batch, bags.device, draw)


@torch.no_grad()
def _refreshed(
    model: AutoencoderFeatures, bags: BagOfWords, centres: Tensor, before: Tensor | None
) -> tuple[Tensor, Tensor, dict[str, Any]]:
    """Return the targets of all texts [N, K], their clusters [N], and a line for the history."""
    shares = soft_assignment(codes_of(model, bags), centres)
    targets, labels = target_distribution(shares), shares.argmax(1)
    moved = None if before is None else float((labels != before).float().mean())
    loss = float(self_training_loss(shares, targets))
    if not torch.isfinite(shares).all():
        raise InputError(
            "the refinement diverged (assignments are not numbers); choose a smaller "
            "refine_learning_rate"
        )
    return targets, labels, {"loss": loss, "moved": moved}


@torch.no_grad()
def _descend(
    weights: list[Tensor],
    speeds: list[Tensor],
    slopes: tuple[Tensor, ...],
    config: RefinementConfig,
) -> None:
    """Take one step of gradient descent with momentum, in place."""
    torch._foreach_mul_(speeds, config.momentum)
    torch._foreach_add_(speeds, slopes)
    torch._foreach_add_(weights, speeds, alpha=-config.refine_learning_rate)


def finalise_codes(task: Task, coded: Coded, name: str) -> Fitted:
    """Use the centres as prototypes; the nearest one also has the largest soft assignment."""
    notes = []
    if task.known:
        notes.append(f"{name} ignores labels: they only name the nearest clusters")
    codes = codes_of(coded.model, coded.bags)
    dead = int((~(codes != 0).any(0)).sum())
    if dead:
        notes.append(f"{dead} of the {codes.shape[1]} code units are zero for every text")
    return finalise_with_centres(
        coded.model.eval(),
        task,
        codes,
        coded.centres,
        estimate=coded.estimate,
        history=coded.history,
        notes=notes,
    )
