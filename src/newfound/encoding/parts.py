"""Long texts: split into overlapping parts, whose vectors are averaged.

An encoder reads a limited number of tokens at once.

1. Tokenise a longer text block by block, so that memory does not grow with it (`token_ids`).
2. Split its tokens into parts of equal length (`split`); very long texts have parts that are spread
   evenly.
3. Encode every part, and average the vectors of a text's parts (`Parts.mean`).
4. In training, a text stands in each step for one of its parts, drawn at random (`Parts.draw`).
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from newfound.progress import Advance

OVERLAP = 8  # one in so many tokens of a part is in the next one, too
MOST_PARTS = 64  # of a text; they are spread over it, so that time and memory have a limit
MOST_CHARACTERS = 2**20  # of a text that are looked at
MOST_TOKENS = MOST_CHARACTERS  # of a text without another limit
BLOCK = 2**14  # characters of a block
AT_ONCE = 16  # blocks that are tokenised at a time
AVERAGED = 4096  # texts whose vectors are averaged at a time


@dataclass(frozen=True)
class Parts:
    """How many consecutive rows are the parts of each text.

    Attributes
    ----------
    counts : ndarray of shape [N], int64
        Parts per text.
    first : ndarray of shape [N], int64
        Row of each text's first part.
    """

    counts: np.ndarray
    first: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "first", np.cumsum(self.counts) - self.counts)

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def texts(self) -> np.ndarray:
        """The text of each row [P]."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    def take(self, texts: np.ndarray) -> tuple["Parts", np.ndarray]:
        """Return the parts of some texts [R], and their rows, text by text."""
        chosen = Parts(self.counts[texts])
        within = np.arange(chosen.counts.sum()) - np.repeat(chosen.first, chosen.counts)
        return chosen, np.repeat(self.first[texts], chosen.counts) + within

    def draw(self, texts: np.ndarray) -> np.ndarray:
        """Return a random part of each text, as rows in the shape of `texts`.

        The draw follows from the texts, which are drawn themselves: it is repeated after a fault.
        """
        rng = np.random.default_rng(zlib.crc32(np.ascontiguousarray(texts).data))
        return self.first[texts] + rng.integers(self.counts[texts])

    def mean(self, vectors: Tensor, out: Tensor | None = None) -> Tensor:
        """Average the vectors [P, w] of each text's parts.

        Parameters
        ----------
        vectors : Tensor of shape [P, w]
        out : Tensor of shape [N, w], optional
            Written to and returned; by default a new one, in single precision.

        Returns
        -------
        Tensor of shape [N, w]
            The vector of a text with one part is unchanged.
        """
        if out is None:
            out = vectors.new_empty((len(self), vectors.shape[1]), dtype=torch.float32)
        for start in range(0, len(self), AVERAGED):
            counts = self.counts[start : start + AVERAGED]
            rows = vectors[self.first[start] : self.first[start] + counts.sum()].float()
            lengths = torch.from_numpy(counts).to(vectors.device)
            out[start : start + AVERAGED] = torch.segment_reduce(rows, "mean", lengths=lengths)
        return out

    def counting_texts(self, advance: Advance) -> Advance:
        """Return a function of the number of rows done that calls `advance` with that of texts."""
        rows, texts, total = 0, 0, int(self.counts.sum())

        def count(done: int) -> None:
            nonlocal rows, texts
            rows += done
            now = rows * len(self) // total
            advance(now - texts)
            texts = now

        return count


def split(tokens: int, size: int) -> list[tuple[int, int]]:
    """Return where the parts of a text start and stop.

    Parts have equal lengths and overlap by at least an eighth of `size`. A text that would have
    more than MOST_PARTS gets so many, spread evenly from its beginning to its end.

    Parameters
    ----------
    tokens : int
        Length of the text, at least `size`.
    size : int
        Most tokens of a part.

    Returns
    -------
    list of (int, int)

    Examples
    --------
    >>> split(20, 16)
    [(0, 11), (9, 20)]
    """
    overlap = size // OVERLAP
    count = -(-(tokens - overlap) // (size - overlap))
    length = -(-(tokens + (count - 1) * overlap) // count)
    if count > MOST_PARTS:
        count, length = MOST_PARTS, size
    starts = np.linspace(0, tokens - length, count).round().astype(int).tolist()
    return [(start, start + length) for start in starts]


def parts_of(
    tokenizer: Any, texts: Sequence[str], max_tokens: int, limit: int
) -> Iterator[list[list[int]]]:
    """Yield the token ids of the parts of each text, with special tokens.

    Parameters
    ----------
    tokenizer : tokenizers.Tokenizer
        Without truncation.
    texts : sequence of str
    max_tokens : int
        Most tokens of a part; special tokens count.
    limit : int
        Tokens of a text that are used; the special tokens of one part count.

    Yields
    ------
    list of list of int
    """
    before, after = special_tokens(tokenizer)
    special = len(before) + len(after)
    size = max(1, max_tokens - special)
    for text in texts:
        ids = token_ids(tokenizer, text)[: limit - special]
        places = split(len(ids), size) if len(ids) > size else [(0, len(ids))]
        yield [[*before, *ids[start:stop], *after] for start, stop in places]


def token_ids(tokenizer: Any, text: str) -> list[int]:
    """Return the token ids of a text without special tokens, tokenised in blocks.

    The tokenizer needs a hundred bytes of memory per character. Blocks end before white space,
    where there is any, so that no word is split.
    """
    blocks, ids = list(_blocks(text)), []
    for start in range(0, len(blocks), AT_ONCE):
        some = blocks[start : start + AT_ONCE]
        for found in tokenizer.encode_batch_fast(some, add_special_tokens=False):
            ids += found.ids
    return ids


def _blocks(text: str) -> Iterator[str]:
    """Yield a text in blocks of about BLOCK characters."""
    start, end = 0, min(len(text), MOST_CHARACTERS)
    while start < end:
        stop = min(start + BLOCK, end)
        if stop < end:
            space = max(text.rfind(character, start + 1, stop) for character in " \n\t")
            stop = space if space > start else stop
        yield text[start:stop]
        start = stop


def special_tokens(tokenizer: Any) -> tuple[list[int], list[int]]:
    """Return the special tokens that the tokenizer puts before and after a text."""
    word = tokenizer.encode("a", add_special_tokens=False).ids
    whole = tokenizer.encode("a").ids
    for start in range(len(whole) - len(word) + 1):
        if whole[start : start + len(word)] == word:
            return whole[:start], whole[start + len(word) :]
    return [], []
