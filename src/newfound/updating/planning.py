"""Plan the categories of an updated run: those of the run, and those of new labels."""

from dataclasses import dataclass, replace

import numpy as np

from newfound.category import Category, Event
from newfound.data.corpus import Corpus
from newfound.lineage import Lineage, Retired
from newfound.result import Result


@dataclass(frozen=True, eq=False)
class Plan:
    """The categories of an updated run before new ones are found, known ones first.

    Attributes
    ----------
    categories : tuple of Category
    place : ndarray of int64, shape (K,)
        Place of each category of the run, -1 for one that has no text and is dropped.
    labels : dict of str to int
        Place of the category of each label of the new texts.
    lineage : Lineage
        With the ids of new labels, of the next run.
    """

    categories: tuple[Category, ...]
    place: np.ndarray
    labels: dict[str, int]
    lineage: Lineage


def plan_categories(result: Result, new: Corpus) -> Plan:
    """Return the categories of a run that has texts, with those of new labels.

    A label with the name of a novel category makes that one known, and a further label is a new
    known category.

    Parameters
    ----------
    result : Result
    new : Corpus
        New texts.

    Returns
    -------
    Plan
    """
    labels = new.known
    there = np.bincount(result.assigned, minlength=len(result.categories)) > 0
    planned = [
        replace(category, kind="known", status="known") if category.name in labels else category
        for category, texts in zip(result.categories, there, strict=True)
        if texts or category.name in labels
    ]
    names = {category.name for category in planned}
    added = [label for label in labels if label not in names]
    ids, lineage = result.lineage.new_ids(len(added))
    history = (Event("found", lineage.run + 1, "labels"),)
    planned += [
        empty_category(id_, label, "known", history) for id_, label in zip(ids, added, strict=True)
    ]
    planned.sort(key=lambda category: category.kind != "known")
    by_id = {category.id: at for at, category in enumerate(planned)}
    by_name = {category.name: at for at, category in enumerate(planned)}
    gone = tuple(Retired(c.id, c.name, "dissolved") for c in result.categories if c.id not in by_id)
    return Plan(
        categories=tuple(planned),
        place=np.array([by_id.get(category.id, -1) for category in result.categories], np.int64),
        labels={label: by_name[label] for label in labels},
        lineage=Lineage(lineage.run + 1, lineage.next_number, (*lineage.retired, *gone)),
    )


def empty_category(id_: str, name: str, status: str, history: tuple[Event, ...]) -> Category:
    """Return a known category of which nothing but its name is known yet."""
    return Category(
        id=id_,
        name=name,
        kind="known",
        status=status,
        size=0,
        share=0.0,
        labelled=0,
        keywords=(),
        examples=(),
        border=(),
        confidence=0.0,
        nearest=None,
        nearest_distance=float("nan"),
        distance=None,
        history=history,
    )
