"""The grid as Markdown: one row per cell, one column per method, and a summary of each method."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from newfound.bench.lines import Line
from newfound.bench.rows import NONE, markdown
from newfound.bench.wild.tables import DESIGNS, KIND, SIZES

# Methods in this order, then others by name.
ORDER = ("newfound", "semi-km", "laskm", "dpn", "bert", "script", "bertopic", "hdbscan", "oracle")
AVERAGED = ("all", "exact_known", "ece_known", "ece_novel")
MANY = 0.5  # of the cells; methods with fewer do not limit the cells that means are over
UNNAMED = ("", "fast")  # efforts that are not in the title of a column; peers have none
DESIGN_TITLES = {
    "tenth": "a tenth",
    "ten": "10 per category",
    "archive": "60%",
    "absent": "10 per category, a third absent",
    "none": "none",
}


_NO_LABELS = list(DESIGNS).index("none")


@dataclass(frozen=True, order=True)
class Row:
    """A cell of the grid, averaged over seeds."""

    data_set: str
    design: int  # index into DESIGNS
    sizes: int  # index into SIZES
    noise: float
    auto: bool

    @property
    def cells(self) -> list[str]:
        """The first cells of the row in the table."""
        design, sizes = list(DESIGNS)[self.design], list(SIZES)[self.sizes]
        k = "auto" if self.auto else "given"
        return [self.data_set, DESIGN_TITLES[design], sizes, f"{self.noise:.0%}", k]

    @property
    def title(self) -> str:
        """The name of the cell in the summary."""
        data_set, design, sizes, noise, k = self.cells
        parts = [data_set, f"labels: {design}"]
        parts += [sizes] if sizes != "natural" else []
        parts += [f"noise {noise}"] if self.noise else []
        return ", ".join([*parts, *(["K auto"] if k == "auto" else [])])


@dataclass(frozen=True)
class Scored:
    """Mean scores of a method in a cell over seeds; None if a score is not defined."""

    all: float | None
    exact_known: float | None
    ece_known: float | None = None
    ece_novel: float | None = None
    k_error: float | None = None  # mean of |estimate - truth| / truth, if K was estimated


Column = tuple[str, str]  # method and effort, "" for none
Grid = Mapping[Row, Mapping[Column, Scored]]


def wild_tables(lines: Sequence[Line]) -> str:
    """Return the result lines of `newfound bench wild` as tables.

    Parameters
    ----------
    lines : sequence of dict
        Result lines; other kinds of lines are ignored. Of runs that differ only in the settings of
        the method, the last one is used.

    Returns
    -------
    str
        Markdown: a grid and a summary for each encoder, limit of texts and known ratio; "" if
        there are no such runs.
    """
    parts: dict[tuple[str, int, float], list[Line]] = {}
    for line in lines:
        if line.get("kind") == KIND:
            part = (line["encoder"], line["table"]["limit"], line["known_ratio"])
            parts.setdefault(part, []).append(line)
    shown = []
    for (encoder, limit, known), own in parts.items():
        title = f"**{encoder}, at most {limit:,} texts, {known:.0%} of the categories known**"
        grid = make_grid(own)
        shown.append(f"{title}\n")
        for heading, auto in (("K given", False), ("K estimated", True)):
            part_grid = {row: scored for row, scored in grid.items() if row.auto == auto}
            if part_grid:
                shown += [f"{heading}:\n", summary_table(part_grid), grid_table(part_grid)]
        if any(row.auto for row in grid):
            shown += ["The estimate of K, and what it costs:\n", estimates_table(grid)]
    return "\n".join(shown)


def make_grid(lines: Sequence[Line]) -> Grid:
    """Return the mean scores over seeds of every cell and method."""
    newest: dict[tuple[Row, Column, int], Line] = {}
    for line in lines:
        newest[_row(line), _column(line), line["seed"]] = line
    runs: dict[Row, dict[Column, list[Line]]] = {}
    for (row, column, _), line in newest.items():
        runs.setdefault(row, {}).setdefault(column, []).append(line)
    return {
        row: {
            column: Scored(
                **{name: _mean(own, name) for name in AVERAGED}, k_error=_mean_error_of_k(own)
            )
            for column, own in columns.items()
        }
        for row, columns in sorted(runs.items())
    }


def grid_table(grid: Grid) -> str:
    """Return All (exact known) of every method in every cell; the best All is bold."""
    columns = _columns(grid)
    body = []
    for row, scored in grid.items():
        best = max((s.all for s in scored.values() if s.all is not None), default=None)
        cells = [_cell(scored.get(column), best) for column in columns]
        body.append([*row.cells, *cells])
    header = ["data set", "labelled", "sizes", "noise", "K", *map(_title, columns)]
    return markdown(header, body)


def summary_table(grid: Grid) -> str:
    """Return one line per method: means, the worst cell beside the best other, how often best.

    Means are over the cells that are scored by All for every method with at least half of the
    cells (for exact known: those among them with known categories).
    """
    columns = _columns(grid)
    cells = {c: [row for row in grid if _all(grid[row], c) is not None] for c in columns}
    main = [c for c in columns if len(cells[c]) >= MANY * len(grid)]
    shared = [row for row in grid if all(row in cells[c] for c in main)]
    body = []
    for column in columns:
        scored = [grid[row][column] for row in shared if column in grid[row]]
        counted = scored if len(scored) == len(shared) else []
        gaps = {row: gap for row in grid if (gap := _gap(grid[row], column)) is not None}
        worst, best = NONE, NONE
        if gaps:
            row = min(gaps, key=lambda row: gaps[row])
            worst = f"{gaps[row]:+.1f} ({row.title})"
            best = f"{sum(gap >= 0 for gap in gaps.values())} of {len(gaps)}"
        means = [_shown([s.all for s in counted]), _shown([s.exact_known for s in counted])]
        errors = [_shown([getattr(s, name) for s in counted], 3) for name in AVERAGED[2:]]
        body.append([_title(column), *means, *errors, best, worst])
    header = ["method", f"All, mean of {len(shared)} cells", "exact known"]
    header += ["calibration error, known", "novel", "best in"]
    return markdown([*header, "worst cell: All less the best other method"], body)


def estimates_table(grid: Grid) -> str:
    """Return how close estimates of K are, and All less All with K given, by method."""
    given = {replace(row, auto=True): scored for row, scored in grid.items() if not row.auto}
    body = []
    for column in _columns({row: scored for row, scored in grid.items() if row.auto}):
        rows = [row for row in grid if row.auto and column in grid[row]]
        for title, labelled in (("some", True), ("no", False)):
            own = [row for row in rows if (row.design != _NO_LABELS) == labelled]
            found = [grid[row][column].k_error for row in own]
            errors = [error for error in found if error is not None]
            pairs = [(_all(grid[row], column), _all(given.get(row, {}), column)) for row in own]
            lost = [a - b for a, b in pairs if a is not None and b is not None]
            if errors:
                within = [_share([error <= limit for error in errors]) for limit in (0.15, 0.5)]
                loss = (
                    [f"{statistics.fmean(lost):+.1f}", f"{min(lost):+.1f}"] if lost else [NONE] * 2
                )
                body.append([_title(column), title, str(len(errors)), *within, *loss])
    header = ["method", "labels", "cells", "K within 15%", "K within half"]
    return markdown([*header, "All less All with K given, mean", "worst"], body)


def _row(line: Line) -> Row:
    table = line["table"]
    return Row(
        line["data_set"],
        list(DESIGNS).index(table["design"]),
        list(SIZES).index(table["sizes"]),
        table["noise"],
        not line["config"]["given_k"],
    )


def _column(line: Line) -> Column:
    return line["method"], line["config"].get("effort", "")


def _columns(grid: Grid) -> list[Column]:
    """Return the columns of a grid in their order."""
    found = {column for scored in grid.values() for column in scored}
    order = {name: place for place, name in enumerate(ORDER)}
    return sorted(found, key=lambda c: (order.get(c[0], len(ORDER)), c[0], c[1] not in UNNAMED))


def _title(column: Column) -> str:
    method, effort = column
    return f"`{method}`" if effort in UNNAMED else f"`{method}`, {effort}"


def _all(scored: Mapping[Column, Scored], column: Column) -> float | None:
    return scored[column].all if column in scored else None


def _gap(scored: Mapping[Column, Scored], column: Column) -> float | None:
    """Return All less the best All of the other methods; None if one of the two is missing."""
    own = _all(scored, column)
    others = [s.all for other, s in scored.items() if other[0] != column[0] and s.all is not None]
    return None if own is None or not others else own - max(others)


def _cell(scored: Scored | None, best: float | None) -> str:
    if scored is None:
        return NONE
    text = _shown([scored.all])
    if scored.all is not None and scored.all == best:
        text = f"**{text}**"
    return f"{text} ({_shown([scored.exact_known])})"


def _mean(lines: Sequence[Line], name: str) -> float | None:
    """Return the mean of a score over the lines that have it."""
    found = [line["scores"].get(name) for line in lines]
    values = [value for value in found if value is not None]
    return statistics.fmean(values) if values else None


def _mean_error_of_k(lines: Sequence[Line]) -> float | None:
    """Return the mean relative error of the estimates of K; small novel categories do not count."""
    errors = []
    for line in lines:
        counts = line.get("categories", {})
        if counts.get("estimated") is not None:
            errors.append(abs(counts["estimated"] / counts["true_counted"] - 1))
    return statistics.fmean(errors) if errors else None


def _share(right: Sequence[bool]) -> str:
    """Return the share of true values."""
    return f"{statistics.fmean(right):.0%}"


def _shown(values: Sequence[float | None], digits: int = 1) -> str:
    """Return the mean of the values that are not None."""
    real = [value for value in values if value is not None]
    return f"{statistics.fmean(real):.{digits}f}" if real else NONE
