"""Update: new texts join a run, whose categories keep their ids, names and texts.

Only a part of the texts is looked at, so that the time grows with the new texts and the number of
categories, not with all texts so far:

1. Up to `choosing.EACH` texts stand for each category of the run: labelled and reviewed ones, then
   texts of which the model is sure. They count as labelled.
2. New texts, and a limited number of earlier texts that fit worst, count as unlabelled.
3. Estimate the number of categories on this part, with no more than `choosing.COUNTED` texts for
   each category of the run: with more, new categories would look small beside them. Discover on
   the part with that number. What belongs to no category of the run becomes a new one if the merge
   rule keeps it apart and it has enough texts.
4. New texts get the category that is found. Earlier texts keep theirs, except for those of step 2
   that a new category takes, or for which another one is clearly more probable.
5. The model is that of step 3, with fit scores that are compared with those of all texts.
"""

from dataclasses import replace

from newfound.data.corpus import Corpus
from newfound.decisions.dissolving import without_categories
from newfound.decisions.refitting import config_of
from newfound.encoding.vectors.frozen_encoder import GIVEN
from newfound.errors import InputError
from newfound.pipeline import discover, estimate
from newfound.progress import Stages
from newfound.result import Result
from newfound.updating.assembling import assemble
from newfound.updating.changes import changes_of
from newfound.updating.choosing import Part, choose_part
from newfound.updating.joining import joined, new_rows
from newfound.updating.planning import plan_categories
from newfound.versions import versions

MIN_SIZE = 5  # texts of a new category
MIN_NEW = 3  # of them that are new: without new texts there is no reason to propose it now


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
    >>> from newfound.pipeline import discover, estimate
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
        after = assemble(result, corpus, part, found, plan, seed)
        changes = changes_of(result, after, part.loose)
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


def _check_vectors(result: Result) -> None:
    """Raise InputError if the vectors of the run's texts are needed and not there."""
    if str(result.config.get("encoder")).startswith(GIVEN) and result.corpus.vectors is None:
        raise InputError(
            "the run was made with vectors that you computed, and a run folder does not keep them; "
            "run `newfound discover` again on all texts and their vectors"
        )


def _discover_part(result: Result, corpus: Corpus, part: Part, stages: Stages) -> Result:
    """Discover on the part; categories of the run count as known, and small new ones are dropped.

    The label of a category is its place in the plan, with leading zeros, so that the order is kept.
    """
    texts = replace(
        corpus.take(part.rows),
        labels=[None if at < 0 else f"{at:08d}" for at in part.targets.tolist()],
        columns={},
        time_column=None,
    )
    config, settings = config_of(result, texts)
    few = texts.take(part.counted)
    config = replace(config, n_categories="auto")
    number = estimate(few, config, settings=settings, stages=stages).n_categories
    config = replace(config, n_categories=max(number, len(texts.known)))
    found = discover(texts, config, settings=settings, stages=stages)
    small = [at for at, c in enumerate(found.categories) if c.kind == "novel" and c.size < MIN_SIZE]
    return without_categories(found, small) if small else found
