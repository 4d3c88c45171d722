"""wild.md: methods on tables as people have them."""

import statistics
from collections.abc import Sequence

from newfound.bench.lines import Line
from newfound.bench.wild.grid import estimates_table, make_grid, wild_tables

DRAW = "wild-draw"  # kind of result lines of other draws of the same cells


def wild_table(lines: Sequence[Line]) -> str:
    """Return the grid of `newfound bench wild`, with a summary of each method above it."""
    parts = (wild_tables(lines), draws_table(lines))
    return "\n".join(filter(None, parts)) or "No runs yet.\n"


def draws_table(lines: Sequence[Line]) -> str:
    """Return the scores of `newfound` on other draws of the cells, on which nothing was chosen."""
    own = [line for line in lines if line.get("kind") == DRAW]
    if not own:
        return ""
    seeds = ", ".join(str(seed) for seed in sorted({line["seed"] for line in own}))
    labelled = [line for line in own if line["table"]["design"] != "none"]
    given, estimated = (
        statistics.fmean(
            line["scores"]["all"] for line in labelled if line["config"]["given_k"] == flag
        )
        for flag in (True, False)
    )
    return (
        f"**Another draw of the same cells** (seed {seeds}), on which no setting was chosen: "
        f"`newfound` reaches {given:.1f} in the mean of the labelled cells with K given, and "
        f"{estimated:.1f} with K estimated.\n\n" + estimates_table(make_grid(own))
    )
