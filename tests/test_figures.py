"""Figures and displays of a fitted discoverer, and of plain data."""

import importlib
import io
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from support.fake_run import EVIL

from newfound.errors import InputError
from newfound.estimator import CategoryDiscoverer
from newfound.storage.run_folder import read_run, write_run

pytest.importorskip("matplotlib", reason="plots need the extra newfound[plot]")
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text

from newfound.figures import (
    COLOURS,
    _lines,
    _shades,
    draw_estimate,
    draw_map,
    draw_matching,
    plot_estimate,
    plot_map,
    plot_matching,
)

PNG = b"\x89PNG"
TEXTS = [
    "lost my card", "my card now", "the card please", "help my lost card", "my lost card now",
    "rain day", "cold rain", "sun day warm", "the weather", "warm weather day", "cold day rain",
    "book a flight", "hotel trip book", "travel flight", "book hotel", "a trip please",
]  # fmt: skip
LABELS = ["card"] * 4 + [None] + ["<b>weather</b> $x$"] * 4 + [None] * 7


@pytest.fixture(scope="module")
def fitted(tiny_encoder: str) -> CategoryDiscoverer:
    discoverer = CategoryDiscoverer(
        encoder=tiny_encoder, effort="fast", settings={"epochs": 1, "pretrain_epochs": 1}
    )
    return discoverer.fit(TEXTS, LABELS)


def drawn(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=40)
    return buffer.getvalue()


def words(figure: Figure) -> str:
    """All text of a figure."""
    return "\n".join(text.get_text() for text in figure.findobj(Text))


def some_map(texts: int, known: int, novel: int) -> tuple[np.ndarray, np.ndarray, list[str]]:
    rng = np.random.default_rng(0)
    assigned = np.arange(texts) % (known + novel)
    positions = np.clip(rng.normal(size=(texts, 2)) / 3, -1, 1)
    return positions, assigned, ["known"] * known + ["novel"] * novel


def test_map_shows_every_text_in_the_colours_of_its_kind() -> None:
    positions, assigned, kinds = some_map(500, 5, 3)
    figure = draw_map(positions, assigned, [f"name {i}" for i in range(8)], kinds)
    assert drawn(figure).startswith(PNG)
    clouds = [c for c in figure.axes[0].collections if len(c.get_offsets())]
    shown = np.concatenate([np.asarray(c.get_offsets()) for c in clouds])
    assert sorted(map(tuple, shown)) == sorted(map(tuple, positions))
    kind_at = {tuple(place): kinds[i] for place, i in zip(positions, assigned, strict=True)}
    for cloud in clouds:
        (kind,) = {kind_at[tuple(place)] for place in np.asarray(cloud.get_offsets())}
        assert to_hex(cloud.get_facecolor()[0]).upper() in COLOURS[kind]
    assert "Map of 500 texts" in words(figure)
    assert "known: 5 categories, 314 texts" in words(figure)
    assert "novel: 3 categories, 186 texts" in words(figure)


def test_names_on_the_map_do_not_overlap_and_those_left_out_are_counted() -> None:
    positions, assigned, kinds = some_map(900, 60, 30)
    positions /= 4  # no room
    names = [f"category number {i}" for i in range(90)]
    figure = draw_map(positions, assigned, names, kinds)
    drawn(figure)
    boxes = [text.get_window_extent().extents for text in figure.axes[0].texts]
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
    left = 90 - len(boxes)
    assert 0 < left < 90
    assert f"{left} of the 90 names are not shown" in words(figure)


def test_near_categories_get_different_colours() -> None:
    centres = np.array([[0.0, 0], [0.1, 0], [0.2, 0], [9, 0], [9.1, 0], [np.nan, np.nan]])
    shade = _shades(centres, ["known"] * 6)
    assert len({*shade[:3]}) == 3
    assert shade[3] != shade[4]
    assert set(shade) <= set(range(len(COLOURS["known"])))


@pytest.mark.filterwarnings("ignore:Glyph .* missing")
def test_any_name_can_be_drawn() -> None:
    names = [*EVIL, "$", "$x", r"\frac{$x_1$}", "", "_", "a_b" * 30]
    positions, assigned, kinds = some_map(2 * len(names), 5, len(names) - 5)
    assert drawn(draw_map(positions, assigned, names, kinds)).startswith(PNG)
    distances = np.ones((5, len(names)))
    assert drawn(draw_matching(distances, names[-5:], names)).startswith(PNG)
    for name in ("$", "$x", EVIL[4], ""):
        assert drawn(draw_estimate([2, 3], [0.1, 0.2], 3, 2, 3, name)).startswith(PNG)


def test_names_are_broken_at_spaces_underscores_and_hyphens() -> None:
    assert _lines("card_payment_wrong_exchange_rate") == ["card_payment_", "wrong_exchange_rate"]
    assert _lines("short name") == ["short name"]


def test_categories_without_texts_and_kinds_without_categories_are_drawn() -> None:
    positions, assigned, kinds = some_map(10, 2, 0)
    figure = draw_map(positions, assigned * 0, ["a", "b"], kinds)
    assert drawn(figure).startswith(PNG)
    assert "novel" not in words(figure)


def test_matching_shows_distances_and_the_border_of_novel_categories() -> None:
    distances = np.arange(12.0).reshape(3, 4)
    figure = draw_matching(distances, ["a", "b", "c"], ["a", "b", "c", "new"])
    axes = figure.axes[0]
    np.testing.assert_array_equal(axes.images[0].get_array(), distances)
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["a", "b", "c", "new"]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["a", "b", "c"]
    assert list(axes.lines[0].get_xdata()) == [2.5, 2.5]
    many = draw_matching(np.ones((150, 200)), ["n"] * 150, ["n"] * 200)
    assert len(many.axes[0].get_xticks()) <= 80
    assert max(many.get_size_inches()) <= 16


def test_estimate_shows_scores_number_and_range() -> None:
    figure = draw_estimate([5, 10, 20], [0.1, 0.5, 0.2], 11, 8, 15, "because it is so.")
    axes = figure.axes[0]
    assert list(axes.lines[0].get_xdata()) == [5, 10, 20]
    assert list(axes.lines[0].get_ydata()) == [0.1, 0.5, 0.2]
    assert list(axes.lines[1].get_xdata()) == [11, 11]
    assert "About 11 categories" in words(figure)
    assert "8 to 15" in words(figure)
    assert "Because it is so." in words(figure)


def test_figures_of_a_fit_equal_those_of_its_run_folder(
    fitted: CategoryDiscoverer, tmp_path: Path
) -> None:
    for figure in (fitted.plot_map(), fitted.plot_matching(), fitted.plot_estimate()):
        assert isinstance(figure, Figure)
        assert figure._repr_png_().startswith(PNG)
    write_run(fitted.result_, tmp_path)
    loaded = read_run(tmp_path)
    for plot in (plot_map, plot_matching, plot_estimate):
        assert drawn(plot(loaded)) == drawn(plot(fitted.result_))
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or not pyplot.get_fignums()  # nothing is left in a global list


def test_fitted_estimator_shows_escaped_categories_in_a_notebook(
    fitted: CategoryDiscoverer,
) -> None:
    html = fitted._repr_mimebundle_()["text/html"]
    assert html.count("<tr") == fitted.n_categories_ + 1
    assert "<b>weather" not in html
    assert "&lt;b&gt;weather&lt;/b&gt; $x$" in html
    assert f"{fitted.n_categories_} categories</b>: 2 known" in html
    fresh = CategoryDiscoverer()
    assert "CategoryDiscoverer" in fresh._repr_mimebundle_()["text/html"]
    assert list(fitted.categories_["size"]) == [c.size for c in fitted.model_.categories]


def test_fitted_estimator_writes_a_report(fitted: CategoryDiscoverer, tmp_path: Path) -> None:
    path = fitted.report(tmp_path / "found.html")
    assert path == tmp_path / "found.html"
    assert "help my lost card" in path.read_text()
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(InputError, match="cannot write"):
        fitted.report(tmp_path / "missing" / "found.html")


def test_missing_matching_or_estimate_is_an_error(
    fitted: CategoryDiscoverer, tmp_path: Path
) -> None:
    for show in ("plot_map", "plot_matching", "plot_estimate"):
        with pytest.raises(NotFittedError):
            getattr(CategoryDiscoverer(), show)()
    with pytest.raises(NotFittedError):
        CategoryDiscoverer().report(tmp_path / "x.html")
    fitted.save(tmp_path / "model")
    loaded = CategoryDiscoverer.load(tmp_path / "model", device="cpu")
    assert isinstance(loaded.plot_matching(), Figure)
    with pytest.raises(InputError, match="loaded without its run folder"):
        loaded.plot_map()
    with pytest.raises(InputError, match="loaded without its run folder"):
        loaded.report(tmp_path / "x.html")
    with pytest.raises(InputError, match="loaded without its run folder"):
        loaded.plot_estimate()
    given = replace(fitted.result_, estimate=None)
    with pytest.raises(InputError, match='n_categories="auto"'):
        plot_estimate(given)
    with pytest.raises(InputError, match="no text is labelled"):
        plot_matching(replace(given, matching=None))
    assert "<table" in loaded._repr_html_()


def test_error_without_matplotlib_names_the_extra(
    fitted: CategoryDiscoverer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "newfound.figures")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(InputError, match=r"newfound\[plot\]"):
        fitted.plot_map()
    with pytest.raises(InputError, match=r"newfound\[plot\]"):
        importlib.import_module("newfound.figures")
