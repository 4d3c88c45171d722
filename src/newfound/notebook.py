"""What a fitted discoverer shows: figures, a table of its categories, the HTML report."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from newfound.data.corpus import Corpus
from newfound.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from newfound.discovery import Discovery

KEYWORDS = 5  # shown of a category
TEXT = 120  # characters shown of a typical text


def map_figure(discoverer: "Discovery") -> "Figure":
    """The training texts on their map."""
    from newfound.describing.text_map import map_positions
    from newfound.figures import plot_map

    training_corpus(discoverer)
    fitted, assigned = discoverer.fitted_, discoverer.assigned_
    places = map_positions(fitted.training_features, fitted.prototypes, assigned, discoverer.seed)
    return plot_map(places, assigned, list(discoverer.classes_), list(discoverer.kinds_))


def matching_figure(discoverer: "Discovery") -> "Figure":
    """The labelled prototypes against all prototypes."""
    from newfound.discovery import matching_table
    from newfound.figures import plot_matching

    fitted = discoverer.fitted_
    distances = matching_table(fitted)
    if distances is None or not len(distances):
        raise InputError("there is no matching to plot: no text was labelled")
    return plot_matching(distances, fitted.known, list(discoverer.classes_))


def estimate_figure(discoverer: "Discovery") -> "Figure":
    """The curve behind the number of categories."""
    from newfound.figures import plot_estimate

    found = discoverer.fitted_.estimate
    if found is None:
        raise InputError(
            "there is no estimate to plot: the number of categories was given, or the model was "
            'loaded from a file; fit with n_categories="auto"'
        )
    return plot_estimate(
        found.candidates, found.scores, found.n_categories, found.low, found.high, found.how
    )


def write_report_of(discoverer: "Discovery", path: Path) -> Path:
    """Write the HTML report of a fitted discoverer to `path`."""
    from newfound.report import write_report
    from newfound.storage.run_folder import write_run

    corpus = training_corpus(discoverer)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_run(folder, discoverer, corpus, model=False)
        return write_report(folder, path, name="RUN")


def categories_html(discoverer: "Discovery") -> str:
    """The categories as an HTML table, the largest of each kind first."""
    import pandas as pd

    categories = sorted(discoverer.category_list_, key=lambda c: (c.kind, -c.size))
    table = pd.DataFrame(
        {
            "name": [c.name for c in categories],
            "kind": [c.kind for c in categories],
            "texts": [c.size for c in categories],
            "share": [f"{c.share:.1%}" for c in categories],
            "confidence": [c.confidence for c in categories],
            "keywords": [", ".join(c.keywords[:KEYWORDS]) for c in categories],
            "typical text": [_short(c.examples[0]) if c.examples else "" for c in categories],
        }
    )
    # Names and texts are the user's: to_html escapes them.
    with pd.option_context("display.max_colwidth", None):
        rows = table.to_html(index=False, border=0, na_rep="", float_format="{:.2f}".format)
    # Notebooks align cells to the right, which suits numbers alone. Escaped text holds no tag.
    for tag in ("th", "td"):
        rows = rows.replace(f"<{tag}>", f'<{tag} style="text-align: left; padding: 2px 8px">')
    known = sum(c.kind == "known" for c in categories)
    return (
        f"<p><b>{len(categories)} categories</b>: {known} known, {len(categories) - known} novel, "
        f"{sum(c.size for c in categories):,} texts</p>"
        f'<div style="max-height: 30em; overflow: auto">{rows}</div>'
    )


def training_corpus(discoverer: "Discovery") -> Corpus:
    """The texts that the discoverer was fitted on."""
    corpus: Corpus | None = getattr(discoverer, "corpus_", None)
    if corpus is None:
        raise InputError(
            "this model was loaded from a file and has no training texts to show; "
            "`newfound report RUN` writes the report of a run folder"
        )
    return corpus


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= TEXT else line[: TEXT - 1].rstrip() + "…"
