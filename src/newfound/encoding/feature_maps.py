"""The feature map that methods train: backbone, pooling, a small head, logits for some methods.

Everything below `frozen_layers` never changes. Its output is rounded to half precision, in training
and prediction alike, so that a cached value and a fresh one are the same number and a text that was
in the training corpus gets the same answer later.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from newfound.encoding.backbone import Architecture, Backbone
from newfound.encoding.batching import Cells, Ragged, plan_batches, tokenize
from newfound.encoding.loading import Encoder, read_tokenizer
from newfound.encoding.workers import run_batches
from newfound.files import write_atomically, write_json, write_text
from newfound.progress import Advance

TOKEN_BUDGET = {"cpu": 768, "cuda": 65536}  # tokens a batch when encoding


class FeatureMap(Protocol):
    """Texts to vectors; every method has one, whatever is behind it."""

    kind: str

    def __call__(self, texts: Sequence[str], advance: Advance | None = None) -> np.ndarray:
        """Features float32 [N, d]."""

    def save(self, folder: Path) -> None:
        """Write all that `load` needs."""


class TanhHead(nn.Module):
    """The released DPN's head: dropout(tanh(Linear(pooled)))."""

    def __init__(self, width: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, pooled: Tensor) -> Tensor:
        return self.dropout(torch.tanh(self.dense(pooled)))


class ResidualHead(nn.Module):
    """A small MLP added to the pooled vector; it starts as the identity."""

    def __init__(self, width: int, inner: int = 512, dropout: float = 0.1) -> None:
        super().__init__()
        self.up = nn.Linear(width, inner)
        self.down = nn.Linear(inner, width)
        self.dropout = nn.Dropout(dropout)
        nn.init.zeros_(self.down.weight)
        nn.init.zeros_(self.down.bias)

    def forward(self, pooled: Tensor, views: int = 1) -> Tensor:
        """[views B, width] from pooled [B, width]: each view with a dropout of its own."""
        inner = F.gelu(self.up(pooled))  # the same for all views
        if views > 1:
            pooled, inner = pooled.repeat(views, 1), inner.repeat(views, 1)
        return pooled + self.down(self.dropout(inner))


HEADS: dict[str, Any] = {
    "none": lambda width: nn.Identity(),
    "tanh": TanhHead,
    "residual": ResidualHead,
}


class EncoderFeatures(nn.Module):
    """Texts to vectors [N, outputs] through an encoder, a head and, for some methods, logits."""

    kind = "encoder"
    noise = 1e-4  # relative: in full precision a text's features differ by far less by company

    def __init__(
        self,
        encoder: Encoder,
        *,
        head: str = "none",
        normalise: bool = True,
        frozen_layers: int = -1,
        logits: int | None = None,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.backbone = encoder.backbone
        self.head_name = head
        self.head: nn.Module = HEADS[head](self.backbone.shape.width)
        self.logits: nn.Linear | None = nn.Linear(self.width, logits) if logits else None
        self.normalise = normalise
        self.special: Tensor  # ids that are no words, where the model is
        special = torch.tensor(encoder.special_ids, dtype=torch.int64)
        self.register_buffer("special", special, persistent=False)
        # -1: nothing is frozen; 0: the embeddings; n: also the first n layers.
        self.frozen_layers = frozen_layers
        self.freeze(frozen_layers)

    @property
    def width(self) -> int:
        """Width of what the head gives, which classifiers read."""
        return self.backbone.shape.width

    @property
    def outputs(self) -> int:
        """Width of a feature F(x): the head's, or the number of logits."""
        return self.width if self.logits is None else self.logits.out_features

    @property
    def device(self) -> torch.device:
        return self.backbone.words.weight.device

    def add_logits(self, count: int) -> nn.Linear:
        """From now on a feature is `count` logits on top of the head, of no fixed length."""
        self.logits = nn.Linear(self.width, count).to(self.device)
        self.normalise = False
        return self.logits

    def freeze(self, frozen_layers: int) -> None:
        """Let everything above the first `frozen_layers` layers learn, and nothing else."""
        self.frozen_layers = min(frozen_layers, self.backbone.shape.layers)
        self.requires_grad_(True)
        for part in self.frozen_parts():
            part.requires_grad_(False)

    def frozen_parts(self) -> list[nn.Module]:
        if self.frozen_layers < 0:
            return []
        backbone = self.backbone
        parts: list[nn.Module] = [backbone.words, backbone.positions, backbone.norm]
        if backbone.relative is not None:
            parts.append(backbone.relative)
        return parts + list(backbone.layers[: self.frozen_layers])

    def train(self, mode: bool = True) -> "EncoderFeatures":
        """Training mode for what learns; the frozen part always stays in evaluation mode."""
        super().train(mode)
        if self.frozen_layers >= 0:
            self.backbone.dropout.eval()
        for part in self.frozen_parts():
            part.eval()
        return self

    # --- the way of a batch: ids -> lower -> (cache) -> pooled -> features ---------------------

    # `where` says what a batch's places hold: the mask of real tokens [B, L] of texts in rows, or
    # the cells of texts that are packed into a grid.

    def lower(self, ids: Tensor, where: Tensor | Cells) -> Tensor:
        """What the frozen part makes of a batch, in half precision; ids if nothing is frozen.

        Hidden states [B, L, width], or pooled vectors [B, width] when all layers are frozen.
        """
        if self.frozen_layers < 0:
            return ids
        with torch.no_grad():
            hidden = self._embed(ids, where)
            hidden = self.backbone.run(hidden, _visible(where), 0, self.frozen_layers)
            if self.frozen_layers == self.backbone.shape.layers:
                hidden = pool(hidden, where, self.encoder.pooling)
            return hidden.half()

    def upper(self, states: Tensor, where: Tensor | Cells) -> Tensor:
        """Hidden states of the last layer [B, L, width] from what `lower` gave."""
        if self.frozen_layers < 0:
            hidden, start = self._embed(states, where), 0
        else:
            hidden, start = states.to(self.backbone.words.weight.dtype), self.frozen_layers
        return self.backbone.run(hidden, _visible(where), start, self.backbone.shape.layers)

    def from_states(self, states: Tensor, where: Tensor | Cells | None) -> Tensor:
        """Features before the last step [B, width] from what `lower` gave."""
        if where is None:  # pooled already
            return self.head(states.float())
        return self.head(pool(self.upper(states, where), where, self.encoder.pooling).float())

    def views_of(self, pooled: Tensor, views: int) -> Tensor:
        """The same [views B, width] from pooled vectors [B, width], each view with own dropout."""
        if isinstance(self.head, ResidualHead):
            return self.head(pooled.float(), views)
        return self.head(pooled.float().repeat(views, 1))

    def _embed(self, ids: Tensor, where: Tensor | Cells) -> Tensor:
        return self.backbone.embed(ids, where.offset if isinstance(where, Cells) else None)

    def finish(self, raw: Tensor) -> Tensor:
        """The last step to a feature F(x): logits and unit length, each if so configured."""
        last = raw if self.logits is None else self.logits(raw)
        return F.normalize(last.float(), dim=-1) if self.normalise else last.float()

    @torch.inference_mode()
    def encode_tokens(self, tokens: Ragged, advance: Advance | None = None) -> Tensor:
        """Features of tokenised texts [N, outputs], on the model's device, in full precision."""
        self.eval()
        tokens = tokens.to(self.device)
        features = torch.empty(len(tokens), self.outputs, device=self.device)
        pooled = self.frozen_layers == self.backbone.shape.layers

        def encode(rows: np.ndarray) -> None:
            index = torch.from_numpy(rows).to(self.device)
            ids, mask = tokens.padded(index, int(tokens.lengths[rows].max()))
            states = self.lower(ids, mask)
            features[index] = self.finish(self.from_states(states, None if pooled else mask))

        batches = plan_batches(tokens.lengths, TOKEN_BUDGET[self.device.type])
        run_batches(encode, batches, self.device, advance)
        return features

    def __call__(self, texts: Sequence[str], advance: Advance | None = None) -> np.ndarray:
        """Features of texts, float32 [N, outputs]; a repeated text is encoded once."""
        distinct = list(dict.fromkeys(texts))
        tokens = tokenize(self.encoder.tokenizer, distinct, self.encoder.max_tokens)
        features = self.encode_tokens(tokens, advance).cpu().numpy()
        if len(distinct) == len(texts):
            return features
        place = {text: i for i, text in enumerate(distinct)}
        return features[[place[text] for text in texts]]

    # --- files ---------------------------------------------------------------------------------

    def save(self, folder: Path) -> None:
        """Write weights, tokeniser and settings; complete, so that loading needs no Hub."""
        weights = {key: value.cpu().contiguous() for key, value in self.state_dict().items()}
        with write_atomically(folder / "encoder.safetensors") as temporary:
            save_file(weights, temporary)
        write_text(folder / "tokenizer.json", self.encoder.tokenizer.to_str())
        settings = {
            "architecture": self.backbone.shape.to_dict(),
            "encoder": self.encoder.name,
            "fingerprint": self.encoder.fingerprint,
            "pooling": self.encoder.pooling,
            "max_tokens": self.encoder.max_tokens,
            "head": self.head_name,
            "normalise": self.normalise,
            "frozen_layers": self.frozen_layers,
            "logits": None if self.logits is None else self.outputs,
        }
        write_json(folder / "encoder.json", settings)

    @classmethod
    def load(cls, folder: Path) -> "EncoderFeatures":
        """Read what `save` wrote."""
        settings = json.loads((folder / "encoder.json").read_text(encoding="utf-8"))
        backbone = Backbone(Architecture(**settings["architecture"]))
        encoder = Encoder(
            name=settings["encoder"],
            backbone=backbone,
            tokenizer=read_tokenizer(folder / "tokenizer.json"),
            pooling=settings["pooling"],
            max_tokens=settings["max_tokens"],
            mask_id=None,
            special_ids=(),
            word_head=None,
            fingerprint=settings["fingerprint"],
        )
        features = cls(
            encoder,
            head=settings["head"],
            normalise=settings["normalise"],
            frozen_layers=settings["frozen_layers"],
            logits=settings.get("logits"),  # models of before there were logits do not say
        )
        features.load_state_dict(load_file(folder / "encoder.safetensors"))
        return features.eval()


class PointFeatures(nn.Module):
    """A residual head on vectors that stand for the texts and never change; unit length."""

    frozen_layers = 0  # there are no words to read below it

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.head = ResidualHead(width)

    @property
    def device(self) -> torch.device:
        return self.head.up.weight.device

    def from_states(self, states: Tensor, where: Tensor | Cells | None = None) -> Tensor:
        """Features before the last step [B, width] from the vectors [B, width]."""
        return self.head(states.float())

    def views_of(self, pooled: Tensor, views: int) -> Tensor:
        """The same [views B, width], each view with a dropout of its own."""
        return self.head(pooled.float(), views)

    def finish(self, raw: Tensor) -> Tensor:
        """The last step to a feature: unit length."""
        return F.normalize(raw.float(), dim=-1)


def _visible(where: Tensor | Cells) -> Tensor:
    """The mask that attention goes by."""
    return where.sees if isinstance(where, Cells) else where


def pool(hidden: Tensor, where: Tensor | Cells, pooling: str) -> Tensor:
    """One vector a text: the first token's ([CLS]) or the mean over real tokens."""
    if isinstance(where, Cells):
        cells = hidden.flatten(0, 1)
        if pooling == "cls":
            return cells.index_select(0, where.first)
        texts = torch.arange(len(where.first), device=hidden.device)
        belongs = (where.slot.flatten() == texts[:, None]).to(hidden.dtype)  # [B, cells]
        return (belongs @ cells).float() / where.lengths[:, None]
    if pooling == "cls":
        return hidden[:, 0]
    weights = where.to(hidden.dtype)[:, :, None]
    # where, not multiply: a padded place may hold anything
    total = torch.where(where[:, :, None], hidden, 0).sum(1)
    return total / weights.sum(1)
