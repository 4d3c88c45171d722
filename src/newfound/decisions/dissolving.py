"""Remove categories from a fitted result: their texts go to the next nearest prototype."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from newfound.arrays import as_recorded
from newfound.clustering.assignment import assign
from newfound.lineage import id_of_number
from newfound.result import Result


def without_categories(result: Result, positions: Sequence[int]) -> Result:
    """Return the result and its model without some novel categories.

    Parameters
    ----------
    result : Result
        Just fitted, with its model and training features.
    positions : sequence of int
        Positions of the categories to remove.

    Returns
    -------
    Result
        Texts of these categories are in the nearest remaining one, and marked as fitting nowhere.
    """
    model, features = result.model, result.training_features
    if model is None or features is None:
        raise ValueError("the result has no model or no training features")
    kept = np.array([at for at in range(len(result.categories)) if at not in set(positions)])
    place = np.full(len(result.categories), -1)
    place[kept] = np.arange(len(kept))
    prototypes = model.prototypes[kept]
    reference = model.fit_reference
    if reference is not None:
        inside = place[reference.categories] >= 0
        reference = replace(
            reference,
            vectors=reference.vectors[inside],
            categories=place[reference.categories[inside]],
            given=reference.given[inside],
        )
    free = place[result.assigned] < 0
    next_best, probability = assign(features, prototypes, model.temperature)
    assigned = np.where(free, next_best, place[result.assigned])
    gone = place[result.predicted] < 0
    marked = free if result.fits_nowhere is None else result.fits_nowhere | free
    ids = [id_of_number(at + 1) for at in range(len(kept))]
    old_ids = {result.categories[at].id: ids[new] for new, at in enumerate(kept.tolist())}
    sizes = np.bincount(assigned, minlength=len(kept))
    categories = tuple(
        replace(
            result.categories[at],
            id=ids[new],
            nearest=old_ids.get(result.categories[at].nearest or ""),
            size=int(sizes[new]),
            share=int(sizes[new]) / max(1, len(assigned)),
        )
        for new, at in enumerate(kept.tolist())
    )
    matching = result.matching
    return replace(
        result,
        categories=categories,
        assigned=assigned,
        predicted=np.where(gone, next_best, place[result.predicted]),
        probability=np.where(gone, as_recorded(probability), result.probability),
        best_known=None
        if result.best_known is None
        else np.where(result.best_known < 0, -1, place[result.best_known]),
        fits_nowhere=marked,
        matching=None if matching is None else matching[:, kept],
        model=replace(model, prototypes=prototypes, categories=categories, fit_reference=reference),
    )
