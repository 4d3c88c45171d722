"""Join the texts of a run and new texts into one corpus."""

from dataclasses import replace

import numpy as np

from newfound.data.corpus import Corpus
from newfound.errors import InputError
from newfound.storage.assignments import own_names
from newfound.wording import plural


def new_rows(old: Corpus, new: Corpus) -> tuple[Corpus, list[str]]:
    """Return the texts that the run does not have yet, with ids that it does not have, and notes.

    A row is there already if a row of the run has the same id and the same text. Another text under
    an id of the run gets a new id: tables without a column of ids all begin with 1.

    Parameters
    ----------
    old, new : Corpus

    Returns
    -------
    new : Corpus
    notes : list of str
    """
    there = dict(zip(old.ids, old.texts, strict=True))
    rows = [at for at, id_ in enumerate(new.ids) if there.get(id_) != new.texts[at]]
    notes = []
    if len(rows) < len(new):
        notes.append(
            f"{plural(len(new) - len(rows), 'text is', 'texts are')} in the run already (same id "
            "and text): skipped"
        )
    if not rows:
        raise InputError("there is no new text: the run has every id and text of the table already")
    new = new.take(np.array(rows))
    taken = set(there) | set(new.ids)
    ids, changed = [], 0
    for id_ in new.ids:
        number, free = 2, id_
        while free in there or (free != id_ and free in taken):
            free = f"{id_}-{number}"
            number += 1
        changed += free != id_
        taken.add(free)
        ids.append(free)
    if changed:
        notes.append(
            f"{plural(changed, 'id is', 'ids are')} of other texts in the run, so a number was "
            f"added, as in {next(a for a, b in zip(ids, new.ids, strict=True) if a != b)}"
        )
    return replace(new, ids=ids), notes


def joined(old: Corpus, new: Corpus) -> Corpus:
    """Return the texts of both; a column that one of them lacks is empty there.

    Parameters
    ----------
    old : Corpus
        Of a run, whose columns have the names of its table of assignments.
    new : Corpus
        Read from the user's table.

    Returns
    -------
    Corpus
        The dates are those of the run's time column; without one, of that of the new texts.
    """
    names = dict(zip(new.columns, own_names(new), strict=True))
    columns = {names[name]: column for name, column in new.columns.items()}
    time_column = None if new.time_column is None else names[new.time_column]
    if old.time_column is not None and time_column not in (None, old.time_column):
        if old.time_column in columns:
            raise InputError(
                f"the dates of the run are in {old.time_column!r}, which the new table has, too; "
                "name that column with --time-column, or omit the flag"
            )
        columns[old.time_column] = columns.pop(str(time_column))
    empty = [""] * len(old), [""] * len(new)
    both = [*old.columns, *(name for name in columns if name not in old.columns)]
    if (old.vectors is None) != (new.vectors is None):
        raise InputError(
            "either the texts of the run or the new texts come without vectors; give vectors for "
            "both, or for neither"
        )
    vectors = None
    if old.vectors is not None and new.vectors is not None:
        vectors = np.concatenate([old.vectors, new.vectors])
    return Corpus(
        texts=[*old.texts, *new.texts],
        labels=[*old.labels, *new.labels],
        ids=[*old.ids, *new.ids],
        columns={
            name: [*old.columns.get(name, empty[0]), *columns.get(name, empty[1])] for name in both
        },
        vectors=vectors,
        time_column=old.time_column or time_column,
    )
