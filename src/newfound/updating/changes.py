"""What an update changed: categories that are new, growing or fading, and texts that moved."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from newfound.result import Result
from newfound.wording import plural

LEVEL = 0.05  # probability of calling any category growing or fading by chance
TIMES = 1.5  # by which its share must at least have changed


def changes_of(before: Result, after: Result, looked_at: int) -> Mapping[str, Any]:
    """Return what changed.

    Parameters
    ----------
    before : Result
        The run, whose texts are the first ones of `after`.
    after : Result
        The updated run.
    looked_at : int
        Number of earlier texts that were assigned again.

    Returns
    -------
    Mapping
        It has the entries that a refit records, and those of an update: ``new_texts``, ``joined``
        (new texts of each category), ``growing``, ``fading`` and ``moved`` (earlier texts that
        changed, by reason).
    """
    appeared = [category.id for category in after.categories if category.id not in before.position]
    old, total = len(before.corpus), len(after.categories)
    was, now = before.ids[before.assigned], after.ids[after.assigned[:old]]
    moved = was != now
    to_new = moved & np.isin(now, appeared)
    earlier = np.bincount(after.assigned[:old], minlength=total)
    joined = np.bincount(after.assigned[old:], minlength=total)
    sizes = {category.id: category.size for category in before.categories}
    compared = ~np.isin(after.ids, appeared)
    trend = np.where(compared, trends(earlier, joined), 0)
    return {
        "run": before.lineage.run,
        "decisions": 0,
        "texts": int(moved.sum()),
        "appeared": appeared,
        "dissolved": [c.id for c in before.categories if c.id not in after.position],
        "sizes": {
            category.id: [sizes[category.id], category.size]
            for category in after.categories
            if category.id in sizes and sizes[category.id] != category.size
        },
        "new_texts": len(after.corpus) - old,
        "joined": {
            category.id: int(count)
            for category, count in zip(after.categories, joined, strict=True)
            if count
        },
        "growing": after.ids[trend > 0].tolist(),
        "fading": after.ids[trend < 0].tolist(),
        "moved": {
            "looked_at": looked_at,
            "to_new_categories": int(to_new.sum()),
            "to_other_categories": int((moved & ~to_new).sum()),
        },
    }


def trends(earlier: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Return 1 for a category that grows, -1 for one that fades, 0 for others.

    Of the a + b texts of a category, b are new. If its share is the same among new and earlier
    texts, b is binomial with probability n / (N + n), for n new and N earlier texts. A category
    grows if so many are improbable (`LEVEL`, divided by the number of comparisons) and its share
    among new texts is at least 1.5 times that among earlier ones; it fades in the opposite case.

    Parameters
    ----------
    earlier, new : ndarray of int, shape (K,)
        Texts of each category.

    Returns
    -------
    ndarray of int, shape (K,)

    Examples
    --------
    >>> trends(np.array([100, 100, 100]), np.array([10, 60, 30])).tolist()
    [-1, 1, 0]
    """
    from scipy.special import bdtr, bdtrc

    before, after = int(earlier.sum()), int(new.sum())
    if not before or not after:
        return np.zeros(len(new), np.int64)
    share = after / (before + after)
    both = earlier + new
    level = LEVEL / (2 * max(1, len(new)))
    at_least = np.where(new > 0, bdtrc(np.maximum(new - 1, 0), both, share), 1.0)
    at_most = bdtr(new, both, share)
    rate, old_rate = new / after, earlier / before
    grows = (at_least < level) & (rate >= TIMES * old_rate)
    fades = (at_most < level) & (rate * TIMES <= old_rate)
    return grows.astype(np.int64) - fades.astype(np.int64)


def describe_changes(result: Result) -> list[str]:
    """Return what an update changed as lines of text; none if the run is no update.

    Parameters
    ----------
    result : Result
        An updated run.
    """
    changes = result.changes
    if changes is None or "new_texts" not in changes:
        return []
    moved, appeared = changes["moved"], set(changes["appeared"])
    lines = [
        f"{plural(changes['new_texts'], 'new text')}; "
        f"{plural(changes['texts'], 'earlier text')} of "
        f"{len(result.corpus) - changes['new_texts']:,} changed category: "
        f"{moved['to_new_categories']:,} to a new one, {moved['to_other_categories']:,} at a border"
    ]
    for name, ids in (
        ("new", changes["appeared"]),
        ("growing", changes["growing"]),
        ("fading", changes["fading"]),
    ):
        for id_ in ids:
            if id_ not in result.position:
                continue
            category = result.categories[result.position[id_]]
            count = changes["joined"].get(id_, 0)
            what = (
                plural(category.size, "text")
                if id_ in appeared
                else f"{count:,} new of {plural(category.size, 'text')}"
            )
            lines.append(f"{name:<8} {id_} {category.name} ({what})")
    return lines
