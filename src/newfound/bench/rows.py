"""From result lines to rows of a table: runs that differ by nothing but the seed."""

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from newfound.bench.lines import Line

NONE = "–"  # noqa: RUF001 - an en dash is how an empty cell reads
SHARED = ("pretraining", "autoencoder")  # parts of a run that a later one may find kept
KEPT = 0.1  # of a pass of the encoder: a run that took less for it found what it gives kept
# Settings that a pretraining depends on, beside those that begin with "pretrain".
PRETRAINING = (
    "head",
    "normalise",
    "patience",
    "masked_words",
    "classifier_from_means",
    "max_tokens",
    "effort",
)


@dataclass(frozen=True)
class Row:
    """The runs of one method with one encoder and one configuration on one data set."""

    data_set: str
    method: str
    encoder: str
    config: dict[str, Any]
    lines: list[Line]

    def cell(self, by: str, score: str) -> str:
        """Mean and spread of a score, by "kmeans" or by "prototype"."""
        return mean_spread([line["scores"][by][score] for line in self.lines])

    @property
    def seeds(self) -> list[int]:
        return sorted(line["seed"] for line in self.lines)


def select_runs(
    lines: Sequence[Line],
    *,
    data_set: str | None = None,
    known_ratio: float = 0.75,
    labelled_ratio: float = 0.1,
    given_k: bool = True,
) -> list[Row]:
    """Rows of the runs with these ratios; the order is that of the lines."""
    rows: dict[str, Row] = {}
    for line in lines:
        if (
            "scores" not in line
            or (data_set is not None and line["data_set"] != data_set)
            or (line["known_ratio"], line["labelled_ratio"]) != (known_ratio, labelled_ratio)
            or line["config"]["given_k"] != given_k
        ):
            continue
        parts = (line["data_set"], line["method"], line["encoder"], line["config"])
        rows.setdefault(json.dumps(parts, sort_keys=True), Row(*parts, [])).lines.append(line)
    return list(rows.values())


def differing(row: Row, rows: Sequence[Row]) -> str:
    """The settings that tell a row from others of its method, if it is not the main one."""
    same = [r for r in rows if (r.method, r.encoder) == (row.method, row.encoder)]
    main = max(same, key=lambda r: len(r.lines))
    if main is row:
        return ""
    names = sorted({*main.config, *row.config})
    absent = object()
    return ", ".join(
        f"{name}={row.config.get(name, 'absent')}"
        for name in names
        if row.config.get(name, absent) != main.config.get(name, absent)
    )


def mean_spread(values: Sequence[float | None], digits: int = 1) -> str:
    """`73.1 ± 0.8`: mean and sample standard deviation; one value has no spread."""
    real = [value for value in values if value is not None]
    if not real:
        return NONE
    mean = f"{statistics.fmean(real):.{digits}f}"
    return mean if len(real) < 2 else f"{mean} ± {statistics.stdev(real):.{digits}f}"


def seed_list(seeds: Sequence[int]) -> str:
    """`0-4` for five seeds in a row, else each: `0, 2`."""
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]}-{seeds[-1]}"
    return ", ".join(map(str, seeds))


def mean_seconds(row: Row, lines: Sequence[Line]) -> str:
    """Seconds a run takes, with what it shares with others even where it found that kept."""
    taken = {
        (part, _shared(line)): line["seconds"][part]
        for line in lines
        for part in SHARED
        if part in line.get("seconds", {})
    }
    totals, missing = [], set()
    for line in row.lines:
        seconds, extra = line["seconds"], 0.0
        for part in SHARED:
            # Older lines say so even of a pretraining of no epochs.
            if f"{part} (kept)" not in seconds or line["config"].get("pretrain_epochs") == 0:
                continue
            if (part, _shared(line)) not in taken:
                missing.add(part)
            extra += taken.get((part, _shared(line)), 0.0) - seconds[f"{part} (kept)"]
        totals.append(seconds["total"] + extra + _missing_pass(line, lines))
    return " + ".join([f"{statistics.fmean(totals):.0f}", *sorted(missing)])


def _missing_pass(line: Line, lines: Sequence[Line]) -> float:
    """Seconds of the frozen encoder's pass over the texts, where a run found its output kept.

    Such a run has next to none of it; what others took for it is their median.
    """
    key = _pass(line)
    if key is None:
        return 0.0
    passes = [other["seconds"]["encoding"] for other in lines if _pass(other) == key]
    whole = statistics.median(seconds for seconds in passes if seconds >= max(passes) / 2)
    own = float(line["seconds"]["encoding"])
    return whole - own if own < KEPT * whole else 0.0


def _pass(line: Line) -> tuple[Any, ...] | None:
    """What makes two passes of a frozen encoder the same; None for a run that makes no such."""
    config = line.get("config", {})
    layers = [config.get(name, 0) for name in ("pretrain_layers", "trainable_layers")]
    words = "vectors" in config  # of words: no encoder reads the texts
    if "encoding" not in line.get("seconds", {}) or layers != [0, 0] or words:
        return None
    return (line["data_set"], line["encoder"], line["device"], config.get("max_tokens"))


def _shared(line: Line) -> str:
    """What makes the pretraining of two runs, or their autoencoder, the same."""
    fields = ("data_set", "encoder", "seed", "known_ratio", "labelled_ratio", "device")
    config = line["config"]
    settings = {
        name: value
        for name, value in config.items()
        if name.startswith("pretrain") or name in PRETRAINING
    }
    return json.dumps([[line.get(name) for name in fields], settings], sort_keys=True)


def markdown(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the first column is text, the others are numbers."""
    marks = [":--", *("--:" for _ in header[1:])]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (header, marks, *body)) + "\n"
