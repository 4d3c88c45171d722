"""Decisions of a person on the categories and texts of a run, and what follows from them."""

from dataclasses import replace
from pathlib import Path

from newfound.decisions.applying import apply
from newfound.decisions.decision import ACTIONS, Decision, Part, decision_from, now
from newfound.decisions.log import (
    NAME,
    Log,
    Problem,
    StaleError,
    append,
    describe_log,
    read_log,
)
from newfound.files import read_steadily
from newfound.model import Model
from newfound.result import Result
from newfound.storage.run_folder import read_run
from newfound.wording import plural

__all__ = [
    "ACTIONS",
    "NAME",
    "Decision",
    "Log",
    "Part",
    "Problem",
    "StaleError",
    "append",
    "apply",
    "decision_from",
    "describe_log",
    "model_after_decisions",
    "now",
    "read_decided",
    "read_log",
]


def read_decided(folder: Path) -> tuple[Result, Log, tuple[Problem, ...]]:
    """Read a run folder and apply its decisions.

    Parameters
    ----------
    folder : Path
        Run folder.

    Returns
    -------
    result : Result
        With the decisions, and without the model.
    log : Log
        The decisions.
    problems : tuple of Problem
        Decisions that cannot be applied; the others hold.
    """
    result, log = read_steadily(
        folder, lambda: (read_run(folder), read_log(folder)), unchanged=True
    )
    if not log.entries:
        return result, log, ()
    decided, problems = apply(result, log.entries)
    return decided, log, problems


def model_after_decisions(model: Model, folder: Path) -> tuple[Model, list[str]]:
    """Return the model of a run with the names and statuses that a person gave its categories.

    Parameters
    ----------
    model : Model
        The model of the run.
    folder : Path
        The run folder, or a saved model, on which there are no decisions.

    Returns
    -------
    model : Model
    notes : list of str
        What the user should know: which decisions the model has not learnt.
    """
    if not (folder / "run.json").is_file() or not (folder / NAME).is_file():
        return model, []
    log = read_log(folder)
    decided, _ = apply(replace(read_run(folder), model=model), log.entries)
    assert decided.model is not None
    unlearnt = sum(
        isinstance(entry, Decision)
        and entry.action in ("merge", "split", "reject", "move")
        and number not in log.undone
        for number, entry in enumerate(log.entries, start=1)
    )
    if not unlearnt:
        return decided.model, []
    return decided.model, [
        f"the model has not learnt {plural(unlearnt, 'decision')} (merge, split, reject, move); it "
        "predicts the categories that the run found until `newfound refit`"
    ]
