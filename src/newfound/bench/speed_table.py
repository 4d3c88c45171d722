"""Speed as Markdown, rendered from result lines of `newfound bench speed`: goals, then details."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from newfound.bench.lines import Line
from newfound.bench.rows import NONE, markdown

Measures = Mapping[str, Mapping[str, Any]]
TITLES = {
    "encoding": "Encoding",
    "training": "Training: a pass over the texts, by what learns",
    "kmeans": "k-means, 10 starts",
    "discover": "The whole command, and peers on the same texts and encoder",
    "imports": "Starting",
    "growth": "Many texts",
    "epochs": "An epoch of DPN, ours and the plain way, and what it must cost at least",
    "runs": "A whole run of DPN, alone on the device",
}
# What the others are compared with, and how the comparison reads.
AGAINST = {
    "encoding": ("sentence-transformers", "times as fast as sentence-transformers"),
    "training": ("forward", "texts/s, relative to a forward pass"),
    "kmeans": ("scikit-learn", "times as fast as scikit-learn"),
    "discover": ("encoding", "encoding passes"),
}
NAMES = {
    "encoding": "one sentence-transformers encoding pass",
    "bertopic": "BERTopic",
    "bertopic-kmeans": "BERTopic with KMeans(K)",
    "fast": "`newfound discover --effort fast`",
    "balanced": "`newfound discover --effort balanced`",
    "best": "`newfound discover --effort best`",
}
SAME_INERTIA = 1.005
FLAT_MB = 300
STEADY = 1.25  # time per text may grow by this on a shared machine


def speed_table(lines: Sequence[Line]) -> str:
    """The goals and whether they hold, then every section's last measurement."""
    found: dict[str, Line] = {
        line["method"]: line
        for line in lines
        if line.get("kind") == "speed" and line.get("method") in TITLES
    }
    if not found:
        return "Nothing was measured yet.\n"
    measures = {section: line["measures"] for section, line in found.items()}
    parts = [_goals(measures)]
    for section, title in TITLES.items():
        if section in found:
            parts.append(f"**{title}** ({_about(found[section])})\n")
            parts.append(_section(section, found[section]["measures"]))
    return "\n".join(parts)


def gpu_table(lines: Sequence[Line]) -> str:
    """What DPN costs on a GPU: an epoch before, now and at least; whole runs."""
    found = {line["method"]: line for line in lines if line.get("kind") == "speed"}
    parts = []
    if "epochs" in found:
        measures = found["epochs"]["measures"]
        body = [
            [
                stage,
                _cell(measures[f"{stage}, plain"].get("seconds"), ".2f"),
                *(_cell(measures[stage].get(key), form) for key, _, form in GPU_COLUMNS),
            ]
            for stage in ("pretraining", "training")
        ]
        header = ["an epoch of", "the plain way, seconds", *(title for _, title, _ in GPU_COLUMNS)]
        parts.append(markdown(header, body))
    if "runs" in found:
        parts.append(f"{TITLES['runs']}:\n")
        parts.append(_section("runs", found["runs"]["measures"]))
    return "\n".join(parts)


def _about(line: Line) -> str:
    config = line["config"]
    notes = [note for note in line.get("notes", []) if note]
    measured = f"{line['device']}, {line['encoder']}"
    if line["method"] != "runs":
        measured += f", medians of {config['repeats']}"
    if line["method"] in ("encoding", "discover"):
        measured += f", {config['texts']:,} texts of {line['data_set']}"
    return "; ".join([measured, *notes])


# --- the goals ---------------------------------------------------------------------------------

Goal = tuple[str, str, Callable[[Mapping[str, Measures]], tuple[str, bool] | None]]


def _goals(measures: Mapping[str, Measures]) -> str:
    body = []
    for title, wanted, check in GOALS:
        try:
            found = check(measures)
        except KeyError:  # not measured, or a peer is not installed
            found = None
        told, holds = found or (NONE, None)
        body.append([title, wanted, told, {True: "yes", False: "no", None: NONE}[holds]])
    return markdown(["goal", "wanted", "measured", "holds"], body)


def _ratio(section: Measures, name: str, other: str) -> float:
    """How many times as long `other` takes as `name`."""
    return float(section[other]["seconds"] / section[name]["seconds"])


def _encoding_goal(name: str, least: float) -> Any:
    def check(measures: Mapping[str, Measures]) -> tuple[str, bool]:
        ratio = _ratio(measures["encoding"], name, "sentence-transformers")
        return f"{ratio:.2f}", ratio >= least

    return check


def _cosine(measures: Mapping[str, Measures]) -> tuple[str, bool]:
    value = measures["encoding"]["int8"]["cosine"]
    return f"{value:.4f}", value >= 0.998


def _kmeans_goal(measures: Mapping[str, Measures]) -> tuple[str, bool]:
    section = measures["kmeans"]
    ratio = _ratio(section, "ours", "scikit-learn")
    inertia = section["ours"]["inertia"] / section["scikit-learn"]["inertia"]
    return f"{ratio:.2f}, inertia x {inertia:.4f}", ratio >= 1.7 and inertia <= SAME_INERTIA


def _passes(effort: str, most: float) -> Any:
    def check(measures: Mapping[str, Measures]) -> tuple[str, bool]:
        passes = 1 / _ratio(measures["discover"], effort, "encoding")
        return f"{passes:.2f}", passes <= most

    return check


def _fast_accuracy(measures: Mapping[str, Measures]) -> tuple[str, bool]:
    section = measures["discover"]
    own, peer = section["fast"]["accuracy"], section.get("bertopic-kmeans", {}).get("accuracy")
    beside = "" if peer is None else f" (BERTopic with KMeans: {peer:.1f})"
    return f"{own:.1f}{beside}", own >= 72 and own > (peer or 0)


def _balanced_accuracy(measures: Mapping[str, Measures]) -> tuple[str, bool]:
    fast, balanced = (measures["discover"][effort]["accuracy"] for effort in ("fast", "balanced"))
    return f"{balanced:.1f} and {fast:.1f}", balanced > fast


def _bertopic_goal(measures: Mapping[str, Measures]) -> tuple[str, bool]:
    share = 1 / _ratio(measures["discover"], "fast", "bertopic")
    return f"{share:.2f}", share <= 0.6


def _predictions(measures: Mapping[str, Measures]) -> list[Mapping[str, Any]]:
    found = [m for name, m in measures["growth"].items() if name.startswith("predict")]
    return sorted(found, key=lambda measure: measure["texts"])


def _memory_goal(measures: Mapping[str, Measures]) -> tuple[str, bool]:
    small, *_, large = _predictions(measures)
    more = large["peak_mb"] - small["peak_mb"]
    return f"{more:+d} MB at {large['texts']:,}", more <= FLAT_MB


def _time_goal(measures: Mapping[str, Measures]) -> tuple[str, bool]:
    small, half, large = _predictions(measures)

    def each(a: Mapping[str, Any], b: Mapping[str, Any]) -> float:  # starting up is left out
        return float(1e6 * (b["seconds"] - a["seconds"]) / (b["texts"] - a["texts"]))

    first, second = each(small, half), each(half, large)
    return f"{first:.0f}, then {second:.0f} µs a text", second <= STEADY * first


def _run_goal(names: tuple[str, ...], most: float) -> Any:
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
    ("`predict`: memory beyond that of a small table", f"<= {FLAT_MB} MB", _memory_goal),
    ("`predict`: time per text, first and second half", "does not grow", _time_goal),
    ("DPN on one H200, BANKING", "<= 45 s", _run_goal(("banking",), 45)),
    (
        "DPN on one H200, StackOverflow and CLINC",
        "<= 100 s",
        _run_goal(("stackoverflow", "clinc"), 100),
    ),
)


# --- the sections ------------------------------------------------------------------------------

COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("seconds", "seconds", ".2f"),
    ("floor_seconds", "floor, seconds", ".3f"),
    ("pretraining_seconds", "pretraining", ".1f"),
    ("training_seconds", "training", ".1f"),
    ("steps", "steps", ",.0f"),
    ("flop", "FLOP", ".1e"),
    ("bytes", "bytes moved by AdamW", ".1e"),
    ("texts_per_second", "texts/s", ",.0f"),
    ("accuracy", "accuracy (All, %)", ".1f"),
    ("cosine", "cosine to fp32", ".4f"),
    ("inertia", "inertia", ",.1f"),
    ("process_seconds", "seconds, imports included", ".1f"),
    ("peak_mb", "peak memory, MB", ",.0f"),
)


GPU_COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("seconds", "here, seconds", ".2f"),
    ("floor_seconds", "floor, seconds", ".3f"),
    ("steps", "steps", ",.0f"),
    ("flop", "FLOP", ".1e"),
    ("bytes", "bytes moved by AdamW", ".1e"),
)


def _section(section: str, measures: Measures) -> str:
    columns = [column for column in COLUMNS if any(column[0] in m for m in measures.values())]
    base, reads = AGAINST.get(section, (None, ""))
    compared = base in measures
    header = ["", *(title for _, title, _ in columns), *([reads] if compared else [])]
    body = []
    for name, measure in measures.items():
        cells = [_cell(measure.get(key), form) for key, _, form in columns]
        if compared:
            ratio = _ratio(measures, name, str(base))
            cells.append(f"{1 / ratio if section == 'discover' else ratio:.2f}")
        title = NAMES.get(name, name) if section == "discover" else name
        body.append([title, *cells])
    return markdown(header, body)


def _cell(value: Any, form: str) -> str:
    return NONE if value is None else format(value, form)
