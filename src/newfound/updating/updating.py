"""Update: new texts join a run, whose categories keep their ids, names and texts.

Only a part of the texts is looked at, so that the time grows with the new texts and the number of
categories, not with all texts so far:

1. The part: up to `choosing.EACH` texts of each category of the run, those with a label or a
   decision first; a limited number of earlier texts that fit worst; all new texts.
2. Discover on the part. Labels are those of the user, and the texts that a person placed or saw in
   accepted categories. The number of categories is the mean of two estimates: one on the part, in
   which new categories look small beside those of the run, and one with `choosing.COUNTED` texts of
   each category of the run, in which they do not.
3. What was found is matched with the categories of the run: by labels, then by common texts. A
   category that was found and matches none becomes a new one if it has enough texts, new ones
   among them. A category of the run that matches none keeps its texts, and their mean stands for
   it in the new model.
4. New texts get the category that was found. Earlier texts keep theirs, except for a limited number
   for which another one is clearly more probable.
5. The model is that of step 2, with fit scores that are compared with those of all texts.
"""

from dataclasses import replace

from newfound.config import RunConfig
from newfound.data.corpus import Corpus
from newfound.decisions.refitting import config_of
from newfound.encoding.feature_cache import cache_folder
from newfound.encoding.vectors.frozen_encoder import GIVEN
from newfound.errors import InputError
from newfound.pipeline import discover, estimate
from newfound.progress import Stages
from newfound.result import Result
from newfound.updating.assembling import assemble
from newfound.updating.changes import changes_of
from newfound.updating.choosing import Part, choose_part
from newfound.updating.joining import joined, new_rows
from newfound.updating.matching import match_found
from newfound.updating.planning import plan_categories
from newfound.versions import versions


def update(
    result: Result,
    new: Corpus,
    *,
    verbose: bool | None = False,
    stages: Stages | None = None,
) -> Result:
    """Let new texts join a run.

    Parameters
    ----------
    result : Result
        The run, after decisions; it is not changed, and its model is not needed.
    new : Corpus
        New texts. Some may have labels, of known or of further categories.
    verbose : bool or None, default False
        Whether to show progress; None shows it on a terminal.
    stages : Stages, optional
        Times the stages and shows their progress; overrides `verbose`.

    Returns
    -------
    Result
        All texts, those of the run first: a run of the same lineage. Its `changes` list what
        changed.

    Examples
    --------
    >>> from newfound.config import RunConfig
    >>> from newfound.data.corpus import Corpus
    >>> from newfound.pipeline import discover
    >>> from newfound.updating import update
    >>> texts = ["my card is lost", "card stolen", "book a flight", "cheap flights to Rome"]
    >>> corpus = Corpus.from_lists(texts, ["card", None, None, None])
    >>> result = discover(corpus, RunConfig(n_categories=2, effort="fast", device="cpu"))
    >>> later = update(result, Corpus.from_lists(["where is my card"], ids=["5"]))
    >>> len(later.corpus), [category.id for category in later.categories[:2]]
    (5, ['c1', 'c2'])
    """
    if not result.categories:
        raise InputError("the run has no category; discover categories first")
    _check_vectors(result)
    new, notes = new_rows(result.corpus, new)
    corpus = joined(result.corpus, new)
    stages = stages or Stages(verbose)
    seed = int(result.config.get("seed") or 0)
    plan = plan_categories(result, new)
    part = choose_part(result, new, plan, seed)
    found = _discover_part(result, corpus, part, stages)
    with stages.stage("joining the texts"):
        found, place = match_found(result, found, part, plan)
        after = assemble(result, corpus, part, found, place, plan, seed)
        changes = changes_of(result, after, int(part.movable.sum()))
    return replace(
        after,
        changes=changes,
        notes=(*notes, *stages.notes),
        seconds={stage: round(value, 3) for stage, value in stages.seconds.items()},
        versions=versions(),
        environment=found.environment,
        history=found.history,
        languages=result.languages or found.languages,
    )


def planned(result: Result, new: Corpus) -> tuple[Corpus, RunConfig]:
    """Return all texts of an update and its configuration, to check them before the work."""
    _check_vectors(result)
    corpus = joined(result.corpus, new_rows(result.corpus, new)[0])
    return corpus, config_of(result, corpus)[0]


def _check_vectors(result: Result) -> None:
    """Raise InputError if the vectors of the run's texts are needed and not there."""
    if str(result.config.get("encoder")).startswith(GIVEN) and result.corpus.vectors is None:
        raise InputError(
            "the run was made with vectors that you computed, and a run folder does not keep them; "
            "run `newfound discover` again on all texts and their vectors"
        )


def _discover_part(result: Result, corpus: Corpus, part: Part, stages: Stages) -> Result:
    """Discover on the part.

    The label of a category is its place in the plan, with leading zeros, so that the order is kept.
    """
    texts = replace(
        corpus.take(part.rows),
        labels=[None if at < 0 else f"{at:08d}" for at in part.targets.tolist()],
        columns={},
        time_column=None,
    )
    config, settings = config_of(result, texts)
    with cache_folder(config.cache) as cache:
        config = replace(config, n_categories="auto", cache=cache)
        counts = [
            estimate(some, config, settings=settings, stages=stages).n_categories
            for some in (texts.take(part.counted), texts)
        ]
        number = max(round(sum(counts) / 2), len(texts.known))
        found = discover(
            texts, replace(config, n_categories=number), settings=settings, stages=stages
        )
    return _with_cache(found, result.config.get("cache"))


def _with_cache(result: Result, cache: str | None) -> Result:
    """Return the result with another cache in its configuration than the temporary one."""
    config, model = {**result.config, "cache": cache}, result.model
    if model is not None:
        parameters = {**model.parameters, "cache": cache}
        model = replace(model, config={**model.config, "cache": cache}, parameters=parameters)
    return replace(result, config=config, model=model)
