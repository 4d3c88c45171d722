"""speed.md: the goals for speed, then the sections of `newfound bench speed`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from newfound.bench.lines import Line
from newfound.bench.rows import NONE, markdown
from newfound.bench.speed.table import (
    TITLES,
    Measures,
    cell,
    last_measurements,
    section_table,
    section_tables,
    speed_ratio,
)

SAME_INERTIA = 1.005
FLAT_MIB = 300
STEADY = 1.25  # largest growth of the time per text, on a shared machine
GPU_COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("seconds", "here, seconds", ".2f"),
    ("floor_seconds", "floor, seconds", ".3f"),
    ("steps", "steps", ",.0f"),
    ("flop", "FLOP", ".1e"),
    ("bytes", "bytes moved by AdamW", ".1e"),
)


def speed_table(lines: Sequence[Line]) -> str:
    """Return the goals and whether they are met, then the last measurement of every section."""
    found = last_measurements(lines)
    if not found:
        return "No measurements yet.\n"
    goals = _goals({section: line["measures"] for section, line in found.items()})
    return goals + "\n" + section_tables(lines)


def gpu_table(lines: Sequence[Line]) -> str:
    """Return the time of DPN on a GPU: epochs, plain and ours, with a lower bound; whole runs."""
    found = last_measurements(lines)
    parts = []
    if "epochs" in found:
        measures = found["epochs"]["measures"]
        body = [
            [
                stage,
                cell(measures[f"{stage}, plain"].get("seconds"), ".2f"),
                *(cell(measures[stage].get(key), form) for key, _, form in GPU_COLUMNS),
            ]
            for stage in ("pretraining", "training")
        ]
        header = ["an epoch of", "the plain way, seconds", *(title for _, title, _ in GPU_COLUMNS)]
        parts.append(markdown(header, body))
    if "runs" in found:
        parts.append(f"{TITLES['runs']}:\n")
        parts.append(section_table("runs", found["runs"]["measures"]))
    return "\n".join(parts)


Goal = tuple[str, str, Callable[[Mapping[str, Measures]], tuple[str, bool] | None]]


def _goals(measures: Mapping[str, Measures]) -> str:
    """Return one row per goal."""
    body = []
    for title, wanted, check in GOALS:
        try:
            found = check(measures)
        except KeyError:  # not measured, or the other package is not installed
            found = None
        measured, holds = found or (NONE, None)
        body.append([title, wanted, measured, {True: "yes", False: "no", None: NONE}[holds]])
    return markdown(["goal", "target", "measured", "met"], body)


def _encoding_goal(name: str, least: float) -> Any:
    """Return a check of the speed of encoding against sentence-transformers."""

    def check(measures: Mapping[str, Measures]) -> tuple[str, bool]:
        ratio = speed_ratio(measures["encoding"], name, "sentence-transformers")
        return f"{ratio:.2f}", ratio >= least

    return check


def _cosine(measures: Mapping[str, Measures]) -> tuple[str, bool]:
    """Check the cosine of int8 to fp32."""
    value = measures["encoding"]["int8"]["cosine"]
    return f"{value:.4f}", value >= 0.998


def _kmeans_goal(measures: Mapping[str, Measures]) -> tuple[str, bool]:
    """Check k-means against scikit-learn, at equal inertia."""
    section = measures["kmeans"]
    ratio = speed_ratio(section, "ours", "scikit-learn")
    inertia = section["ours"]["inertia"] / section["scikit-learn"]["inertia"]
    return f"{ratio:.2f}, inertia x {inertia:.4f}", ratio >= 1.7 and inertia <= SAME_INERTIA


def _passes(effort: str, most: float) -> Any:
    """Return a check of an effort's time in encoding passes."""

    def check(measures: Mapping[str, Measures]) -> tuple[str, bool]:
        passes = 1 / speed_ratio(measures["discover"], effort, "encoding")
        return f"{passes:.2f}", passes <= most

    return check


def _fast_accuracy(measures: Mapping[str, Measures]) -> tuple[str, bool]:
    """Check the accuracy of effort fast."""
    section = measures["discover"]
    own, peer = section["fast"]["accuracy"], section.get("bertopic-kmeans", {}).get("accuracy")
    beside = "" if peer is None else f" (BERTopic with KMeans: {peer:.1f})"
    return f"{own:.1f}{beside}", own >= 72 and own > (peer or 0)


def _balanced_accuracy(measures: Mapping[str, Measures]) -> tuple[str, bool]:
    """Check that effort balanced is above fast."""
    fast, balanced = (measures["discover"][effort]["accuracy"] for effort in ("fast", "balanced"))
    return f"{balanced:.1f} and {fast:.1f}", balanced > fast


def _bertopic_goal(measures: Mapping[str, Measures]) -> tuple[str, bool]:
    """Check the time of effort fast against BERTopic's."""
    share = 1 / speed_ratio(measures["discover"], "fast", "bertopic")
    return f"{share:.2f}", share <= 0.6


def _predictions(measures: Mapping[str, Measures]) -> list[Mapping[str, Any]]:
    """Return the measurements of predict on growing tables, the smallest first."""
    found = [m for name, m in measures["growth"].items() if name.startswith("predict")]
    return sorted(found, key=lambda measure: measure["texts"])


def _memory_goal(measures: Mapping[str, Measures]) -> tuple[str, bool]:
    """Check that memory does not grow with the table."""
    small, *_, large = _predictions(measures)
    more = large["peak_mb"] - small["peak_mb"]
    return f"{more:+d} MiB at {large['texts']:,}", more <= FLAT_MIB


def _steady(rows: Sequence[Mapping[str, Any]]) -> tuple[str, bool]:
    """Check that the last texts of growing tables take no longer than the first, each of them."""

    def each(small: Mapping[str, Any], large: Mapping[str, Any]) -> float:  # without starting up
        seconds, texts = large["seconds"] - small["seconds"], large["texts"] - small["texts"]
        return float(1e6 * seconds / texts)

    first, last = each(rows[0], rows[1]), each(rows[-2], rows[-1])
    return f"{first:,.0f}, then {last:,.0f} µs per text", last <= STEADY * first


def _time_goal(measures: Mapping[str, Measures]) -> tuple[str, bool]:
    """Check that the time per text of predict does not grow with the table."""
    return _steady(_predictions(measures))


def _scaling_goal(measures: Mapping[str, Measures]) -> tuple[str, bool] | None:
    """Check that the time per text of discover does not grow with the table."""
    rows = sorted(measures["scaling"].values(), key=lambda measure: measure["texts"])
    return _steady(rows) if len(rows) > 2 else None


def _run_goal(names: tuple[str, ...], most: float) -> Any:
    """Return a check of the seconds of whole runs."""

    def check(measures: Mapping[str, Measures]) -> tuple[str, bool]:
        taken = [measures["runs"][name]["seconds"] for name in names if name in measures["runs"]]
        return " and ".join(f"{seconds:.0f} s" for seconds in taken), max(taken) <= most

    return check


GOALS: tuple[Goal, ...] = (
    ("fp32 encoding, against sentence-transformers", ">= 1.4", _encoding_goal("fp32", 1.4)),
    ("int8 encoding, against sentence-transformers", ">= 3.5", _encoding_goal("int8", 3.5)),
    ("int8, mean cosine to fp32", ">= 0.998", _cosine),
    ("k-means, 10 starts, against scikit-learn", ">= 1.7 at equal inertia", _kmeans_goal),
    ("`discover --effort fast`, in encoding passes", "<= 1.3", _passes("fast", 1.3)),
    ("`discover --effort fast`, accuracy (All, %)", ">= 72", _fast_accuracy),
    ("`discover --effort balanced`, in encoding passes", "<= 2.5", _passes("balanced", 2.5)),
    ("`discover --effort balanced`, accuracy (All, %)", "above fast", _balanced_accuracy),
    ("`discover --effort fast`, of BERTopic's time", "<= 0.6", _bertopic_goal),
    (
        "`predict`, random one-layer encoder: memory beyond a small table's",
        f"<= {FLAT_MIB} MiB",
        _memory_goal,
    ),
    (
        "`predict`, random one-layer encoder: time per text, first and second half",
        "does not grow",
        _time_goal,
    ),
    (
        "`discover --effort fast`: time per text, from the smallest to the next and from the last "
        "but one to the largest table",
        "does not grow",
        _scaling_goal,
    ),
    ("DPN on one H200, BANKING", "<= 45 s", _run_goal(("banking",), 45)),
    (
        "DPN on one H200, StackOverflow and CLINC",
        "<= 100 s",
        _run_goal(("stackoverflow", "clinc"), 100),
    ),
)
