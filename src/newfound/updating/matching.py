"""Match what an update found on a part of the texts with the categories of the run."""

import numpy as np

from newfound.decisions.dissolving import without_categories
from newfound.decisions.matching import match_categories
from newfound.result import Result
from newfound.updating.choosing import Part
from newfound.updating.planning import Plan

MIN_SIZE = 5  # texts of a new category
MIN_NEW = 3  # of them that are new: without new texts there is no reason to propose it now


def match_found(result: Result, found: Result, part: Part, plan: Plan) -> tuple[Result, np.ndarray]:
    """Return what was found without new categories that are too small, and where it belongs.

    Parameters
    ----------
    result : Result
        The run before the update.
    found : Result
        What was discovered on the part; the names of its known categories are places in the plan.
    part : Part
    plan : Plan

    Returns
    -------
    found : Result
    place : ndarray of int64, shape (K,)
        Place in the plan of each found category; new ones follow those of the plan.
    """
    place = _places(result, found, part, plan)
    size = np.bincount(found.assigned, minlength=len(place))
    new = np.bincount(found.assigned[part.earlier :], minlength=len(place))
    small = (place < 0) & ((size < MIN_SIZE) | (new < MIN_NEW))
    if small.any():
        found = without_categories(found, np.flatnonzero(small).tolist())
        place = place[~small]
    fresh = place < 0
    place[fresh] = len(plan.categories) + np.arange(int(fresh.sum()))
    return found, place


def _places(result: Result, found: Result, part: Part, plan: Plan) -> np.ndarray:
    """Return the place in the plan of each found category [K], -1 of one that matches none."""
    sizes = len(plan.categories), len(found.categories)
    pinned = {
        int(category.name): at
        for at, category in enumerate(found.categories)
        if category.kind == "known"
    }
    before = plan.place[result.assigned[part.rows[: part.earlier]]]
    pairs = match_categories(before, found.assigned[: part.earlier], sizes, pinned=pinned)
    place = np.full(sizes[1], -1, np.int64)
    for old, new in pairs.items():
        place[new] = old
    return place
