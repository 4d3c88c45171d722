"""One thing to look at, and the words that it is told in."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Item:
    """One category that a finding is about, perhaps together with another."""

    category: int  # position in Result.categories
    other: int | None
    text: str


@dataclass(frozen=True)
class Finding:
    """One thing to look at: what was seen, what to do, and in which categories."""

    kind: str
    level: str  # "check": may be wrong; "note": good to know
    title: str
    text: str
    advice: str
    items: tuple[Item, ...] = ()
    lines: tuple[str, ...] = ()  # of the user's files, so they may hold anything


def percent(share: float) -> str:
    """Return a share as a whole percentage, without claiming none or all where it is not so."""
    if 0 < share < 0.005:
        return "under 1%"
    if 0.995 <= share < 1:
        return "over 99%"
    return f"{share:.0%}"
