"""Category: one known or novel category of a result, with its id, status and history."""

from dataclasses import dataclass

STATUSES = ("known", "proposed", "accepted", "rejected")
# What can happen to a category: see `Event`.
EVENTS = ("found", "accepted", "rejected", "renamed", "merged", "split")


@dataclass(frozen=True)
class Event:
    """What happened to a category.

    Attributes
    ----------
    event : {"found", "accepted", "rejected", "renamed", "merged", "split"}
        "merged": others were merged into this category; "split": it was split from another one.
    run : int
        Number of the run in its lineage in which it happened, from 1.
    by : str
        The method that found the category, "labels" for a known one, or the author of a decision.
    time : str or None
        Time of the decision, in ISO 8601; None for "found".
    of : tuple of str
        "renamed": the earlier name; "merged": ids of the categories that were merged into this
        one; "split": id of the category that it was split from.
    """

    event: str
    run: int
    by: str
    time: str | None = None
    of: tuple[str, ...] = ()

    def __str__(self) -> str:
        link = {"found": "", "renamed": " from", "merged": " with", "split": " from"}
        of = f"{link.get(self.event, '')} {', '.join(self.of)}" if self.of else ""
        when = "" if self.time is None else f" on {self.time}"
        return f"{self.event}{of} by {self.by} in run {self.run}{when}"


@dataclass(frozen=True)
class Category:
    """A category: known (a label of the user) or novel (discovered).

    Attributes
    ----------
    id : str
        Persistent id, such as "c12": it never changes and is never used again in later runs that
        are derived from this one. The position of a category in `Result.categories`, which arrays
        such as `Result.assigned` refer to, is another thing and may change.
    name : str
        The label of a known category, or the generated name of a novel one.
    kind : {"known", "novel"}
        Whether the category has labelled texts.
    status : {"known", "proposed", "accepted", "rejected"}
        "known": a label of the user's table; "proposed": found, and not decided on yet;
        "accepted", "rejected": found, and a person decided.
    size : int
        Number of texts in the category.
    share : float
        Share of all texts.
    labelled : int
        Number of its texts that have a label.
    keywords : tuple of str
        Words that distinguish the category from others, best first.
    examples : tuple of str
        Typical texts, closest to the prototype.
    border : tuple of str
        Border texts, which have the lowest probability.
    confidence : float
        Mean probability of its texts.
    nearest : str or None
        Id of the category with the closest prototype, None if there is only one category.
    nearest_distance : float
        Distance to that prototype, NaN if there is only one category.
    distance : float or None
        Known categories: distance of the prototype to the mean of the labelled texts.
    fit : float or None
        Mean fit score of its texts; None if it has no texts, or in a file of an earlier version.
    fits_nowhere : int or None
        Number of its texts that are marked as fitting nowhere; None without `outside` and
        `false_alarms`.
    volume : tuple of (str, int)
        Periods in order, each with the number of its texts; empty without a time column.
    groups : tuple of str
        Names of the groups of look-alikes that it is in, the smallest group first; empty if there
        are few categories, and in a file of an earlier version.
    history : tuple of Event
        What happened to the category, oldest first; empty in a file of an earlier version.
    """

    id: str
    name: str
    kind: str
    status: str
    size: int
    share: float
    labelled: int
    keywords: tuple[str, ...]
    examples: tuple[str, ...]
    border: tuple[str, ...]
    confidence: float
    nearest: str | None
    nearest_distance: float
    distance: float | None
    fit: float | None = None
    fits_nowhere: int | None = None
    volume: tuple[tuple[str, int], ...] = ()
    groups: tuple[str, ...] = ()
    history: tuple[Event, ...] = ()
