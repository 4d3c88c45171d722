"""DCN: Deep Clustering Network, in TEXTOIR's form or as published by Yang et al. (ICML 2017).

It reads TF-IDF weights of words, not the encoder, and uses no labels.

1. Train an autoencoder on the TF-IDF weights of the texts, and run k-means on its codes
   (`autoencoding`).
2. TEXTOIR's form, which the DPN paper used: refine as DEC does, with a weighted reconstruction
   error (IDEC; Guo et al., IJCAI 2017).
   With `published`, the form of Yang et al.: reconstruct, pull codes to their centre, and move
   centres to the running mean of their codes.
3. A text belongs to the nearest centre.

Departures from TEXTOIR are those of `autoencoding`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from newfound.clustering.distances import full_precision, nearest
from newfound.config import setting
from newfound.data.task import Task
from newfound.encoding.batching import Batch
from newfound.encoding.vectors.frozen_encoder import AnyEncoder
from newfound.methods.autoencoding import (
    DEC_EFFORTS,
    Coded,
    RefinementConfig,
    cluster_codes,
    counting_features,
    finalise_codes,
    refine,
)
from newfound.methods.fitted import Fitted
from newfound.progress import Stages
from newfound.training.autoencoder import batches_of, tensor_cores
from newfound.training.optimiser import Optimiser
from newfound.training.resuming import resumable_epochs

__all__ = ["EFFORTS", "DCNConfig", "counting_features", "fit"]

INITIAL_COUNT = 100.0  # weight of an initial centre in its running mean, in texts


@dataclass(frozen=True)
class DCNConfig(RefinementConfig):
    """Settings of DCN."""

    reconstruction: float = setting(0.1, "weight of the reconstruction error beside the targets")
    published: bool = setting(
        False, "use the DCN of Yang et al. with the published_ settings below, not TEXTOIR's"
    )
    published_pretraining: int = setting(50, "epochs of its autoencoder")
    published_epochs: int = setting(100, "epochs of its joint training")
    published_batch: int = setting(256, "texts per step of both", low=1)
    published_learning_rate: float = setting(1e-4, "learning rate of Adam for both")
    published_pull: float = setting(
        0.1, "lambda: weight of a code's squared distance to its centre (the paper gives no value)"
    )

    def training(self) -> tuple[int, int, float]:
        """Return the epochs, texts per step and learning rate of the autoencoder."""
        if self.published:
            return self.published_pretraining, self.published_batch, self.published_learning_rate
        return super().training()


EFFORTS: dict[str, dict[str, Any]] = {
    "fast": DEC_EFFORTS["fast"] | {"published_pretraining": 15, "published_epochs": 5},
    "balanced": DEC_EFFORTS["balanced"] | {"published_epochs": 20},
    "best": {},
}


def fit(
    task: Task,
    encoder: AnyEncoder,
    config: DCNConfig,
    *,
    seed: int,
    stages: Stages,
    cache: Path | None = None,
) -> Fitted:
    """Find categories with DCN, in TEXTOIR's or in the published form."""
    coded = cluster_codes(task, encoder, config, seed, stages, cache)
    if config.published:
        train_published(coded, config, seed, stages)
    else:
        refine(coded, config, config.reconstruction, seed, stages)
    return finalise_codes(task, coded, "dcn")


def train_published(coded: Coded, config: DCNConfig, seed: int, stages: Stages) -> None:
    """Train as Yang et al.: reconstruct, pull codes to their centres, move centres to codes."""
    model, decoder, bags, centres = coded.model, coded.decoder, coded.bags, coded.centres
    counts = centres.new_full((len(centres),), INITIAL_COUNT)

    def joint(batch: Batch) -> dict[str, Tensor]:
        given = bags.dense(batch.rows)
        codes = model.encoder(given)
        clusters = nearest(codes.detach(), centres)[0]
        follow(centres, counts, codes.detach(), clusters)
        apart = (codes - centres[clusters]).square().sum(1).mean()
        error = (decoder(codes) - given).square().sum(1).mean()
        return {"reconstruction": error, "distance": config.published_pull / 2 * apart}

    optimiser = Optimiser(
        [model.encoder, decoder], config.published_learning_rate, weight_decay=0.0
    )
    draw = torch.Generator().manual_seed(seed)
    with stages.stage("refining", config.published_epochs) as advance, tensor_cores():
        for epoch in resumable_epochs(
            range(1, config.published_epochs + 1),
            stages.checkpoints,
            "refining",
            optimiser,
            draw,
            coded.history,
            advance,
            tensors={"centres": centres, "counts": counts},
        ):
            for rows in batches_of(len(bags), config.published_batch, bags.device, draw):
                optimiser.accumulate(joint, Batch.of(rows))
                optimiser.step()
            means = optimiser.epoch_means()
            coded.history.append(
                {"stage": "refining", "epoch": epoch, "loss": sum(means.values())} | means
            )
            advance(1)


@torch.no_grad()
def follow(centres: Tensor, counts: Tensor, codes: Tensor, clusters: Tensor) -> None:
    """Move each centre to the running mean of its codes, in place: c += 1, m += (z - m) / c.

    For a whole batch [B, d] this recursion has a closed form.
    """
    # A product with one-hot rows is deterministic on a GPU.
    numbers = torch.arange(len(centres), device=codes.device)
    chosen = (clusters[:, None] == numbers).to(codes.dtype)  # [B, K]
    new = counts + chosen.sum(0)
    with full_precision(codes.device):
        centres.copy_((counts[:, None] * centres + chosen.T @ codes) / new[:, None])
    counts.copy_(new)
