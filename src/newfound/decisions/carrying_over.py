"""Carry over decisions that a person made on a run while a new run was computed from it."""

from pathlib import Path

from newfound.decisions.applying import apply
from newfound.decisions.decision import Decision, now
from newfound.decisions.log import NAME, Log, append, describe_log, read_log
from newfound.errors import InputError
from newfound.lineage import number_of_id
from newfound.result import Result


def carry_over(
    folder: Path, seen: Log, decided: Result, out: Path, result: Result, *, close: bool
) -> list[str]:
    """Add the later decisions on a run to the run that was computed from it.

    Parameters
    ----------
    folder : Path
        The old run.
    seen : Log
        The decisions that the new run was computed with.
    decided : Result
        The result of the old run after these decisions.
    out : Path
        The new run.
    result : Result
        The result of the new run.
    close : bool
        Whether to record in the old run that it was refitted. Decisions on it are refused from then
        on, so none comes after the ones that are carried over.

    Returns
    -------
    list of str
        Notes for the user: what was carried over, and what was not and why.
    """
    found = read_log(folder)
    if found.run != seen.run:
        return [
            f"{folder} was replaced or removed meanwhile; what was decided there is not in {out}"
        ]
    notes = []
    if close:
        try:
            found = append(folder, [Decision("refit", run=str(out), time=now())])
        except InputError as error:  # such as a read-only disk
            notes.append(f"{error}; decide on {out} from now on, not on {folder}")
    later, missing = _later(seen, found, decided)
    wanted = list(later)
    while True:
        _, problems = apply(result, [later[number] for number in wanted])
        if not problems:
            break
        for problem in problems:
            missing[wanted[problem.line - 1]] = problem.reason
        wanted = [number for number in wanted if number not in missing]
    if wanted:
        added = append(out, [later[number] for number in wanted])
        notes.append(
            f"decisions on {folder} that were made meanwhile were added to {out}, which has "
            f"{describe_log(added)} now"
        )
    return notes + [
        f"line {number} of {folder / NAME} was added meanwhile and is not in {out}: {reason}"
        for number, reason in sorted(missing.items())
    ]


def _later(seen: Log, found: Log, decided: Result) -> tuple[dict[int, Decision], dict[int, str]]:
    """Return the later decisions in force, and why others cannot be carried over, by line."""
    first, undone = len(seen.entries), found.undone
    later: dict[int, Decision] = {}
    missing: dict[int, str] = {}
    for number, entry in enumerate(found.entries[first:], start=first + 1):
        if not isinstance(entry, Decision) or entry.action == "refit" or number in undone:
            continue
        if entry.action == "undo":
            if (entry.line or 0) <= first:
                missing[number] = "the new run was computed with the decision that it takes back"
            continue
        ids = (entry.category, entry.into, *entry.categories)
        new = [id_ for id_ in ids if id_ and _is_new(id_, decided)]
        if new:  # another category may have this id in the new run
            missing[number] = f"{new[0]} is a category that was split off meanwhile"
        else:
            later[number] = entry
    return later, missing


def _is_new(id_: str, decided: Result) -> bool:
    """Return whether an id was given after the decisions in `decided`."""
    return (number_of_id(id_) or 0) >= decided.lineage.next_number
