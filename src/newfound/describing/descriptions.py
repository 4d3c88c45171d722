"""Describe each category by a name, keywords, typical texts and border texts.

Names and keywords have no numbers, addresses and persons' names (`private_words`).
"""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from newfound.category import Category, Event
from newfound.clustering.assignment import chunks, squared_distances
from newfound.data.words import BREAK, same_words, unspaced, words
from newfound.describing.keywords import (
    Terms,
    choose_keywords,
    count_terms,
    score_terms,
)
from newfound.describing.names import candidate_names, unique_names
from newfound.describing.private_words import person_names, without_private
from newfound.lineage import id_of_number

SAME_FEATURES = 0.98  # two texts with a larger cosine count as duplicates
NEIGHBOURS = 3  # nearest categories that the keywords should distinguish a category from
READABLE = (15, 240)  # characters of a text that is easy to read in a list
UNREADABLE = 15  # ranks by distance that any other text is moved back
POOL = 50  # nearest distinct texts, from which examples and names are chosen
LOOKED_AT = 1_000  # texts searched for distinct ones
ROWS = 65_536  # features per block
Floats = NDArray[np.floating]
Integers = NDArray[np.integer]


def describe(
    texts: list[str],
    assigned: Integers,
    probabilities: Floats,
    features: Floats,
    prototypes: Floats,
    known: list[str | None],
    given: Integers,
    labelled_distance: list[float | None],
    keywords: int = 8,
    examples: int = 5,
    border: int = 5,
    method: str = "newfound",
) -> list[Category]:
    """Describe each category; the name of a known one is its label, and ids begin at "c1".

    texts [N]; assigned [N] categories 0..K-1; probabilities [N]; features [N, d];
    prototypes [K, d]; known [K] labels, None = novel; given [N] category of the label or -1;
    labelled_distance [K] from a known prototype to its matched labelled one, None = novel;
    `method` is the name of the method that found the novel categories.
    """
    count = len(known)
    _check(texts, assigned, probabilities, features, prototypes, known, given, labelled_distance)
    owner = np.asarray(assigned, dtype=np.int64)
    near, distances = _neighbours(prototypes)
    persons = person_names(texts)
    terms = count_terms(texts, owner, count, persons)
    scores = score_terms(terms, near)
    order = np.argsort(owner, kind="stable")
    ends = np.cumsum(np.bincount(owner, minlength=count))
    members = np.split(order, ends[:-1])
    some = [[texts[row] for row in rows[:LOOKED_AT].tolist()] for rows in members]
    best = choose_keywords(terms, scores, keywords, some)

    typical: list[list[int]] = []
    doubtful: list[list[int]] = []
    candidates: dict[int, list[tuple[float, str]]] = {}
    for category, rows in enumerate(members):
        distance = _distances(features, rows, prototypes[category])
        nearest = _different(rows[np.argsort(distance, kind="stable")], texts, POOL)
        chosen = _far_apart(_readable_first(nearest, texts), texts, features, examples)
        # Labelled texts are not in doubt, whatever the model predicts, so they come last.
        unsure = rows[np.lexsort((probabilities[rows], given[rows] >= 0))]
        doubt = _different(unsure, texts, POOL)
        typical.append(chosen)
        doubtful.append(_far_apart(doubt, texts, features, border, shown=chosen))
        if known[category] is None:
            weights = _word_scores(terms, scores, category)
            named_from = [without_private(texts[row], persons) for row in nearest]
            candidates[category] = candidate_names(named_from, weights, best[category])
    names = unique_names(candidates, [label for label in known if label is not None])

    described = []
    for category, rows in enumerate(members):
        label = known[category]
        described.append(
            Category(
                id=id_of_number(category + 1),
                name=names[category] if label is None else label,
                kind="novel" if label is None else "known",
                status="proposed" if label is None else "known",
                size=len(rows),
                share=len(rows) / max(1, len(texts)),
                labelled=int((given[rows] >= 0).sum()),
                keywords=tuple(best[category]),
                examples=tuple(texts[row] for row in typical[category]),
                border=tuple(texts[row] for row in doubtful[category]),
                confidence=float(probabilities[rows].mean(dtype=np.float64)) if len(rows) else 0.0,
                nearest=id_of_number(int(near[category, 0]) + 1) if count > 1 else None,
                nearest_distance=float(distances[category]),
                distance=labelled_distance[category],
                history=(Event("found", 1, method if label is None else "labels"),),
            )
        )
    return described


def _neighbours(prototypes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest categories of each [K, n], and the distance to the first of them [K]."""
    count = len(prototypes)
    near = np.empty((count, min(NEIGHBOURS, count - 1)), np.int64)
    distances = np.full(count, np.nan)
    for rows in chunks(count, count):
        between = np.sqrt(squared_distances(prototypes[rows], prototypes))
        own = np.arange(len(between))
        between[own, rows.start + own] = np.inf
        near[rows] = np.argsort(between, axis=1, kind="stable")[:, : near.shape[1]]
        if count > 1:
            distances[rows] = between.min(axis=1)
    return near, distances


def _check(
    texts: list[str],
    assigned: Integers,
    probabilities: Floats,
    features: Floats,
    prototypes: Floats,
    known: list[str | None],
    given: Integers,
    labelled_distance: list[float | None],
) -> None:
    by_text = {len(texts), len(assigned), len(probabilities), len(features), len(given)}
    by_category = {len(known), len(prototypes), len(labelled_distance)}
    if len(by_text) > 1 or len(by_category) > 1 or not known:
        raise ValueError(f"lengths do not agree: by text {by_text}, by category {by_category}")
    if len(texts) and not 0 <= int(np.min(assigned)) <= int(np.max(assigned)) < len(known):
        raise ValueError(f"assigned must lie in 0..{len(known) - 1}")


def _distances(features: Floats, rows: NDArray[np.int64], prototype: Floats) -> Floats:
    """Return the squared distances [n] to the prototype, computed in blocks of rows."""
    distance = np.empty(len(rows))
    for start in range(0, len(rows), ROWS):
        residual = features[rows[start : start + ROWS]] - prototype
        distance[start : start + ROWS] = np.einsum("nd,nd->n", residual, residual)
    return distance


def _different(rows: NDArray[np.int64], texts: list[str], count: int) -> list[int]:
    """Return the first rows with distinct texts, ignoring case, spacing and punctuation."""
    seen = set()
    different: list[int] = []
    for row in rows[:LOOKED_AT].tolist():
        text = " ".join(word for word in words(texts[row]) if word != BREAK) or texts[row].strip()
        if text and text not in seen:
            seen.add(text)
            different.append(row)
            if len(different) == count:
                break
    return different


def _readable_first(rows: list[int], texts: list[str]) -> list[int]:
    """Return the rows with very short and very long texts moved back."""

    def place(position: int) -> int:
        length = len(texts[rows[position]]) * (2 if unspaced(texts[rows[position]][:1000]) else 1)
        return position + (0 if READABLE[0] <= length <= READABLE[1] else UNREADABLE)

    return [rows[position] for position in sorted(range(len(rows)), key=place)]


def _far_apart(
    rows: list[int], texts: list[str], features: Floats, count: int, shown: list[int] | None = None
) -> list[int]:
    """Return the first rows that duplicate neither an earlier one nor one of `shown`.

    Two rows are duplicates if they have the same words. As long as others are left, similar
    features count as well; after training, all features of a category can be similar.
    """
    seen = [_bag(texts[row]) for row in shown or []]
    length = np.linalg.norm(features[rows], axis=1)
    units = dict(zip(rows, features[rows] / np.maximum(length, 1e-12)[:, None], strict=True))
    chosen: list[int] = []
    alike: list[int] = []
    for row in rows:
        if len(chosen) == count:
            break
        bag = _bag(texts[row])
        if any(same_words(bag, other) for other in seen):
            continue
        if any(float(units[row] @ units[other]) > SAME_FEATURES for other in chosen):
            alike.append(row)
        else:
            chosen.append(row)
            seen.append(bag)
    for row in alike:
        bag = _bag(texts[row])
        if len(chosen) < count and not any(same_words(bag, other) for other in seen):
            chosen.append(row)
            seen.append(bag)
    return sorted(chosen, key=rows.index)


def _bag(text: str) -> frozenset[str]:
    """Return the set of words of a text, or the text itself if it has no words."""
    return frozenset(words(text)) - {BREAK} or frozenset([text.strip()])


def _word_scores(terms: Terms, scores: csr_array, category: int) -> dict[str, float]:
    """Return the scores of the best single words of a category."""
    row = slice(scores.indptr[category], scores.indptr[category + 1])
    ids, value = scores.indices[row], scores.data[row]
    alone = terms.parts[ids, 0] < 0
    ids, value = ids[alone], value[alone]
    top = np.argsort(-value, kind="stable")[:200]
    return {terms.names[i]: float(v) for i, v in zip(ids[top], value[top], strict=True) if v > 0}
