"""The grid as Markdown: one row per cell, one column per method, and a summary of each method."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from newfound.bench.lines import Line
from newfound.bench.rows import NONE, markdown
from newfound.bench.wild.tables import DESIGNS, KIND, SIZES

# Methods in this order, then others by name.
ORDER = ("newfound", "semi-km", "laskm", "dpn", "bert", "script", "bertopic", "hdbscan", "oracle")
UNNAMED = ("", "fast")  # efforts that are not in the title of a column; peers have none
DESIGN_TITLES = {
    "tenth": "a tenth",
    "ten": "10 per category",
    "archive": "60%",
    "absent": "10 per category, a third absent",
    "none": "none",
}


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
        shown.append("\n".join([f"{title}\n", summary_table(grid), grid_table(grid)]))
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
            column: Scored(_mean(own, "all"), _mean(own, "exact_known"))
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
    """Return one row per method: mean scores, in how many cells it is best, and its worst cell.

    Means are over the cells in which every method with an All score has one; the mean of exact
    known leaves out cells without known categories.
    """
    columns = _columns(grid)
    ranked = [c for c in columns if any(_all(scored, c) is not None for scored in grid.values())]
    shared = [row for row, s in grid.items() if all(_all(s, c) is not None for c in ranked)]
    body = []
    for column in columns:
        alls = [_all(grid[row], column) for row in shared]
        exact = [grid[row][column].exact_known for row in shared if column in grid[row]]
        gaps = {row: gap for row in grid if (gap := _gap(grid[row], column)) is not None}
        worst, best = NONE, NONE
        if gaps:
            row = min(gaps, key=lambda row: gaps[row])
            worst = f"{gaps[row]:+.1f} ({row.title})"
            best = f"{sum(gap >= 0 for gap in gaps.values())} of {len(gaps)}"
        body.append([_title(column), _shown(alls), _shown(exact), best, worst])
    header = ["method", f"All, mean of {len(shared)} cells", "exact known, mean", "best in"]
    return markdown([*header, "worst cell: All less the best other"], body)


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
    others = [s.all for other, s in scored.items() if other != column and s.all is not None]
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
    values = [line["scores"][name] for line in lines if line["scores"][name] is not None]
    return statistics.fmean(values) if values else None


def _shown(values: Sequence[float | None]) -> str:
    """Return the mean of the values that are not None."""
    real = [value for value in values if value is not None]
    return f"{statistics.fmean(real):.1f}" if real else NONE
