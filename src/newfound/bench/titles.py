"""What tables and figures call data sets, methods and scores, and the order that they stand in."""

from collections.abc import Sequence

from newfound.bench.paper_numbers import NAMES
from newfound.bench.rows import Row, differing

TITLES = {"banking": "BANKING", "stackoverflow": "StackOverflow", "clinc": "CLINC"}
SCORES = ("all", "known", "novel")
SCORE_HEADER = [f"{score.title()}, {by}" for by in ("k-means", "prototype") for score in SCORES]
# The paper's row to show beside a method that it does not name.
BESIDE = {"dpn-coupled": "dpn"}
EXPLAINED = {"dpn-coupled": "DPN, the released code's reading"}


def both_scores(row: Row) -> list[str]:
    """The cells under SCORE_HEADER."""
    return [row.cell(by, score) for by in ("kmeans", "prototype") for score in SCORES]


def effort_of(row: Row) -> str:
    """The effort that a row's runs were made with."""
    return str(row.config.get("effort", "best"))


def in_order(rows: Sequence[Row]) -> list[Row]:
    """Rows as the paper orders its methods, ours last; of a method the whole effort first."""
    return sorted(
        rows,
        key=lambda row: (_place(row.method), row.method, row.encoder, effort_of(row) != "best"),
    )


def method_name(row: Row, rows: Sequence[Row]) -> str:
    """What a row is called among `rows`: method, effort, and settings that tell it apart."""
    title = EXPLAINED.get(row.method) or NAMES.get(row.method)
    name = f"{title} (`{row.method}`)" if title else f"`{row.method}`"
    effort = effort_of(row)
    other = differing(row, [r for r in rows if effort_of(r) == effort])
    parts = [name, f"effort {effort}" if effort != "best" else "", other]
    return ", ".join(part for part in parts if part)


def _place(method: str) -> int:
    order = list(NAMES)
    method = BESIDE.get(method, method)
    return order.index(method) if method in order else len(order)
