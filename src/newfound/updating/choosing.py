"""Choose the earlier texts that an update looks at: their number does not grow with the history."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from newfound.data.corpus import Corpus
from newfound.result import Result
from newfound.updating.planning import Plan

EACH = 30  # texts that stand for a category, at most
COUNTED = 8  # of them, with which new categories are counted
FEW = 10  # texts of a small category, up to which less probable ones stand for it, too
SURE_SHARE = 0.5  # of a category's unlabelled texts, from which they are drawn: the most probable
LOOSE_SHARE = 0.3  # of the unlabelled texts, those that fit worst, that may go elsewhere
MOST_LOOSE = 600  # of them at most


@dataclass(frozen=True, eq=False)
class Part:
    """The texts that an update looks at: typical, loose and new ones, in this order.

    Attributes
    ----------
    rows : ndarray of int64, shape (n,)
        Rows of the joined corpus.
    typical : int
        Number of earlier texts that stand for their category.
    loose : int
        Number of earlier texts that may go elsewhere.
    targets : ndarray of int64, shape (n,)
        Place of the category of each text in the plan, -1 where it is to be found.
    labelled : ndarray of bool, shape (n,)
        Which texts have a label of the user.
    """

    rows: np.ndarray
    typical: int
    loose: int
    targets: np.ndarray
    labelled: np.ndarray

    @cached_property
    def counted(self) -> np.ndarray:
        """Places [m] in the part of what new categories are counted on: few texts of the old."""
        targets = self.targets[: self.typical]
        order = np.argsort(targets, kind="stable")
        rank = np.empty(len(targets), np.int64)
        rank[order] = np.arange(len(targets)) - np.searchsorted(targets[order], targets[order])
        kept = np.ones(len(self.rows), bool)
        kept[: self.typical] = rank < COUNTED
        return np.flatnonzero(kept)


def choose_part(result: Result, new: Corpus, plan: Plan, seed: int) -> Part:
    """Return the texts that an update looks at, and which of them count as labelled.

    Parameters
    ----------
    result : Result
        The run before the update.
    new : Corpus
        New texts, which follow those of the run in the joined corpus.
    plan : Plan
    seed : int
        Random seed.

    Returns
    -------
    Part
    """
    loose = choose_loose(result)
    typical = choose_typical(result, loose, seed)
    loose = loose[~np.isin(loose, typical)]
    given = [-1 if label is None else plan.labels[label] for label in new.labels]
    nothing = np.full(len(loose), -1, np.int64)
    return Part(
        rows=np.concatenate([typical, loose, len(result.corpus) + np.arange(len(new))]),
        typical=len(typical),
        loose=len(loose),
        targets=np.concatenate(
            [plan.place[result.assigned[typical]], nothing, np.array(given, np.int64)]
        ),
        labelled=np.concatenate([result.labelled[typical], nothing > 0, np.array(given) >= 0]),
    )


def choose_loose(result: Result) -> np.ndarray:
    """Return rows of texts that fit their category worst, which another category may take.

    Parameters
    ----------
    result : Result
        The run before the update.

    Returns
    -------
    ndarray of int64
        Unlabelled and unreviewed rows in ascending order of their fit score. The text of each
        category that fits best is left out, so that it can stand for its category.
    """
    if result.fit is None:
        return np.empty(0, np.int64)
    free = ~_decided(result) & np.isfinite(result.fit)
    count = min(MOST_LOOSE, round(LOOSE_SHARE * int(free.sum())))
    best = np.lexsort((-result.fit, result.assigned))
    free[best[np.unique(result.assigned[best], return_index=True)[1]]] = False
    rows = np.flatnonzero(free)
    return rows[np.argsort(result.fit[rows], kind="stable")][:count]


def choose_typical(result: Result, loose: np.ndarray, seed: int) -> np.ndarray:
    """Return rows that stand for the categories: labelled and reviewed ones, then sure ones.

    Parameters
    ----------
    result : Result
        The run before the update.
    loose : ndarray of int64
        Rows of texts that may go elsewhere; they stand for nothing.
    seed : int
        Random seed of the draw.

    Returns
    -------
    ndarray of int64
        Rows in the order of the categories, at most `EACH` of each. A text that a person marked as
        fitting nowhere is among them only if its category has no other.
    """
    rng = np.random.default_rng(seed)
    decided = _decided(result)
    marked = np.zeros(len(decided), bool) if result.fits_nowhere is None else result.fits_nowhere
    left_out = marked & ~result.labelled
    left_out[loose] = True
    chosen = [np.empty(0, np.int64)]
    order = np.argsort(result.assigned, kind="stable")
    ends = np.cumsum(np.bincount(result.assigned, minlength=len(result.categories)))
    for members in np.split(order, ends[:-1]):
        rows = members[~left_out[members]]
        if not len(rows):
            rows = members[:1]
        given, free = rng.permutation(rows[decided[rows]]), rows[~decided[rows]]
        likely = free[np.argsort(-np.nan_to_num(result.probability[free]), kind="stable")]
        sure = likely[: max(FEW - len(given), round(SURE_SHARE * len(likely)), 0)]
        chosen.append(np.concatenate([given, rng.permutation(sure)])[:EACH])
    return np.concatenate(chosen)


def _decided(result: Result) -> np.ndarray:
    """Return which texts have a label, or a decision of a person, bool [N]."""
    return result.labelled if result.reviewed is None else result.labelled | result.reviewed
