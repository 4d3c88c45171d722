"""Refit: discover again, with what a person decided as labels.

1. Apply the decisions to the result of the run.
2. Known and accepted categories are known from now on. Their labels are those of the user and the
   texts that a person placed or saw.
3. Discover on these labels.
4. Dissolve a new category that is mostly one that a person rejected.
5. Match the new categories with those before: by labels, then by common texts. Ids, names,
   statuses and histories persist; what has no counterpart gets a new id.
6. Put back what a person placed or marked by hand, and list what changed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from newfound.category import Category, Event
from newfound.config import RunConfig
from newfound.data.corpus import Corpus
from newfound.decisions.applying import apply
from newfound.decisions.describing import EXAMPLES
from newfound.decisions.dissolving import without_categories
from newfound.decisions.log import Entry, Problem
from newfound.decisions.matching import match_categories
from newfound.describing.names import same_name
from newfound.describing.volume import with_volumes
from newfound.encoding.vectors.frozen_encoder import GIVEN
from newfound.errors import InputError
from newfound.lineage import Lineage, Retired
from newfound.pipeline import discover
from newfound.progress import Stages
from newfound.result import Result
from newfound.wording import plural

COMES_BACK = 0.5  # share of texts in common with a rejected category, of either, that is too much


def refit(
    result: Result,
    entries: Sequence[Entry],
    *,
    verbose: bool | None = False,
    stages: Stages | None = None,
) -> tuple[Result, tuple[Problem, ...]]:
    """Discover the categories of a result again, with what a person decided.

    Parameters
    ----------
    result : Result
        The result of a run, without decisions; it is not changed.
    entries : sequence of Decision, Problem or None
        The decisions, oldest first.
    verbose : bool or None, default False
        Whether to show progress; None shows it on a terminal.
    stages : Stages, optional
        Times the stages and shows their progress; overrides `verbose`.

    Returns
    -------
    result : Result
        A run of the same lineage: ids and names persist. Its `changes` list what changed.
    problems : tuple of Problem
        Decisions that cannot be applied; the others are learnt.
    """
    decided, problems = apply(result, entries)
    corpus = decided_corpus(decided)
    config, settings = config_of(decided, corpus)
    found = discover(corpus, config, settings=settings, verbose=verbose, stages=stages)
    found, dissolved = _without_rejected(found, decided)
    found = _continued(found, decided)
    found = _with_decided_texts(found, decided)
    changes = _changes(result, decided, found, len([e for e in entries if e is not None]))
    notes = list(found.notes)
    if dissolved:
        notes.append(
            f"{plural(dissolved, 'rejected category was', 'rejected categories were')} found again "
            "and dissolved; the texts are marked as fitting nowhere"
        )
    return replace(found, changes=changes, notes=tuple(notes)), problems


def decided_corpus(decided: Result) -> Corpus:
    """Return the corpus with labels of known and accepted categories.

    Parameters
    ----------
    decided : Result
        A result after decisions.

    Returns
    -------
    Corpus
        Labels are names of categories.
    """
    rows = label_rows(decided)
    names = decided.names[decided.assigned]
    labels = [
        str(name) if taken else None for name, taken in zip(names, rows.tolist(), strict=True)
    ]
    return replace(decided.corpus, labels=labels)


def label_rows(decided: Result) -> np.ndarray:
    """Return which texts a refit takes as labelled, bool [N]."""
    status = np.array([category.status for category in decided.categories])
    fixed = np.isin(status, ("known", "accepted"))[decided.assigned]
    reviewed = np.zeros(len(fixed), bool) if decided.reviewed is None else decided.reviewed
    taken = decided.labelled | (reviewed & fixed)
    if decided.fits_nowhere is not None:
        taken &= ~decided.fits_nowhere | decided.labelled
    for at in np.flatnonzero(status == "accepted"):
        rows = np.flatnonzero(decided.assigned == at)
        if not taken[rows].any():  # its typical texts may have left it
            taken[rows[np.argsort(-decided.probability[rows], kind="stable")][:EXAMPLES]] = True
    return taken


def config_of(decided: Result, corpus: Corpus) -> tuple[RunConfig, dict[str, Any]]:
    """Return the configuration of the run, for its categories after decisions."""
    given = {f.name: decided.config[f.name] for f in fields(RunConfig) if f.name in decided.config}
    if str(given.get("encoder")).startswith(GIVEN) and corpus.vectors is None:
        raise InputError(
            "the run was made with vectors that you computed, and a run folder does not keep them; "
            "give them again (--vectors)"
        )
    if corpus.vectors is not None:
        given["encoder"] = RunConfig().encoder
    if given.get("n_categories", "auto") != "auto":
        given["n_categories"] = max(len(decided.categories), len(corpus.known))
    return RunConfig(**given), dict(decided.config.get("settings") or {})


def _without_rejected(found: Result, decided: Result) -> tuple[Result, int]:
    """Return the result without categories that a person had rejected, and their number."""
    row_of = {id_: row for row, id_ in enumerate(found.corpus.ids)}
    back = set()
    for gone in decided.lineage.retired:
        rows = [row_of[id_] for id_ in gone.texts if id_ in row_of]
        if gone.status != "rejected" or not rows:
            continue
        counts = np.bincount(found.assigned[rows], minlength=len(found.categories))
        for at, category in enumerate(found.categories):
            both = counts[at]
            if category.kind == "novel" and both > COMES_BACK * max(len(rows), category.size):
                back.add(at)
    if not back or len(back) == len(found.categories):
        return found, 0
    return without_categories(found, sorted(back)), len(back)


def _continued(found: Result, decided: Result) -> Result:
    """Return the new result with the ids, names, statuses and histories of the old one."""
    by_name = {
        category.name: at
        for at, category in enumerate(found.categories)
        if category.kind == "known"
    }
    pinned = {
        at: by_name[category.name]
        for at, category in enumerate(decided.categories)
        if category.name in by_name
    }
    sizes = len(decided.categories), len(found.categories)
    pairs = match_categories(decided.assigned, found.assigned, sizes, pinned=pinned)
    before = {new: decided.categories[old] for old, new in pairs.items()}
    fresh = [at for at in range(sizes[1]) if at not in before]
    ids, lineage = decided.lineage.new_ids(len(fresh))
    new_ids = {
        **{at: category.id for at, category in before.items()},
        **dict(zip(fresh, ids, strict=True)),
    }
    run = lineage.run + 1
    used = {same_name(category.name) for category in before.values()}
    categories: list[Category] = []
    for at, category in enumerate(found.categories):
        old = before.get(at)
        nearest = None if category.nearest is None else new_ids[found.position[category.nearest]]
        if old is None:
            name = free_name(category.name, used)
            history: tuple[Event, ...] = (Event("found", run, str(found.config["method"])),)
            status = category.status
        else:
            name, history, status = old.name, old.history, old.status
        categories.append(
            replace(
                category, id=new_ids[at], name=name, nearest=nearest, history=history, status=status
            )
        )
    kept = {category.id for category in before.values()}
    gone = tuple(Retired(c.id, c.name, "dissolved") for c in decided.categories if c.id not in kept)
    model = None if found.model is None else replace(found.model, categories=tuple(categories))
    return replace(
        found,
        categories=tuple(categories),
        model=model,
        lineage=Lineage(run, lineage.next_number, (*lineage.retired, *gone)),
    )


def free_name(name: str, used: set[str]) -> str:
    """Return the name, with a number if it is taken, and count it as taken."""
    number, free = 1, name
    while same_name(free) in used:
        number += 1
        free = f"{name} {number}"
    used.add(same_name(free))
    return free


def _with_decided_texts(found: Result, decided: Result) -> Result:
    """Return the result with texts that a person placed or marked as that person decided."""
    if decided.reviewed is None:
        return found
    reviewed = decided.reviewed.copy()
    ids = decided.ids[decided.assigned]
    assigned = found.assigned.copy()
    for row in np.flatnonzero(reviewed).tolist():
        assigned[row] = found.position.get(ids[row], assigned[row])
    marked = found.fits_nowhere
    by_person = reviewed & (
        np.zeros(len(reviewed), bool) if decided.fits_nowhere is None else decided.fits_nowhere
    )
    if by_person.any() or marked is not None:
        base = np.zeros(len(reviewed), bool) if marked is None else marked.copy()
        marked = np.where(reviewed, by_person, base)
    return _recounted(replace(found, assigned=assigned, fits_nowhere=marked, reviewed=reviewed))


def _recounted(result: Result) -> Result:
    """Return the result with sizes, shares and marks counted again."""
    total = len(result.categories)
    sizes = np.bincount(result.assigned, minlength=total)
    marked = result.fits_nowhere
    outside = None if marked is None else np.bincount(result.assigned[marked], minlength=total)
    categories = tuple(
        replace(
            category,
            size=int(sizes[at]),
            share=int(sizes[at]) / max(1, len(result.corpus)),
            fits_nowhere=None if outside is None else int(outside[at]),
        )
        for at, category in enumerate(result.categories)
    )
    categories = with_volumes(categories, result.corpus, result.assigned)
    model = None if result.model is None else replace(result.model, categories=categories)
    return replace(result, categories=categories, model=model)


def _changes(before: Result, decided: Result, after: Result, decisions: int) -> Mapping[str, Any]:
    """Return what changed from the run after decisions to the new run."""
    old, new = set(decided.ids), set(after.ids)
    differs = decided.ids[decided.assigned] != after.ids[after.assigned]
    sizes = {c.id: c.size for c in decided.categories}
    return {
        "run": before.lineage.run,
        "decisions": decisions,
        "texts": int(differs.sum()),
        "appeared": [c.id for c in after.categories if c.id in new - old],
        "dissolved": [c.id for c in decided.categories if c.id in old - new],
        "sizes": {
            c.id: [sizes[c.id], c.size]
            for c in after.categories
            if c.id in old and sizes[c.id] != c.size
        },
    }


def change_lines(before: Result, after: Result) -> list[str]:
    """Return what changed as lines of text.

    Parameters
    ----------
    before : Result
        The run after decisions.
    after : Result
        The refitted run.
    """
    changes = after.changes or {}
    lines = [
        f"{plural(changes.get('texts', 0), 'text', 'texts')} of {len(after.corpus):,} changed "
        "category"
    ]
    for id_ in changes.get("appeared", ()):
        category = after.categories[after.position[id_]]
        lines.append(f"new        {id_} {category.name} ({plural(category.size, 'text')})")
    for id_ in changes.get("dissolved", ()):
        category = before.categories[before.position[id_]]
        lines.append(f"dissolved  {id_} {category.name} ({plural(category.size, 'text')})")
    for id_, (old, new) in changes.get("sizes", {}).items():
        name = after.categories[after.position[id_]].name
        lines.append(f"changed    {id_} {name}: {old:,} to {plural(new, 'text')}")
    return lines
