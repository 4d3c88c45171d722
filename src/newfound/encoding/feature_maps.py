"""Feature maps: backbone, pooling, a small head and, for some methods, logits.

The first `frozen_layers` layers are never trained. Their output is rounded to half precision, both
in training and in prediction, so that cached and recomputed values are equal and a training text
gets the same category when it is predicted.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor, nn

from newfound.encoding.backbone import MIN_POSITIONS, Architecture, Backbone, check_backbone
from newfound.encoding.batching import Cells, Ragged, plan_batches, tokenize
from newfound.encoding.loading import POOLINGS, Encoder, parse_tokenizer
from newfound.encoding.weights import load_weights, parse_tensors
from newfound.encoding.workers import run_batches
from newfound.errors import DamagedFileError
from newfound.files import (
    CheckedFolder,
    check_fields,
    write_atomically,
    write_json,
    write_text,
)
from newfound.progress import Advance

SMALL_INNER = 256  # inner width of a small residual head
TOKEN_BUDGET = {"cpu": 768, "cuda": 65536}  # tokens per batch when encoding
# Fields of encoder.json.
SAVED: dict[str, type | tuple[type, ...]] = {
    "architecture": dict,
    "encoder": str,
    "fingerprint": str,
    "pooling": str,
    "max_tokens": int,
    "head": str,
    "normalise": bool,
    "frozen_layers": int,
}


class FeatureMap(Protocol):
    """A function from texts to features, which every method has."""

    kind: str

    def __call__(self, texts: Sequence[str], advance: Advance | None = None) -> np.ndarray:
        """Return the features [N, d] of texts, float32."""

    def with_frozen(
        self, texts: Sequence[str], advance: Advance | None = None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Features, and the vectors float32 [N, w] that training did not change, if there are."""

    def save(self, folder: Path) -> None:
        """Write everything that `load` needs."""


class TanhHead(nn.Module):
    """The released DPN's head: dropout(tanh(Linear(pooled)))."""

    def __init__(self, width: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, pooled: Tensor) -> Tensor:
        return self.dropout(torch.tanh(self.dense(pooled)))


class ResidualHead(nn.Module):
    """A small MLP added to the pooled vector, initialised as the identity."""

    def __init__(self, width: int, inner: int = 512, dropout: float = 0.1) -> None:
        super().__init__()
        self.up = nn.Linear(width, inner)
        self.down = nn.Linear(inner, width)
        self.dropout = nn.Dropout(dropout)
        nn.init.zeros_(self.down.weight)
        nn.init.zeros_(self.down.bias)

    def forward(self, pooled: Tensor, views: int = 1) -> Tensor:
        """Return [views B, width] from pooled [B, width], each view with its own dropout."""
        inner = F.gelu(self.up(pooled))  # the same for all views
        if views > 1:
            pooled, inner = pooled.repeat(views, 1), inner.repeat(views, 1)
        return pooled + self.down(self.dropout(inner))


HEADS: dict[str, Any] = {
    "none": lambda width: nn.Identity(),
    "tanh": TanhHead,
    "residual": ResidualHead,
    "small-residual": lambda width: ResidualHead(width, SMALL_INNER),
}


class EncoderFeatures(nn.Module):
    """A feature map of an encoder, a head and, for some methods, logits.

    Parameters
    ----------
    encoder : Encoder
    head : {"none", "tanh", "residual", "small-residual"}
        Layer on the pooled vector.
    normalise : bool
        Whether features are scaled to unit length.
    frozen_layers : int
        -1: all weights are trained; 0: the embeddings are frozen; n: also the first n layers.
    logits : int, optional
        Number of logits on the head, which are then the features.
    """

    kind = "encoder"
    noise = 1e-4  # relative; the features of a text vary by far less between batches

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
        self.special: Tensor  # ids of special tokens, on the device of the model
        special = torch.tensor(encoder.special_ids, dtype=torch.int64)
        self.register_buffer("special", special, persistent=False)
        self.frozen_layers = frozen_layers
        self.freeze(frozen_layers)

    @property
    def width(self) -> int:
        """Width of the head's output, which classifiers read."""
        return self.backbone.shape.width

    @property
    def outputs(self) -> int:
        """Width of a feature: that of the head, or the number of logits."""
        return self.width if self.logits is None else self.logits.out_features

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return self.backbone.words.weight.device

    def add_logits(self, count: int) -> nn.Linear:
        """Add a layer of `count` logits, which become the features, without normalisation."""
        self.logits = nn.Linear(self.width, count).to(self.device)
        self.normalise = False
        return self.logits

    def freeze(self, frozen_layers: int) -> None:
        """Make trainable what is above the first `frozen_layers` layers, and freeze the rest."""
        self.frozen_layers = min(frozen_layers, self.backbone.shape.layers)
        self.requires_grad_(True)
        for part in self.frozen_parts():
            part.requires_grad_(False)

    def frozen_parts(self) -> list[nn.Module]:
        """Return the frozen modules of the backbone."""
        if self.frozen_layers < 0:
            return []
        backbone = self.backbone
        parts: list[nn.Module] = [backbone.words, backbone.positions, backbone.norm]
        if backbone.relative is not None:
            parts.append(backbone.relative)
        return parts + list(backbone.layers[: self.frozen_layers])

    def train(self, mode: bool = True) -> "EncoderFeatures":
        """Set training mode, except for frozen modules, which stay in evaluation mode."""
        super().train(mode)
        if self.frozen_layers >= 0:
            self.backbone.dropout.eval()
        for part in self.frozen_parts():
            part.eval()
        return self

    # --- steps of a batch: ids -> lower -> (cache) -> pooled -> features -----------------------

    # `where` is the mask of real tokens [B, L] of texts in rows, or the cells of packed texts.

    def lower(self, ids: Tensor, where: Tensor | Cells) -> Tensor:
        """Run the frozen layers; return the ids if nothing is frozen.

        The result is in half precision: hidden states [B, L, width], or pooled vectors [B, width]
        if all layers are frozen.
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
        """Return hidden states of the last layer [B, L, width] from the result of `lower`."""
        if self.frozen_layers < 0:
            hidden, start = self._embed(states, where), 0
        else:
            hidden, start = states.to(self.backbone.words.weight.dtype), self.frozen_layers
        return self.backbone.run(hidden, _visible(where), start, self.backbone.shape.layers)

    def from_states(self, states: Tensor, where: Tensor | Cells | None) -> Tensor:
        """Return raw features [B, width], which `finish` completes, from the result of `lower`."""
        if where is None:  # pooled already
            return self.head(states.float())
        return self.head(pool(self.upper(states, where), where, self.encoder.pooling).float())

    def views_of(self, pooled: Tensor, views: int) -> Tensor:
        """Return raw features [views B, width] of pooled vectors, each view with own dropout."""
        if isinstance(self.head, ResidualHead):
            return self.head(pooled.float(), views)
        return self.head(pooled.float().repeat(views, 1))

    def _embed(self, ids: Tensor, where: Tensor | Cells) -> Tensor:
        """Return the embeddings of token ids."""
        return self.backbone.embed(ids, where.offset if isinstance(where, Cells) else None)

    def finish(self, raw: Tensor) -> Tensor:
        """Return features from raw ones: apply logits and normalisation, if configured."""
        last = raw if self.logits is None else self.logits(raw)
        return F.normalize(last.float(), dim=-1) if self.normalise else last.float()

    @torch.inference_mode()
    def encode_tokens(
        self, tokens: Ragged, advance: Advance | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Features of tokenised texts [N, outputs], on the model's device, in full precision.

        With them the pooled vectors [N, width], where all layers are frozen.
        """
        self.eval()
        tokens = tokens.to(self.device)
        features = torch.empty(len(tokens), self.outputs, device=self.device)
        frozen = torch.empty(len(tokens), self.width, device=self.device) if self.pooled else None

        def encode(rows: np.ndarray) -> None:
            index = torch.from_numpy(rows).to(self.device)
            ids, mask = tokens.padded(index, int(tokens.lengths[rows].max()))
            states = self.lower(ids, mask)
            if frozen is not None:
                frozen[index] = states.float()
            features[index] = self.finish(self.from_states(states, None if self.pooled else mask))

        batches = plan_batches(tokens.lengths, TOKEN_BUDGET[self.device.type])
        run_batches(encode, batches, self.device, advance)
        return features, frozen

    @property
    def pooled(self) -> bool:
        """True if all layers are frozen, so that only what reads a pooled vector learns."""
        return self.frozen_layers == self.backbone.shape.layers

    def __call__(self, texts: Sequence[str], advance: Advance | None = None) -> np.ndarray:
        """Features of texts, float32 [N, outputs]; a repeated text is encoded once."""
        return self.with_frozen(texts, advance)[0]

    def with_frozen(
        self, texts: Sequence[str], advance: Advance | None = None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Features, and the encoder's pooled vectors [N, width]; None if some layers learnt."""
        distinct = list(dict.fromkeys(texts))
        tokens = tokenize(self.encoder.tokenizer, distinct, self.encoder.max_tokens)
        features, frozen = self.encode_tokens(tokens, advance)
        place = {text: i for i, text in enumerate(distinct)}
        rows = [place[text] for text in texts]
        return features.cpu().numpy()[rows], None if frozen is None else frozen.cpu().numpy()[rows]

    # --- files ---------------------------------------------------------------------------------

    def save(self, folder: Path) -> None:
        """Write weights, tokeniser and settings, so that loading needs no Hub."""
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
    def load(cls, files: CheckedFolder) -> "EncoderFeatures":
        """Load a feature map from a folder that `save` has written."""
        settings = files.json("encoder.json", dict)
        check_fields(settings, SAVED, "encoder.json")
        shape = Architecture.from_dict(settings["architecture"], "encoder.json")
        if settings["head"] not in HEADS or settings["pooling"] not in POOLINGS:
            raise DamagedFileError("encoder.json names a head or a pooling that does not exist")
        if not MIN_POSITIONS <= settings["max_tokens"] <= shape.positions:
            raise DamagedFileError(f"encoder.json: 'max_tokens' cannot be {settings['max_tokens']}")
        if not -1 <= settings["frozen_layers"] <= shape.layers:
            raise DamagedFileError(f"encoder.json has {settings['frozen_layers']} frozen layers")
        tokenizer = parse_tokenizer(
            files.read("tokenizer.json"), shape.vocabulary, settings["max_tokens"]
        )
        weights = parse_tensors(files.read("encoder.safetensors"), "encoder.safetensors")
        # Checked first, because encoder.json determines the size of what is allocated.
        check_backbone(shape, weights, "backbone.", "encoder.safetensors")
        logits = settings.get("logits")  # missing in models saved before logits existed
        last = weights.get("logits.weight")
        if (None if last is None else len(last)) != logits or isinstance(logits, bool):
            raise DamagedFileError(f"encoder.json: 'logits' cannot be {str(logits)[:40]!r}")
        backbone = Backbone(shape)
        encoder = Encoder(
            name=settings["encoder"],
            backbone=backbone,
            tokenizer=tokenizer,
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
            logits=logits,
        )
        load_weights(features, weights, "encoder.safetensors")
        return features.eval()


class PointFeatures(nn.Module):
    """A residual head on fixed vectors, one per text; features have unit length.

    Parameters
    ----------
    width : int
        Width of the vectors.
    """

    frozen_layers = 0  # the vectors are not trained

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.head = ResidualHead(width, SMALL_INNER)

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return self.head.up.weight.device

    def from_states(self, states: Tensor, where: Tensor | Cells | None = None) -> Tensor:
        """Return raw features [B, width] of vectors [B, width]."""
        return self.head(states.float())

    def views_of(self, pooled: Tensor, views: int) -> Tensor:
        """Return raw features [views B, width], each view with its own dropout."""
        return self.head(pooled.float(), views)

    def finish(self, raw: Tensor) -> Tensor:
        """Return features from raw ones, scaled to unit length."""
        return F.normalize(raw.float(), dim=-1)


def _visible(where: Tensor | Cells) -> Tensor:
    """Return the attention mask."""
    return where.sees if isinstance(where, Cells) else where


def pool(hidden: Tensor, where: Tensor | Cells, pooling: str) -> Tensor:
    """Return one vector per text: that of the first token ([CLS]), or the mean over tokens."""
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
    # Not a product with the mask: padding may hold NaN or infinity.
    total = torch.where(where[:, :, None], hidden, 0).sum(1)
    return total / weights.sum(1)
