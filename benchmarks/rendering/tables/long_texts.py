"""The table of accuracy on long texts, truncated and whole."""

import statistics
from collections.abc import Sequence

from newfound.bench.lines import Line
from newfound.bench.rows import markdown

SCORES = ("all", "known", "novel")


def long_texts_table(lines: Sequence[Line]) -> str:
    """Return the mean scores of `benchmarks.long_texts`, the last line of each seed counting."""
    newest = {
        (line["config"]["max_tokens"], line["seed"]): line
        for line in lines
        if line.get("kind") == "long_texts"
    }
    if not newest:
        return "No measurements yet.\n"
    rows = []
    limits = sorted({limit for limit, _ in newest if limit is not None})
    for limit in (*limits, None):
        own = [line for (each, _), line in newest.items() if each == limit]
        if not own:
            continue
        means = [statistics.fmean(line["scores"][name] for line in own) for name in SCORES]
        title = "whole texts (default)" if limit is None else f"`--max-tokens {limit}`"
        share = own[-1]["long_texts"] / own[-1]["texts"]
        what = f"{share:.0%} {'split' if limit is None else 'truncated'}"
        rows.append([title, what, *(f"{mean:.1f}" for mean in means), str(len(own))])
    return markdown(["", "texts", "All", "Known", "Novel", "seeds"], rows)
