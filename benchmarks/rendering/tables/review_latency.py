"""How long a review takes to show each action."""

from collections.abc import Sequence
from statistics import median

from newfound.bench.lines import Line


def review_latency_table(lines: Sequence[Line]) -> str:
    """Return the table of the last line that `benchmarks.review_latency` wrote."""
    own = [line for line in lines if line.get("kind") == "review_latency"]
    if not own:
        return "No measurements yet.\n"
    last = own[-1]
    rows = [
        f"| {last['texts']:,} texts | times | median, ms | longest, ms |",
        "| :-- | --: | --: | --: |",
    ]
    for name, taken in last["milliseconds"].items():
        rows.append(f"| {name} | {len(taken)} | {median(taken):.0f} | {max(taken):.0f} |")
    return "\n".join(rows) + "\n"
