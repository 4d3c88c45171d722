"""Score an answer on the unlabelled texts of a table."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score, roc_auc_score

from newfound.bench.wild.tables import COUNTED, Table
from newfound.clustering.metrics import bins_of_equal_width, calibration_error

NONE = -1  # category of a text that an answer assigns to no category
Scores = dict[str, float | None]


@dataclass(frozen=True)
class Answer:
    """The categories that a method or a peer assigns to the N texts of a table.

    Attributes
    ----------
    category : ndarray of int64, shape (N,)
        Index of each text's category, the table's known ones first; `NONE` if it has none.
    n_categories : int
        Number of categories, known ones included.
    probability : ndarray of float, shape (N,), optional
        Probability of that category.
    fit : ndarray of float, shape (N,), optional
        How well a text fits its category, higher is better; by default its probability.
    estimated : int, optional
        The estimated number of categories.
    known_only : bool
        Whether only known categories are assigned, so that only exact_known is defined.
    """

    category: np.ndarray
    n_categories: int
    probability: np.ndarray | None = None
    fit: np.ndarray | None = None
    estimated: int | None = None
    known_only: bool = False


def score(answer: Answer, table: Table) -> Scores:
    """Score an answer.

    Parameters
    ----------
    answer : Answer
        Answer for all texts of the table.
    table : Table
        The table with the true categories.

    Returns
    -------
    dict
        Over the unlabelled texts that are in scope, in percent: accuracy after one Hungarian
        matching (all, known, novel, and per_category, its mean over categories), exact_known
        (texts of known categories that get their own category by name), f1_novel (of assigning
        texts to novel categories), nmi and ari. From 0 to 1: auroc (of out-of-scope texts, by their
        fit) and ece, ece_known, ece_novel (expected calibration error with the matched accuracy).
        None for a score that is not defined.
    """
    rows = np.flatnonzero(table.unlabelled & table.in_scope)
    truth = np.array([table.truth[row] for row in rows], object)
    place = {name: position for position, name in enumerate(table.known)}
    target = np.array([place.get(name, NONE) for name in truth], np.int64)
    found, is_known = answer.category[rows], target != NONE
    exact = _percent(found[is_known] == target[is_known])
    if answer.known_only:
        return {**dict.fromkeys(SCORES), "exact_known": exact}
    right = matched(found, truth)
    per_category = [right[truth == name].mean() for name in sorted(set(truth))]
    called_novel = (found == NONE) | (found >= len(table.known))
    auroc = None
    if not table.in_scope.all():
        auroc = _auroc(answer, table)
    sure = None if answer.probability is None else answer.probability[rows]
    return {
        "all": _percent(right),
        "known": _percent(right[is_known]),
        "novel": _percent(right[~is_known]),
        "exact_known": exact,
        "f1_novel": f1(called_novel, ~is_known) if table.known else None,
        "per_category": _percent(np.array(per_category)),
        "nmi": round(100 * float(normalized_mutual_info_score(truth, found)), 2),
        "ari": round(100 * float(adjusted_rand_score(truth, found)), 2),
        "auroc": auroc,
        "ece": _ece(sure, right),
        "ece_known": _ece(sure, right, is_known),
        "ece_novel": _ece(sure, right, ~is_known),
    }


SCORES = (
    *("all", "known", "novel", "exact_known", "f1_novel", "per_category", "nmi", "ari"),
    *("auroc", "ece", "ece_known", "ece_novel"),
)


def category_counts(answer: Answer, table: Table) -> dict[str, int | None]:
    """Return the true and the found number of categories.

    `true_counted` and `used_counted` leave out novel categories with fewer than five texts.
    """
    if answer.known_only:
        found = counted = None
    else:
        free = answer.category[table.unlabelled]
        sizes = np.bincount(free[free >= len(table.known)], minlength=1)
        found, counted = answer.n_categories, len(table.known) + int((sizes >= COUNTED).sum())
    return {
        "true": table.n_categories,
        "true_counted": table.n_counted,
        "used": found,
        "used_counted": counted,
        "estimated": answer.estimated,
    }


def matched(found: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return which texts are right, bool [N], by the one-to-one matching with most right texts.

    A text whose category is `NONE` is never right.
    """
    right = np.zeros(len(found), bool)
    placed = np.flatnonzero(found != NONE)
    if len(placed) == 0:
        return right
    clusters, row = np.unique(found[placed], return_inverse=True)
    categories, column = np.unique(truth[placed].astype(str), return_inverse=True)
    table = np.zeros((len(clusters), len(categories)), np.int64)
    np.add.at(table, (row, column), 1)
    partner = np.full(len(clusters), -1)
    rows, columns = linear_sum_assignment(table, maximize=True)
    partner[rows] = columns
    right[placed] = partner[row] == column
    return right


def f1(called: np.ndarray, truth: np.ndarray) -> float:
    """Return the F1 score of a binary decision, in percent."""
    both = int((called & truth).sum())
    return round(200 * both / max(1, int(called.sum()) + int(truth.sum())), 2)


def _ece(
    probability: np.ndarray | None, right: np.ndarray, chosen: np.ndarray | None = None
) -> float | None:
    """Return the expected calibration error of the `chosen` texts, in ten bins of equal width.

    None without probabilities or texts.
    """
    if probability is None:
        return None
    if chosen is not None:
        probability, right = probability[chosen], right[chosen]
    if len(probability) == 0:
        return None
    return round(calibration_error(probability, right, bins_of_equal_width(probability)), 4)


def _auroc(answer: Answer, table: Table) -> float | None:
    """Return the AUROC of out-of-scope texts among the unlabelled ones; None without a fit."""
    fit = answer.probability if answer.fit is None else answer.fit
    if fit is None:
        return None
    nowhere = ~table.in_scope[table.unlabelled]
    return round(float(roc_auc_score(nowhere, -fit[table.unlabelled])), 4)


def _percent(right: np.ndarray) -> float | None:
    """Return the mean in percent; None for no texts."""
    return round(100 * float(right.mean()), 2) if len(right) else None
