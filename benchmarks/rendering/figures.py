"""The paper's figures as PNG and SVG files, from result lines and artefacts."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.rendering.drawing import Artefact, curves, distance_map, feature_maps, known_ratios
from benchmarks.rendering.titles import TITLES
from newfound.bench.lines import read_results
from newfound.errors import InputError


def draw_all(results: Path, artefacts: Path, out: Path) -> tuple[list[Path], list[str]]:
    """Draw every figure for which there are runs.

    Parameters
    ----------
    results, artefacts : Path
        The folders of result lines and artefacts.
    out : Path
        Folder for the figures.

    Returns
    -------
    tuple of list
        The files written, and the names of figures without runs.
    """
    plt = _pyplot()
    lines = read_results(results)
    stored = [a for a in read_artefacts(artefacts) if a["given_k"]]
    figures: dict[str, Callable[[], Any]] = {
        "fig3": lambda: distance_map(plt, stored),
        "fig4": lambda: known_ratios(plt, lines),
        "fig5": lambda: feature_maps(plt, stored),
    }
    for data_set in TITLES:
        figures[f"curves-{data_set}"] = partial(curves, plt, stored, data_set)
    written, missing = [], []
    out.mkdir(parents=True, exist_ok=True)
    for name, draw in figures.items():
        figure = draw()
        if figure is None:
            missing.append(name)
            continue
        for kind in ("png", "svg"):
            path = out / f"{name}.{kind}"
            # Without a date, the same lines give the same file.
            figure.savefig(path, dpi=140, metadata={"Date": None} if kind == "svg" else None)
            written.append(path)
        plt.close(figure)
    return written, missing


def _pyplot() -> Any:
    """Return pyplot, configured to write reproducible files."""
    try:
        import matplotlib
    except ImportError:
        raise InputError(
            "figures need matplotlib: pip install 'newfound[plot]', then run the command again"
        ) from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams.update(
        {
            "font.size": 10,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "figure.constrained_layout.use": True,
            "svg.hashsalt": "newfound",
            "svg.fonttype": "none",
        }
    )
    return pyplot


def read_artefacts(folder: Path) -> list[Artefact]:
    """Return all artefacts of a folder, in the order of their names."""
    found = []
    for path in sorted(folder.glob("*.json")):
        try:
            found.append(json.loads(path.read_text(encoding="utf-8")))
        except ValueError as error:
            raise InputError(f"{path} is damaged; delete it and run the benchmark again") from error
    return found
