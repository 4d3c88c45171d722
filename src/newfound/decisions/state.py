"""The categories and texts of a result while decisions are applied to them, one by one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from newfound.category import Category, Event
from newfound.decisions.decision import Decision, Part
from newfound.describing.names import same_name
from newfound.errors import InputError
from newfound.lineage import Lineage, Retired
from newfound.result import Result


@dataclass
class Entry:
    """A category while decisions are applied."""

    category: Category
    has_labels: bool  # whether texts in it carry a label of the user
    changed: bool = False  # whether its texts are no longer those of the model
    gone: Retired | None = None
    parent: int | None = None  # place of the category that it was split from


class State:
    """Categories by place, and the place of each text's category.

    Places are those of `Result.categories`; parts of split categories come after them. A place is
    never used again. Each method checks a decision first, so that an InputError changes nothing.
    """

    def __init__(self, result: Result) -> None:
        self.result = result
        self.entries = [Entry(c, c.kind == "known") for c in result.categories]
        self.place = {c.id: at for at, c in enumerate(result.categories)}
        self.assigned = result.assigned.copy()  # [N]
        self.predicted = result.predicted.copy()  # [N]
        self.labelled = result.labelled.copy()  # [N]; a rejected category takes its labels with it
        given = result.reviewed
        self.reviewed = np.zeros(len(self.assigned), bool) if given is None else given.copy()
        self.nowhere = np.zeros(len(self.assigned), bool)  # marked by decisions
        self.placed = np.zeros(len(self.assigned), bool)  # moved, so not marked any more
        self.lineage = result.lineage
        self.rows: dict[str, list[int]] = {}
        for row, id_ in enumerate(result.corpus.ids):
            self.rows.setdefault(id_, []).append(row)

    # --- looking up ----------------------------------------------------------------------------

    def find(self, id_: str) -> int:
        """Return the place of a category that is not gone."""
        at = self.place.get(id_)
        gone = self.lineage.find_retired(id_) if at is None else self.entries[at].gone
        if gone is not None:
            into = f" into {' and '.join(gone.into)}" if gone.into else ""
            raise InputError(f"the category {id_} was {gone.status}{into}")
        if at is None:
            raise InputError(f"there is no category {id_[:40]!r}")
        return at

    def rows_of(self, ids: Sequence[str]) -> np.ndarray:
        """Return the rows of texts, by id."""
        for id_ in ids:
            if id_ not in self.rows:
                raise InputError(f"there is no text with the id {id_[:80]!r}")
        return np.array([row for id_ in ids for row in self.rows[id_]], np.int64)

    def members(self, at: int) -> np.ndarray:
        """Return the rows of the texts of a category."""
        return np.flatnonzero(self.assigned == at)

    def alive(self) -> list[int]:
        """Return the places of the categories that are not gone."""
        return [at for at, entry in enumerate(self.entries) if entry.gone is None]

    def nearest(self, at: int) -> int | None:
        """Return the nearest category that is not gone, following gone ones to what became of them.

        None if nothing is left of the nearest one.
        """
        seen = {at}
        nearest = self.entries[at].category.nearest
        while nearest is not None:
            other = self.place.get(nearest, -1)
            if other < 0 or other in seen:
                return None
            gone = self.entries[other].gone
            if gone is None:
                return other
            seen.add(other)
            nearest = gone.into[0] if gone.into else self.entries[other].category.nearest
        return None

    def shown(self, at: int, *, border: bool = True) -> np.ndarray:
        """Return the rows of the typical and border texts of a category that are still in it."""
        category = self.entries[at].category
        texts = {*category.examples, *(category.border if border else ())}
        rows = self.members(at).tolist()
        return np.array([r for r in rows if self.result.corpus.texts[r] in texts], np.int64)

    # --- decisions -----------------------------------------------------------------------------

    def accept(self, decision: Decision) -> None:
        """Accept a category; texts that were seen count as reviewed."""
        at = self.find(decision.category or "")
        rows = self.rows_of(decision.texts) if decision.texts else self.shown(at)
        for row in rows[self.assigned[rows] != at].tolist():
            raise InputError(
                f"the text {self.result.corpus.ids[row]!r} is in "
                f"{self.entries[self.assigned[row]].category.id}, not in {decision.category}; move "
                "it first"
            )
        self.reviewed[rows] = True
        if self.entries[at].category.status != "known":
            self._set(at, decision, "accepted", status="accepted")

    def reject(self, decision: Decision) -> None:
        """Reject a category; its texts are free: marked, and in the nearest category for now."""
        at = self.find(decision.category or "")
        entry = self.entries[at]
        if entry.category.status == "known":
            raise InputError(
                f"{decision.category} is known from your labels and cannot be rejected; move its "
                "texts, or merge it"
            )
        if len(self.alive()) == 1:
            raise InputError(
                f"{decision.category} is the last category, and every text needs one; run "
                "`newfound discover` with other settings instead"
            )
        rows, nearest = self.members(at), self.nearest(at)
        ids = self.result.corpus.ids
        entry.gone = Retired(
            entry.category.id, entry.category.name, "rejected", texts=tuple(ids[r] for r in rows)
        )
        if nearest is None:
            left = self.alive()
            nearest = max(left, key=lambda other: self.entries[other].category.size)
        self._set(at, decision, "rejected", status="rejected")
        self.predicted[self.predicted == at] = nearest
        self._put(rows, nearest)
        self.reviewed[rows] = self.labelled[rows] = False
        self.nowhere[rows] = True

    def rename(self, decision: Decision) -> None:
        """Rename a category."""
        at = self.find(decision.category or "")
        name = decision.name or ""
        self._check_free(name, at)
        before = self.entries[at].category.name
        if name != before:
            self._set(at, decision, "renamed", of=(before,), name=name)

    def merge(self, decision: Decision) -> None:
        """Merge categories into another one, whose id and name stay."""
        into = self.find(decision.into or "")
        places = [self.find(id_) for id_ in decision.categories]
        if into in places:
            raise InputError(f"{decision.into} cannot be merged into itself")
        target = self.entries[into]
        if target.category.status != "known":
            self.reviewed[self.shown(into, border=False)] = True
        for at in places:
            entry = self.entries[at]
            self.reviewed[self.shown(at, border=False)] = True
            entry.gone = Retired(
                entry.category.id, entry.category.name, "merged", into=(target.category.id,)
            )
            target.has_labels |= entry.has_labels
            self.predicted[self.predicted == at] = into
            self._put(self.members(at), into)
        status = "known" if target.category.status == "known" else "accepted"
        target.changed = True
        self._set(into, decision, "merged", of=tuple(decision.categories), status=status)

    def split(self, decision: Decision, ids: Sequence[str]) -> None:
        """Split parts off a category, each with a new id; texts that no part names stay."""
        at = self.find(decision.category or "")
        entry = self.entries[at]
        rows = [self.rows_of(part.texts) for part in decision.parts]
        together = np.concatenate(rows)
        if len(np.unique(together)) < len(together):
            raise InputError("a text is in two parts")
        for row in together[self.assigned[together] != at].tolist():
            raise InputError(
                f"the text {self.result.corpus.ids[row]!r} is not in {decision.category}"
            )
        whole = len(together) == len(self.members(at))
        if whole and len(rows) == 1:
            raise InputError(
                f"the part has all texts of {decision.category}, so nothing is split; name fewer "
                "texts"
            )
        names = [part.name for part in decision.parts if part.name is not None]
        for name in names:
            self._check_free(name, at if whole else None)
        if len(set(map(same_name, names))) < len(names):
            raise InputError("two parts have the same name")
        for id_, part, members in zip(ids, decision.parts, rows, strict=True):
            self._add(id_, part, members, at, decision)
        entry.changed = True
        if whole:
            entry.gone = Retired(entry.category.id, entry.category.name, "split", into=tuple(ids))

    def move(self, decision: Decision) -> None:
        """Move texts into a category."""
        into = self.find(decision.into or "")
        rows = self.rows_of(decision.texts)
        for at in np.unique(self.assigned[rows]).tolist():
            self.entries[at].changed |= at != into
        self.entries[into].changed |= bool((self.assigned[rows] != into).any())
        self._put(rows, into)
        self.reviewed[rows] = True
        self.nowhere[rows], self.placed[rows] = False, True

    def mark_nowhere(self, decision: Decision) -> None:
        """Mark texts as fitting nowhere; they stay where they are."""
        rows = self.rows_of(decision.texts)
        self.reviewed[rows] = self.nowhere[rows] = True
        self.placed[rows] = False

    def note(self, decision: Decision) -> None:
        """Check that the category of a note exists."""
        if decision.category is not None:
            self.find(decision.category)

    # --- steps ---------------------------------------------------------------------------------

    def _put(self, rows: np.ndarray, at: int) -> None:
        """Put texts into a category."""
        self.assigned[rows] = at
        self.entries[at].changed |= len(rows) > 0

    def _check_free(self, name: str, at: int | None) -> None:
        """Raise InputError if another category has the name."""
        for other in self.alive():
            category = self.entries[other].category
            if other != at and same_name(category.name) == same_name(name):
                raise InputError(f"{category.id} has the name {name[:80]!r} already")

    def _set(
        self, at: int, decision: Decision, event: str, *, of: tuple[str, ...] = (), **values: str
    ) -> None:
        """Change a category and its history."""
        category = self.entries[at].category
        history = (*category.history, self._event(decision, event, of))
        self.entries[at].category = replace(category, history=history, **values)  # type: ignore[arg-type]

    def _event(self, decision: Decision, event: str, of: tuple[str, ...] = ()) -> Event:
        """Return what a decision did, for the history of a category."""
        return Event(event, self.lineage.run, decision.author or "unknown", decision.time, of)

    def _add(self, id_: str, part: Part, rows: np.ndarray, parent: int, decision: Decision) -> None:
        """Add a part of a category as a category of its own."""
        old = self.entries[parent]
        labelled = bool(old.has_labels and self.labelled[rows].any())
        category = Category(
            id=id_,
            name=part.name or "",  # generated at the end
            kind="known" if labelled else "novel",
            status="accepted",
            size=len(rows),
            share=0.0,
            labelled=0,
            keywords=(),
            examples=(),
            border=(),
            confidence=0.0,
            nearest=old.category.id,
            nearest_distance=float("nan"),
            distance=None,
            groups=old.category.groups,
            history=(self._event(decision, "split", (old.category.id,)),),
        )
        at = len(self.entries)
        self.entries.append(Entry(category, labelled, changed=True, parent=parent))
        self.place[id_] = at
        self.predicted[rows[self.predicted[rows] == parent]] = at
        self._put(rows, at)
        self.reviewed[rows] = True

    def take_ids(self, count: int) -> tuple[str, ...]:
        """Return new ids."""
        ids, self.lineage = self.lineage.new_ids(count)
        return ids

    def final_lineage(self) -> Lineage:
        """Return the lineage with the categories that are gone."""
        gone = tuple(entry.gone for entry in self.entries if entry.gone is not None)
        return Lineage(self.lineage.run, self.lineage.next_number, (*self.lineage.retired, *gone))
