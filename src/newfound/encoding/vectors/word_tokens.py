"""Words of texts as token ids, where an encoder has no tokeniser of ours."""

from collections.abc import Sequence

import numpy as np
import torch

from newfound.data.words import BREAK, words
from newfound.encoding.batching import Ragged


def word_tokens(texts: Sequence[str]) -> Ragged:
    """Return the words of texts as ids, numbered in the order of their first occurrence.

    Parameters
    ----------
    texts : sequence of str

    Returns
    -------
    Ragged
        Token ids of each text.

    Examples
    --------
    >>> tokens = word_tokens(["a lost card", "a card!"])
    >>> tokens.values.tolist(), tokens.lengths.tolist()
    ([0, 1, 2, 0, 2], [3, 2])
    """
    number: dict[str, int] = {}
    ids = [
        [number.setdefault(word, len(number)) for word in words(text) if word != BREAK]
        for text in texts
    ]
    lengths = np.fromiter(map(len, ids), np.int64, len(ids))
    flat = np.fromiter((token for row in ids for token in row), np.int64, int(lengths.sum()))
    return Ragged.from_lengths(torch.from_numpy(flat), lengths)
