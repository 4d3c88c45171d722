"""Result lines of `newfound bench speed` as Markdown: one table per section."""

from collections.abc import Mapping, Sequence
from typing import Any

from newfound.bench.lines import Line
from newfound.bench.rows import NONE, markdown

Measures = Mapping[str, Mapping[str, Any]]
TITLES = {
    "encoding": "Encoding",
    "training": "Training: a pass over the texts, by what learns",
    "kmeans": "k-means, 10 starts",
    "discover": "The whole command, and peers on the same texts and encoder",
    "prediction": "The whole command `newfound predict`, on distinct texts of the three data sets",
    "imports": "Starting",
    "growth": "Many texts",
    "scaling": "`newfound discover --effort fast` on growing tables",
    "epochs": "An epoch of DPN, ours and the plain way, and what it must cost at least",
    "runs": "A whole run of DPN, alone on the device",
}
# The row that others are compared with, and the heading of that comparison.
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
COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("seconds", "seconds", ".2f"),
    ("floor_seconds", "floor, seconds", ".3f"),
    ("pretraining_seconds", "pretraining", ".1f"),
    ("training_seconds", "training", ".1f"),
    ("steps", "steps", ",.0f"),
    ("flop", "FLOP", ".1e"),
    ("bytes", "bytes moved by AdamW", ".1e"),
    ("ms_per_text", "ms per text", ".2f"),
    ("texts_per_second", "texts/s", ",.0f"),
    ("accuracy", "accuracy (All, %)", ".1f"),
    ("cosine", "cosine to fp32", ".4f"),
    ("inertia", "inertia", ",.1f"),
    ("process_seconds", "seconds, imports included", ".1f"),
    ("peak_mb", "peak memory, MiB", ",.0f"),
    ("kb_per_text", "KiB per text", ",.0f"),
)


def last_measurements(lines: Sequence[Line]) -> dict[str, Line]:
    """Return the last line of every section of `newfound bench speed`, in the tables' order."""
    found = {line.get("method"): line for line in lines if line.get("kind") == "speed"}
    return {section: found[section] for section in TITLES if section in found}


def section_tables(lines: Sequence[Line]) -> str:
    """Return the tables of all sections that were measured, each with a heading.

    Parameters
    ----------
    lines : sequence of dict
        Result lines; of a section's lines the last one counts.

    Returns
    -------
    str
        Markdown, empty if there is no line of `newfound bench speed`.
    """
    parts = []
    for section, line in last_measurements(lines).items():
        parts.append(f"**{TITLES[section]}** ({_conditions(line)})\n")
        parts.append(section_table(section, line["measures"]))
        if section == "scaling":
            parts.append(stage_table(line["measures"]))
    return "\n".join(parts)


def section_table(section: str, measures: Measures) -> str:
    """Return one section's measurements as a Markdown table."""
    columns = [column for column in COLUMNS if any(column[0] in m for m in measures.values())]
    base, comparison = AGAINST.get(section, (None, ""))
    compared = base in measures
    header = ["", *(title for _, title, _ in columns), *([comparison] if compared else [])]
    body = []
    for name, measure in measures.items():
        cells = [cell(measure.get(key), form) for key, _, form in columns]
        if compared:
            faster = speed_ratio(measures, name, str(base))
            cells.append(f"{1 / faster if section == 'discover' else faster:.2f}")
        body.append([_row_title(section, name), *cells])
    return markdown(header, body)


def stage_table(measures: Measures) -> str:
    """Return the milliseconds per text of each stage, one column per table."""
    stages = dict.fromkeys(name for measure in measures.values() for name in measure["stages"])
    body = [
        [
            stage,
            *(
                cell(1e3 * measure["stages"].get(stage, 0) / measure["texts"], ".3f")
                for measure in measures.values()
            ),
        ]
        for stage in stages
    ]
    return markdown(["stage, ms per text", *measures], body)


def speed_ratio(measures: Measures, name: str, other: str) -> float:
    """Return how many times as long `other` takes as `name`."""
    return float(measures[other]["seconds"] / measures[name]["seconds"])


def cell(value: Any, form: str) -> str:
    """Return a formatted number, or a dash where nothing was measured."""
    return NONE if value is None else format(value, form)


def _row_title(section: str, name: str) -> str:
    """Return the name of a measurement in the table."""
    if section == "discover":
        return NAMES.get(name, name)
    if section == "growth" and name.startswith("predict"):
        return f"{name}, random one-layer encoder"
    return name


def _conditions(line: Line) -> str:
    """Return the conditions of a section: device, encoder, repeats, texts, notes."""
    config, section = line["config"], line["method"]
    notes = [note for note in line.get("notes", []) if note]
    if section == "growth":
        tiny = (
            f"`predict` on generated texts with a random one-layer encoder and the tokeniser of "
            f"{line['encoder']}: reading, batching and writing are measured, not encoding"
        )
        return "; ".join([f"{line['device']}, one run each", tiny, *notes])
    measured = f"{line['device']}, {line['encoder']}"
    if section == "scaling":
        measured += f", one run each, {line['data_set']}"
    elif section != "runs":
        measured += f", medians of {config['repeats']}"
    if section in ("encoding", "discover"):
        measured += f", {config['texts']:,} texts of {line['data_set']}"
    return "; ".join([measured, *notes])
