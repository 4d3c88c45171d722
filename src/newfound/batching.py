"""Tokenise once; batch by length, so that little of a batch is padding."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Ragged:
    """Rows of different length, laid end to end: token ids [T] or hidden states [T, width]."""

    values: Tensor
    starts: Tensor  # [N] int64, on the device of `values`
    lengths: np.ndarray  # [N] int64, on the host: batches are planned there

    @classmethod
    def from_lengths(cls, values: Tensor, lengths: np.ndarray) -> "Ragged":
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
        return cls(values, torch.from_numpy(starts).to(values.device), lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    def to(self, device: torch.device) -> "Ragged":
        return Ragged(self.values.to(device), self.starts.to(device), self.lengths)

    def padded(self, rows: Tensor, width: int) -> tuple[Tensor, Tensor]:
        """The named rows as (values [B, width, ...], mask [B, width]); no host synchronisation.

        Padding repeats a neighbouring row's values: the mask alone says what is real.
        """
        place = torch.arange(width, device=rows.device)
        index = self.starts[rows][:, None] + place
        lengths = self._device_lengths()[rows]
        return self.values[index.clamp(max=len(self.values) - 1)], place < lengths[:, None]

    def _device_lengths(self) -> Tensor:
        # Derived, not stored: the difference of consecutive starts, the last from the total.
        return torch.diff(self.starts, append=self.starts.new_full((1,), len(self.values)))


def tokenize(tokenizer: Any, texts: Sequence[str], max_tokens: int) -> Ragged:
    """Token ids of every text, cut at max_tokens, special tokens included."""
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    ids = [encoding.ids for encoding in tokenizer.encode_batch_fast(list(texts))]
    lengths = np.fromiter(map(len, ids), np.int64, len(ids))
    flat = np.fromiter((token for row in ids for token in row), np.int64, int(lengths.sum()))
    return Ragged.from_lengths(torch.from_numpy(flat), lengths)


def plan_batches(lengths: np.ndarray, budget: int) -> list[np.ndarray]:
    """Rows sorted by length, cut so that rows x longest stays within a budget of tokens."""
    order = np.argsort(-lengths, kind="stable")  # longest first: the peak of memory comes early
    batches, start = [], 0
    while start < len(order):
        rows = max(1, budget // max(1, int(lengths[order[start]])))
        batches.append(order[start : start + rows])
        start += rows
    return batches


def bucket_widths(lengths: np.ndarray, buckets: int) -> np.ndarray:
    """At most `buckets` widths that together waste the least padding.

    Few distinct widths mean few shapes, and each shape is captured as one CUDA graph. Exact by
    dynamic programming over the distinct lengths, of which there are at most max_tokens.
    """
    distinct, counts = np.unique(lengths, return_counts=True)
    n = len(distinct)
    if n <= buckets:
        return distinct
    below = np.concatenate([[0], np.cumsum(counts)])
    cost = np.full((buckets + 1, n + 1), np.inf)
    cost[0, 0] = 0
    cut = np.zeros((buckets + 1, n + 1), dtype=np.int64)
    for used in range(1, buckets + 1):
        for end in range(1, n + 1):
            # The last bucket holds lengths start..end-1, all padded to distinct[end-1].
            total = cost[used - 1, :end] + (below[end] - below[:end]) * distinct[end - 1]
            cut[used, end] = int(np.argmin(total))
            cost[used, end] = total[cut[used, end]]
    widths, end = [], n
    for used in range(buckets, 0, -1):
        widths.append(distinct[end - 1])
        end = cut[used, end]
        if end == 0:
            break
    return np.array(widths[::-1])


def shuffled_batches(
    lengths: np.ndarray,
    batch_size: int,
    rng: np.random.Generator,
    widths: np.ndarray | None = None,
    pool: int = 16,
) -> list[tuple[np.ndarray, int]]:
    """One epoch of (rows, width): random, yet each batch holds texts of similar length.

    Rows are shuffled, sorted by length inside pools of `pool` batches, cut, and the batches
    shuffled. Every batch has exactly batch_size rows (the last is filled up from the start), so
    that shapes repeat. With `widths` given a batch is padded to the next of them.
    """
    order = rng.permutation(len(lengths))
    missing = -len(order) % batch_size
    order = np.concatenate([order, np.resize(order, missing)]) if missing else order
    batches = []
    for start in range(0, len(order), pool * batch_size):
        part = order[start : start + pool * batch_size]
        part = part[np.argsort(lengths[part], kind="stable")]
        for rows in part.reshape(-1, batch_size):
            longest = int(lengths[rows].max())
            width = longest if widths is None else int(widths[np.searchsorted(widths, longest)])
            batches.append((rows, width))
    return [batches[i] for i in rng.permutation(len(batches))]


def paired_batches(
    lengths: np.ndarray,
    rows: np.ndarray,
    size: int,
    labelled: np.ndarray,
    labelled_size: int,
    rng: np.random.Generator,
    widths: np.ndarray | None = None,
) -> list[tuple[np.ndarray, int]]:
    """One epoch over `rows`, each batch followed by a batch of labelled rows.

    Both go through the model as one batch of size + labelled_size rows, so batches of similar width
    are paired. The labelled rows come round as often as it takes.
    """
    main = shuffled_batches(lengths[rows], size, rng, widths)
    if not len(labelled):
        return [(rows[chosen], width) for chosen, width in main]
    extra: list[tuple[np.ndarray, int]] = []
    while len(extra) < len(main):
        extra += shuffled_batches(lengths[labelled], labelled_size, rng, widths, pool=4)
    main.sort(key=lambda batch: batch[1])
    extra = sorted(extra[: len(main)], key=lambda batch: batch[1])
    pairs = [
        (np.concatenate([rows[a], labelled[b]]), max(a_width, b_width))
        for (a, a_width), (b, b_width) in zip(main, extra, strict=True)
    ]
    return [pairs[i] for i in rng.permutation(len(pairs))]


def to_device(
    batches: list[tuple[np.ndarray, int]], device: torch.device
) -> list[tuple[Tensor, int]]:
    """Move an epoch's row numbers to the device in one copy."""
    table = torch.from_numpy(np.stack([rows for rows, _ in batches])).to(device)
    return [(table[i], width) for i, (_, width) in enumerate(batches)]
