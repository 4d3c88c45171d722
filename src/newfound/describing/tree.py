"""A tree of categories: look-alikes form groups, and groups form larger ones.

1. Each category is the mean of its texts' features before training, which keep how alike topics
   are (training moves all categories apart). Ward's method merges the categories one by one.
2. The tree is cut twice: into a third and into a ninth of the number of categories, as long as at
   least two groups are left.
3. A group is named by the words that most of its categories share, or by its largest category.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.cluster.hierarchy import cut_tree, linkage

from newfound.category import Category
from newfound.data.words import same_stem, words

FACTOR = 3  # categories per group, on average
LEVELS = 2
LEAST = 2 * FACTOR  # categories that are worth grouping
MOST = 10_000  # categories; the distances between more do not fit into memory
NAMED_BY = 2  # words in the name of a group


def with_groups(
    categories: Sequence[Category], features: np.ndarray, assigned: np.ndarray
) -> tuple[Category, ...]:
    """Return the categories with the names of their groups, the smallest group first.

    Parameters
    ----------
    categories : sequence of Category
        K categories.
    features : ndarray of shape (N, d)
        Features of the texts before training.
    assigned : ndarray of int64, shape (N,)
        Index of each text's category.

    Returns
    -------
    tuple of Category
        With `groups`, of the same length for all; empty if there are few categories.
    """
    if not LEAST <= len(categories) <= MOST:
        return tuple(replace(category, groups=()) for category in categories)
    groups = cut_levels(category_means(features, assigned, len(categories)))
    names = [_group_names(level, categories) for level in groups.T]
    return tuple(
        replace(category, groups=tuple(level[at] for level in names))
        for at, category in enumerate(categories)
    )


def category_means(features: np.ndarray, assigned: np.ndarray, count: int) -> np.ndarray:
    """Return the mean direction of each category's features, unit vectors [K, d].

    A category without texts has a zero vector.
    """
    order = np.argsort(assigned, kind="stable")
    ends = np.cumsum(np.bincount(assigned, minlength=count))
    means = np.zeros((count, features.shape[1]))
    for at, rows in enumerate(np.split(order, ends[:-1])):
        if len(rows):
            means[at] = features[rows].mean(axis=0, dtype=np.float64)
    return means / np.maximum(np.linalg.norm(means, axis=1), 1e-12)[:, None]


def cut_levels(means: np.ndarray) -> np.ndarray:
    """Return the group of each category at each level, [K, levels], by Ward's method."""
    numbers = [len(means) // FACTOR**level for level in range(1, LEVELS + 1)]
    tree = linkage(means, "ward")
    return cut_tree(tree, [number for number in numbers if number > 1])


def _group_names(group: np.ndarray, categories: Sequence[Category]) -> list[str]:
    """Return the name of each category's group at one level; no two groups have the same name."""
    terms = [_terms(category) for category in categories]
    spread = Counter(term for own in terms for term in own)
    names: dict[int, str] = {}
    # Large groups choose first.
    for number in sorted(set(group.tolist()), key=lambda g: (-int((group == g).sum()), g)):
        members = np.flatnonzero(group == number).tolist()
        name = _group_name(members, categories, terms, spread)
        taken, again = set(names.values()), 1
        unique = name
        while unique in taken:
            again += 1
            unique = f"{name} {again}"
        names[number] = unique
    return [names[number] for number in group.tolist()]


def _terms(category: Category) -> list[str]:
    """Return the words of a category's name and keywords, without repetitions of a stem."""
    found: list[str] = []
    for word in [*words(category.name), *(w for k in category.keywords for w in words(k))]:
        if len(word) > 2 and "'" not in word and not any(same_stem(word, other) for other in found):
            found.append(word)
    return found


def _group_name(
    members: list[int],
    categories: Sequence[Category],
    terms: list[list[str]],
    spread: Counter[str],
) -> str:
    """Return the words that the members share and other categories lack, or the largest member."""
    largest = max(members, key=lambda at: (categories[at].size, -at))
    if len(members) == 1:
        return categories[largest].name
    counts = Counter(term for at in members for term in terms[at])
    shared = sorted(
        (term for term, count in counts.items() if 2 * count >= len(members) and count > 1),
        key=lambda term: (-(counts[term] ** 2) / spread[term], term),
    )
    chosen: list[str] = []
    for term in shared:
        if not any(same_stem(term, other) for other in chosen):
            chosen.append(term)
    if chosen:
        return ", ".join(chosen[:NAMED_BY])
    return f"{categories[largest].name} and {len(members) - 1} more"
