"""Apply decisions to a result: a pure function from a Result to a Result.

What follows from the decisions is computed at once: ids, names, statuses, assignments, sizes. What
only a new fit can tell, such as probabilities and positions on the map, stays as it was.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from newfound.category import Category
from newfound.decisions.decision import Decision
from newfound.decisions.describing import described
from newfound.decisions.log import Entry, Problem, undone_lines
from newfound.decisions.state import State
from newfound.describing.volume import with_volumes
from newfound.errors import InputError
from newfound.model import Model
from newfound.result import Result


def apply(result: Result, entries: Sequence[Entry]) -> tuple[Result, tuple[Problem, ...]]:
    """Apply decisions to a result.

    Parameters
    ----------
    result : Result
        The result of a run, without decisions; it is not changed.
    entries : sequence of Decision, Problem or None
        The decisions, oldest first: `Log.entries`, or a list of decisions.

    Returns
    -------
    result : Result
        With the decisions. Texts of a rejected category are free: they are marked as fitting
        nowhere, and are in the nearest remaining category until the next refit. Texts that a
        person placed or saw are `reviewed`.
    problems : tuple of Problem
        Decisions that cannot be applied; the others hold.

    Examples
    --------
    >>> from newfound import pipeline
    >>> from newfound.config import RunConfig
    >>> from newfound.data.corpus import Corpus
    >>> from newfound.decisions import Decision, apply
    >>> texts = ["my card is lost", "card stolen", "book a flight", "cheap flights to Rome"]
    >>> config = RunConfig(method="bert", n_categories=2, device="cpu")
    >>> result = pipeline.discover(Corpus.from_lists(texts), config)
    >>> decisions = [Decision("rename", category="c1", name="A"), Decision("accept", category="c9")]
    >>> decided, problems = apply(result, decisions)
    >>> decided.categories[0].name, str(problems[0])
    ('A', "line 2 of decisions.jsonl is not applied: there is no category 'c9'")
    """
    state = State(result)
    undone = undone_lines(entries)
    problems = []
    for number, entry in enumerate(entries, start=1):
        if isinstance(entry, Problem):
            problems.append(entry)
        if not isinstance(entry, Decision):
            continue
        # Given to undone lines as well, so that the ids of later ones do not change.
        ids = state.take_ids(len(entry.parts))
        if number in undone:
            continue
        try:
            _apply(state, entry, ids, number, entries)
        except InputError as error:
            problems.append(Problem(number, str(error)))
    return _result(state), tuple(problems)


def _apply(
    state: State, decision: Decision, ids: tuple[str, ...], number: int, entries: Sequence[Entry]
) -> None:
    """Apply one decision."""
    if decision.action == "split":
        state.split(decision, ids)
    elif decision.action == "undo":
        _check_undo(decision.line or 0, number, entries)
    elif decision.action != "refit":
        steps = {
            "accept": state.accept,
            "reject": state.reject,
            "rename": state.rename,
            "merge": state.merge,
            "move": state.move,
            "nowhere": state.mark_nowhere,
            "note": state.note,
        }
        steps[decision.action](decision)


def _check_undo(line: int, number: int, entries: Sequence[Entry]) -> None:
    """Raise InputError unless an undo names an earlier decision."""
    if line >= number or not isinstance(entries[line - 1], Decision):
        raise InputError(f"line {line} is not an earlier decision, so it cannot be undone")


def _result(state: State) -> Result:
    """Return the result of all decisions."""
    before = state.result
    order = sorted(state.alive(), key=lambda at: not _is_known(state, at))
    new = np.full(len(state.entries), -1)
    new[order] = np.arange(len(order))
    assigned, predicted = new[state.assigned], new[state.predicted]
    marked = _marked(state)
    categories = described(state, order, assigned, marked)
    labels = [
        categories[at].name if labelled and categories[at].kind == "known" else None
        for labelled, at in zip(state.labelled.tolist(), assigned.tolist(), strict=True)
    ]
    corpus = replace(before.corpus, labels=labels)
    best_known, best_probability = _best_known(state, new, categories)
    return replace(
        before,
        corpus=corpus,
        categories=with_volumes(categories, corpus, assigned),
        assigned=assigned,
        predicted=predicted,
        best_known=best_known,
        best_known_probability=best_probability,
        fits_nowhere=marked,
        reviewed=state.reviewed if state.reviewed.any() else before.reviewed,
        matching=_matching(state, order),
        model=None if before.model is None else with_decided_categories(before.model, state),
        positions=before.__dict__.get("map_positions", before.positions),  # never computed twice
        lineage=state.final_lineage(),
    )


def _is_known(state: State, at: int) -> bool:
    """Return whether a category has labels of the user."""
    entry = state.entries[at]
    return entry.category.status == "known" or entry.has_labels


def _marked(state: State) -> np.ndarray | None:
    """Return which texts fit nowhere; None if neither a rule nor a decision marks any."""
    rule = state.result.fits_nowhere
    if rule is None and not state.nowhere.any():
        return None
    marked = state.nowhere.copy() if rule is None else (rule | state.nowhere)
    marked[state.placed] = False
    return marked


def _best_known(
    state: State, new: np.ndarray, categories: Sequence[Category]
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return the best known categories after merges, and their probabilities."""
    known, probability = state.result.best_known, state.result.best_known_probability
    if known is None or probability is None:
        return known, probability
    final = np.full(len(state.result.categories) + 1, -1)  # the last is for -1
    for at in range(len(state.result.categories)):
        end = at
        while (gone := state.entries[end].gone) is not None and gone.status == "merged":
            end = state.place[gone.into[0]]
        place = int(new[end])
        final[at] = place if place >= 0 and categories[place].kind == "known" else -1
    found = final[known]
    return found, np.where(found >= 0, probability, np.nan)


def _matching(state: State, order: Sequence[int]) -> np.ndarray | None:
    """Return the distances of the remaining categories; None if new ones have none."""
    distances = state.result.matching
    if distances is None or list(order) == list(range(len(state.result.categories))):
        return distances
    known = [at for at in order if _is_known(state, at)]
    if max(order) >= distances.shape[1] or max(known, default=0) >= len(distances):
        return None
    return distances[np.ix_(known, order)]


def with_decided_categories(model: Model, state: State) -> Model:
    """Return a model with the names and statuses of its categories after decisions.

    A model has a prototype for each category that it found. It learns of merges, splits, moves and
    rejections with the next refit.
    """
    changes: list[dict[str, Any]] = [
        {"name": e.category.name, "status": e.category.status, "history": e.category.history}
        for e in state.entries[: len(model.categories)]
    ]
    categories = tuple(
        replace(category, **change)
        for category, change in zip(model.categories, changes, strict=True)
    )
    return replace(model, categories=categories)
