"""Choose the earlier texts that an update looks at: their number does not grow with the history."""

from dataclasses import dataclass

import numpy as np

from newfound.clustering.quotas import places_within
from newfound.data.corpus import Corpus
from newfound.decisions.refitting import label_rows
from newfound.result import Result
from newfound.updating.planning import Plan

EACH = 30  # texts of a category, at most
COUNTED = 8  # of them, beside which new categories do not look small when they are counted
LOOSE_SHARE = 0.3  # of the unlabelled texts, those that fit worst, that are looked at in any case
MOST_LOOSE = 600  # of them at most


@dataclass(frozen=True, eq=False)
class Part:
    """The texts that an update looks at: earlier ones, then new ones.

    Attributes
    ----------
    rows : ndarray of int64, shape (n,)
        Rows of the joined corpus.
    earlier : int
        Number of earlier texts.
    movable : ndarray of bool, shape (earlier,)
        Which of them may go elsewhere: those without a label or a decision.
    targets : ndarray of int64, shape (n,)
        Place in the plan of the category that counts as the label of each text, -1 without one.
    labelled : ndarray of bool, shape (n,)
        Which texts have a label of the user.
    counted : ndarray of int64
        Places in the part of the texts that new categories are counted on: few earlier ones of each
        category, and all that fit worst or are new.
    """

    rows: np.ndarray
    earlier: int
    movable: np.ndarray
    targets: np.ndarray
    labelled: np.ndarray
    counted: np.ndarray


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
    earlier = np.concatenate([typical, loose])
    places = plan.place[result.assigned[earlier]]
    given = np.array([-1 if label is None else plan.labels[label] for label in new.labels], int)
    return Part(
        rows=np.concatenate([earlier, len(result.corpus) + np.arange(len(new))]),
        earlier=len(earlier),
        movable=~_decided(result)[earlier],
        targets=np.concatenate([np.where(_fixed(result, plan)[earlier], places, -1), given]),
        labelled=np.concatenate([result.labelled[earlier], given >= 0]),
        counted=np.concatenate(
            [
                np.flatnonzero(places_within(result.assigned[typical]) < COUNTED),
                np.arange(len(typical), len(earlier) + len(new)),
            ]
        ),
    )


def _fixed(result: Result, plan: Plan) -> np.ndarray:
    """Return which texts of the run count as labelled, bool [N]."""
    known = np.array([category.kind == "known" for category in plan.categories])
    rows: np.ndarray = label_rows(result)
    # A new label has the name of a proposed category: what a person placed there is labelled.
    return rows | (_decided(result) & known[plan.place[result.assigned]])


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
    """Return rows of each category: those that count as labelled, then any others.

    Parameters
    ----------
    result : Result
        The run before the update.
    loose : ndarray of int64
        Rows that are looked at in any case; they are left out.
    seed : int
        Random seed of the draw.

    Returns
    -------
    ndarray of int64
        Rows in the order of the categories, at most `EACH` of each. A text that a person marked as
        fitting nowhere is among them only if its category has no other.
    """
    rng = np.random.default_rng(seed)
    first = _decided(result) | label_rows(result)
    marked = np.zeros(len(first), bool) if result.fits_nowhere is None else result.fits_nowhere
    left_out = marked & ~result.labelled
    left_out[loose] = True
    chosen = [np.empty(0, np.int64)]
    order = np.argsort(result.assigned, kind="stable")
    ends = np.cumsum(np.bincount(result.assigned, minlength=len(result.categories)))
    for members in np.split(order, ends[:-1]):
        rows = members[~left_out[members]]
        if not len(rows):
            rows = members[~np.isin(members, loose)][:1]
        drawn = [rng.permutation(rows[first[rows]]), rng.permutation(rows[~first[rows]])]
        chosen.append(np.concatenate(drawn)[:EACH])
    return np.concatenate(chosen)


def _decided(result: Result) -> np.ndarray:
    """Return which texts have a label, or a decision of a person, bool [N]."""
    return result.labelled if result.reviewed is None else result.labelled | result.reviewed
