"""Rows of a table: result lines that differ only in the seed, and the format of cells."""

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from newfound.bench.lines import Line

NONE = "–"  # noqa: RUF001 - an en dash marks an empty cell
SHARED = ("pretraining", "autoencoder")  # stages that a later run may read from the cache
CACHED = 0.1  # runs that took less than this share of an encoding pass read it from the cache
# Settings that pretraining depends on, besides those whose names start with "pretrain".
PRETRAINING = (
    "head",
    "normalise",
    "patience",
    "masked_words",
    "classifier_from_means",
    "max_tokens",
    "effort",
)


SCORES = ("all", "known", "novel")
SCORE_HEADER = [f"{score.title()}, {by}" for by in ("k-means", "prototype") for score in SCORES]


@dataclass(frozen=True)
class Row:
    """The runs of one method with one encoder and one configuration on one data set."""

    data_set: str
    method: str
    encoder: str
    config: dict[str, Any]
    lines: list[Line]

    def cell(self, by: str, score: str) -> str:
        """Return the mean and standard deviation of a score, by "kmeans" or "prototype"."""
        return mean_spread([line["scores"][by][score] for line in self.lines])

    def scores(self) -> list[str]:
        """Return the cells under `SCORE_HEADER`."""
        return [self.cell(by, score) for by in ("kmeans", "prototype") for score in SCORES]

    @property
    def effort(self) -> str:
        """The effort of the runs."""
        return str(self.config.get("effort", "best"))

    @property
    def seeds(self) -> list[int]:
        """The seeds of the runs, in order."""
        return sorted(line["seed"] for line in self.lines)


def is_run(line: Line) -> bool:
    """Return whether a line is of `newfound bench run`, with or without --search."""
    return "scores" in line and line.get("kind", "search") == "search"


def select_runs(
    lines: Sequence[Line],
    *,
    data_set: str | None = None,
    known_ratio: float = 0.75,
    labelled_ratio: float = 0.1,
    given_k: bool = True,
) -> list[Row]:
    """Group the runs with these ratios into rows, in the order of the lines.

    Parameters
    ----------
    lines : sequence of dict
        Result lines; those of other kinds are left out.
    data_set : str or None
        One data set, or all of them.
    known_ratio, labelled_ratio : float
        The ratios of the split.
    given_k : bool
        Whether the true number of categories was given to the method.

    Returns
    -------
    list of Row
        One row per data set, method, encoder and configuration.
    """
    rows: dict[str, Row] = {}
    for line in lines:
        if (
            not is_run(line)
            or (data_set is not None and line["data_set"] != data_set)
            or (line["known_ratio"], line["labelled_ratio"]) != (known_ratio, labelled_ratio)
            or line["config"]["given_k"] != given_k
        ):
            continue
        parts = (line["data_set"], line["method"], line["encoder"], line["config"])
        rows.setdefault(json.dumps(parts, sort_keys=True), Row(*parts, [])).lines.append(line)
    return list(rows.values())


def differing(row: Row, rows: Sequence[Row]) -> str:
    """Return the settings that differ from the row of the same method with most runs."""
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
    """Return the mean and the sample standard deviation; the latter needs two values.

    Examples
    --------
    >>> mean_spread([72.0, 74.0])
    '73.0 ± 1.4'
    """
    real = [value for value in values if value is not None]
    if not real:
        return NONE
    mean = f"{statistics.fmean(real):.{digits}f}"
    return mean if len(real) < 2 else f"{mean} ± {statistics.stdev(real):.{digits}f}"


def seed_list(seeds: Sequence[int]) -> str:
    """Return seeds as a range or a list.

    Examples
    --------
    >>> seed_list([0, 1, 2]), seed_list([0, 2])
    ('0-2', '0, 2')
    """
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]}-{seeds[-1]}"
    return ", ".join(map(str, seeds))


def mean_seconds(row: Row, lines: Sequence[Line]) -> str:
    """Return the mean seconds per run, including shared stages that were read from the cache."""
    taken = {
        (part, _shared(line)): line["seconds"][part]
        for line in lines
        if is_run(line)
        for part in SHARED
        if part in line["seconds"]
    }
    totals, missing = [], set()
    for line in row.lines:
        seconds, extra = line["seconds"], 0.0
        for part in SHARED:
            # Older lines report a cached pretraining even if it had no epochs.
            if f"{part} (kept)" not in seconds or line["config"].get("pretrain_epochs") == 0:
                continue
            if (part, _shared(line)) not in taken:
                missing.add(part)
            extra += taken.get((part, _shared(line)), 0.0) - seconds[f"{part} (kept)"]
        totals.append(seconds["total"] + extra + _missing_pass(line, lines))
    return " + ".join([f"{statistics.fmean(totals):.0f}", *sorted(missing)])


def _missing_pass(line: Line, lines: Sequence[Line]) -> float:
    """Return the seconds of the frozen encoder's pass if a run read it from the cache.

    They are the median over the runs that encoded the texts themselves.
    """
    key = _pass(line)
    if key is None:
        return 0.0
    passes = [other["seconds"]["encoding"] for other in lines if _pass(other) == key]
    whole = statistics.median(seconds for seconds in passes if seconds >= max(passes) / 2)
    own = float(line["seconds"]["encoding"])
    return whole - own if own < CACHED * whole else 0.0


def _pass(line: Line) -> tuple[Any, ...] | None:
    """Return a key that equal passes of a frozen encoder share; None without such a pass."""
    if not is_run(line):
        return None
    config = line["config"]
    layers = [config.get(name, 0) for name in ("pretrain_layers", "trainable_layers")]
    words = "vectors" in config  # word vectors need no encoder
    if "encoding" not in line["seconds"] or layers != [0, 0] or words:
        return None
    return (line["data_set"], line["encoder"], line["device"], config.get("max_tokens"))


def _shared(line: Line) -> str:
    """Return a key that runs with the same pretraining, or autoencoder, share."""
    fields = ("data_set", "encoder", "seed", "known_ratio", "labelled_ratio", "device")
    config = line["config"]
    settings = {
        name: value
        for name, value in config.items()
        if name.startswith("pretrain") or name in PRETRAINING
    }
    return json.dumps([[line.get(name) for name in fields], settings], sort_keys=True)


def markdown(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table whose first column is text and whose others are numbers."""
    marks = [":--", *("--:" for _ in header[1:])]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (header, marks, *body)) + "\n"
