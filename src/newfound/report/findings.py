"""What a careful analyst would point out before anyone acts on the result."""

from collections.abc import Callable
from typing import Any

import numpy as np

from newfound.report.finding import Finding, Item, count, percent
from newfound.report.likeness import (
    far_from_labels,
    labels_doubted,
    looks_like_two,
    same_as_known,
    unsure_categories,
)
from newfound.report.run import Run

# Each limit is a judgement; they err towards silence, because a list that cries wolf is not read.
SMALL = 5  # texts; fewer cannot show what a category is about
SMALL_SHARE = 0.1  # of the median category
DOMINANT_SHARE = 0.25  # of all texts, and DOMINANT_TIMES an equal share
DOMINANT_TIMES = 5
UNSURE = 0.5  # below this the model's answer is more likely wrong than right
UNSURE_SHARE = 0.3  # of the texts without a label
WIDE = 0.3  # of the estimate, between its low and its high end
NOTES = 50


def findings(run: Run) -> list[Finding]:
    """Return everything that deserves a look, the most serious first."""
    checks: list[Callable[[Run], Finding | None]] = [
        _unsure_overall,
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
    found = [finding for check in checks if (finding := check(run)) is not None]
    return sorted(found, key=lambda finding: finding.level != "check")


def pile_probability(run: Run) -> np.ndarray:
    """Return the probabilities of the texts without a label; of all texts if each has one."""
    chosen = run.probability[~run.given] if not run.given.all() else run.probability
    return chosen[np.isfinite(chosen)]


def _unsure_overall(run: Run) -> Finding | None:
    probability = pile_probability(run)
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


def _absent(run: Run) -> Finding | None:
    if run.given.all():
        return None
    absent = np.flatnonzero(run.known & (run.pile == 0))
    if not len(absent):
        return None
    ids = {c.id: i for i, c in enumerate(run.categories)}
    return Finding(
        "absent",
        "check",
        f"{count(len(absent), 'known category', 'known categories')} without a new text",
        "No text without a label was given to these. They may be missing from the texts, or a "
        "neighbour may have taken theirs.",
        "Look at the nearest category and search the texts for a word that you would expect.",
        tuple(
            Item(
                int(i),
                ids.get(run.categories[i].nearest),
                f"only the {count(run.categories[i].labelled, 'text')} that you labelled",
            )
            for i in absent
        ),
    )


def _dominant(run: Run) -> Finding | None:
    limit = max(DOMINANT_SHARE, DOMINANT_TIMES / max(len(run.categories), 1))
    items = [
        Item(i, None, f"{percent(c.share)} of all texts")
        for i, c in enumerate(run.categories)
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


def _small(run: Run) -> Finding | None:
    sizes = np.array([c.size for c in run.categories])
    if not len(sizes):
        return None
    limit = max(float(SMALL), SMALL_SHARE * float(np.median(sizes)))
    # A known category that got nothing is reported as absent, not as small.
    absent = run.known & (run.pile == 0) & ~run.given.all()
    small = np.flatnonzero((sizes < limit) & ~absent)
    if not len(small):
        return None
    return Finding(
        "small",
        "check",
        f"{count(len(small), 'category', 'categories')} with very few texts",
        "So few texts can be chance: odd ones that fitted nowhere else.",
        "Keep them only if their texts clearly belong together.",
        tuple(
            Item(int(i), None, count(int(sizes[i]), "text"))
            for i in small[np.argsort(sizes[small], kind="stable")]
        ),
    )


def _estimate(run: Run) -> dict[str, Any] | None:
    estimate = run.info.get("estimate")
    return estimate if isinstance(estimate, dict) and estimate.get("estimate") else None


def _wide_estimate(run: Run) -> Finding | None:
    estimate = _estimate(run)
    if estimate is None or estimate.get("low") is None or estimate.get("high") is None:
        return None
    low, high, best = estimate["low"], estimate["high"], estimate["estimate"]
    if (high - low) / best <= WIDE:
        return None
    return Finding(
        "wide",
        "note",
        "The number of categories is uncertain",
        f"{best:,} were estimated, and anything from {low:,} to {high:,} is plausible.",
        "If categories look merged, ask for more of them; if they look split, for fewer.",
    )


def _estimate_at_edge(run: Run) -> Finding | None:
    estimate = _estimate(run)
    points = [
        (score, number)
        for number, score in zip(
            (estimate or {}).get("candidates") or [],
            (estimate or {}).get("scores") or [],
            strict=False,
        )
        if score is not None
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


def _no_novel(run: Run) -> Finding | None:
    if not run.categories or not run.known.all():
        return None
    return Finding(
        "no-novel",
        "note",
        "No novel category was found",
        "Every text fits one of the categories that you gave.",
        "If you expected something new, run again with a larger number of categories.",
    )


def _notes(run: Run) -> Finding | None:
    notes = [str(note) for note in run.info.get("notes") or []]
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
