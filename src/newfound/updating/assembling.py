"""Put together the result of an update: earlier texts as they were, others as they were found."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from newfound.arrays import as_recorded
from newfound.category import Category, Event
from newfound.clustering.assignment import squared_distances
from newfound.clustering.calibration import Answers
from newfound.clustering.fit_scores import make_reference, with_scores
from newfound.data.corpus import Corpus
from newfound.decisions.refitting import free_name
from newfound.describing.names import same_name
from newfound.describing.tree import with_groups
from newfound.describing.volume import with_volumes
from newfound.lineage import Lineage
from newfound.marking import with_fits
from newfound.model import Model
from newfound.pipeline import recorded_matching
from newfound.result import Result
from newfound.updating.choosing import Part
from newfound.updating.placing import place_new
from newfound.updating.planning import Plan

CLEARLY = 0.6  # probability from which an earlier text goes to another category that was there
MOST_MOVED = 0.03  # of the earlier texts, those that may change their category in one update
FEW_MOVED = 5  # texts that may in any case


def assemble(
    result: Result,
    corpus: Corpus,
    part: Part,
    found: Result,
    place: np.ndarray,
    plan: Plan,
    seed: int,
) -> Result:
    """Return the updated result, without notes and what else concerns the run as a whole.

    Parameters
    ----------
    result : Result
        The run before the update.
    corpus : Corpus
        Texts of the run, then new texts.
    part : Part
        The texts that were looked at.
    found : Result
        What was discovered on them.
    place : ndarray of int64
        Place of each found category in the plan; new ones follow those of the plan.
    plan : Plan
    seed : int
        Random seed.

    Returns
    -------
    Result
    """
    assert found.training_features is not None
    features, old = found.training_features, len(result.corpus)
    categories, lineage = _categories(found, place, plan)
    own = plan.place[result.assigned[part.rows[: part.earlier]]]
    model = _model(result, found, part, categories, place, own)
    frozen = _frozen(model, corpus.take(part.rows))
    space = features if frozen is None else frozen
    # A category of the run that was not found again keeps its texts.
    held = place[found.assigned]
    unmatched = np.flatnonzero(~np.isin(own, place))
    held[unmatched] = own[unmatched]
    reference, fit = make_reference(
        space, held, part.labelled, frozen=frozen is not None, seed=seed
    )
    answers = replace(model, fit_reference=reference).answers(features, frozen)
    stays, index = _decided(result, plan, part, answers)

    def spread(before: np.ndarray | None, values: np.ndarray, missing: float) -> np.ndarray:
        """Return values of all texts: earlier ones where they stay, else those of the part."""
        earlier = np.full(old, missing) if before is None else before
        whole = np.concatenate([earlier, np.full(len(corpus) - old, missing)]).astype(values.dtype)
        whole[part.rows[~stays]] = values[~stays]
        return whole

    assigned = spread(plan.place[result.assigned], index, -1)
    before = np.where(plan.place[result.predicted] < 0, result.assigned, result.predicted)
    best_known = None
    if result.best_known is not None:
        best_known = np.where(result.best_known < 0, -1, plan.place[result.best_known])
    fits = spread(result.fit, fit.astype(np.float64), np.nan)
    labelled = np.array([label is not None for label in corpus.labels], bool)
    # The part is no fair share of the texts, so the scores of all of them are kept.
    there = np.isfinite(fits)
    model = replace(model, fit_reference=with_scores(reference, fits[there], labelled[there]))
    after = Result(
        corpus=corpus,
        categories=(),
        assigned=assigned,
        predicted=spread(plan.place[before], answers.index, -1),
        probability=as_recorded(spread(result.probability, _double(answers.probability), np.nan)),
        best_known=spread(best_known, answers.best_known, -1),
        best_known_probability=as_recorded(
            spread(result.best_known_probability, _double(answers.best_known_probability), np.nan)
        ),
        fit=as_recorded(fits),
        fits_nowhere=_marked(result, model, fits, labelled),
        reviewed=None
        if result.reviewed is None
        else np.concatenate([result.reviewed, np.zeros(len(corpus) - old, bool)]),
        lineage=lineage,
        positions=partial(_positions, result, plan, part, features, assigned, seed),
        config=result.config,
        device=found.device,
        matching=recorded_matching(model),
    )
    described = with_groups(_described(after, categories, model), space, assigned[part.rows])
    return replace(after, categories=described, model=replace(model, categories=described))


def _double(values: np.ndarray) -> np.ndarray:
    """Return numbers in double precision."""
    return values.astype(np.float64)


def _categories(found: Result, place: np.ndarray, plan: Plan) -> tuple[list[Category], Lineage]:
    """Return the categories of the updated run, new ones last, and the lineage."""
    new = [
        category
        for category, at in zip(found.categories, place.tolist(), strict=True)
        if at >= len(plan.categories)
    ]
    ids, lineage = plan.lineage.new_ids(len(new))
    used = {same_name(category.name) for category in plan.categories}
    categories = list(plan.categories)
    history = (Event("found", lineage.run, str(found.config["method"])),)
    for id_, category in zip(ids, new, strict=True):
        name = free_name(category.name, used)
        categories.append(replace(category, id=id_, name=name, history=history, distance=None))
    return categories, lineage


def _model(
    result: Result,
    found: Result,
    part: Part,
    categories: Sequence[Category],
    place: np.ndarray,
    own: np.ndarray,
) -> Model:
    """Return the model that was found, for the categories of the updated run.

    own [earlier]: place of the category of each earlier text of the part.
    """
    assert found.model is not None
    features = found.training_features
    assert features is not None
    prototypes = np.empty((len(categories), features.shape[1]), found.model.prototypes.dtype)
    prototypes[place] = found.model.prototypes
    length = np.linalg.norm(found.model.prototypes, axis=1).mean()
    for at in set(range(len(categories))) - set(place.tolist()):
        mean = features[: part.earlier][own == at].mean(axis=0)
        prototypes[at] = mean * length / max(float(np.linalg.norm(mean)), 1e-12)
    known = sum(category.kind == "known" for category in categories)
    means = [
        features[part.labelled & (part.targets == at)].mean(axis=0)
        if (part.labelled & (part.targets == at)).any()
        else prototypes[at]
        for at in range(known)
    ]
    return replace(
        found.model,
        prototypes=prototypes,
        known=tuple(category.name for category in categories[:known]),
        labelled_prototypes=np.stack(means).astype(np.float32) if known else None,
        categories=tuple(categories),
        config=result.config,
        fit_reference=None,
    )


def _frozen(model: Model, texts: Corpus) -> np.ndarray | None:
    """Return the vectors of the encoder before training; None if all of its layers learnt."""
    return model.features.with_frozen(texts.texts if texts.vectors is None else texts.vectors)[1]


def _decided(
    result: Result, plan: Plan, part: Part, answers: Answers
) -> tuple[np.ndarray, np.ndarray]:
    """Return which texts of the part stay as they are, bool [n], and the category of each [n].

    An earlier text goes to another category that is clearly more probable. Of more than MOST_MOVED
    of all earlier texts, the surest go.
    """
    own = np.full(len(part.rows), -1, np.int64)
    own[: part.earlier] = plan.place[result.assigned[part.rows[: part.earlier]]]
    goes = (answers.probability >= CLEARLY) & (answers.index != own)
    movable = np.flatnonzero(goes[: part.earlier] & part.movable)
    movable = movable[np.argsort(-answers.probability[movable], kind="stable")]
    stays = np.arange(len(own)) < part.earlier
    stays[movable[: max(FEW_MOVED, int(MOST_MOVED * len(result.corpus)))]] = False
    found = np.where((part.targets >= 0) & ~stays, part.targets, answers.index)
    return stays, np.where(stays, own, found)


def _marked(
    result: Result, model: Model, fits: np.ndarray, labelled: np.ndarray
) -> np.ndarray | None:
    """Return which texts fit nowhere: earlier ones as before, new ones by the rule of the run."""
    threshold, old = model.fit_threshold, len(result.corpus)
    if threshold is None and result.fits_nowhere is None:
        return None
    marked = np.zeros(len(fits), bool)
    if threshold is not None:
        marked = (fits < threshold) & ~labelled
    if result.fits_nowhere is not None:
        marked[:old] = result.fits_nowhere
    return marked


def _positions(
    result: Result,
    plan: Plan,
    part: Part,
    features: np.ndarray,
    assigned: np.ndarray,
    seed: int,
) -> np.ndarray:
    """Return the map positions [N, 2]: earlier texts stay, new ones join them."""
    old, rows = len(result.corpus), part.rows
    whole = np.concatenate([result.map_positions, np.zeros((len(assigned) - old, 2))])
    # An earlier text that goes to a new category is placed with it.
    same = np.arange(len(rows)) < part.earlier
    newest = ~np.isin(assigned[rows], plan.place[result.assigned])
    whole[rows] = place_new(whole[rows], features, assigned[rows], same & ~newest, seed)
    return as_recorded(whole)


def _described(after: Result, categories: Sequence[Category], model: Model) -> tuple[Category, ...]:
    """Return the categories with their sizes, neighbours, fit scores and volumes."""
    total = len(categories)
    sizes = np.bincount(after.assigned, minlength=total)
    labelled = np.bincount(after.assigned[after.labelled], minlength=total)
    sure = np.bincount(
        after.assigned, weights=np.nan_to_num(after.probability), minlength=total
    ) / np.maximum(sizes, 1)
    between = np.sqrt(squared_distances(model.prototypes, model.prototypes))
    np.fill_diagonal(between, np.inf)
    near = between.argmin(axis=1)
    described = tuple(
        replace(
            category,
            size=int(sizes[at]),
            share=int(sizes[at]) / len(after.corpus),
            labelled=int(labelled[at]),
            confidence=float(sure[at]),
            nearest=categories[near[at]].id if total > 1 else None,
            nearest_distance=float(between[at, near[at]]) if total > 1 else float("nan"),
        )
        for at, category in enumerate(categories)
    )
    fits = np.nan_to_num(after.fit) if after.fit is not None else np.zeros(len(after.assigned))
    described = with_fits(described, after.assigned, fits, after.fits_nowhere)
    return with_volumes(described, after.corpus, after.assigned)
