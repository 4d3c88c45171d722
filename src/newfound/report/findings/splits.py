"""The finding on known categories that seem to have been split: parts of them became novel."""

import numpy as np

from newfound.report.findings.finding import Finding, Item, percent
from newfound.result import Result
from newfound.wording import plural

# Set on BANKING with 90 categories instead of 77: of the novel categories whose texts are mostly of
# one known category, two of three are above both limits, and one of the 49 others.
SHARE = 0.6  # of a novel category's texts for which the same known category is the best known one
NEARLY = 0.4  # mean probability of that known category, relative to the assigned one


def split_known(result: Result) -> Finding | None:
    """Find novel categories whose texts the model would nearly have given to one known category."""
    if result.best_known is None or result.best_known_probability is None:
        return None
    items = []
    for novel in np.flatnonzero(~result.is_known):
        rows = np.flatnonzero((result.assigned == novel) & (result.best_known >= 0))
        if not len(rows):
            continue
        counts = np.bincount(result.best_known[rows])
        known, share = int(counts.argmax()), float(counts.max() / len(rows))
        nearly = float(
            np.mean(
                result.best_known_probability[rows] / np.maximum(result.probability[rows], 1e-9)
            )
        )
        if share >= SHARE and nearly >= NEARLY:
            text = (
                f"{percent(share)} of its texts have it as best known category, on average "
                f"{percent(nearly)} as probable as their own"
            )
            items.append(Item(int(novel), known, text))
    if not items:
        return None
    whole = len({item.other for item in items})
    return Finding(
        "split",
        "check",
        f"{plural(whole, 'known category', 'known categories')} may have been split into novel "
        "ones",
        "The model was nearly as sure that the texts of these novel categories belong to the known "
        "one beside them.",
        "Compare their texts with those of the known category; if the topic is the same, merge "
        "them.",
        tuple(sorted(items, key=lambda item: (item.other or 0, item.category))),
    )
