"""Write the tables' own pages, and fill the places of other pages that show a table.

A page shows a table between two markers, such as ``<!-- summary -->`` and ``<!-- /summary -->``.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.rendering.tables.ablations import ablation_table
from benchmarks.rendering.tables.parts import parts_table
from benchmarks.rendering.tables.regimes import regimes_table
from benchmarks.rendering.tables.speed import gpu_table, speed_table
from benchmarks.rendering.tables.summary import summary_table
from benchmarks.rendering.tables.table1 import table1
from benchmarks.rendering.tables.table2 import table2
from benchmarks.rendering.tables.table3 import table3
from benchmarks.rendering.tables.table4 import table4
from newfound.bench.lines import Line, read_results
from newfound.errors import InputError
from newfound.files import write_text

HEADINGS = {
    "table1": "Table 1: the protocol",
    "table2": "Table 2: accuracy",
    "table3": "Table 3: ablations of DPN",
    "table4": "Table 4: the number of categories",
    "regimes": "Fewer labels, K unknown",
    "speed": "Speed",
    "parts": "What each part of `newfound` is worth",
    "ablations": "What was tried",
    "search": "How settings were chosen",
}
# What a page says above its table; links are relative to benchmarks/.
INTRODUCTIONS = {
    "parts": (
        "Accuracy on test texts by the nearest prototype: runs with a part less runs without it, "
        "seed by seed (mean ± standard deviation, in points). *Measured in* names the method that "
        "the part was removed from: the current one, or an earlier one, which "
        "[the list of ablation files](notes/ablation-files.md) describes. All rows so far are of "
        "the method before category sizes were relaxed and K was found by merging."
    ),
    "ablations": (
        "Variants of methods that were measured on test texts: one row per file of `ablations/`, "
        "data set, method, encoder and known ratio. [The list of ablation files]"
        "(notes/ablation-files.md) says what each file is. Accuracy in % (mean ± standard "
        "deviation over seeds); seconds are those of a whole run."
    ),
    "search": (
        "Runs of `newfound bench run --search`, by which settings were chosen. It hides the labels "
        "of a quarter of the known categories and scores dev texts, which are of known categories: "
        "of some that kept their labels and some that lost them. No test label and no label of a "
        "truly novel text is used. *Settings* names what differs from the current settings; "
        "[how to read older rows](notes/measurements.md#search-lines)."
    ),
}


def render_tables(lines: Sequence[Line], tried: Path) -> dict[str, str]:
    """Render the tables that need the result lines alone.

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
        "speed": speed_table(lines),
        "parts": parts_table(tried, lines),
        "ablations": ablation_table(tried),
    }


def render_excerpts(lines: Sequence[Line]) -> dict[str, str]:
    """Return the tables that have no page of their own, by the names of their markers."""
    return {"summary": summary_table(lines), "gpu": gpu_table(lines)}


def table_page(name: str, table: str) -> str:
    """Return the content of a table's own page."""
    parts = [f"# {HEADINGS[name]}", "Rendered by `make tables`; do not edit."]
    parts += [INTRODUCTIONS[name]] if name in INTRODUCTIONS else []
    return "\n\n".join([*parts, table])


def fill_markers(text: str, tables: Mapping[str, str]) -> str:
    """Replace what stands between the markers of every table in a page."""
    for name, table in tables.items():
        start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        if text.count(start) != text.count(end):
            raise InputError(f"a marker {start} has no {end} that goes with it")
        pattern = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", re.DOTALL)
        block = f"{start}\n{table}{end}"
        text = pattern.sub(lambda _, block=block: block, text)  # type: ignore[misc]
    return text


def pages_with_markers(benchmarks: Path) -> list[Path]:
    """Return the pages whose markers are filled: both READMEs and the documentation."""
    root = benchmarks.parent
    pages = [benchmarks / "README.md", root / "README.md", *sorted((root / "docs").rglob("*.md"))]
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
