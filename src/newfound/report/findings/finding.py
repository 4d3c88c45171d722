"""A finding: something in a result that a person should check."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Item:
    """A category that a finding is about, and possibly a second one."""

    category: int  # position in Result.categories
    other: int | None
    text: str


@dataclass(frozen=True)
class Finding:
    """Something to check: the reason, what to do, and the categories concerned."""

    kind: str
    level: str  # "check": a possible problem; "note": information
    title: str
    text: str
    advice: str
    items: tuple[Item, ...] = ()
    # May quote the user's texts; parts of a line that differ in direction are given one by one.
    lines: tuple[str | tuple[str, ...], ...] = ()


def percent(share: float) -> str:
    """Return a share as a whole percentage; 0% and 100% mean exactly none and all."""
    if 0 < share < 0.005:
        return "under 1%"
    if 0.995 <= share < 1:
        return "over 99%"
    return f"{share:.0%}"
