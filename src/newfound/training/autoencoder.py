"""An autoencoder of TF-IDF weights, whose codes are the features of texts.

The network is that of deep embedded clustering (Xie et al., ICML 2016) as in TEXTOIR: layers of
words - 500 - 500 - 2000 - code units and the reverse, with ReLU after every layer, the code
included, except a linear output.
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
from safetensors.torch import save_file
from torch import Tensor, nn

from newfound.data.words import BREAK, words
from newfound.encoding.batching import Batch, Ragged
from newfound.encoding.weights import check_finite_array, load_weights, parse_tensors
from newfound.errors import DamagedFileError, InputError
from newfound.files import (
    CheckedFolder,
    check_fields,
    check_items,
    write_atomically,
    write_json,
)
from newfound.progress import Advance, Stages
from newfound.training.optimiser import Optimiser
from newfound.training.resuming import resumable_epochs
from newfound.training.weight_cache import read_cached_weights, write_cached_weights

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

HIDDEN = (500, 500, 2000)  # widths between the words and the code
CHUNK = 4096  # texts per chunk outside of training
MAX_LINES = 50  # of the history


def word_list(text: str) -> list[str]:
    """Return the lower-case words of a text in any language."""
    return [word for word in words(text) if word != BREAK]


def _tfidf(**options: Any) -> Any:
    """Return scikit-learn's TF-IDF vectoriser of such words."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # slow to import

    return TfidfVectorizer(analyzer=word_list, **options)


class AutoencoderFeatures(nn.Module):
    """A feature map of TF-IDF and the encoder of an autoencoder.

    Parameters
    ----------
    vocabulary : sequence of str
    idf : ndarray of shape [V]
        Inverse document frequency of each word.
    code : int
        Number of code units.
    activation : {"relu", "linear"}
        Activation of the code units.
    """

    kind = "autoencoder"

    def __init__(
        self,
        vocabulary: Sequence[str],
        idf: np.ndarray,
        *,
        code: int = 10,
        activation: Literal["relu", "linear"] = "relu",
    ) -> None:
        super().__init__()
        self.vocabulary = list(vocabulary)
        self.idf = np.asarray(idf, np.float32)  # [V]
        self.code, self.activation = code, activation
        self.tfidf = _tfidf(vocabulary=self.vocabulary, dtype=np.float32)
        self.tfidf.idf_ = self.idf
        self.encoder = _layers((len(self.vocabulary), *HIDDEN, code))
        if activation == "relu":
            self.encoder.append(nn.ReLU())

    @classmethod
    def from_texts(
        cls, texts: Sequence[str], max_words: int, **options: Any
    ) -> "AutoencoderFeatures":
        """Return an untrained map with the most frequent words of texts as its vocabulary.

        Parameters
        ----------
        texts : sequence of str
        max_words : int
            Maximum size of the vocabulary, which is the width of the network's input.
        **options
            Passed on to `AutoencoderFeatures`.

        Returns
        -------
        AutoencoderFeatures
        """
        tfidf = _tfidf(max_features=max_words)
        try:
            tfidf.fit(texts)
        except ValueError as error:
            raise InputError(
                "no text contains a word, so no autoencoder can be trained: choose another method"
            ) from error
        return cls(tfidf.get_feature_names_out().tolist(), tfidf.idf_, **options)

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return next(self.encoder.parameters()).device

    def weights(self, texts: Sequence[str]) -> "csr_matrix":
        """Return the TF-IDF weights [N, V] of texts, with rows of unit length."""
        return self.tfidf.transform(texts).tocsr()

    def decoder(self) -> nn.Sequential:
        """Return a new decoder, which only training needs."""
        return _layers((len(self.vocabulary), *HIDDEN, self.code)[::-1]).to(self.device)

    @torch.inference_mode()
    def __call__(self, texts: Sequence[str], advance: Advance | None = None) -> np.ndarray:
        """Return the codes [N, code] of texts, float32."""
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
        """Write the weights, the vocabulary and the inverse document frequencies."""
        tensors = {key: value.cpu().contiguous() for key, value in self.state_dict().items()}
        tensors["rarity"] = torch.from_numpy(self.idf)
        with write_atomically(folder / "autoencoder.safetensors") as temporary:
            save_file(tensors, temporary)
        settings = {"code": self.code, "activation": self.activation, "words": self.vocabulary}
        write_json(folder / "autoencoder.json", settings)

    @classmethod
    def load(cls, files: CheckedFolder) -> "AutoencoderFeatures":
        """Load a feature map from a folder that `save` has written."""
        settings = files.json("autoencoder.json", dict)
        check_fields(settings, {"code": int, "activation": str, "words": list}, "autoencoder.json")
        check_items(settings["words"], str, "autoencoder.json, words")
        where = "autoencoder.safetensors"
        tensors = parse_tensors(files.read(where), where)
        idf = tensors.pop("rarity", None)
        words, code = settings["words"], settings["code"]
        if idf is None or idf.shape != (len(words),) or len(set(words)) != len(words):
            raise DamagedFileError("autoencoder.json and autoencoder.safetensors do not match")
        if settings["activation"] not in ("relu", "linear") or code < 1 or not words:
            raise DamagedFileError("autoencoder.json does not describe an autoencoder")
        # Checked first, because autoencoder.json determines the size of what is allocated.
        last = tensors.get(f"encoder.{2 * len(HIDDEN)}.weight")
        if last is None or last.shape != (code, HIDDEN[-1]):
            raise DamagedFileError("autoencoder.json and autoencoder.safetensors do not match")
        rarity = idf.float().numpy().copy()
        check_finite_array(rarity, where)
        found = cls(words, rarity, code=code, activation=settings["activation"])
        load_weights(found, tensors, where)
        return found.eval()


def _layers(widths: Sequence[int]) -> nn.Sequential:
    """Return linear layers with ReLU between them, with Glorot initialisation."""
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
class BagOfWords:
    """Sparse TF-IDF weights of all texts, on the training device."""

    columns: Ragged  # words of each text, as indices into the vocabulary
    weights: Ragged  # their TF-IDF weights
    width: int  # size of the vocabulary

    @classmethod
    def from_csr(cls, table: "csr_matrix", device: torch.device) -> "BagOfWords":
        """Return a sparse matrix [N, V] on the device."""
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
        """Device of the weights."""
        return self.columns.values.device

    def dense(self, rows: Tensor) -> Tensor:
        """Return the weights [B, V] of the given rows, without host synchronisation."""
        longest = int(self.columns.lengths.max(initial=0))
        columns, real = self.columns.padded(rows, longest)
        weights, _ = self.weights.padded(rows, longest)
        empty = torch.zeros(len(rows), self.width, device=rows.device)
        # Padding adds zeros to the first word.
        return empty.scatter_add_(1, torch.where(real, columns, 0), torch.where(real, weights, 0))


@torch.no_grad()
def codes_of(model: AutoencoderFeatures, bags: BagOfWords) -> Tensor:
    """Return the codes [N, code] of all texts, on the device."""
    rows = torch.arange(len(bags), device=bags.device)
    return torch.cat([model.encoder(bags.dense(part)) for part in rows.split(CHUNK)])


@torch.no_grad()
def flip_dead_units(model: AutoencoderFeatures, bags: BagOfWords) -> int:
    """Negate the weights of code units that are zero for every text; return their number.

    Behind a ReLU such a unit has no gradient, so it stays dead. The inputs of the code layer are so
    similar for all texts that the first epochs can leave only two of ten units alive. With negated
    weights, a dead unit is active for every text.
    """
    if model.activation != "relu":
        return 0
    dead = ~(codes_of(model, bags) > 0).any(0)
    last = model.encoder[-2]
    assert isinstance(last, nn.Linear)
    sign = torch.where(dead, -1.0, 1.0)
    last.weight.mul_(sign[:, None])
    last.bias.mul_(sign)
    return int(dead.sum())


def batches_of(n: int, size: int, device: torch.device, draw: torch.Generator) -> list[Tensor]:
    """Return one epoch of rows in random order; the last batch may be smaller."""
    return list(torch.randperm(n, generator=draw).to(device).split(size))


def train_autoencoder(
    model: AutoencoderFeatures,
    bags: BagOfWords,
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
    """Train encoder and decoder to reconstruct the TF-IDF weights (mean squared error, Adam).

    Parameters
    ----------
    model : AutoencoderFeatures
        Trained in place.
    bags : BagOfWords
    epochs, batch, learning_rate, epsilon
        Settings of Adam.
    waking : bool
        Whether to negate dead code units in the first half of training (`flip_dead_units`).
    seed : int
    stages : Stages
    folder : Path, optional
        Folder that caches the result for methods with the same settings.

    Returns
    -------
    decoder : nn.Sequential
    history : list of dict
        Losses of some epochs.
    """
    decoder = model.decoder()
    both = nn.ModuleDict({"encoder": model.encoder, "decoder": decoder})
    chosen = [model.activation, epochs, batch, learning_rate, epsilon, waking, seed]
    kept = folder / f"autoencoder-{_key(both, bags, chosen)}" if folder else None
    if kept is not None and kept.with_suffix(".json").is_file():
        with stages.stage("autoencoder (kept)"):
            found = read_cached_weights(kept, both, stages)
        if found is not None:
            return decoder, found
    optimiser = Optimiser(
        [model.encoder, decoder], learning_rate, weight_decay=0.0, epsilon=epsilon
    )
    history = _train(model, decoder, bags, optimiser, epochs, batch, waking, seed, stages)
    if kept is not None:
        write_cached_weights(kept, both, history)
    return decoder, history


def _train(
    model: AutoencoderFeatures,
    decoder: nn.Sequential,
    bags: BagOfWords,
    optimiser: Optimiser,
    epochs: int,
    batch: int,
    waking: bool,
    seed: int,
    stages: Stages,
) -> list[dict[str, Any]]:
    """Train encoder and decoder; return the history."""

    def reconstruction(batch: Batch) -> dict[str, Tensor]:
        given = bags.dense(batch.rows)
        return {"reconstruction": F.mse_loss(decoder(model.encoder(given)), given)}

    history: list[dict[str, Any]] = []
    draw = torch.Generator().manual_seed(seed)
    with stages.stage("autoencoder", epochs) as advance, tensor_cores():
        for epoch in resumable_epochs(
            range(epochs), stages.checkpoints, "autoencoder", optimiser, draw, history, advance
        ):
            # Only in the first half: a unit that is flipped late has no time to learn.
            if waking and epoch % max(1, epochs // 10) == 0 and 2 * epoch <= epochs:
                flip_dead_units(model, bags)
            for rows in batches_of(len(bags), batch, bags.device, draw):
                optimiser.accumulate(reconstruction, Batch.of(rows))
                optimiser.step()
            if (epoch + 1) % -(-epochs // MAX_LINES) == 0 or epoch + 1 == epochs:
                loss = optimiser.epoch_means()["reconstruction"]
                history.append({"stage": "autoencoder", "epoch": epoch + 1, "loss": loss})
            advance(1)
    return history


@contextmanager
def tensor_cores() -> Iterator[None]:
    """Multiply in TF32 on a GPU inside the block: several times as fast, and exact enough."""
    matmul = torch.backends.cuda.matmul
    new = hasattr(matmul, "fp32_precision")  # from torch 2.9 on, only this switch may be read
    switch, rounded = ("fp32_precision", "tf32") if new else ("allow_tf32", True)
    before = getattr(matmul, switch)
    setattr(matmul, switch, rounded)
    try:
        yield
    finally:
        setattr(matmul, switch, before)


def _key(both: nn.Module, bags: BagOfWords, chosen: list[Any]) -> str:
    """Return a hash of initial weights, texts and settings."""
    digest = hashlib.sha256(json.dumps(chosen).encode())
    for weight in [*both.state_dict().values(), bags.columns.values, bags.weights.values]:
        digest.update(weight.detach().cpu().contiguous().numpy().tobytes())
    digest.update(bags.columns.lengths.tobytes())
    return digest.hexdigest()[:32]
