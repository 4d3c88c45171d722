"""Names of data sets and methods in tables and figures, and the order of methods."""

from collections.abc import Sequence

from benchmarks.rendering.paper_numbers import NAMES, TABLE_3
from newfound.bench.rows import NONE, Row, differing

TITLES = {"banking": "BANKING", "stackoverflow": "StackOverflow", "clinc": "CLINC"}
# The row of the paper that a variant is compared with.
BESIDE = {"dpn-coupled": "dpn"}
EXPLAINED = {"dpn-coupled": "DPN, as in the released code"}

HOW_SCORED = (
    "Accuracy in % (mean ± standard deviation over seeds), by k-means on the test features "
    "(20 starts, mean of three) as in the paper, and by the nearest prototype, as a saved model "
    "predicts. "
)


def in_order(rows: Sequence[Row]) -> list[Row]:
    """Return rows in the order of the paper's methods, ours last; effort `best` comes first."""
    return sorted(
        rows,
        key=lambda row: (_place(row.method), row.method, row.encoder, row.effort != "best"),
    )


def method_name(row: Row, rows: Sequence[Row]) -> str:
    """Return a row's name among `rows`: method, effort, and settings that differ."""
    title = EXPLAINED.get(row.method) or NAMES.get(row.method)
    name = f"{title} (`{row.method}`)" if title else f"`{row.method}`"
    effort = row.effort
    other = differing(row, [r for r in rows if r.effort == effort])
    parts = [name, f"effort {effort}" if effort != "best" else "", other]
    return ", ".join(part for part in parts if part)


def _place(method: str) -> int:
    """Return the position of a method in the paper's order."""
    order = list(NAMES)
    method = BESIDE.get(method, method)
    return order.index(method) if method in order else len(order)


def is_ablation(method: str) -> bool:
    """Return True for a row of Table 3 other than the full method."""
    return method in TABLE_3 and method != "dpn"


def paper_accuracies(paper: tuple[float, float, float] | None) -> str:
    """Return the cell for accuracies that the paper prints: All / Known / Novel."""
    return " / ".join(f"{value:.2f}" for value in paper) if paper else NONE
