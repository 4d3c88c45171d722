"""Keywords: words and word pairs of a category by class-based TF-IDF, without stop words."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack

from newfound.data.words import (
    BREAK,
    is_whole,
    normalise_text,
    overlap,
    same_stem,
    unspaced,
    words,
)
from newfound.describing.private_words import is_private, without_addresses

MOST_WORDS = 4_000_000  # words counted; in a larger corpus, each category is sampled
MOST_TERMS = 100_000  # maximum number of words, and of pairs; the most frequent are kept
PRIOR = 2.0  # texts that smooth the rates of a category towards those of the corpus
NUMBER = 0.25  # weight of a bare number
LETTERS = 4  # words with fewer letters have a lower weight
BOND = 0.25  # minimum association of the words of a pair
FAINT = 0.01  # minimum score of a keyword, relative to the best one
EXTENDS = 0.6  # share of a word's texts from which a pair that contains it is shown instead
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Terms:
    """Number of texts of each category that contain each word and each pair of adjacent words."""

    names: list[str]  # [V] as shown
    parts: Integers  # [V, 2] indices of the two words of a pair, -1 for a word
    counts: csr_array  # [K, V] texts of the category that contain the term
    sizes: Integers  # [K] texts that were counted


def count_terms(
    texts: list[str],
    assigned: Integers,
    categories: int,
    persons: frozenset[str] | None = None,
) -> Terms:
    """Count words and pairs by category, at most once per text.

    With `persons`, these words, numbers and addresses are not counted.
    """
    every: list[str] = []  # words in the order of their numbers
    numbers: dict[str, int] = {BREAK: -1}
    stream: list[int] = []  # word numbers of all texts; -1 at breaks and between texts
    lengths: list[int] = []
    owners: list[int] = []  # category of each counted text
    room = [MOST_WORDS // max(1, categories)] * categories
    # Shuffled, so that the sample of a large category does not depend on the order of the table.
    for text in np.random.default_rng(0).permutation(len(texts)).tolist():
        category = int(assigned[text])
        if room[category] <= 0:
            continue
        found = words(texts[text] if persons is None else without_addresses(texts[text]))
        for word in found:
            if word in numbers:
                continue
            if persons is not None and is_private(word, persons):
                numbers[word] = -1
            else:
                numbers[word] = len(every)
                every.append(word)
        stream.extend([numbers[word] for word in found])
        stream.append(-1)
        lengths.append(len(found) + 1)
        owners.append(category)
        room[category] -= len(found)
    number = np.array(stream, dtype=np.int64)
    text_of = np.repeat(np.arange(len(lengths)), lengths)
    owner = np.array(owners, dtype=np.int64)

    is_word = number >= 0
    by_word = _count(number[is_word], text_of[is_word], owner, (categories, len(every)))
    kept = _most_common(by_word, least=1)
    names = [every[word] for word in kept.tolist()]
    place = np.full(len(every) + 1, -1)  # the last entry is read for -1
    place[kept] = np.arange(len(kept))
    left, right = place[number[:-1]], place[number[1:]]
    is_pair = (left >= 0) & (right >= 0) & (left != right)
    code, pair = np.unique(left[is_pair] * (len(every) + 1) + right[is_pair], return_inverse=True)
    by_pair = _count(pair, text_of[:-1][is_pair], owner, (categories, len(code)))
    common = _most_common(by_pair, least=2)
    parts = np.stack(np.divmod(code[common], len(every) + 1), axis=1)  # [P, 2]
    names += [f"{names[a]} {names[b]}".replace("' ", "'") for a, b in parts.tolist()]
    return Terms(
        names=names,
        parts=np.concatenate([np.full((len(kept), 2), -1), parts]),
        counts=hstack([by_word[:, kept], by_pair[:, common]], format="csr"),
        sizes=np.bincount(owner, minlength=categories),
    )


def _count(term: Integers, text: Integers, owner: Integers, shape: tuple[int, int]) -> csr_array:
    """Return the number of texts [K, V] of each category that contain each term."""
    width = max(1, shape[1])
    text, term = np.divmod(np.unique(text * width + term), width)
    return csr_array((np.ones(len(text)), (owner[text], term)), shape=shape)  # sums duplicates


def _rows(table: csr_array) -> Integers:
    """Return the row of each stored entry [nonzeros]."""
    return np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))


def _with_values(table: csr_array, values: Floats) -> csr_array:
    """Return the table with other values [nonzeros] for its stored entries."""
    return csr_array((values, table.indices, table.indptr), shape=table.shape)


def _most_common(counts: csr_array, least: int) -> Integers:
    """Return the indices of at most MOST_TERMS terms in at least `least` texts, ascending."""
    total = counts.sum(axis=0)
    order = np.argsort(-total, kind="stable")[:MOST_TERMS]
    return np.sort(order[total[order] >= least])


def score_terms(terms: Terms, neighbours: Integers) -> csr_array:
    """Return the class-based TF-IDF of each term in each category [K, V], sparse as the counts.

    Let n(t, c) be the number of texts of category c that contain term t, and n(c) the number of its
    texts. The score is rate x contrast x unevenness x weight:

        rate(t, c)       (n(t, c) + PRIOR p(t)) / (n(c) + PRIOR), p(t) the share of all texts
        contrast(t, c)   log(rate(t, c) / background), at least 0; the background is half the mean
                         rate in the other categories, half the mean rate in the nearest ones
        unevenness(t)    1 - entropy of n(t, c) / n(c) over the categories / its largest value:
                         0 for words that are equally frequent everywhere, such as stop words
        weight(t)        lower for very short words, for bare numbers, and for pairs of words that
                         rarely occur together

    With a single category, contrast is 1 and unevenness 1 - p(t).
    neighbours: [K, m] ids of the nearest categories; m may be 0.
    """
    counts = terms.counts
    columns, rows, total = counts.indices, _rows(counts), counts.sum(axis=0)
    sizes = terms.sizes.astype(np.float64)
    share = total / max(1.0, sizes.sum())  # [V]
    rate = (counts.data + PRIOR * share[columns]) / (sizes[rows] + PRIOR)  # [nonzeros]
    weight = np.array([_weight(name) for name in terms.names])  # [V]
    filled = int((sizes > 0).sum())
    uneven = _unevenness(terms, filled) if filled > 1 else 1 - share
    pair = terms.parts[:, 0] >= 0
    weight[pair] *= _bond(terms.parts[pair], uneven * weight, total, pair)
    contrast = np.ones(len(rate))
    if filled > 1:
        background = _background(counts, rate, sizes, share, neighbours)
        contrast = np.maximum(0.0, np.log(rate / background))
    value = rate * contrast * (uneven * weight)[columns]
    return _with_values(counts, value)


def _weight(name: str) -> float:
    """Return the weight of a term: 1, or less for very short words and for bare numbers."""
    if unspaced(name):
        return 1.0
    return min(
        min(1.0, len(word) / LETTERS) * (NUMBER if word.isdigit() else 1.0) for word in name.split()
    )


def _unevenness(terms: Terms, filled: int) -> Floats:
    """Return 0 for a term that is equally frequent everywhere, 1 for one of a single category."""
    counts = terms.counts
    rate = _with_values(counts, counts.data / np.maximum(1, terms.sizes)[_rows(counts)])
    part = rate.data / rate.sum(axis=0)[rate.indices]
    entropy = _with_values(counts, -part * np.log(part)).sum(axis=0)
    # A term in three texts occurs in at most three categories, which limits its entropy.
    reach = np.minimum(filled, counts.sum(axis=0))
    return np.clip(1 - entropy / np.log(np.maximum(2, reach)), 0.0, 1.0)


def _bond(parts: Integers, content: Floats, total: Floats, pair: NDArray[np.bool_]) -> Floats:
    """Return how well the words of each pair [P] associate: both distinctive, often together."""
    left, right = parts[:, 0], parts[:, 1]
    meaning = np.sqrt(content[left] * content[right])
    company = total[pair] / np.sqrt(total[left] * total[right])
    bond = np.sqrt(meaning * company)
    return np.where(bond >= BOND, bond, 0.0)


def _background(
    counts: csr_array, rate: Floats, sizes: Floats, share: Floats, neighbours: Integers
) -> Floats:
    """Return background rates [nonzeros]: half all other categories, half the nearest ones."""
    # A rate is the sum of a sparse part, from the counts, and a part from the prior, which is a
    # product of a factor per category and one per term. So no dense [K, V] is needed.
    rows, columns = _rows(counts), counts.indices
    factor = np.where(sizes > 0, 1 / (sizes + PRIOR), 0.0)  # [K], an empty category has no rates
    scaled = _with_values(counts, counts.data * factor[rows])
    everywhere = scaled.sum(axis=0) + PRIOR * share * factor.sum()
    others = (everywhere[columns] - rate) / ((sizes > 0).sum() - 1)
    found = (sizes[neighbours] > 0).sum(axis=1)  # [K] neighbours that have texts
    near = np.zeros(len(rate))
    for other in neighbours[rows].T:  # [nonzeros] a neighbour of each entry's category
        near += scaled[other, columns] + PRIOR * share[columns] * factor[other]
    near /= np.maximum(1, found)[rows]
    return np.where(found[rows] > 0, (others + near) / 2, others)


def choose_keywords(
    terms: Terms, scores: csr_array, count: int, texts: Sequence[Sequence[str]] = ()
) -> list[list[str]]:
    """Return up to `count` of the best terms of each category, without repetitions.

    texts: [K] some texts of each category, in which runs of letters of a script without spaces
    must look like whole words.
    """
    return [
        _choose(terms, scores, category, count, texts[category] if texts else ())
        for category in range(len(terms.sizes))
    ]


def _choose(
    terms: Terms, scores: csr_array, category: int, count: int, texts: Sequence[str]
) -> list[str]:
    row = slice(scores.indptr[category], scores.indptr[category + 1])
    value, held_by = scores.data[row], terms.counts.data[row]
    # A term in very few texts of a large category may be there by chance.
    least = 1.0 if terms.sizes[category] < 5 else max(2.0, terms.sizes[category] ** 0.5 / 4)
    faint = FAINT * value.max(initial=0.0)
    enough = np.flatnonzero((value > 0) & (value >= faint) & (held_by >= least))
    # Ties are broken by name, so that the order of the rows does not matter.
    ranked = sorted(
        (-round(float(value[i]), 12), terms.names[scores.indices[row][i]], float(held_by[i]))
        for i in enough[np.argsort(-value[enough], kind="stable")[: 12 * count]]
    )
    if any(unspaced(name) for _, name, _ in ranked):
        lines = "\n".join(normalise_text(text).lower() for text in texts)
        whole = [each for each in ranked if not unspaced(each[1]) or is_whole(each[1], lines)]
        ranked = whole or ranked  # texts that are all alike show no borders of words
    chosen: list[str] = []
    for _, name, held in ranked:
        if len(chosen) == count:
            break
        longer = [n for _, n, h in ranked if h >= EXTENDS * held and _holds(n, name)]
        best = longer[0] if longer else name
        if not any(_repeats(best, other) for other in chosen):
            chosen.append(best)
    return chosen


def _holds(longer: str, shorter: str) -> bool:
    """Return whether a longer term contains a shorter one, as a word or as characters."""
    if longer == shorter or any(word.isdigit() for word in longer.split()):
        return False
    return shorter in longer if unspaced(shorter) else shorter in longer.split()


def _repeats(first: str, second: str) -> bool:
    """Return whether one of two terms adds little to a list that has the other."""
    if unspaced(first) and unspaced(second):
        return first in second or second in first or overlap(first, second) >= 2
    one, two = sorted((first.split(), second.split()), key=len)
    if len(one) == 2 and (one[-1] == two[0] or two[-1] == one[0]):
        return True  # both are parts of one phrase
    return all(any(same_stem(a, b) for b in two) for a in one)
