"""Score a draw: how much of what was hidden a discovery gave back.

1. Match categories one to one with the discovered ones, by all texts whose label is known. A
   discovered category that carries the name of a known one can be matched with that only.
2. Score the texts whose label was hidden, those of known and of hidden categories apart.
3. Estimate the share of novel texts among those without any label, and weight both parts by it:
   the share among hidden labels is an accident of the draw.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from newfound.checking.draws import Draw
from newfound.clustering.metrics import bins_of_equal_size, calibration_error

OWN = 0.5  # of a category's texts, and of a discovered category's: it came back as one of its own
PART = 0.2  # of a category's texts: a discovered category with fewer only got strays
INFORMED = 0.2  # hits less false alarms: below it, verdicts of novelty say too little to adjust by
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
    answers, novel = predicted[scored], truth[scored] >= len(known)
    right, by_name = matched[truth[scored]] == answers, truth[scored] == answers
    share = _novel_share(
        predicted[truth < 0] >= len(known),
        answers >= len(known),
        novel,
        float((truth >= len(known)).sum() / (truth >= 0).sum()),
    )
    weights = _weights(novel, share)
    return DrawScores(
        all=_percent(right, weights),
        known=_percent(right[~novel]),
        novel=_percent(right[novel]),
        exact_known=_percent(by_name[~novel]),
        recovered=_recovered(table, matched, len(known)),
        k_error=_k_error(table, len(known)),
        calibration_error=_ece(probability[scored], np.where(novel, right, by_name), weights),
        n_categories=n_categories,
        n_hidden=len(draw.hidden),
        known_texts=int((~novel).sum()),
        novel_texts=int(novel.sum()),
    )


def _ece(probability: np.ndarray, right: np.ndarray, weights: np.ndarray) -> float:
    """Return the expected calibration error in percent, over bins of equally many texts."""
    bins = bins_of_equal_size(probability, min(BINS, max(1, len(right) // BIN_TEXTS)))
    return 100 * calibration_error(probability, right, bins, weights)


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


def _novel_share(pile: np.ndarray, judged: np.ndarray, novel: np.ndarray, hidden: float) -> float:
    """Return the share of texts without any label whose category no label of the user names.

    The adjusted count of Forman, "Quantifying counts and costs via classification" (2008): of the
    texts without a label a share is judged novel, `pile` [P]; how often such a verdict is right
    and how often wrong is seen on the scored texts, where it is `judged` [n] and the truth is
    `novel` [n]. The user knows the hidden categories, so the share of them, `hidden`, comes off.
    """
    if not len(pile):
        return float(novel.mean())
    share = float(pile.mean())
    hits = float(judged[novel].mean()) if novel.any() else 1.0
    false_alarms = float(judged[~novel].mean()) if not novel.all() else 0.0
    if hits - false_alarms >= INFORMED:
        share = (share - false_alarms) / (hits - false_alarms)
    return min(max((share - hidden) / (1 - hidden), 0.0), 1.0)


def _weights(novel: np.ndarray, share: float) -> np.ndarray:
    """Return weights [n] by which novel texts make up their share."""
    if novel.all() or not novel.any():
        return np.ones(len(novel))
    return np.where(novel, share / novel.sum(), (1 - share) / (~novel).sum())


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


def _percent(right: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Return the weighted share of right answers in percent; NaN without any."""
    return 100 * float(np.average(right, weights=weights)) if len(right) else float("nan")
