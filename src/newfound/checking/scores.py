"""Score a draw: how much of what was hidden a discovery gave back.

1. Match categories one to one with the discovered ones, by all texts whose label is known. A
   discovered category that carries the name of a known one can be matched with that only.
2. Score the texts whose label was hidden. Those of one category stand for as many texts as the
   pile seems to hold of it, and hidden categories together for the share of the pile that seems to
   be novel: labels are rarely spread as the texts are.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from newfound.checking.draws import Draw

OWN = 0.5  # of a category's texts, and of a discovered category's: it came back as one of its own
PART = 0.2  # of a category's texts: a discovered category with fewer only got strays
BINS = 10  # of the calibration error, fewer where
BIN_TEXTS = 30  # a bin would hold fewer texts than this


@dataclass(frozen=True)
class DrawScores:
    """What a discovery gave back of one draw; scores in percent, NaN where nothing was hidden.

    Attributes
    ----------
    all : float
        Texts in the right category, by a matching one to one.
    known : float
        The same for texts of categories that stayed known.
    novel : float
        The same for texts of categories that were hidden.
    exact_known : float
        Texts of known categories that got their own category by name, without a matching.
    recovered : float
        Hidden categories that came back as one category of their own: most of their texts are in
        it, and most of its texts are theirs.
    k_error : float
        How many more categories than hidden ones (fewer: negative) the labelled texts show among
        the novel ones, in percent of the hidden ones.
    calibration_error : float
        Mean difference of probability and accuracy, over texts of like probability.
    n_categories : int
        Categories that were found, known ones included.
    n_hidden : int
        Categories that were hidden.
    known_texts, novel_texts : int
        Texts behind the scores.
    """

    all: float
    known: float
    novel: float
    exact_known: float
    recovered: float
    k_error: float
    calibration_error: float
    n_categories: int
    n_hidden: int
    known_texts: int
    novel_texts: int


def score_draw(
    draw: Draw, predicted: np.ndarray, probability: np.ndarray, n_categories: int
) -> DrawScores:
    """Score what a discovery in the corpus of a draw found.

    Parameters
    ----------
    draw : Draw
        What was hidden.
    predicted : ndarray of int, shape (N,)
        Position of each text's discovered category, known ones first and sorted by name.
    probability : ndarray of float, shape (N,)
        Probability of that category.
    n_categories : int
        How many there are.

    Returns
    -------
    DrawScores
    """
    known = draw.corpus.known
    place = {label: i for i, label in enumerate([*known, *draw.hidden])}
    labels = [a or b for a, b in zip(draw.corpus.labels, draw.truth, strict=True)]
    truth = np.array([-1 if label is None else place[label] for label in labels], np.int64)  # [N]
    scored = np.array([label is not None for label in draw.truth], bool)
    table = np.zeros((n_categories, len(place)), np.int64)  # texts by discovered and true category
    np.add.at(table, (predicted[truth >= 0], truth[truth >= 0]), 1)
    matched = _match(table, len(known))
    pile = np.bincount(predicted[truth < 0], minlength=n_categories)
    weights = _weights(truth[scored], matched, pile)
    novel = truth[scored] >= len(known)
    share = _novel_share(matched, pile, len(known), novel)
    right = matched[truth[scored]] == predicted[scored]
    by_name = truth[scored] == predicted[scored]
    overall = _combined(weights, novel, share)
    return DrawScores(
        all=_percent(right, overall),
        known=_percent(right[~novel], weights[~novel]),
        novel=_percent(right[novel], weights[novel]),
        exact_known=_percent(by_name[~novel], weights[~novel]),
        recovered=_recovered(table, matched, len(known)),
        k_error=_k_error(table, len(known)),
        calibration_error=calibration_error(
            probability[scored], np.where(novel, right, by_name), overall
        ),
        n_categories=n_categories,
        n_hidden=len(draw.hidden),
        known_texts=int((~novel).sum()),
        novel_texts=int(novel.sum()),
    )


def calibration_error(probability: np.ndarray, right: np.ndarray, weights: np.ndarray) -> float:
    """Return the expected calibration error in percent, over bins of equally many texts.

    Parameters
    ----------
    probability : ndarray of float, shape (N,)
        Of the answer to each text.
    right : ndarray of bool, shape (N,)
        Whether it is right.
    weights : ndarray of float, shape (N,)
        How many texts each stands for.

    Returns
    -------
    float
        NaN without texts.
    """
    if not len(right):
        return float("nan")
    order = np.argsort(probability, kind="stable")
    gap = (weights * (probability - right))[order]
    bins = np.array_split(gap, min(BINS, max(1, len(right) // BIN_TEXTS)))
    return float(100 * sum(abs(part.sum()) for part in bins) / weights.sum())


def _match(table: np.ndarray, n_known: int) -> np.ndarray:
    """Return the discovered category of each true one, [C]; -1 where no text supports one."""
    allowed = table.copy()
    named = np.eye(n_known, table.shape[1], dtype=bool)
    allowed[:n_known][~named] = 0
    rows, columns = linear_sum_assignment(allowed, maximize=True)
    matched = np.full(table.shape[1], -1, np.int64)
    supported = allowed[rows, columns] > 0
    matched[columns[supported]] = rows[supported]
    return matched


def _weights(truth: np.ndarray, matched: np.ndarray, pile: np.ndarray) -> np.ndarray:
    """Return how many texts each scored text stands for, [n].

    `pile` [K] counts the texts without any label by discovered category.
    """
    scored = np.bincount(truth, minlength=len(matched))
    sizes = scored + np.where(matched >= 0, pile[matched], 0)  # of each category, [C]
    return (sizes / np.maximum(scored, 1))[truth]


def _novel_share(matched: np.ndarray, pile: np.ndarray, n_known: int, novel: np.ndarray) -> float:
    """Return the share of the pile in categories that no label of the user names."""
    if pile.sum() == 0:
        return float(novel.mean())
    # The user knows the hidden categories: what the pile has of them is not novel.
    unnamed = np.arange(len(pile)) >= n_known
    unnamed[matched[matched >= 0]] = False
    return float(pile[unnamed].sum() / pile.sum())


def _combined(weights: np.ndarray, novel: np.ndarray, share: float) -> np.ndarray:
    """Return the weights with those of novel texts scaled to their share of the pile, [n]."""
    if novel.all() or not novel.any():
        return weights
    parts = np.where(novel, share / weights[novel].sum(), (1 - share) / weights[~novel].sum())
    return weights * parts


def _recovered(table: np.ndarray, matched: np.ndarray, n_known: int) -> float:
    """Return the share of hidden categories that came back as one category of their own."""
    hidden = np.arange(n_known, table.shape[1])
    own = np.maximum(matched[hidden], 0)
    texts = table[own, hidden]
    whole = (texts > OWN * table[:, hidden].sum(0)) & (texts > OWN * table[own].sum(1))
    return 100 * float(((matched[hidden] >= n_known) & whole).mean())


def _k_error(table: np.ndarray, n_known: int) -> float:
    """Compare the novel categories that labelled texts show with the hidden ones."""
    novel = table[n_known:]
    most = novel.argmax(1) if len(novel) else np.zeros(0, np.int64)
    part = novel[np.arange(len(novel)), most] / np.maximum(table.sum(0)[most], 1)
    hidden = table.shape[1] - n_known
    return 100 * float((part >= PART).sum() - hidden) / hidden


def _percent(right: np.ndarray, weights: np.ndarray) -> float:
    return 100 * float(weights @ right / weights.sum()) if weights.sum() else float("nan")
