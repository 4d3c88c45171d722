"""The feature cache: frozen layers run once, and training reads their output."""

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from newfound.checkpoints import Checkpoints
from newfound.devices import plain
from newfound.encoding.array_files import (
    HEADER,
    Note,
    new_array,
    read_array,
    release,
    scratch_array,
)
from newfound.encoding.batching import Batch, Cells, Ragged, plan_batches, to_device
from newfound.encoding.feature_maps import TOKEN_BUDGET, EncoderFeatures, PointFeatures
from newfound.encoding.kept_batches import KeptBatches
from newfound.encoding.parts import Parts
from newfound.encoding.vectors.features import VectorFeatures
from newfound.encoding.workers import run_batches
from newfound.files.leftovers import temporary_for_file
from newfound.progress import Advance

TrainableFeatures = EncoderFeatures | VectorFeatures  # what a method trains
RELEASED = 65_536  # texts after which the memory of a memory map is freed
MEMORY_LIMIT = 4 * 2**30  # bytes; larger caches are memory-mapped


@dataclass(frozen=True)
class Inputs:
    """Inputs of the trainable layers for all texts.

    Attributes
    ----------
    states : Ragged or Tensor
        Token ids if nothing is frozen, hidden states of the last frozen layer, or pooled vectors
        [N, width] if all layers are frozen.
    lengths : ndarray of shape [R]
        Tokens per row of `states`; of any value for pooled vectors.
    device : torch.device
        Device of the batches.
    parts : Parts, optional
        Which rows are parts of the same text; by default each row is a text.
    mapped : ndarray, optional
        The memory-mapped array that holds `states`, if it does.
    """

    states: Ragged | Tensor
    lengths: np.ndarray
    device: torch.device
    parts: Parts | None = None
    mapped: np.ndarray | None = None

    @property
    def n_texts(self) -> int:
        """Number of texts."""
        return len(self.lengths if self.parts is None else self.parts)

    def batch(self, batch: Batch) -> tuple[Tensor, Cells | None]:
        """Return the states of a training batch and its cells (None for pooled vectors)."""
        if isinstance(self.states, Tensor):
            return self.states[batch.rows.to(self.states.device)].to(self.device), None
        place = self.states.values.device
        states, cells = self.states.packed(batch.to(place))
        return states.to(self.device), cells.to(self.device)

    def padded(self, rows: Tensor, width: int) -> tuple[Tensor, Tensor | None]:
        """Return the states of the given rows and their mask (None for pooled vectors)."""
        if isinstance(self.states, Tensor):
            return self.states[rows.to(self.states.device)].to(self.device), None
        states, mask = self.states.padded(rows.to(self.states.values.device), width)
        return states.to(self.device), mask.to(self.device)

    def batches(self, rows: np.ndarray) -> list[Batch]:
        """Return the batches of an epoch of texts [batches, B], packed and on the device."""
        return to_device(rows, None if self.pooled else self.lengths, self.device, self.parts)

    @property
    def pooled(self) -> bool:
        """Whether the states are pooled vectors."""
        return isinstance(self.states, Tensor)

    def pooled_vectors(self) -> np.ndarray | None:
        """The pooled vectors float32 [N, width], or None if some layers learn."""
        if not isinstance(self.states, Tensor):
            return None
        vectors: np.ndarray = self.states.float().cpu().numpy()
        return vectors

    @property
    def resident(self) -> bool:
        """Whether the states are on the training device, as CUDA graphs need them."""
        values = self.states if isinstance(self.states, Tensor) else self.states.values
        return values.device.type == self.device.type


def run_frozen(
    model: TrainableFeatures,
    tokens: Ragged,
    *,
    vectors: np.ndarray | None = None,
    folder: Path | None = None,
    memory_limit: int = MEMORY_LIMIT,
    advance: Advance | None = None,
    note: Note | None = None,
    checkpoints: Checkpoints | None = None,
) -> Inputs:
    """Run the frozen layers of a model on all texts.

    Parameters
    ----------
    model : EncoderFeatures or VectorFeatures
    tokens : Ragged
        Tokenised texts.
    vectors : ndarray of shape [N, d], float16, optional
        Scaled vectors of the texts, where a frozen encoder or the user computed them; they are all
        that is needed.
    folder : Path, optional
        Folder that caches the result for later runs, under a hash of weights, layers and texts.
    memory_limit : int
        Bytes up to which the result is held in memory; beyond it, a memory-mapped file is used.
    advance : callable, optional
        Called with the number of texts processed.
    note : callable, optional
        Called with a sentence if the cached result is damaged; it is then computed again.
    checkpoints : Checkpoints, optional
        Keeps the texts that are done while the others run.

    Returns
    -------
    Inputs
    """
    checkpoints = checkpoints or Checkpoints()
    lengths, device = tokens.lengths, model.device
    if vectors is not None:
        if advance:
            advance(len(vectors))
        return Inputs(torch.from_numpy(vectors).to(device), lengths, device)
    assert isinstance(model, EncoderFeatures)
    if model.frozen_layers < 0:
        return Inputs(tokens.to(device), lengths, device, tokens.parts)
    if tokens.parts is not None and advance is not None:
        advance = tokens.parts.counting_texts(advance)
    pooled = model.pooled
    shape = (len(tokens) if pooled else int(lengths.sum()), model.backbone.shape.width)
    fits = 2 * shape[0] * shape[1] <= memory_limit
    if folder is None and fits:  # the common case: written to the training device
        states = torch.empty(shape, dtype=torch.float16, device=device)
        _fill(states, model, tokens, pooled, advance, checkpoints)
        return _as_inputs(states, tokens, pooled, device)
    if folder is None:
        values = scratch_array(shape)
        releasing = _releasing(values, advance)
        _fill(torch.from_numpy(values), model, tokens, pooled, releasing, checkpoints)
    else:
        kept = folder / f"{_key(model, tokens)}.features"
        found = read_array(kept, shape, in_memory=fits, note=note)
        if found is not None and advance:
            advance(len(tokens))
        if found is None:
            with new_array(kept, shape, in_memory=fits) as found:
                releasing = _releasing(found, advance)
                _fill(torch.from_numpy(found), model, tokens, pooled, releasing, checkpoints)
            if not fits:  # mapped anew, so that training cannot change the file
                found = np.memmap(kept, np.float16, "c", offset=HEADER, shape=shape)
        values = found
    if fits:
        return _as_inputs(torch.from_numpy(values).to(device), tokens, pooled, device)
    release(values)
    return _as_inputs(torch.from_numpy(values), tokens, pooled, device, values)


def _releasing(values: np.ndarray, advance: Advance | None) -> Advance:
    """Return `advance` such that it also frees the memory of a memory map now and then."""
    since = 0

    def report(done: int) -> None:
        nonlocal since
        since += done
        if since >= RELEASED:
            since = 0
            release(values)
        if advance:
            advance(done)

    return report


def _as_inputs(
    states: Tensor,
    tokens: Ragged,
    pooled: bool,
    device: torch.device,
    mapped: np.ndarray | None = None,
) -> Inputs:
    """Return the states as inputs of the trainable layers; pooled ones are averaged by text.

    `mapped` is the memory-mapped array of the states; their averages are then mapped as well.
    """
    parts = tokens.parts
    if not pooled:
        rows = Ragged.from_lengths(states, tokens.lengths)
        return Inputs(rows, tokens.lengths, device, parts, mapped)
    if parts is None:
        return Inputs(states, tokens.lengths, device, mapped=mapped)
    shape = (len(parts), states.shape[1])
    if mapped is None:
        return Inputs(parts.mean(states, states.new_empty(shape)), parts.counts, device)
    values = scratch_array(shape)
    parts.mean(states, torch.from_numpy(values))
    release(values)
    return Inputs(torch.from_numpy(values), parts.counts, device, mapped=values)


def _fill(
    states: Tensor,  # [N, width] or [T, width], half precision
    model: EncoderFeatures,
    tokens: Ragged,
    pooled: bool,
    advance: Advance | None,
    checkpoints: Checkpoints,
) -> None:
    """Run the frozen layers and write their output into `states`."""
    model.eval()
    tokens = tokens.to(model.device)

    def fill(rows: np.ndarray) -> None:
        ids, where = model.gather(tokens, rows)
        found = model.lower(ids, where)
        if not pooled and isinstance(where, Tensor):
            found = found[where]
        states[places(rows).to(states.device)] = found.to(states.device)

    def places(rows: np.ndarray) -> Tensor:  # that the texts in these rows have in `states`
        index = torch.from_numpy(rows).to(model.device)
        if pooled:
            return index
        lengths = torch.from_numpy(tokens.lengths[rows]).to(model.device)
        offset = torch.arange(int(tokens.lengths[rows].max()), device=model.device)
        return (tokens.starts[index][:, None] + offset)[offset < lengths[:, None]]

    def report(done: int) -> None:
        kept.finished()
        if advance:
            advance(done)

    batches = model.plan(tokens.lengths)
    kept = KeptBatches(checkpoints, states, batches, places)
    first = kept.load()
    if first and advance:
        advance(sum(map(len, batches[:first])))
    run_batches(fill, batches, model.device, report, skip=first)
    kept.keep()


def _key(model: EncoderFeatures, tokens: Ragged) -> str:
    """Return a hash of frozen weights, number of layers, pooling and texts."""
    digest = hashlib.sha256()
    for part in model.frozen_parts():
        for weight in part.state_dict().values():
            digest.update(weight.detach().cpu().numpy().tobytes())
    digest.update(f"{model.frozen_layers} {model.encoder.pooling}".encode())
    for content in tokens.digested():
        digest.update(content)
    return digest.hexdigest()[:32]


@torch.inference_mode()
def features_of(
    model: TrainableFeatures | PointFeatures,
    inputs: Inputs,
    rows: np.ndarray | None = None,
    *,
    finished: bool = True,
    half: bool = False,
) -> Tensor:
    """Compute features from the cached output of frozen layers.

    Parameters
    ----------
    model : EncoderFeatures, PointFeatures or VectorFeatures
    inputs : Inputs
    rows : ndarray of shape [R], optional
        Rows to compute; all by default.
    finished : bool
        Whether to apply logits and normalisation.
    half : bool
        Whether a GPU may compute in bfloat16, which is enough to monitor training. By default,
        features are computed in full precision, as in prediction.

    Returns
    -------
    Tensor of shape [R, width]
    """
    model.eval()
    rows = np.arange(inputs.n_texts) if rows is None else rows
    parts = None
    if inputs.parts is not None:  # their vectors are averaged before the head
        parts, rows = inputs.parts.take(rows)
    raw = torch.empty(len(rows), model.width, device=model.device)
    lengths = np.ones_like(rows) if inputs.pooled else inputs.lengths[rows]
    for part in plan_batches(lengths, TOKEN_BUDGET[model.device.type], model.device):
        index = torch.from_numpy(rows[part]).to(model.device)
        states, mask = inputs.padded(index, int(lengths[part].max()))
        with torch.autocast("cuda", torch.bfloat16, enabled=half and raw.is_cuda and not plain()):
            if parts is None:
                found = model.from_states(states, mask)
            else:
                assert isinstance(model, EncoderFeatures)
                assert mask is not None
                found = model.pooled_states(states, mask)
        raw[torch.from_numpy(part).to(model.device)] = found.float()
    if parts is not None:
        raw = model.head(parts.mean(raw))
    return model.finish(raw) if finished else raw


@contextmanager
def cache_folder(folder: str | None) -> Iterator[str]:
    """Yield a folder for several runs, by default a temporary one.

    Temporary folders that killed processes left are removed.

    Parameters
    ----------
    folder : str or None
        The folder that the user chose.
    """
    if folder is not None:
        yield folder
        return
    with temporary_for_file(Path(tempfile.gettempdir()) / "cache") as temporary:
        yield str(temporary)
