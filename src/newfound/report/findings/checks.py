"""Checks of a result: possible problems to look at before it is used."""

from collections.abc import Callable

import numpy as np

from newfound.encoding.languages import better_encoder, share_not_served
from newfound.report.findings.changes import what_changed
from newfound.report.findings.finding import Finding, Item, percent
from newfound.report.findings.fits import fits_nowhere
from newfound.report.findings.likeness import (
    far_from_labels,
    labels_doubted,
    looks_like_two,
    same_as_known,
    unsure_categories,
)
from newfound.report.findings.splits import split_known
from newfound.result import Result
from newfound.wording import plural

# The thresholds are set by judgement. They are strict, so that few findings are false alarms.
SMALL = 5  # texts; with fewer, the topic of a category is not clear
SMALL_SHARE = 0.1  # of the median category
DOMINANT_SHARE = 0.25  # of all texts, and DOMINANT_TIMES the mean share
DOMINANT_TIMES = 5
UNSURE = 0.5  # below this probability a prediction is more likely wrong than right
UNSURE_SHARE = 0.3  # of the texts without a label
WIDE = 0.3  # width of the plausible range, relative to the estimate
NOTES = 50  # shown in the report


def findings(result: Result) -> list[Finding]:
    """Return all findings; possible problems come before notes."""
    checks: list[Callable[[Result], Finding | None]] = [
        what_changed,
        _languages,
        _unsure_overall,
        fits_nowhere,
        same_as_known,
        split_known,
        _absent,
        looks_like_two,
        labels_doubted,
        far_from_labels,
        unsure_categories,
        _dominant,
        _small,
        _wide_estimate,
        _estimate_at_limit,
        _no_novel,
        _notes,
    ]
    found = [finding for check in checks if (finding := check(result)) is not None]
    return sorted(found, key=lambda finding: finding.level != "check")


def pile_probability(result: Result) -> np.ndarray:
    """Return the probabilities of unlabelled texts, or of all texts if every text is labelled."""
    chosen = (
        result.probability[~result.labelled] if not result.labelled.all() else result.probability
    )
    return chosen[np.isfinite(chosen)]


def _languages(result: Result) -> Finding | None:
    encoder = str(result.config.get("encoder"))
    share = share_not_served(result.languages, encoder)
    if not share or result.languages is None:
        return None
    return Finding(
        "languages",
        "check",
        "The encoder does not read all languages of the texts",
        f"About {percent(share)} of the texts are in languages that the encoder {encoder} was not "
        f"trained for ({result.languages.described}). Probabilities may be high all the same.",
        f"Run again: {better_encoder(result.languages)}.",
    )


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
        f"For {percent(share)} of the unlabelled texts the probability is below {UNSURE:.0%}; the "
        f"mean is {percent(float(probability.mean()))}.",
        "Treat sizes as approximate. Label more texts, or try another number of categories.",
    )


def _absent(result: Result) -> Finding | None:
    if result.labelled.all():
        return None
    absent = np.flatnonzero(result.is_known & (result.unlabelled_sizes == 0))
    if not len(absent):
        return None
    return Finding(
        "absent",
        "check",
        f"{plural(len(absent), 'known category', 'known categories')} without an unlabelled text",
        "No unlabelled text was assigned to these categories. They may not occur in the texts, or "
        "a similar category may have absorbed them.",
        "Read the nearest category, and search the texts for words that you would expect.",
        tuple(
            Item(
                int(i),
                result.position.get(result.categories[i].nearest or ""),
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
        f"{plural(len(items), 'category holds', 'categories hold')} a large part of the texts",
        "Such a category may really be that common, or it may collect all unclear texts.",
        "Read its border texts; if they are mixed, run again with more categories.",
        tuple(items),
    )


def _small(result: Result) -> Finding | None:
    sizes = np.array([c.size for c in result.categories])
    if not len(sizes):
        return None
    limit = max(float(SMALL), SMALL_SHARE * float(np.median(sizes)))
    # A known category without an unlabelled text is reported as absent, not as small.
    absent = result.is_known & (result.unlabelled_sizes == 0) & ~result.labelled.all()
    small = np.flatnonzero((sizes < limit) & ~absent)
    if not len(small):
        return None
    return Finding(
        "small",
        "check",
        f"{plural(len(small), 'category', 'categories')} with very few texts",
        "So few texts may be grouped by chance, because they fit no other category well.",
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
        f"The estimate is {best:,}, and any number from {low:,} to {high:,} is plausible.",
        "Run again with more categories if some look merged, with fewer if some look split.",
    )


def _estimate_at_limit(result: Result) -> Finding | None:
    estimate = result.estimate
    if estimate is None or not estimate.at_limit:
        return None
    return Finding(
        "limit",
        "check",
        "There may be more categories than were tried",
        f"The estimate, {estimate.n_categories:,}, is the largest number that was tried.",
        "Run again with a larger number of categories (--categories), and compare the reports.",
    )


def _no_novel(result: Result) -> Finding | None:
    if not result.categories or not result.is_known.all():
        return None
    return Finding(
        "no-novel",
        "note",
        "No novel category was found",
        "Every text was assigned to a known category.",
        "If you expected novel categories, run again with a larger number of categories.",
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
