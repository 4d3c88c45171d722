"""What a careful analyst would point out before anyone acts on the result."""

import math
from collections.abc import Callable

import numpy as np

from newfound.report.finding import Finding, Item, percent
from newfound.report.fits import fits_nowhere
from newfound.report.likeness import (
    far_from_labels,
    labels_doubted,
    looks_like_two,
    same_as_known,
    unsure_categories,
)
from newfound.result import Result
from newfound.wording import plural

# Each limit is a judgement; they err towards silence, because a list that cries wolf is not read.
SMALL = 5  # texts; fewer cannot show what a category is about
SMALL_SHARE = 0.1  # of the median category
DOMINANT_SHARE = 0.25  # of all texts, and DOMINANT_TIMES an equal share
DOMINANT_TIMES = 5
UNSURE = 0.5  # below this the model's answer is more likely wrong than right
UNSURE_SHARE = 0.3  # of the texts without a label
WIDE = 0.3  # of the estimate, between its low and its high end
NOTES = 50


def findings(result: Result) -> list[Finding]:
    """Return everything that deserves a look, the most serious first."""
    checks: list[Callable[[Result], Finding | None]] = [
        _unsure_overall,
        fits_nowhere,
        same_as_known,
        _absent,
        looks_like_two,
        labels_doubted,
        far_from_labels,
        unsure_categories,
        _dominant,
        _small,
        _wide_estimate,
        _estimate_at_edge,
        _no_novel,
        _notes,
    ]
    found = [finding for check in checks if (finding := check(result)) is not None]
    return sorted(found, key=lambda finding: finding.level != "check")


def pile_probability(result: Result) -> np.ndarray:
    """Return the probabilities of the texts without a label; of all texts if each has one."""
    chosen = (
        result.probability[~result.labelled] if not result.labelled.all() else result.probability
    )
    return chosen[np.isfinite(chosen)]


def _unsure_overall(result: Result) -> Finding | None:
    probability = pile_probability(result)
    if not len(probability):
        return None
    share = float((probability < UNSURE).mean())
    if share <= UNSURE_SHARE:
        return None
    return Finding(
        "unsure",
        "check",
        "The model is unsure about many texts",
        f"For {percent(share)} of the texts without a label, its answer has a probability below "
        f"{UNSURE:.0%}; on average it is {percent(float(probability.mean()))}.",
        "Treat sizes as rough. More labelled texts, or another number of categories, may help.",
    )


def _absent(result: Result) -> Finding | None:
    if result.labelled.all():
        return None
    absent = np.flatnonzero(result.is_known & (result.unlabelled_sizes == 0))
    if not len(absent):
        return None
    ids = {c.id: i for i, c in enumerate(result.categories)}
    return Finding(
        "absent",
        "check",
        f"{plural(len(absent), 'known category', 'known categories')} without a new text",
        "No text without a label was given to these. They may be missing from the texts, or a "
        "neighbour may have taken theirs.",
        "Look at the nearest category and search the texts for a word that you would expect.",
        tuple(
            Item(
                int(i),
                ids.get(result.categories[i].nearest),
                f"only the {plural(result.categories[i].labelled, 'text')} that you labelled",
            )
            for i in absent
        ),
    )


def _dominant(result: Result) -> Finding | None:
    limit = max(DOMINANT_SHARE, DOMINANT_TIMES / max(len(result.categories), 1))
    items = [
        Item(i, None, f"{percent(c.share)} of all texts")
        for i, c in enumerate(result.categories)
        if c.share > limit
    ]
    if not items:
        return None
    return Finding(
        "dominant",
        "check",
        "One category holds a large part of the texts",
        "It may be a real favourite, or a place where everything unclear ends up.",
        "Read its border texts; if they are a mixture, run again with more categories.",
        tuple(items),
    )


def _small(result: Result) -> Finding | None:
    sizes = np.array([c.size for c in result.categories])
    if not len(sizes):
        return None
    limit = max(float(SMALL), SMALL_SHARE * float(np.median(sizes)))
    # A known category that got nothing is reported as absent, not as small.
    absent = result.is_known & (result.unlabelled_sizes == 0) & ~result.labelled.all()
    small = np.flatnonzero((sizes < limit) & ~absent)
    if not len(small):
        return None
    return Finding(
        "small",
        "check",
        f"{plural(len(small), 'category', 'categories')} with very few texts",
        "So few texts can be chance: odd ones that fitted nowhere else.",
        "Keep them only if their texts clearly belong together.",
        tuple(
            Item(int(i), None, plural(int(sizes[i]), "text"))
            for i in small[np.argsort(sizes[small], kind="stable")]
        ),
    )


def _wide_estimate(result: Result) -> Finding | None:
    estimate = result.estimate
    if estimate is None:
        return None
    low, high, best = estimate.low, estimate.high, estimate.n_categories
    if (high - low) / best <= WIDE:
        return None
    return Finding(
        "wide",
        "note",
        "The number of categories is uncertain",
        f"{best:,} were estimated, and anything from {low:,} to {high:,} is plausible.",
        "If categories look merged, ask for more of them; if they look split, for fewer.",
    )


def _estimate_at_edge(result: Result) -> Finding | None:
    estimate = result.estimate
    if estimate is None:
        return None
    points = [
        (score, number)
        for number, score in zip(estimate.candidates, estimate.scores, strict=False)
        if math.isfinite(score)
    ]
    if len(points) < 3 or max(points)[1] < max(number for _, number in points):
        return None
    most = max(points)[1]
    return Finding(
        "edge",
        "check",
        "There may be more categories than were tried",
        f"The likeliest number, {most:,}, is the largest one that was tried.",
        "Run again and let it try larger numbers.",
    )


def _no_novel(result: Result) -> Finding | None:
    if not result.categories or not result.is_known.all():
        return None
    return Finding(
        "no-novel",
        "note",
        "No novel category was found",
        "Every text fits one of the categories that you gave.",
        "If you expected something new, run again with a larger number of categories.",
    )


def _notes(result: Result) -> Finding | None:
    notes = result.notes
    if not notes:
        return None
    more = [f"and {len(notes) - NOTES:,} more in run.json"] if len(notes) > NOTES else []
    return Finding(
        "notes",
        "note",
        "Notes from the run",
        "",
        "",
        lines=(*notes[:NOTES], *more),
    )
