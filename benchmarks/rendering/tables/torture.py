"""The table of faults that `make torture` tried, and of what they broke."""

from collections.abc import Sequence

from newfound.bench.lines import Line
from newfound.bench.rows import markdown

COUNTS = {  # heading of each count
    "tracebacks": "tracebacks",
    "broken": "half-written, mixed or wrong results",
    "lost": "lost runs or files",
    "leftovers": "left-overs after the next command",
    "hangs": "hangs",
}


def torture_table(lines: Sequence[Line]) -> str:
    """Return the table of the last line that `benchmarks.torture` wrote."""
    found = [line for line in lines if line.get("kind") == "torture"]
    if not found:
        return "No measurements yet.\n"
    line = found[-1]
    families = line["families"]
    rows = [
        [name, f"{family['trials']:,}", *(str(family[count]) for count in COUNTS)]
        for name, family in families.items()
    ]
    totals = (sum(family[name] for family in families.values()) for name in ("trials", *COUNTS))
    rows.append(["all", *(f"{total:,}" for total in totals)])
    notes = [note for family in families.values() for note in family["notes"]]
    told = (
        f"\n{line['seconds']['total'] / 60:.0f} minutes on {line['device']}, seed {line['seed']}."
    )
    told += f" {'; '.join(notes)}." if notes else ""
    return markdown(["fault", "trials", *COUNTS.values()], rows) + told + "\n"
