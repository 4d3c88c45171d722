"""Fold near-duplicates: texts that differ in nothing that a category could depend on.

A pile of millions repeats itself: the same mail with another order number, the same question in
capitals. Fitting needs one of them. Every text keeps its own vector and its own answer, so folding
too much costs little, and folding is meant to be quick: one dictionary of normal forms.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# Order numbers, amounts, telephone numbers. Shorter numbers often matter: "python 2", "error 404".
_LONG_NUMBER = re.compile(r"\d{4,}")
_ENDS = " .,;:!?…\"'"  # removed at both ends


def normal_form(text: str) -> str:
    """Return a text without case, repeated white space, punctuation at its ends and long numbers.

    Examples
    --------
    >>> normal_form("Where is  order 123456?") == normal_form("where is order 99812 ")
    True
    >>> normal_form("Python 2") == normal_form("Python 3")
    False
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    text = " ".join(text.casefold().split())
    return _LONG_NUMBER.sub("0000", text.strip(_ENDS) or text)


@dataclass(frozen=True, eq=False)
class Folded:
    """Groups of near-duplicates.

    Attributes
    ----------
    first : ndarray of int64, shape (G,)
        Row of the first text of each group, ascending.
    counts : ndarray of int64, shape (G,)
        Number of texts of each group.
    """

    first: np.ndarray
    counts: np.ndarray


def fold_duplicates(texts: Sequence[str], targets: np.ndarray) -> Folded:
    """Group texts of the same normal form and the same label.

    Parameters
    ----------
    texts : sequence of str
    targets : ndarray of int64, shape (N,)
        Label of each text, -1 where unlabelled; texts of different labels are never folded, nor is
        a labelled text with an unlabelled one.

    Returns
    -------
    Folded

    Examples
    --------
    >>> import numpy as np
    >>> found = fold_duplicates(["Hello!", "hello", "bye", "hello"], np.array([-1, -1, -1, 0]))
    >>> found.first.tolist(), found.counts.tolist()
    ([0, 2, 3], [2, 1, 1])
    """
    groups: dict[str, int] = {}
    group_of = np.empty(len(texts), np.int64)
    for row, (text, target) in enumerate(zip(texts, targets.tolist(), strict=True)):
        form = normal_form(text)
        key = form if target < 0 else f"{target}\n{form}"  # a normal form has no line break
        group_of[row] = groups.setdefault(key, len(groups))
    _, first, counts = np.unique(group_of, return_index=True, return_counts=True)
    return Folded(first, counts)
