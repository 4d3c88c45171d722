"""Feature maps: backbone, pooling, a small head and, for some methods, logits.

The first `frozen_layers` layers are never trained. Their output is rounded to half precision, both
in training and in prediction, so that cached and recomputed values are equal and a training text
gets the same category when it is predicted.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from newfound.encoding.architecture import MIN_POSITIONS, Architecture, check_backbone
from newfound.encoding.batching import Cells, Ragged, Runs, plan_batches, plan_runs
from newfound.encoding.heads import HEADS, MIN_ROWS, HeadFeatures
from newfound.encoding.loading import POOLINGS, Encoder, parse_tokenizer
from newfound.encoding.modern_backbone import make_backbone
from newfound.encoding.parts import MOST_TOKENS
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

TOKEN_BUDGET = {"cpu": 768, "cuda": 65536}  # tokens per batch when encoding
BLOCK = 8192  # averaged vectors that pass through the head at a time
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
    """A function from texts to features, which every method has.

    If the user computes the vectors of texts, an array of them [N, w] takes the place of the texts.
    """

    kind: str

    def __call__(self, texts: Any, advance: Advance | None = None) -> np.ndarray:
        """Return the features [N, d] of texts, float32."""

    def with_frozen(
        self, texts: Any, advance: Advance | None = None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Features, and the vectors float32 [N, w] that training did not change, if there are."""

    def save(self, folder: Path) -> None:
        """Write everything that `load` needs."""


class EncoderFeatures(HeadFeatures):
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
        self.width = self.backbone.shape.width
        self.set_head(head, normalise, logits)
        self.special: Tensor  # ids of special tokens, on the device of the model
        special = torch.tensor(encoder.special_ids, dtype=torch.int64)
        self.register_buffer("special", special, persistent=False)
        self.frozen_layers = frozen_layers
        self.freeze(frozen_layers)

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return self.backbone.words.weight.device

    @property
    def layers(self) -> int:
        """Number of layers of the backbone."""
        return self.backbone.shape.layers

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
        return self.backbone.frozen_parts(self.frozen_layers)

    def train(self, mode: bool = True) -> "EncoderFeatures":
        """Set training mode, except for frozen modules, which stay in evaluation mode."""
        super().train(mode)
        if self.frozen_layers >= 0:
            self.backbone.dropout.eval()
        for part in self.frozen_parts():
            part.eval()
        return self

    # --- steps of a batch: ids -> lower -> (cache) -> pooled -> features -----------------------

    # `where` is the mask of real tokens [B, L] of texts in rows, the cells of packed texts, or the
    # runs of texts one after the other (see `gather`).

    def plan(self, lengths: np.ndarray) -> list[np.ndarray]:
        """Return the batches of texts of these lengths, as rows, that are encoded together."""
        budget = TOKEN_BUDGET[self.device.type]
        if self.device.type == "cpu":
            return plan_runs(lengths, budget)
        return plan_batches(lengths, budget, self.device)

    def gather(self, tokens: Ragged, rows: np.ndarray) -> tuple[Tensor, Tensor | Runs]:
        """Return the token ids of a batch and `where`: [T] and runs on a CPU, else [B, L] each."""
        if self.device.type == "cpu":
            return tokens.joined(rows)
        index = torch.from_numpy(rows).to(self.device)
        return tokens.padded(index, int(tokens.lengths[rows].max()))

    def lower(self, ids: Tensor, where: Tensor | Cells | Runs) -> Tensor:
        """Run the frozen layers; return the ids if nothing is frozen.

        The result is in half precision: hidden states [B, L, width] or [T, width], or pooled
        vectors [B, width] if all layers are frozen.
        """
        if self.frozen_layers < 0:
            return ids
        with torch.no_grad():
            hidden = self._embed(ids, where)
            hidden = self._layers(hidden, where, 0, self.frozen_layers)
            if self.frozen_layers == self.backbone.shape.layers:
                hidden = pool(hidden, where, self.encoder.pooling)
            return hidden.half()

    def upper(self, states: Tensor, where: Tensor | Cells | Runs) -> Tensor:
        """Return hidden states of the last layer from the result of `lower`."""
        if self.frozen_layers < 0:
            hidden, start = self._embed(states, where), 0
        else:
            hidden, start = states.to(self.backbone.words.weight.dtype), self.frozen_layers
        return self._layers(hidden, where, start, self.backbone.shape.layers)

    def _layers(
        self, hidden: Tensor, where: Tensor | Cells | Runs, start: int, stop: int
    ) -> Tensor:
        """Run layers start to stop-1 of the backbone."""
        if isinstance(where, Runs):
            return self.backbone.run_joined(hidden, where, start, stop)
        visible = where.sees if isinstance(where, Cells) else where
        return self.backbone.run(hidden, visible, start, stop)

    def from_states(self, states: Tensor, where: Tensor | Cells | Runs | None) -> Tensor:
        """Return raw features [B, width], which `finish` completes, from the result of `lower`."""
        if where is None:  # pooled already
            return self.head(states.float())
        return self.head(self.pooled_states(states, where))

    def pooled_states(self, states: Tensor, where: Tensor | Cells | Runs) -> Tensor:
        """Return vectors [B, width] before the head, from the result of `lower`."""
        return pool(self.upper(states, where), where, self.encoder.pooling).float()

    def _embed(self, ids: Tensor, where: Tensor | Cells | Runs) -> Tensor:
        """Return the embeddings of token ids."""
        if isinstance(where, Runs):
            return self.backbone.embed_joined(ids, where)
        return self.backbone.embed(ids, where.offset if isinstance(where, Cells) else None)

    @torch.inference_mode()
    def encode_tokens(
        self, tokens: Ragged, advance: Advance | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Features of tokenised texts [N, outputs], on the model's device, in full precision.

        With them the pooled vectors [N, width], where all layers are frozen.
        """
        self.eval()
        tokens = tokens.to(self.device)
        if tokens.parts is not None:
            vectors = self.vectors_of(tokens, advance)
            parts = [self.from_pooled(some) for some in vectors.split(BLOCK)]
            return torch.cat(parts), vectors if self.pooled else None
        features = torch.empty(len(tokens), self.outputs, device=self.device)
        frozen = torch.empty(len(tokens), self.width, device=self.device) if self.pooled else None

        def encode(index: Tensor, states: Tensor, where: Tensor | Runs) -> None:
            if frozen is not None:
                frozen[index] = states.float()
            pooled = states if self.pooled else self.pooled_states(states, where)
            features[index] = self.from_pooled(pooled)

        self._run(tokens, encode, advance)
        return features, frozen

    @torch.inference_mode()
    def vectors_of(self, tokens: Ragged, advance: Advance | None = None) -> Tensor:
        """Vectors [N, width] of tokenised texts before the head; means of those of their parts."""
        self.eval()
        tokens, parts = tokens.to(self.device), tokens.parts
        kind = torch.float16 if self.pooled else torch.float32
        vectors = torch.empty(len(tokens), self.width, dtype=kind, device=self.device)

        def encode(index: Tensor, states: Tensor, where: Tensor | Runs) -> None:
            vectors[index] = states if self.pooled else self.pooled_states(states, where)

        if parts is not None and advance is not None:
            advance = parts.counting_texts(advance)
        self._run(tokens, encode, advance)
        mean = vectors.float() if parts is None else parts.mean(vectors)
        return mean.half().float() if self.pooled else mean  # rounded as in the feature cache

    def _run(
        self,
        tokens: Ragged,
        work: Callable[[Tensor, Tensor, Tensor | Runs], None],
        advance: Advance | None,
    ) -> None:
        """Call `work` with the index, the frozen layers' output and `where` of every batch."""

        def run(rows: np.ndarray) -> None:
            longest = int(tokens.lengths[rows].max())
            # A few short texts are repeated: see MIN_ROWS.
            rows = np.resize(rows, max(len(rows), -(-MIN_ROWS // longest)))
            index = torch.from_numpy(rows).to(self.device)
            ids, where = self.gather(tokens, rows)
            work(index, self.lower(ids, where), where)

        run_batches(run, self.plan(tokens.lengths), self.device, advance)

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
        features, frozen = self.encode_tokens(self.encoder.tokens(distinct), advance)
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
            "limit": self.encoder.limit,
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
        limit = settings.get("limit", 0)  # models of earlier versions truncate
        if type(limit) is not int or not 0 <= limit <= MOST_TOKENS:
            raise DamagedFileError(f"encoder.json: 'limit' cannot be {str(limit)[:40]!r}")
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
        backbone = make_backbone(shape)
        encoder = Encoder(
            name=settings["encoder"],
            backbone=backbone,
            tokenizer=tokenizer,
            pooling=settings["pooling"],
            max_tokens=settings["max_tokens"],
            limit=limit,
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


class PointFeatures(HeadFeatures):
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
        self.set_head("small-residual", True, None)

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return next(self.head.parameters()).device

    def from_states(self, states: Tensor, where: Tensor | Cells | None = None) -> Tensor:
        """Return raw features [B, width] of vectors [B, width]."""
        return self.head(states.float())


def pool(hidden: Tensor, where: Tensor | Cells | Runs, pooling: str) -> Tensor:
    """Return one vector per text: that of the first token ([CLS]), or the mean over tokens."""
    if isinstance(where, Runs):
        parts = where.split(hidden)
        return torch.cat([part[:, 0] if pooling == "cls" else part.mean(1) for part in parts])
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
