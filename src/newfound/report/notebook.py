"""The table of categories shown in a notebook."""

from collections.abc import Sequence

from newfound.category import Category
from newfound.wording import plural

KEYWORDS = 5  # shown of a category
TEXT = 120  # characters shown of a typical text


def categories_html(categories: Sequence[Category]) -> str:
    """Return the categories as an HTML table, the largest of each kind first."""
    import pandas as pd

    ordered = sorted(categories, key=lambda c: (c.kind, -c.size))
    table = pd.DataFrame(
        {
            "id": [c.id for c in ordered],
            "name": [c.name for c in ordered],
            "kind": [c.kind for c in ordered],
            "texts": [c.size for c in ordered],
            "share": [f"{c.share:.1%}" for c in ordered],
            "confidence": [c.confidence for c in ordered],
            "keywords": [", ".join(c.keywords[:KEYWORDS]) for c in ordered],
            "typical text": [_short(c.examples[0]) if c.examples else "" for c in ordered],
        }
    )
    # to_html escapes the user's names and texts.
    with pd.option_context("display.max_colwidth", None):
        rows = table.to_html(index=False, border=0, na_rep="", float_format="{:.2f}".format)
    # Notebooks align cells to the right, which suits only numbers. Escaped text has no tags.
    for tag in ("th", "td"):
        rows = rows.replace(f"<{tag}>", f'<{tag} style="text-align: left; padding: 2px 8px">')
    known = sum(c.kind == "known" for c in ordered)
    return (
        f"<p><b>{plural(len(ordered), 'category', 'categories')}</b>: {known:,} known, "
        f"{len(ordered) - known:,} novel, {plural(sum(c.size for c in ordered), 'text')}</p>"
        f'<div style="max-height: 30em; overflow: auto">{rows}</div>'
    )


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= TEXT else line[: TEXT - 1].rstrip() + "…"
