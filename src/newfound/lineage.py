"""Lineage: the ids of categories over a discovery and the runs that are derived from it.

A discovery begins a lineage; each refit continues it with the next run. An id is "c" and a number.
Numbers are given in order and never twice, so that an id means one category in all runs of a
lineage. Ids of categories that are gone stay recorded, with what became of them.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_ID = re.compile(r"c[1-9]\d*", re.ASCII)


@dataclass(frozen=True)
class Retired:
    """A category that a run no longer has.

    Attributes
    ----------
    id : str
    name : str
        Its last name.
    status : {"rejected", "merged", "split", "dissolved"}
        Why it is gone: a person rejected it, merged it into another one or split it, or a later
        run no longer found it.
    into : tuple of str
        Ids of the categories that it was merged or split into.
    texts : tuple of str
        Ids of its texts, for a rejected one, which must not be found again.
    """

    id: str
    name: str
    status: str
    into: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Lineage:
    """Which ids have been given, and what became of categories that are gone.

    Attributes
    ----------
    run : int
        Number of the run in its lineage: 1 for a discovery, one more for each refit.
    next_number : int
        Number of the next new id.
    retired : tuple of Retired
        Categories that earlier runs, or this run before decisions, had.

    Examples
    --------
    >>> from newfound.lineage import Lineage
    >>> lineage = Lineage.begin(3)
    >>> lineage.new_ids(2)
    (('c4', 'c5'), Lineage(run=1, next_number=6, retired=()))
    """

    run: int = 1
    next_number: int = 1
    retired: tuple[Retired, ...] = ()

    @classmethod
    def begin(cls, count: int) -> "Lineage":
        """Return the lineage of a discovery of `count` categories, "c1" to "c<count>"."""
        return cls(next_number=count + 1)

    def new_ids(self, count: int) -> tuple[tuple[str, ...], "Lineage"]:
        """Return `count` ids that were never used, and the lineage in which they are given."""
        end = self.next_number + count
        ids = tuple(map(id_of_number, range(self.next_number, end)))
        return ids, Lineage(self.run, end, self.retired)

    def find_retired(self, id_: str) -> Retired | None:
        """Return the category of this id that is gone, None if there is none."""
        return next((each for each in self.retired if each.id == id_), None)


def id_of_number(number: int) -> str:
    """Return the id of a category by its number in the lineage, from 1."""
    return f"c{number}"


def number_of_id(id_: str) -> int | None:
    """Return the number of an id, None if it is not an id of a category."""
    return int(id_[1:]) if _ID.fullmatch(id_) else None


def following_number(ids: Iterable[str]) -> int:
    """Return the number after the highest of these ids."""
    return 1 + max((number_of_id(id_) or 0 for id_ in ids), default=0)
