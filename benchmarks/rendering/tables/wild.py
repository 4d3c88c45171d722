"""wild.md: methods on tables as people have them."""

from collections.abc import Sequence

from newfound.bench.lines import Line
from newfound.bench.wild.grid import wild_tables


def wild_table(lines: Sequence[Line]) -> str:
    """Return the grid of `newfound bench wild`, with a summary of each method above it."""
    return wild_tables(lines) or "No runs yet.\n"
