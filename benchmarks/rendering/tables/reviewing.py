"""Accuracy after the answers of a simulated reviewer, by strategy."""

from collections.abc import Sequence
from statistics import fmean

from newfound.bench.lines import Line

TITLES = {
    "queue": "questions of the queue",
    "random": "the same questions in random order",
    "texts": "labels of random texts",
}
GOAL = 50  # answers after which the share of the gap that is closed is shown


def reviewing_table(lines: Sequence[Line]) -> str:
    """Return the table of the lines that `benchmarks.reviewing` wrote."""
    own = [line for line in lines if line.get("kind") == "reviewing"]
    if not own:
        return "No measurements yet.\n"
    answers = sorted({line["answers"] for line in own if line["strategy"] != "labelled"})
    heads = " | ".join(f"{number}" for number in answers)
    rows = [
        f"| data set | seeds | the answers are spent on | {heads} | gap closed after {GOAL} |",
        "| :-- | --: | :-- |" + " --: |" * (len(answers) + 1),
    ]
    for data_set in dict.fromkeys(line["data_set"] for line in own):
        mine = [line for line in own if line["data_set"] == data_set]
        seeds = len({line["seed"] for line in mine})
        full = _mean(mine, "labelled", 0)
        for strategy, title in TITLES.items():
            means = [_mean(mine, strategy, number) for number in answers]
            if all(mean is None for mean in means):
                continue
            cells = " | ".join("" if mean is None else f"{mean:.1f}" for mean in means)
            closed = _closed(_mean(mine, strategy, 0), _mean(mine, strategy, GOAL), full)
            rows.append(f"| {data_set} | {seeds} | {title} | {cells} | {closed} |")
        if full is not None:
            blank = " |" * len(answers)
            rows.append(
                f"| {data_set} | {seeds} | all novel categories labelled: {full:.1f} |{blank} |"
            )
    return "\n".join(rows) + "\n"


def _mean(lines: Sequence[Line], strategy: str, answers: int) -> float | None:
    """Return the mean accuracy over seeds, None if it was not measured."""
    values = [
        line["scores"]["all"]
        for line in lines
        if line["strategy"] == strategy and line["answers"] == answers
    ]
    return fmean(values) if values else None


def _closed(before: float | None, after: float | None, full: float | None) -> str:
    """Return the share of the gap to the fully labelled model that is closed, in percent."""
    if before is None or after is None or full is None or full <= before:
        return ""
    return f"{100 * (after - before) / (full - before):.0f}%"
