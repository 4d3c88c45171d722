"""Write one page per table, and update the tables in other pages.

A page shows a table between two markers, such as ``<!-- summary -->`` and ``<!-- /summary -->``.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.rendering.tables.ablations import ablation_table
from benchmarks.rendering.tables.calibration import calibration_table
from benchmarks.rendering.tables.forecasts import forecasts_table
from benchmarks.rendering.tables.libraries import libraries_table
from benchmarks.rendering.tables.long_texts import long_texts_table
from benchmarks.rendering.tables.millions import fit_sample_table, millions_table
from benchmarks.rendering.tables.parts import parts_table
from benchmarks.rendering.tables.regimes import regimes_table
from benchmarks.rendering.tables.review_latency import review_latency_table
from benchmarks.rendering.tables.reviewing import reviewing_table
from benchmarks.rendering.tables.scale_out import scale_out_table
from benchmarks.rendering.tables.serving import serving_table
from benchmarks.rendering.tables.sizes import sizes_table
from benchmarks.rendering.tables.speed import gpu_table, speed_table
from benchmarks.rendering.tables.stability import stability_table
from benchmarks.rendering.tables.static import static_table
from benchmarks.rendering.tables.summary import summary_table
from benchmarks.rendering.tables.table1 import table1
from benchmarks.rendering.tables.table2 import table2
from benchmarks.rendering.tables.table3 import table3
from benchmarks.rendering.tables.table4 import table4
from benchmarks.rendering.tables.torture import torture_table
from benchmarks.rendering.tables.updating import updating_table
from benchmarks.rendering.tables.wild import wild_table
from newfound.bench.lines import Line, read_results
from newfound.errors import InputError
from newfound.files import write_text

HEADINGS = {
    "table1": "Table 1: the protocol",
    "table2": "Table 2: accuracy",
    "table3": "Table 3: ablations of DPN",
    "table4": "Table 4: the number of categories",
    "regimes": "Fewer labels, K unknown",
    "wild": "Tables as people have them",
    "speed": "Speed",
    "parts": "Contribution of each part of `newfound`",
    "ablations": "Ablations",
    "search": "How settings were chosen",
}
# The introduction above a table; links are relative to benchmarks/.
INTRODUCTIONS = {
    "wild": (
        "Runs of `newfound bench wild`: tables cut from data sets by what is labelled (a tenth of "
        "each known category's texts, 10 texts, 60%, 10 with a third of the known categories "
        "absent from the unlabelled texts, or none), by the sizes of the categories (natural, "
        "even, or an exponential tail of ratio 10 or 100) and by the share of out-of-scope texts "
        "among the unlabelled ones. Scored on the unlabelled texts, in %: All, by one Hungarian "
        "matching, and in brackets exact known, the share of the texts of known categories that "
        "get their own category by name. `script` is logistic regression on the frozen encoder's "
        "vectors with a threshold chosen on held-out labels, and k-means on the texts below it; "
        "`oracle` is the same regression told which texts are known, scored by exact known only; "
        "`bert` is k-means on those vectors. The result lines in `results/wild.jsonl` hold more "
        "scores: Known and Novel, F1 of the verdict novel, mean accuracy per category, NMI, ARI, "
        "the number of categories, AUROC of out-of-scope texts, and the calibration error."
    ),
    "parts": (
        "Difference in accuracy between runs with and without a part, with the same seed: test "
        "texts, nearest prototype, mean ± standard deviation in points. *Measured in* is the "
        "version of the method that the part was removed from: the current one, or an earlier one "
        "described in [the list of ablation files](notes/ablation-files.md)."
    ),
    "ablations": (
        "Variants of methods on test texts: one row per file of `ablations/`, data set, method, "
        "encoder and known ratio. [The list of ablation files](notes/ablation-files.md) describes "
        "each file. Accuracy in % (mean ± standard deviation over seeds), and the seconds of a "
        "whole run."
    ),
    "search": (
        "Runs of `newfound bench run --search`, which were used to choose settings. The search "
        "hides the labels of a quarter of the known categories and scores dev texts, which belong "
        "to known categories with and without remaining labels. It uses no test label and no "
        "label of a novel text. *Settings* lists the differences from the current settings; "
        "[notes on older rows](notes/measurements.md#search-lines)."
    ),
}


def render_tables(lines: Sequence[Line], tried: Path) -> dict[str, str]:
    """Render the tables of `benchmarks/results` and `benchmarks/ablations`.

    Parameters
    ----------
    lines : sequence of dict
        The result lines of `benchmarks/results`.
    tried : Path
        The folder `benchmarks/ablations`.

    Returns
    -------
    dict
        Every table but `search` as Markdown, by the name of its page.
    """
    return {
        "table1": table1(lines),
        "table2": table2(lines),
        "table3": table3(lines),
        "table4": table4(lines),
        "regimes": regimes_table(lines),
        "wild": wild_table(lines),
        "speed": speed_table(lines),
        "parts": parts_table(tried, lines),
        "ablations": ablation_table(tried),
    }


def render_excerpts(lines: Sequence[Line]) -> dict[str, str]:
    """Return the tables without a page of their own, by marker."""
    return {
        "summary": summary_table(lines),
        "gpu": gpu_table(lines),
        "libraries": libraries_table(lines),
        "long-texts": long_texts_table(lines),
        "forecasts": forecasts_table(lines),
        "calibration": calibration_table(lines),
        "static": static_table(lines),
        "torture": torture_table(lines),
        "stability": stability_table(lines),
        "scale_out": scale_out_table(lines),
        "reviewing": reviewing_table(lines),
        "review-latency": review_latency_table(lines),
        "updating": updating_table(lines),
        "millions": millions_table(lines),
        "fit-sample": fit_sample_table(lines),
        "serving": serving_table(lines),
        "sizes": sizes_table(lines),
    }


def table_page(name: str, table: str) -> str:
    """Return the content of the page of a table."""
    parts = [f"# {HEADINGS[name]}", "Rendered by `make tables`; do not edit."]
    parts += [INTRODUCTIONS[name]] if name in INTRODUCTIONS else []
    return "\n\n".join([*parts, table])


def fill_markers(text: str, tables: Mapping[str, str]) -> str:
    """Replace the text between the markers of every table in a page."""
    for name, table in tables.items():
        start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        if text.count(start) != text.count(end):
            raise InputError(f"a marker {start} has no matching {end}")
        pattern = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", re.DOTALL)
        block = f"{start}\n{table}{end}"
        text = pattern.sub(lambda _, block=block: block, text)  # type: ignore[misc]
    return text


def pages_with_markers(benchmarks: Path) -> list[Path]:
    """Return the pages that may have markers: both READMEs, the notes and the documentation."""
    root = benchmarks.parent
    pages = [benchmarks / "README.md", root / "README.md"]
    for folder in (benchmarks / "notes", root / "docs"):
        pages += sorted(folder.rglob("*.md"))
    return [page for page in pages if page.is_file()]


def write_pages(benchmarks: Path) -> list[Path]:
    """Write a page for every table and fill the markers of other pages.

    Parameters
    ----------
    benchmarks : Path
        The folder `benchmarks`, with the result lines in `results`, `ablations` and `search`.

    Returns
    -------
    list of Path
        The pages of the tables, and the other pages that have changed.
    """
    from benchmarks.rendering.tables.search import search_table  # imports torch

    lines = read_results(benchmarks / "results")
    tables = render_tables(lines, benchmarks / "ablations")
    tables["search"] = search_table(benchmarks / "search")
    written = []
    for name, table in tables.items():
        write_text(benchmarks / f"{name}.md", table_page(name, table))
        written.append(benchmarks / f"{name}.md")
    for page in pages_with_markers(benchmarks):
        old = page.read_text(encoding="utf-8")
        new = fill_markers(old, {**tables, **render_excerpts(lines)})
        if new != old:
            write_text(page, new)
            written.append(page)
    return written
