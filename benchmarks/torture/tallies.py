"""What a family of faults broke: counts, and the first cases to look at."""

from dataclasses import asdict, dataclass, field
from typing import Any

COUNTS = ("tracebacks", "broken", "lost", "leftovers", "hangs")
KEPT = 12  # descriptions of failures per family


@dataclass
class Tally:
    """Counts of one family of faults; the goal is zero of each.

    Attributes
    ----------
    trials : int
        Faults that were tried.
    tracebacks : int
        Commands that ended with a traceback, or by a signal that nobody sent.
    broken : int
        Results that were half written, mixed, or silently different.
    lost : int
        Runs that were there before and are gone.
    leftovers : int
        Files that are still there after the next command.
    hangs : int
        Commands that went on beyond their limit.
    notes : list of str
        What was skipped and why, or figures of this family.
    failures : list of str
        The first failures, one sentence each.
    """

    trials: int = 0
    tracebacks: int = 0
    broken: int = 0
    lost: int = 0
    leftovers: int = 0
    hangs: int = 0
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def fail(self, count: str, what: str) -> None:
        """Count a failure and keep its description."""
        setattr(self, count, getattr(self, count) + 1)
        if len(self.failures) < KEPT:
            self.failures.append(f"{count}: {what[:600]}")

    @property
    def faults(self) -> int:
        """Number of failures of all kinds."""
        return sum(getattr(self, name) for name in COUNTS)

    def add(self, other: "Tally") -> None:
        """Add the counts of another part of the same family."""
        for name in ("trials", *COUNTS, "seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.notes += [note for note in other.notes if note not in self.notes]
        self.failures = (self.failures + other.failures)[:KEPT]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dict for a result line."""
        return asdict(self)
