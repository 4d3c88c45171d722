"""A prepared model on random vectors in place of encoded texts, whose truth is known."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from newfound.data.task import Task
from newfound.encoding.batching import Ragged
from newfound.encoding.feature_cache import Inputs
from newfound.encoding.feature_maps import EncoderFeatures
from newfound.encoding.loading import load_encoder
from newfound.training.preparation import Prepared
from newfound.training.pretraining import Pretrained

WIDTH = 32  # of the tiny encoder


@dataclass
class Drawn:
    """Vectors of K categories, the first M of them known by a few labels each."""

    prepared: Prepared
    task: Task
    truth: np.ndarray  # [N]

    @property
    def hidden(self) -> np.ndarray:
        """The unlabelled rows."""
        return self.task.unlabelled


def draw(
    encoder: str,
    *,
    k: int = 6,
    known: int = 3,
    each: int = 40,
    labelled: int = 5,
    apart: float = 2.0,
    noise: float = 1.0,
    head: str = "none",
    seed: int = 0,
) -> Drawn:
    """`each` vectors around each of `k` random centres, in the place of frozen states."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.repeat(np.arange(k), each))
    centres = apart * rng.normal(size=(k, WIDTH)) / np.sqrt(WIDTH) * np.sqrt(8) + 1.0
    vectors = centres[truth] + noise * rng.normal(size=(len(truth), WIDTH))
    targets = np.full(len(truth), -1)
    for category in range(known):
        targets[np.flatnonzero(truth == category)[:labelled]] = category
    task = Task(
        texts=[f"text {i}" for i in range(len(truth))],
        targets=targets,
        known=[f"known {i}" for i in range(known)],
        n_categories=k,
        learnable=targets >= 0,
        validation_texts=[],
        validation_targets=np.empty(0, np.int64),
    )
    torch.manual_seed(seed)
    model = EncoderFeatures(load_encoder(encoder), head=head, frozen_layers=3)
    states = torch.from_numpy(vectors.astype(np.float16))
    inputs = Inputs(states, np.ones(len(truth), np.int64), torch.device("cpu"))
    pretrained = Pretrained(nn.Linear(WIDTH, max(1, known)), [])
    tokens = Ragged.from_lengths(torch.from_numpy(truth), np.ones(len(truth), np.int64))
    return Drawn(Prepared(model, tokens, inputs, pretrained, k, None), task, truth)
