"""The overview: what was found, how certain it is, and what to do next."""

import math
import shlex
from typing import Any

import numpy as np

from newfound.report.findings import UNSURE, Finding, percent, pile_probability
from newfound.report.shown import NAME, shown
from newfound.result import Result
from newfound.wording import plural

LARGEST = 5  # novel categories listed as the first to read


def overview(result: Result, found: list[Finding], name: str) -> dict[str, Any]:
    """Return the headline, summary, key numbers, bar of parts and next steps.

    `name` is the name of the run folder in the commands on the page.
    """
    known = result.is_known
    pile = int((~result.labelled).sum())
    to_known = int(result.unlabelled_sizes[known].sum())
    return {
        "title": _title(result),
        "summary": _summary(result, pile, to_known),
        "numbers": _numbers(result, pile, to_known),
        "bar": [
            {"kind": "given", "name": "labelled by you", "texts": int(result.labelled.sum())},
            {"kind": "known", "name": "assigned to known categories", "texts": to_known},
            {"kind": "novel", "name": "assigned to novel categories", "texts": pile - to_known},
        ],
        "steps": _steps(result, found, name),
    }


def _title(result: Result) -> str:
    known = int(result.is_known.sum())
    novel = len(result.categories) - known
    texts = plural(len(result.corpus), "text")
    if novel == 0:
        return f"{texts}: {plural(known, 'known category', 'known categories')}, no novel ones"
    return f"{texts}: {known:,} known and {plural(novel, 'novel category', 'novel categories')}"


def _summary(result: Result, pile: int, to_known: int) -> list[str]:
    known = int(result.is_known.sum())
    novel = len(result.categories) - known
    given = len(result.corpus) - pile
    if pile == 0:
        return ["Every text has a label, so no text had to be assigned."]
    belong = f"{to_known:,} ({percent(to_known / pile)}) belong to known categories"
    new = (
        f"{pile - to_known:,} ({percent(1 - to_known / pile)}) form "
        f"{plural(novel, 'novel category', 'novel categories')}"
    )
    parts = [part for part, there in ((belong, known), (new, novel)) if there]
    of = f"Of the {pile:,} unlabelled texts, " if given else f"Of {pile:,} texts, "
    return [of + " and ".join(parts) + "."]


def _numbers(result: Result, pile: int, to_known: int) -> list[dict[str, str]]:
    known = int(result.is_known.sum())
    novel = len(result.categories) - known
    present = int((result.unlabelled_sizes[result.is_known] > 0).sum())
    numbers = [
        {
            "name": "Texts",
            "value": f"{len(result.corpus):,}",
            "note": f"{len(result.corpus) - pile:,} labelled by you" + _fitted_on(result),
        },
        {
            "name": "Known categories",
            "value": f"{known:,}",
            "note": _present(present, known) if pile else "",
        },
        {"name": "Novel categories", "value": f"{novel:,}", "note": _how_many(result)},
    ]
    probability = pile_probability(result)
    if len(probability):
        unsure = percent(float((probability < UNSURE).mean()))
        numbers.append(
            {
                "name": "Confidence",
                "value": percent(float(probability.mean())),
                "note": f"mean probability; below {UNSURE:.0%} for {unsure} of the texts",
            }
        )
    languages = result.languages
    if languages is not None and set(languages.shares) != {"en"}:
        count = f"{len(languages.shares):,}"
        numbers.append({"name": "Languages", "value": count, "note": languages.described})
    if result.fits_nowhere is not None:
        marked = int(result.fits_nowhere.sum())
        share = percent(marked / pile) if pile else percent(0)
        note = f"{share} of the unlabelled texts; they keep their category"
        numbers.append({"name": "Fit nowhere", "value": f"{marked:,}", "note": note})
    scores = {  # in percent; a part without texts has none
        part: f"{value:.0f}%"
        for part, value in (result.scores or {}).items()
        if value is not None and math.isfinite(value)
    }
    if "all" in scores:
        parts = [f"{part} {scores[part]}" for part in ("known", "novel") if part in scores]
        note = ", ".join(parts)
        numbers.append({"name": "Accuracy", "value": scores["all"], "note": note})
    return numbers


def _fitted_on(result: Result) -> str:
    """Return how many texts the method was fitted on, if not on all."""
    if result.sample is None:
        return ""
    return f"; fitted on a sample of {result.sample['fitted']:,}, which the map shows"


def _present(present: int, known: int) -> str:
    if known == 0:
        return "no text has a label"
    number = "all" if present == known else f"{present:,}"
    return f"{number} found among the unlabelled texts"


def _how_many(result: Result) -> str:
    if result.config.get("n_categories", "auto") != "auto":
        return "as given"
    estimate = result.estimate
    if estimate is None or estimate.low == estimate.high:
        return "estimated"
    low, high = estimate.low, estimate.high
    known = int(result.is_known.sum())
    return f"estimated; plausible: {max(low - known, 0):,} to {max(high - known, 0):,}"


def _steps(result: Result, found: list[Finding], name: str) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    sizes = np.array([c.size for c in result.categories])
    novel = np.flatnonzero(~result.is_known)
    if len(novel):
        largest = novel[np.argsort(-sizes[novel], kind="stable")][:LARGEST]
        text = "Read the novel categories, the largest first. Keep, rename or merge each of them."
        code = f"newfound review {shlex.quote(shown(name, NAME))}"
        steps.append({"text": text, "categories": largest.tolist(), "code": code})
    checks = sum(finding.level == "check" for finding in found)
    if checks:
        text = f"Read the {plural(checks, 'point')} under \u201cTo check\u201d before you decide."
        steps.append({"text": text, "link": "findings"})
    steps.append(
        {
            "text": "Export the categories that you accept to another tool.",
            "code": f"newfound export {shlex.quote(shown(name, NAME))} --to labelstudio "
            "-o tasks.json",
        }
    )
    return steps
