"""parts.md: the contribution of each part of `newfound`, from runs with and without it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from benchmarks.rendering.titles import TITLES
from newfound.bench.lines import Line, read_lines
from newfound.bench.rows import SCORES, markdown, mean_spread, seed_list, select_runs


@dataclass(frozen=True)
class Part:
    """A part of the method, and the files of `benchmarks/ablations` that measure it."""

    name: str
    without: str
    whole: str | None = None  # None: the current method, from the results


# Parts are measured in the version of the method that they were part of.
SPECTRAL = "start from spectral features, in place of split-merge moves; fewer steps, smaller head"
FAST_LAST, BEST_LAST = "newfound-fast-before-spectral", "newfound-best-before-spectral"
FAST_BEFORE = "newfound-fast-before-class-prior"
BEST_BEFORE = "newfound-best-before-class-prior"
BEFORE_BALANCE = "newfound-best-before-balance"
PARTS: dict[str, tuple[Part, ...]] = {
    "fast": (
        Part(SPECTRAL, FAST_LAST),
        Part("initial clustering in rounds", "newfound-fast-now-without-rounds", FAST_LAST),
        Part("LSA features", "newfound-fast-now-without-lsa", FAST_LAST),
        Part("split-merge moves", "newfound-fast-now-without-split-merge", FAST_LAST),
        Part(
            "probability that a text is known", "newfound-fast-now-without-known-prior", FAST_LAST
        ),
        Part("class prior", "newfound-fast-now-without-class-prior", FAST_LAST),
        Part("sizes estimated and held less strictly", FAST_BEFORE, FAST_LAST),
        Part("ten Sinkhorn iterations, not three", "newfound-fast-balance-of-3", FAST_BEFORE),
    ),
    "best": (
        Part(SPECTRAL, BEST_LAST),
        Part("sizes estimated and held less strictly", BEST_BEFORE, BEST_LAST),
        Part("contrastive training", "newfound-best-without-contrast", BEST_BEFORE),
        Part("initial clustering in rounds", "newfound-best-without-draft", BEST_BEFORE),
        Part("best of ten initial clusterings, not one", "newfound-best-one-draft", BEST_BEFORE),
        Part("LSA features", "newfound-best-without-words", BEST_BEFORE),
        Part("split-merge moves", "newfound-best-without-relocation", BEST_BEFORE),
        Part("probability that a text is known", "newfound-best-without-prior", BEST_BEFORE),
        Part("class prior from labels", "newfound-best-without-shares", BEST_BEFORE),
        Part("known prototypes moved outwards", "newfound-best-without-farther", BEST_BEFORE),
        Part(
            "ten Sinkhorn iterations, split-merge moves in the initial clustering only, "
            "best of ten initial clusterings",
            BEFORE_BALANCE,
            BEST_BEFORE,
        ),
        Part("initial clustering in rounds", "newfound-best-before-draft", BEFORE_BALANCE),
        Part(
            "best of five initial clusterings, not one",
            f"{BEFORE_BALANCE}-one-draft",
            BEFORE_BALANCE,
        ),
        Part("LSA features", f"{BEFORE_BALANCE}-without-words", BEFORE_BALANCE),
        Part(
            "class prior from labels, known prototypes moved outwards",
            "newfound-best-even-shares",
            "newfound-best-before-draft",
        ),
    ),
}


def parts_table(folder: Path, lines: Sequence[Line], ours: str = "newfound") -> str:
    """Return the accuracy (nearest prototype) that each part adds, by effort and data set."""
    body = []
    for effort, parts in PARTS.items():
        present = [
            line
            for row in select_runs(lines)
            if (row.method, row.effort) == (ours, effort)
            for line in row.lines
        ]
        for part in parts:
            whole = present if part.whole is None else _ordinary(folder, part.whole)
            without = {_key(line): line for line in _ordinary(folder, part.without)}
            pairs = [(line, without[_key(line)]) for line in whole if _key(line) in without]
            body += _rows(effort, part, pairs)
    if not body:
        return "No runs yet.\n"
    header = ["effort", "part", "measured in", "data set", "encoder", "seeds"]
    return markdown([*header, *(score.title() for score in SCORES)], body)


def _rows(effort: str, part: Part, pairs: Sequence[tuple[Line, Line]]) -> list[list[str]]:
    """Return one row per data set and encoder."""
    rows = []
    encoders = sorted({line["encoder"] for line, _ in pairs})
    for (data_set, title), encoder in product(TITLES.items(), encoders):
        chosen = [(a, b) for a, b in pairs if (a["data_set"], a["encoder"]) == (data_set, encoder)]
        if not chosen:
            continue
        gains = [
            mean_spread([_score(a, score) - _score(b, score) for a, b in chosen])
            for score in SCORES
        ]
        seeds = seed_list(sorted(line["seed"] for line, _ in chosen))
        rows.append([effort, part.name, part.whole or "current", title, encoder, seeds, *gains])
    return rows


def _ordinary(folder: Path, name: str) -> list[Line]:
    """Return the lines of a file with the paper's ratios and K given."""
    rows = select_runs(read_lines(folder / f"{name}.jsonl"))
    return [line for row in rows for line in row.lines]


def _key(line: Line) -> tuple[str, str, int]:
    """Return the key that two runs must share to be compared."""
    return line["data_set"], line["encoder"], line["seed"]


def _score(line: Line, score: str) -> float:
    """Return a score by the nearest prototype."""
    return float(line["scores"]["prototype"][score])
