"""TF-IDF weights of a text's words, squeezed through an autoencoder: the code is the feature.

The network is that of deep embedded clustering (Xie et al., 2016) as TEXTOIR has it: words - 500 -
500 - 2000 - code and back, ReLU everywhere, the code included, and a linear output.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from newfound.data.words import BREAK, words
from newfound.encoding.batching import Batch, Ragged
from newfound.encoding.weights import load_weights
from newfound.errors import DamagedFileError, InputError
from newfound.files import check_fields, check_items, read_json, write_atomically, write_json
from newfound.progress import Advance, Stages
from newfound.training.optimiser import Optimiser

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

HIDDEN = (500, 500, 2000)  # widths between the words and the code
CHUNK = 4096  # texts at a time outside of training
LINES = 50  # most lines in the history, however many epochs there are


def word_list(text: str) -> list[str]:
    """The words of a text of any language, lower-cased."""
    return [word for word in words(text) if word != BREAK]


def _tfidf(**options: Any) -> Any:
    """scikit-learn's TF-IDF over such words: rows of unit length."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # here: it costs every start

    return TfidfVectorizer(analyzer=word_list, **options)


class AutoencoderFeatures(nn.Module):
    """Texts to codes [N, code]: TF-IDF and the encoding half of the autoencoder."""

    kind = "autoencoder"

    def __init__(
        self,
        vocabulary: Sequence[str],
        rarity: np.ndarray,
        *,
        code: int = 10,
        activation: Literal["relu", "linear"] = "relu",
    ) -> None:
        super().__init__()
        self.vocabulary = list(vocabulary)
        self.rarity = np.asarray(rarity, np.float32)  # [V] inverse document frequencies
        self.code, self.activation = code, activation
        self.tfidf = _tfidf(vocabulary=self.vocabulary, dtype=np.float32)
        self.tfidf.idf_ = self.rarity
        self.encoder = _layers((len(self.vocabulary), *HIDDEN, code))
        if activation == "relu":
            self.encoder.append(nn.ReLU())

    @classmethod
    def of_texts(
        cls, texts: Sequence[str], most_words: int, **options: Any
    ) -> "AutoencoderFeatures":
        """An untrained map whose vocabulary is the most frequent words of `texts`.

        There may be fewer words than `most_words`; the network is then as narrow as they are.
        """
        tfidf = _tfidf(max_features=most_words)
        try:
            tfidf.fit(texts)
        except ValueError as error:
            raise InputError("no text holds a word: an autoencoder has nothing to read") from error
        return cls(tfidf.get_feature_names_out().tolist(), tfidf.idf_, **options)

    @property
    def device(self) -> torch.device:
        return next(self.encoder.parameters()).device

    def weights(self, texts: Sequence[str]) -> "csr_matrix":
        """TF-IDF of texts [N, V]; a text without a known word has none."""
        return self.tfidf.transform(texts).tocsr()

    def decoder(self) -> nn.Sequential:
        """A new decoding half; only training needs one, so it is no part of the map."""
        return _layers((len(self.vocabulary), *HIDDEN, self.code)[::-1]).to(self.device)

    @torch.inference_mode()
    def __call__(self, texts: Sequence[str], advance: Advance | None = None) -> np.ndarray:
        """Codes of texts, float32 [N, code]."""
        codes = np.empty((len(texts), self.code), np.float32)
        for start in range(0, len(texts), CHUNK):
            part = self.weights(texts[start : start + CHUNK])
            dense = torch.from_numpy(part.toarray()).to(self.device)
            codes[start : start + CHUNK] = self.encoder(dense).cpu().numpy()
            if advance:
                advance(part.shape[0])
        return codes

    def with_frozen(
        self, texts: Sequence[str], advance: Advance | None = None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Features, and nothing beside them: no encoder is behind them."""
        return self(texts, advance), None

    def save(self, folder: Path) -> None:
        """Write the weights, the words and how rare each is."""
        tensors = {key: value.cpu().contiguous() for key, value in self.state_dict().items()}
        tensors["rarity"] = torch.from_numpy(self.rarity)
        with write_atomically(folder / "autoencoder.safetensors") as temporary:
            save_file(tensors, temporary)
        settings = {"code": self.code, "activation": self.activation, "words": self.vocabulary}
        write_json(folder / "autoencoder.json", settings)

    @classmethod
    def load(cls, folder: Path) -> "AutoencoderFeatures":
        """Read what `save` wrote."""
        settings = read_json(folder / "autoencoder.json", dict)
        check_fields(settings, {"code": int, "activation": str, "words": list}, "autoencoder.json")
        check_items(settings["words"], str, "autoencoder.json, words")
        tensors = load_file(folder / "autoencoder.safetensors")
        rarity = tensors.pop("rarity", None)
        words = settings["words"]
        if rarity is None or rarity.shape != (len(words),) or len(set(words)) != len(words):
            raise DamagedFileError("autoencoder.json and autoencoder.safetensors do not match")
        if settings["activation"] not in ("relu", "linear") or settings["code"] < 1 or not words:
            raise DamagedFileError("autoencoder.json does not describe an autoencoder")
        found = cls(words, rarity.numpy(), code=settings["code"], activation=settings["activation"])
        load_weights(found, tensors, "autoencoder.safetensors")
        return found.eval()


def _layers(widths: Sequence[int]) -> nn.Sequential:
    """Linear layers with ReLU between them, drawn by Glorot's rule."""
    stack = nn.Sequential()
    for i, (inputs, outputs) in enumerate(pairwise(widths)):
        if i:
            stack.append(nn.ReLU())
        linear = nn.Linear(inputs, outputs)
        nn.init.xavier_uniform_(linear.weight)
        nn.init.zeros_(linear.bias)
        stack.append(linear)
    return stack


@dataclass(frozen=True)
class Bags:
    """The TF-IDF weights of a corpus, sparse, where training runs."""

    columns: Ragged  # which words a text has
    weights: Ragged  # how much each weighs
    width: int  # of the vocabulary

    @classmethod
    def of(cls, table: "csr_matrix", device: torch.device) -> "Bags":
        lengths = np.diff(table.indptr).astype(np.int64)
        columns = torch.from_numpy(table.indices.astype(np.int64)).to(device)
        weights = torch.from_numpy(table.data.astype(np.float32)).to(device)
        return cls(
            Ragged.from_lengths(columns, lengths),
            Ragged.from_lengths(weights, lengths),
            table.shape[1],
        )

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def device(self) -> torch.device:
        return self.columns.values.device

    def dense(self, rows: Tensor) -> Tensor:
        """The weights of the named rows [B, V]; no host synchronisation."""
        longest = int(self.columns.lengths.max(initial=0))
        columns, real = self.columns.padded(rows, longest)
        weights, _ = self.weights.padded(rows, longest)
        empty = torch.zeros(len(rows), self.width, device=rows.device)
        # Padding adds zeros to the first word.
        return empty.scatter_add_(1, torch.where(real, columns, 0), torch.where(real, weights, 0))


@torch.no_grad()
def codes_of(model: AutoencoderFeatures, bags: Bags) -> Tensor:
    """The codes of all texts [N, code], on the device."""
    rows = torch.arange(len(bags), device=bags.device)
    return torch.cat([model.encoder(bags.dense(part)) for part in rows.split(CHUNK)])


@torch.no_grad()
def wake(model: AutoencoderFeatures, bags: Bags) -> int:
    """Turn round the code units that no text switches on; returns how many there were.

    Behind a ReLU such a unit has no gradient and stays off for ever. Texts excite the code layer so
    alike that the first epochs, in which all of them pull it one way, can leave two units of ten. A
    unit with the opposite weights is one that every text switches on.
    """
    if model.activation != "relu":
        return 0
    asleep = ~(codes_of(model, bags) > 0).any(0)
    last = model.encoder[-2]
    assert isinstance(last, nn.Linear)
    sign = torch.where(asleep, -1.0, 1.0)
    last.weight.mul_(sign[:, None])
    last.bias.mul_(sign)
    return int(asleep.sum())


def batches_of(n: int, size: int, device: torch.device, draw: torch.Generator) -> list[Tensor]:
    """One epoch of rows in random order; the last batch may be short."""
    return list(torch.randperm(n, generator=draw).to(device).split(size))


def train_autoencoder(
    model: AutoencoderFeatures,
    bags: Bags,
    *,
    epochs: int,
    batch: int,
    learning_rate: float,
    epsilon: float = 1e-8,
    waking: bool = True,
    seed: int,
    stages: Stages,
    folder: Path | None = None,
) -> tuple[nn.Sequential, list[dict[str, Any]]]:
    """Train both halves to give the texts back (mean squared error, Adam); returns the decoder.

    With a `folder` the result is kept there, and found by the next method that starts like this.
    """
    decoder = model.decoder()
    both = nn.ModuleDict({"encoder": model.encoder, "decoder": decoder})
    chosen = [model.activation, epochs, batch, learning_rate, epsilon, waking, seed]
    kept = folder / f"autoencoder-{_key(both, bags, chosen)}" if folder else None
    if kept is not None and kept.with_suffix(".json").is_file():
        with stages.stage("autoencoder (kept)"):
            both.load_state_dict(load_file(kept.with_suffix(".safetensors")))
            return decoder, json.loads(kept.with_suffix(".json").read_text(encoding="utf-8"))
    optimiser = Optimiser(
        [model.encoder, decoder], learning_rate, weight_decay=0.0, epsilon=epsilon
    )
    history = _train(model, decoder, bags, optimiser, epochs, batch, waking, seed, stages)
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        with write_atomically(kept.with_suffix(".safetensors")) as temporary:
            save_file({k: v.cpu().contiguous() for k, v in both.state_dict().items()}, temporary)
        write_json(kept.with_suffix(".json"), history)
    return decoder, history


def _train(
    model: AutoencoderFeatures,
    decoder: nn.Sequential,
    bags: Bags,
    optimiser: Optimiser,
    epochs: int,
    batch: int,
    waking: bool,
    seed: int,
    stages: Stages,
) -> list[dict[str, Any]]:
    def reconstruction(batch: Batch) -> dict[str, Tensor]:
        given = bags.dense(batch.rows)
        return {"reconstruction": F.mse_loss(decoder(model.encoder(given)), given)}

    history: list[dict[str, Any]] = []
    draw = torch.Generator().manual_seed(seed)
    with stages.stage("autoencoder", epochs) as advance, tensor_cores():
        for epoch in range(epochs):
            # In the first half: a unit that wakes late would find no time to learn.
            if waking and epoch % max(1, epochs // 10) == 0 and 2 * epoch <= epochs:
                wake(model, bags)
            for rows in batches_of(len(bags), batch, bags.device, draw):
                optimiser.accumulate(reconstruction, Batch.of(rows))
                optimiser.step()
            if (epoch + 1) % -(-epochs // LINES) == 0 or epoch + 1 == epochs:
                loss = optimiser.epoch_means()["reconstruction"]
                history.append({"stage": "autoencoder", "epoch": epoch + 1, "loss": loss})
            advance(1)
    return history


@contextmanager
def tensor_cores() -> Iterator[None]:
    """Let a GPU multiply in TF32: several times as fast, and enough for a reconstruction."""
    matmul = torch.backends.cuda.matmul
    new = hasattr(matmul, "fp32_precision")  # from torch 2.9 on only this one may be read
    switch, rounded = ("fp32_precision", "tf32") if new else ("allow_tf32", True)
    before = getattr(matmul, switch)
    setattr(matmul, switch, rounded)
    try:
        yield
    finally:
        setattr(matmul, switch, before)


def _key(both: nn.Module, bags: Bags, chosen: list[Any]) -> str:
    """A hash of all that training depends on: first weights, texts, settings."""
    digest = hashlib.sha256(json.dumps(chosen).encode())
    for weight in [*both.state_dict().values(), bags.columns.values, bags.weights.values]:
        digest.update(weight.detach().cpu().contiguous().numpy().tobytes())
    digest.update(bags.columns.lengths.tobytes())
    return digest.hexdigest()[:32]
