"""The paper's figures, each a function from result lines or artefacts to a matplotlib figure."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.rendering.paper_numbers import NAMES
from benchmarks.rendering.titles import EXPLAINED, TITLES
from newfound.bench.lines import Line
from newfound.bench.rows import select_runs

Artefact = dict[str, Any]

# The palette of Okabe and Ito, which is safe for colour-blind readers.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P")
DASHES = ("-", "--", ":", "-.")
RATIOS = (0.25, 0.5, 0.75)
ACCURACY = "validation_accuracy"
# The first panels of Fig. 5; other methods follow.
MAPPED = ("semi-km", "cdac+", "laskm", "dpn-coupled", "dpn", "newfound")
# The labels of StackOverflow are numbers, which stand for these tags.
TAGS = (
    "wordpress, oracle, svn, apache, excel, matlab, visual-studio, cocoa, osx, bash, spring, "
    "hibernate, scala, sharepoint, ajax, qt, drupal, linq, haskell, magento"
)


def method_title(method: str) -> str:
    """Return a method's name as the paper writes it."""
    return EXPLAINED.get(method) or NAMES.get(method, method)


def category_title(data_set: str, label: str) -> str:
    """Return a category's name for a reader."""
    tags = TAGS.split(", ") if data_set == "stackoverflow" else []
    return tags[int(label) - 1] if tags and label.isdigit() else label


def distance_map(plt: Any, stored: Sequence[Artefact], data_set: str = "stackoverflow") -> Any:
    """Draw Fig. 3: distances of labelled prototypes to the aligned unlabelled ones."""
    chosen = _first(stored, data_set, "dpn")
    if chosen is None:
        return None
    distances = np.array(chosen["distances"])  # [M, K]
    names = [category_title(data_set, label) for label in chosen["known"]]
    novel = distances.shape[1] - len(names)
    figure, axes = plt.subplots(figsize=(8.2, 5.6))
    # Dark is close, as in the paper; cividis is safe for colour-blind readers.
    image = axes.imshow(distances, cmap="cividis", aspect="auto")
    axes.axvline(len(names) - 0.5, color="white", linewidth=3)
    axes.set_xticks(
        range(distances.shape[1]),
        [*names, *(f"novel {i + 1}" for i in range(novel))],
        rotation=60,
        ha="right",
        rotation_mode="anchor",
    )
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("prototypes of the unlabelled texts, aligned; novel ones on the right")
    axes.set_ylabel("labelled prototypes")
    axes.spines[:].set_visible(False)
    figure.colorbar(image, ax=axes, label="Euclidean distance", shrink=0.85)
    axes.set_title(f"{_run_title(chosen)}: labelled and unlabelled prototypes", fontsize=11)
    return figure


def known_ratios(plt: Any, lines: Sequence[Line], data_set: str = "banking") -> Any:
    """Draw Fig. 4: accuracy by the share of known categories, one line per method."""
    series: dict[tuple[str, str, str], dict[float, list[Line]]] = {}
    for ratio in RATIOS:
        for row in select_runs(lines, data_set=data_set, known_ratio=ratio):
            places = series.setdefault((row.method, row.encoder, row.effort), {})
            if len(row.lines) > len(places.get(ratio, [])):
                places[ratio] = row.lines
    # A line joins runs of one effort only.
    series = {key: places for key, places in series.items() if len(places) > 1}
    if not series:
        return None
    figure, panels = plt.subplots(1, 3, figsize=(10, 3.9), sharex=True)
    several = len({encoder for _, encoder, _ in series}) > 1
    for axes, score in zip(panels, ("all", "known", "novel"), strict=True):
        for number, ((method, encoder, effort), places) in enumerate(sorted(series.items())):
            ratios = sorted(places)
            values = [[line["scores"]["kmeans"][score] for line in places[r]] for r in ratios]
            label = method_title(method) + (f", {encoder}" if several else "")
            label += f", effort {effort}" if effort != "best" else ""
            # Shifted, so that error bars do not hide each other.
            shift = 0.04 * (number / max(1, len(series) - 1) - 0.5)
            axes.errorbar(
                [ratio + shift for ratio in ratios],
                [np.mean(v) for v in values],
                [np.std(v, ddof=1) if len(v) > 1 else 0 for v in values],
                color=COLOURS[number % len(COLOURS)],
                marker=MARKERS[number % len(MARKERS)],
                linestyle=DASHES[number % len(DASHES)],
                capsize=3,
                label=label,
            )
        axes.set_title(score.title())
        axes.set_xticks(RATIOS)
        axes.set_xlim(0.2, 0.8)
        axes.grid(axis="y", alpha=0.3)
        axes.set_xlabel("share of known categories")
    panels[0].set_ylabel("accuracy by test k-means, %")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    seeds = max(len(lines) for places in series.values() for lines in places.values())
    bars = ": mean and standard deviation over seeds" if seeds > 1 else ""
    figure.suptitle(f"{TITLES[data_set]}{bars}", fontsize=11)
    return figure


def feature_maps(plt: Any, stored: Sequence[Artefact], data_set: str = "stackoverflow") -> Any:
    """Draw Fig. 5: t-SNE of the test texts' features, one panel per method."""
    chosen = {a["method"]: a for a in stored if a["data_set"] == data_set}
    firsts = [_first(stored, data_set, method) for method in (*MAPPED, *sorted(chosen))]
    panels = list({a["method"]: a for a in firsts if a is not None}.values())[:6]
    if not panels:
        return None
    columns = min(2 if len(panels) in (2, 4) else 3, len(panels))
    rows = -(-len(panels) // columns)
    figure, grid = plt.subplots(rows, columns, figsize=(5.2 * columns, 4.9 * rows), squeeze=False)
    for axes in grid.flat:
        axes.set_axis_off()
    for axes, artefact in zip(grid.flat, panels, strict=False):
        _draw_map(axes, artefact)
    note = "filled circles: known categories; open triangles: novel ones"
    figure.suptitle(f"{TITLES[data_set]}, t-SNE of the test texts; {note}", fontsize=12)
    return figure


def _draw_map(axes: Any, artefact: Artefact) -> None:
    """Draw one panel of Fig. 5."""
    places, truth = np.array(artefact["map"]), np.array(artefact["truth"])
    known = set(artefact["known"])
    for number, label in enumerate(artefact["categories"]):
        own = places[truth == number]
        colour = COLOURS[number % len(COLOURS)]
        if label in known:
            style = {"marker": "o", "s": 10, "color": colour, "linewidths": 0}
        else:
            style = {"marker": "^", "s": 22, "facecolors": "none", "edgecolors": colour}
        axes.scatter(own[:, 0], own[:, 1], alpha=0.8, rasterized=True, **style)
    if len(artefact["categories"]) <= 30:
        for number, label in enumerate(artefact["categories"]):
            x, y = np.median(places[truth == number], axis=0)
            weight = "normal" if label in known else "bold"
            axes.text(
                x,
                y,
                category_title(artefact["data_set"], label),
                fontsize=8,
                fontweight=weight,
                ha="center",
                va="center",
                bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "alpha": 0.75, "lw": 0},
            )
    axes.set_title(f"{method_title(artefact['method'])}, {artefact['encoder']}", fontsize=11)
    axes.set_aspect("equal")


def curves(plt: Any, stored: Sequence[Artefact], data_set: str) -> Any:
    """Draw the losses by epoch in each stage, and the accuracy that selects the epoch."""
    chosen = _first(stored, data_set, "dpn")
    if chosen is None or not chosen["history"]:
        return None
    stages: dict[str, list[dict[str, Any]]] = {}
    for step in chosen["history"]:
        stages.setdefault(step["stage"], []).append(step)
    scored = {stage: steps for stage, steps in stages.items() if ACCURACY in steps[0]}
    count = len(stages) + len(scored)
    figure, grid = plt.subplots(1, count, figsize=(3.7 * count, 3.6), squeeze=False)
    panels = list(grid.flat)
    for stage, steps in stages.items():
        left_out = ("stage", "epoch", "loss", ACCURACY)
        names = [name for name in steps[0] if name not in left_out] or ["loss"]
        axes = panels.pop(0)
        _draw_curves(axes, steps, names, COLOURS)
        axes.set_title(f"{stage}: loss")
        axes.legend(frameon=False, fontsize=9)
        if stage not in scored:
            continue
        axes = panels.pop(0)
        _draw_curves(axes, steps, [ACCURACY], COLOURS[2:])
        best = max(steps, key=lambda step: step[ACCURACY])
        axes.plot(best["epoch"], best[ACCURACY], "o", color=COLOURS[1])
        # The lower right corner is free if the curve rises.
        kept = f"kept: epoch {best['epoch']}, {100 * best[ACCURACY]:.1f}%"
        axes.text(0.97, 0.08, kept, transform=axes.transAxes, ha="right")
        axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f}%")
        axes.set_title(f"{stage}: validation accuracy")
    figure.suptitle(_run_title(chosen), fontsize=11)
    return figure


def _draw_curves(
    axes: Any, steps: Sequence[dict[str, Any]], names: Sequence[str], colours: Sequence[str]
) -> None:
    """Draw one curve per name."""
    for number, name in enumerate(names):
        axes.plot(
            [step["epoch"] for step in steps],
            [step.get(name) for step in steps],
            color=colours[number % len(colours)],
            linestyle=DASHES[number % len(DASHES)],
            label=name.replace("_", " "),
        )
    values = [step[name] for step in steps for name in names if step.get(name) is not None]
    if min(values) >= 0:
        axes.set_ylim(bottom=0)
    axes.set_xlabel("epoch")
    axes.grid(axis="y", alpha=0.3)


def _run_title(artefact: Artefact) -> str:
    """Return data set, method, encoder and seed as a title."""
    return (
        f"{TITLES[artefact['data_set']]}, {method_title(artefact['method'])}, "
        f"{artefact['encoder']}, seed {artefact['seed']}"
    )


def _first(stored: Sequence[Artefact], data_set: str, method: str) -> Artefact | None:
    """Return the artefact of a method with the lowest seed, at the paper's known ratio."""
    found = [
        a
        for a in stored
        if (a["data_set"], a["method"], a["known_ratio"]) == (data_set, method, 0.75)
    ]
    return min(found, key=lambda a: (a["seed"], a["encoder"] != "minilm"), default=None)
