"""Figures for notebooks and papers: the map, the matching, and the estimated number of categories.

They need matplotlib (extra `plot`). They do not use pyplot, which keeps a global list of figures.
"""

import io
import re
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from newfound.errors import InputError
from newfound.model import Model
from newfound.result import Result
from newfound.wording import plural

try:
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.legend_handler import HandlerTuple
    from matplotlib.patheffects import withStroke
    from matplotlib.ticker import MaxNLocator
except ImportError as error:
    raise InputError(
        "plots need matplotlib, which is not installed; install it with "
        "pip install 'newfound[plot]'"
    ) from error

# The palette of Okabe and Ito, which is safe for colour-blind readers: cool colours for known, warm
# ones for novel categories. Colours repeat, but neighbouring categories get different ones.
COLOURS = {"known": ("#0072B2", "#56B4E9", "#009E73"), "novel": ("#D55E00", "#E69F00", "#CC79A7")}
MARKERS = {"known": "o", "novel": "^"}  # distinguishable without colour
BLACK, GREY = "#222222", "#666666"
LINE = 18  # characters per line of a label on the map
NAME = 34  # characters of a name beside the heat map
TICKS = 80  # maximum number of names along a side of the heat map


class NotebookFigure(Figure):
    """A figure that notebooks display even if pyplot was not imported."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()


def plot_map(result: Result) -> Figure:
    """Draw the texts on a map, coloured by category.

    Parameters
    ----------
    result : Result
        The result of a discovery, or one read from a run folder.

    Returns
    -------
    matplotlib.figure.Figure
    """
    placed = np.isfinite(result.map_positions).all(axis=1)  # of a large table only a sample
    positions, assigned = result.map_positions[placed], result.assigned[placed]
    return draw_map(positions, assigned, list(result.names), list(result.kinds))


def plot_matching(found: Result | Model) -> Figure:
    """Draw the distances between labelled and discovered prototypes (the paper's Fig. 3).

    Parameters
    ----------
    found : Result or Model
        A discovery with at least one labelled text.

    Returns
    -------
    matplotlib.figure.Figure
    """
    if found.matching is None or not len(found.matching):
        raise InputError(
            "there is no matching to plot, because no text is labelled or the categories are too "
            "many"
        )
    names = list(found.names)
    return draw_matching(found.matching, names[: len(found.matching)], names)


def plot_estimate(result: Result) -> Figure:
    """Draw the score of each candidate number of categories.

    Parameters
    ----------
    result : Result
        A discovery with `n_categories="auto"`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    found = result.estimate
    if found is None:
        raise InputError(
            "there is no estimate to plot, because the number of categories was given; "
            'fit with n_categories="auto"'
        )
    return draw_estimate(
        found.candidates, found.scores, found.n_categories, found.low, found.high, found.how
    )


def draw_map(
    positions: np.ndarray, assigned: np.ndarray, names: Sequence[str], kinds: Sequence[str]
) -> Figure:
    """Draw texts at their positions [N, 2], coloured by category, with as many names as fit.

    assigned [N]: category ids 0..K-1; names and kinds ("known" or "novel"): one per category.
    """
    figure = NotebookFigure(figsize=(10, 10.8), dpi=110)
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_axes((0.02, 0.03, 0.96, 9.6 / 10.8))  # square
    axes.set_axis_off()
    axes.set(xlim=(-1.04, 1.04), ylim=(-1.04, 1.04), aspect="equal")
    sizes = np.bincount(assigned, minlength=len(names))
    centres = np.array(
        [
            np.median(positions[assigned == i], axis=0) if sizes[i] else (np.nan, np.nan)
            for i in range(len(names))
        ]
    )
    shade = _shades(centres, kinds)
    area = float(np.clip(60_000 / max(len(positions), 1), 4, 36))  # square points of a marker
    handles: list[Any] = []
    words: list[str] = []
    for kind, colours in COLOURS.items():
        of_kind = np.array([k == kind for k in kinds], bool)
        for number, colour in enumerate(colours):
            inside = (of_kind & (shade == number))[assigned]
            axes.scatter(
                positions[inside, 0],
                positions[inside, 1],
                s=area * (1.4 if kind == "novel" else 1),  # a triangle looks smaller
                c=colour,
                marker=MARKERS[kind],
                alpha=0.6,
                linewidths=0,
                rasterized=True,
            )
        if of_kind.any():
            keys = [axes.scatter([], [], s=40, c=c, marker=MARKERS[kind]) for c in colours]
            handles.append(tuple(keys))
            of_them = plural(int(of_kind.sum()), "category", "categories")
            words.append(f"{kind}: {of_them}, {plural(int(sizes[of_kind].sum()), 'text')}")
    unnamed = _write_names(axes, canvas, centres, sizes, names, kinds)
    figure.text(
        0.03, 0.975, f"Map of {plural(len(positions), 'text')}", size=14, weight="bold", va="center"
    )
    figure.legend(
        handles,
        words,
        loc="center left",
        bbox_to_anchor=(0.02, 0.94),
        ncols=2,
        frameon=False,
        handler_map={tuple: HandlerTuple(ndivide=None, pad=0.4)},
        fontsize=10,
    )
    caption = "Similar categories are close to each other; the axes have no unit."
    if unnamed:
        caption += f" {unnamed} of the {len(names)} names are not shown."
    figure.text(0.03, 0.015, caption, size=9, color=GREY, va="center")
    return figure


def draw_matching(
    distances: np.ndarray, labelled: Sequence[str], prototypes: Sequence[str]
) -> Figure:
    """Draw the distances [M, K] of labelled prototypes to all prototypes as a heat map.

    prototypes: names of the K categories, the M matched ones first and in the order of `labelled`.
    """
    rows, columns = np.shape(distances)
    cell = float(np.clip(4 / rows, 0.15, 0.5))  # inches
    size = (min(4.2 + cell * columns, 16), min(3.4 + cell * rows, 14))
    figure = NotebookFigure(figsize=size, dpi=110, layout="constrained")
    axes = figure.add_subplot()
    image = axes.imshow(distances, cmap="Blues_r", aspect="auto", interpolation="nearest")
    bar = figure.colorbar(image, ax=axes, pad=0.02, fraction=0.04, aspect=40)
    bar.set_label("distance (dark is close)")
    bar.outline.set_visible(False)
    for axis, all_names in ((axes.xaxis, prototypes), (axes.yaxis, labelled)):
        step = -(-len(all_names) // TICKS)
        places = range(0, len(all_names), step)
        axis.set_ticks(
            places,
            [_shown(all_names[i], NAME) for i in places],
            size=7 if len(all_names) > 25 else 9,
            rotation=90 if axis is axes.xaxis else 0,
        )
        axis.set_tick_params(length=0)
    axes.spines[:].set_visible(False)
    if columns > rows:
        axes.axvline(rows - 0.5, color="#D55E00", linewidth=1.5)
        axes.annotate(
            "novel →",
            (rows / columns, 1),
            xycoords="axes fraction",
            xytext=(3, 3),
            textcoords="offset points",
            color="#D55E00",
            size=9,
        )
    axes.set_title(
        "Distances of labelled and discovered prototypes", weight="bold", loc="left", pad=16
    )
    axes.set_ylabel("labelled prototypes")
    axes.set_xlabel("discovered prototypes, matched ones first")
    return figure


def draw_estimate(
    candidates: Sequence[int],
    scores: Sequence[float],
    estimate: int,
    low: int,
    high: int,
    how: str = "",
) -> Figure:
    """Draw the score of each candidate number of categories, the estimate and its range."""
    figure = NotebookFigure(figsize=(8, 4.6), dpi=110, layout="constrained")
    axes = figure.add_subplot()
    axes.axvspan(low, high, color="#56B4E9", alpha=0.25, linewidth=0, label=f"{low} to {high}")
    axes.plot(candidates, scores, color="#0072B2", marker="o", markersize=4, label="score")
    axes.axvline(estimate, color="#D55E00", linestyle="--", label=f"estimate: {estimate}")
    axes.set_title(f"About {plural(estimate, 'category', 'categories')}", weight="bold", loc="left")
    axes.set_xlabel("number of categories")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if how:
        sentence = textwrap.fill(_shown(how[:1].upper() + how[1:], 400), 115)
        figure.supxlabel(sentence, x=0.02, ha="left", size=9, color=GREY)
    axes.set_ylabel("score (higher is more likely)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.legend(frameon=False)
    return figure


def _shades(centres: np.ndarray, kinds: Sequence[str]) -> np.ndarray:
    """Return the index of each category's colour, so that equal colours are far apart."""
    shade = np.full(len(kinds), -1)
    for i, kind in enumerate(kinds):
        room = []
        for number in range(len(COLOURS[kind])):
            same = [j for j in range(i) if kinds[j] == kind and shade[j] == number]
            gaps = np.linalg.norm(centres[same] - centres[i], axis=1)
            room.append(float(np.nanmin(gaps)) if np.isfinite(gaps).any() else np.inf)
        shade[i] = int(np.argmax(room))
    return shade


def _write_names(
    axes: Axes,
    canvas: FigureCanvasAgg,
    centres: np.ndarray,
    sizes: np.ndarray,
    names: Sequence[str],
    kinds: Sequence[str],
) -> int:
    """Write names at the centres, large categories first; return how many did not fit."""
    renderer = canvas.get_renderer()
    taken: list[tuple[float, float, float, float]] = []
    left_out = 0
    for i in np.argsort(-sizes, kind="stable"):
        if not sizes[i]:
            continue
        label = axes.text(
            float(centres[i, 0]),
            float(centres[i, 1]),
            "\n".join(_lines(names[i])),
            size=7.5 if len(names) > 40 else 9.5,
            weight="bold" if kinds[i] == "novel" else "normal",
            color=BLACK,
            ha="center",
            va="center",
            linespacing=0.95,
            path_effects=[withStroke(linewidth=2.5, foreground="white", alpha=0.9)],
        )
        x0, y0, x1, y1 = label.get_window_extent(renderer).padded(1).extents
        for shift in (0, y0 - y1, y1 - y0):  # on the category, below it or above it
            if not any(
                x0 < b[2] and b[0] < x1 and y0 + shift < b[3] and b[1] < y1 + shift for b in taken
            ):
                taken.append((x0, y0 + shift, x1, y1 + shift))
                # From pixels to data coordinates; the axes do not change, so a factor is enough.
                label.set_y(centres[i, 1] + shift / axes.transData.get_matrix()[1, 1])
                break
        else:
            label.remove()
            left_out += 1
    return left_out


def _lines(name: str) -> list[str]:
    """Return a name in at most two lines, broken after spaces, underscores and hyphens."""
    lines = [""]
    for part in re.findall(r"[^\s_-]*[\s_-]*", _shown(name, 2 * LINE)):
        if lines[-1] and len((lines[-1] + part).rstrip()) > LINE:
            lines.append("")
        lines[-1] += part
    first, rest = lines[0].strip(), "".join(lines[1:]).strip()
    return [first, rest] if rest else [first]


def _shown(name: str, length: int) -> str:
    """Return a text on one line, truncated, with $ escaped for matplotlib."""
    line = " ".join("".join(c if c.isprintable() else " " for c in name).split())
    line = line if len(line) <= length else line[: length - 1].rstrip() + "…"
    return line.replace("$", r"\$")
