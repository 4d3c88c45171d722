"""The first minute: what is in the texts, how sure that is, and what to do next."""

import math
import shlex
from typing import Any

import numpy as np

from newfound.report.finding import Finding, count, percent
from newfound.report.findings import UNSURE, pile_probability
from newfound.report.run import Run
from newfound.report.shown import NAME, shown

LARGEST = 5  # novel categories named as the first to read


def overview(run: Run, found: list[Finding]) -> dict[str, Any]:
    """Return headline, sentences, numbers, the bar of parts, and the next steps."""
    known = run.known
    pile = int((~run.given).sum())
    to_known = int(run.pile[known].sum())
    return {
        "title": _title(run),
        "summary": _summary(run, pile, to_known),
        "numbers": _numbers(run, pile, to_known),
        "bar": [
            {"kind": "given", "name": "labelled by you", "texts": int(run.given.sum())},
            {"kind": "known", "name": "found to be known", "texts": to_known},
            {"kind": "novel", "name": "found to be novel", "texts": pile - to_known},
        ],
        "steps": _steps(run, found),
    }


def _title(run: Run) -> str:
    known = int(run.known.sum())
    novel = len(run.categories) - known
    texts = count(len(run.texts), "text")
    if novel == 0:
        return f"{texts}: {count(known, 'known category', 'known categories')}, nothing novel"
    return f"{texts}: {known:,} known and {count(novel, 'novel category', 'novel categories')}"


def _summary(run: Run, pile: int, to_known: int) -> list[str]:
    known = int(run.known.sum())
    novel = len(run.categories) - known
    given = len(run.texts) - pile
    if pile == 0:
        return ["Every text had a label, so there was nothing to sort."]
    belong = f"{to_known:,} ({percent(to_known / pile)}) belong to categories that you know"
    new = (
        f"{pile - to_known:,} ({percent(1 - to_known / pile)}) form "
        f"{count(novel, 'novel category', 'novel categories')} that no label named"
    )
    parts = [part for part, there in ((belong, known), (new, novel)) if there]
    of = f"Of the {pile:,} texts without a label, " if given else f"Of {pile:,} texts, "
    return [of + " and ".join(parts) + "."]


def _numbers(run: Run, pile: int, to_known: int) -> list[dict[str, str]]:
    known = int(run.known.sum())
    novel = len(run.categories) - known
    present = int((run.pile[run.known] > 0).sum())
    numbers = [
        {
            "name": "Texts",
            "value": f"{len(run.texts):,}",
            "note": f"{len(run.texts) - pile:,} labelled by you",
        },
        {
            "name": "Known categories",
            "value": f"{known:,}",
            "note": _present(present, known) if pile else "",
        },
        {"name": "Novel categories", "value": f"{novel:,}", "note": _how_many(run)},
    ]
    probability = pile_probability(run)
    if len(probability):
        unsure = percent(float((probability < UNSURE).mean()))
        numbers.append(
            {
                "name": "Confidence",
                "value": percent(float(probability.mean())),
                "note": f"on average; below {UNSURE:.0%} for {unsure} of the texts",
            }
        )
    scores = {  # in percent; of a part without texts there is none
        part: f"{value:.0f}%"
        for part, value in (run.info.get("scores") or {}).items()
        if value is not None and math.isfinite(value)
    }
    if "all" in scores:
        parts = [f"{part} {scores[part]}" for part in ("known", "novel") if part in scores]
        note = ": ".join(["against the truth", *([", ".join(parts)] if parts else [])])
        numbers.append({"name": "Correct", "value": scores["all"], "note": note})
    return numbers


def _present(present: int, known: int) -> str:
    if known == 0:
        return "no text had a label"
    number = "all" if present == known else f"{present:,}"
    return f"{number} found among the unlabelled"


def _how_many(run: Run) -> str:
    if (run.info.get("categories") or {}).get("given"):
        return "as many as you asked for"
    estimate = run.info.get("estimate") or {}
    low, high = estimate.get("low"), estimate.get("high")
    if low is None or high is None or low == high:
        return "their number was estimated"
    known = int(run.known.sum())
    return f"estimated; {max(low - known, 0):,} to {max(high - known, 0):,} are plausible"


def _steps(run: Run, found: list[Finding]) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    sizes = np.array([c.size for c in run.categories])
    novel = np.flatnonzero(~run.known)
    if len(novel):
        largest = novel[np.argsort(-sizes[novel], kind="stable")][:LARGEST]
        text = "Read the novel categories, largest first, and decide: keep, rename or merge."
        steps.append({"text": text, "categories": largest.tolist()})
    checks = sum(finding.level == "check" for finding in found)
    if checks:
        text = f"Look at the {count(checks, 'point')} under \u201cTo check\u201d before you decide."
        steps.append({"text": text, "link": "findings"})
    steps.append(
        {
            "text": "Hand over the categories that you accept to the tool that your team uses.",
            "code": f"newfound export {shlex.quote(shown(run.name, NAME))} --to labelstudio "
            "-o tasks.json",
        }
    )
    return steps
