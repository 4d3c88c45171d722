"""Describe categories after decisions, without features: sizes, keywords, typical texts, names."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from newfound.category import Category
from newfound.decisions.state import State
from newfound.describing.keywords import choose_keywords, count_terms, score_terms
from newfound.describing.names import same_name
from newfound.describing.private_words import person_names

KEYWORDS = 8  # of a category
EXAMPLES = 5  # typical texts of a category, and border texts
COUNTED = 2_000  # texts of a category from which the keywords of its parts are computed


def described(
    state: State, order: Sequence[int], assigned: np.ndarray, marked: np.ndarray | None
) -> tuple[Category, ...]:
    """Return the categories in their new order, described by their texts.

    Sizes, shares, confidences and fit scores are those of the texts. Keywords and typical texts are
    computed for parts of split categories and joined for merged ones; others keep theirs, less the
    texts that have left.
    """
    result, count = state.result, len(order)
    probability = np.nan_to_num(result.probability)
    sizes = np.bincount(assigned, minlength=count)
    labelled = np.bincount(assigned[state.labelled], minlength=count)
    confidence = np.bincount(assigned, weights=probability, minlength=count) / np.maximum(sizes, 1)
    fit = None
    if result.fit is not None:
        fit = np.bincount(assigned, weights=result.fit, minlength=count) / np.maximum(sizes, 1)
    nowhere = None if marked is None else np.bincount(assigned[marked], minlength=count)
    parts = _part_keywords(state, order)
    found = []
    for new, at in enumerate(order):
        entry = state.entries[at]
        category = entry.category
        known = entry.category.status == "known" or entry.has_labels
        nearest = state.nearest(at)
        kept = nearest is not None and category.nearest == state.entries[nearest].category.id
        category = replace(
            category,
            kind="known" if known else "novel",
            size=int(sizes[new]),
            share=int(sizes[new]) / max(1, len(assigned)),
            labelled=int(labelled[new]) if known else 0,
            nearest=None if nearest is None else state.entries[nearest].category.id,
            nearest_distance=category.nearest_distance if kept else float("nan"),
        )
        if entry.changed:
            typical, border = _texts(state, at, new, assigned)
            category = replace(
                category,
                confidence=float(confidence[new]),
                fit=round(float(fit[new]), 4) if fit is not None and sizes[new] else None,
                keywords=_keywords(state, at, parts),
                examples=typical,
                border=border,
            )
        if nowhere is not None:
            category = replace(category, fits_nowhere=int(nowhere[new]))
        found.append(category)
    return _named(found)


def _texts(
    state: State, at: int, new: int, assigned: np.ndarray
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return typical and border texts: those before, less what has left, filled by probability."""
    result = state.result
    rows = np.flatnonzero(assigned == new)
    order = rows[np.argsort(-np.nan_to_num(result.probability[rows]), kind="stable")].tolist()
    here = dict.fromkeys(result.corpus.texts[row] for row in order)
    before = state.entries[at].category
    typical = [text for text in before.examples if text in here]
    typical += [text for text in here if text not in typical]
    border = [text for text in before.border if text in here]
    border += [text for text in reversed(here) if text not in border]
    chosen = tuple(typical[:EXAMPLES])
    return chosen, tuple([text for text in border if text not in chosen][:EXAMPLES])


def _keywords(state: State, at: int, parts: dict[int, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the keywords of a changed category: those of its texts' sources, in turn."""
    if at in parts:
        return parts[at]
    own = state.entries[at].category
    sources = [own.keywords]
    for other, entry in enumerate(state.entries):
        if entry.gone is not None and entry.gone.status == "merged" and own.id in entry.gone.into:
            sources.append(parts.get(other, entry.category.keywords))
    longest = max(map(len, sources))
    mixed = [words[i] for i in range(longest) for words in sources if i < len(words)]
    return tuple(dict.fromkeys(mixed))[:KEYWORDS]


def _part_keywords(state: State, order: Sequence[int]) -> dict[int, tuple[str, ...]]:
    """Return the keywords of each part of a split category against its siblings and the rest."""
    families: dict[int, list[int]] = {}
    for at, entry in enumerate(state.entries):
        if entry.parent is not None and entry.gone is None:
            families.setdefault(entry.parent, []).append(at)
    found: dict[int, tuple[str, ...]] = {}
    for parent, parts in families.items():
        group = [*parts, parent] if state.entries[parent].gone is None else parts
        # A part alone is compared with the largest other category.
        if len(group) == 1:
            others = [at for at in order if at != group[0]]
            sizes = np.bincount(state.assigned, minlength=len(state.entries))
            group = [*group, *sorted(others, key=lambda at: -int(sizes[at]))[:1]]
        rows = [state.members(at)[:COUNTED] for at in group]
        owner = np.repeat(np.arange(len(group)), [len(each) for each in rows])
        texts = [state.result.corpus.texts[row] for each in rows for row in each.tolist()]
        terms = count_terms(texts, owner, len(group), person_names(texts))
        near = np.array(
            [[other for other in range(len(group)) if other != i][:3] for i in range(len(group))]
        )
        words = choose_keywords(terms, score_terms(terms, near.reshape(len(group), -1)), KEYWORDS)
        found |= {at: tuple(words[i]) for i, at in enumerate(group) if at in parts}
    return found


def _named(categories: list[Category]) -> tuple[Category, ...]:
    """Return the categories with names from keywords for those that have none."""
    used = {same_name(category.name) for category in categories if category.name}
    named = []
    for category in categories:
        if not category.name:
            base = " ".join(category.keywords[:2]).capitalize() or "Part"
            number, name = 1, base
            while same_name(name) in used:
                number += 1
                name = f"{base} {number}"
            used.add(same_name(name))
            category = replace(category, name=name)
        named.append(category)
    return tuple(named)
