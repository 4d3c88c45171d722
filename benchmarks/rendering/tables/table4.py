"""Table 4: the estimated number of categories."""

from collections.abc import Sequence
from typing import Any

from benchmarks.rendering.paper_numbers import TABLE_4, TRUE_CATEGORIES
from benchmarks.rendering.titles import TITLES
from newfound.bench.lines import Line
from newfound.bench.rows import markdown, mean_spread, seed_list, select_runs


def table4(lines: Sequence[Line]) -> str:
    """Return the number of categories, estimated without the true one and as the paper does."""
    header = ["", *TITLES.values()]
    truth = ["truth", *(str(TRUE_CATEGORIES[data_set]) for data_set in TITLES)]
    counts: dict[str, list[Line]] = {}
    for line in lines:
        if line.get("kind") == "count" and line["known_ratio"] == 0.75:
            counts.setdefault(line["encoder"], []).append(line)
    runs: dict[tuple[str, str], list[Line]] = {}
    for row in select_runs(lines, given_k=False):
        effort = "" if row.effort == "best" else f", effort {row.effort}"
        runs.setdefault((f"`{row.method}`{effort}", row.encoder), []).extend(row.lines)

    unknown = [
        [f"encoder before training, {encoder}", *_by_data_set(_untrained(found), "estimated")]
        for encoder, found in sorted(counts.items())
    ] + [
        [f"whole run of {', '.join(parts)}", *_by_data_set(found, "categories", "estimated")]
        for parts, found in sorted(runs.items())
    ]
    papers = [
        [f"paper, {name}", *(str(found[data_set]) for data_set in TITLES)]
        for name, found in TABLE_4.items()
    ]
    starts = [
        [f"from {multiple} x truth, {encoder}", *_by_data_set(found, "overclustering", multiple)]
        for encoder, found in sorted((e, _pretrained(found)) for e, found in counts.items())
        for multiple in sorted({m for line in found for m in line["overclustering"]}, key=float)
    ]
    return (
        "Estimated without the true number (mean ± standard deviation over seeds):\n\n"
        + (markdown(header, [truth, *unknown]) if unknown else "No runs yet.\n")
        + "\nEstimated as in the paper: cluster into a multiple of the *true* number, and count "
        "the clusters larger than 0.9 of the mean size. The paper does not state the multiple.\n\n"
        + markdown(header, [truth, *papers, *starts])
    )


def _untrained(lines: list[Line]) -> list[Line]:
    """Return the lines whose encoder was not trained (effort fast), else all lines."""
    return [line for line in lines if line["config"].get("effort") == "fast"] or lines


def _pretrained(lines: list[Line]) -> list[Line]:
    """Return the lines whose encoder was pretrained (effort best) as the paper's, else all."""
    return [line for line in lines if line["config"].get("effort") == "best"] or lines


def _by_data_set(lines: Sequence[Line], *path: str) -> list[str]:
    """Return the mean and deviation of the value at `path`, with its seeds, per data set."""
    cells = []
    for data_set in TITLES:
        # If a seed was measured with several settings, the last one counts.
        chosen = {line["seed"]: line for line in lines if line["data_set"] == data_set}
        values = [_at(line, path) for line in chosen.values()]
        seeds = f" (seeds {seed_list(sorted(chosen))})" if chosen else ""
        cells.append(mean_spread(values) + seeds)
    return cells


def _at(value: Any, path: Sequence[str]) -> float | None:
    """Return the number at a path of keys."""
    for name in path:
        value = value.get(name)
    return None if value is None else float(value)
