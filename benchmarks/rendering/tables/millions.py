"""The tables of docs/large-tables.md: discoveries of many texts, and fits on samples."""

from collections.abc import Sequence

from newfound.bench.lines import Line
from newfound.bench.rows import NONE, markdown

SHOWN = ("reading and writing", "encoding", "sampling", "fitting", "assigning")
# Stages of a discovery, by what they are summed up as; all others are fitting.
PARTS = {
    "tokenising": "encoding",
    "encoding": "encoding",
    "sampling": "sampling",
    "assigning": "assigning",
    "writing the run": "reading and writing",
}
MIB = 2**20  # bytes: lines hold the memory in MiB
SMALLER = 100_000  # texts that the growth of the time per text is measured from


def millions_table(lines: Sequence[Line]) -> str:
    """Return one row per discovery: time, memory, time per text and the parts of the time."""
    found = [line for line in lines if line.get("kind") == "millions"]
    if not found:
        return "No measurements yet.\n"
    found.sort(key=_order)
    body = []
    for line in found:
        config, parts = line["config"], _parts(line)
        accuracy = line["accuracy"]
        body.append(
            [
                f"{config['texts']:,}",
                f"{line['n_categories']:,}",
                config["encoder"],
                line["device"],
                f"{line['seconds']:.0f}",
                f"{line['peak_mb'] * MIB / 1e9:.2f}",
                f"{line['ms_per_text']:.3f}",
                _growth(line, found),
                *(f"{parts[name]:.0f}" for name in SHOWN),
                NONE if accuracy is None else f"{accuracy:.1f}",
            ]
        )
    header = ["texts", "K", "encoder", "device", "seconds", "peak memory, GB", "ms per text"]
    header += ["growth", *SHOWN, "All, %"]
    return markdown(header, body)


def _order(line: Line) -> tuple[str, str, int, int]:
    """Return the key by which rows are sorted."""
    config = line["config"]
    return line["device"], config["encoder"], line["n_categories"], config["texts"]


def _parts(line: Line) -> dict[str, float]:
    """Return the seconds of each part; what no stage covers is reading and writing."""
    parts = dict.fromkeys(SHOWN, 0.0)
    for stage, seconds in line["stages"].items():
        parts[PARTS.get(stage, "fitting")] += seconds
    parts["reading and writing"] += line["seconds"] - sum(line["stages"].values())
    return parts


def _growth(line: Line, lines: Sequence[Line]) -> str:
    """Return the time per text in comparison with that of a smaller table of the same kind."""
    for other in lines:
        same = _order(other)[:3] == _order(line)[:3]
        if same and other["config"]["texts"] == SMALLER < line["config"]["texts"]:
            return f"{line['ms_per_text'] / other['ms_per_text']:.2f}"
    return NONE


def fit_sample_table(lines: Sequence[Line]) -> str:
    """Return one row per data set and size of the sample: accuracy beside that of all texts."""
    found = [line for line in lines if line.get("kind") == "fit sample"]
    if not found:
        return "No measurements yet.\n"
    groups: dict[tuple[str, str, str], list[Line]] = {}
    for line in found:
        for size in line["scores"]:
            if size != "all":
                key = (line["config"]["data_set"], line["config"]["effort"], size)
                groups.setdefault(key, []).append(line)
    body = []
    for (name, effort, size), own in sorted(groups.items()):
        pairs = [(line["scores"]["all"], line["scores"][size]) for line in own]
        cells = []
        for score in ("all", "per_category"):
            whole = sum(all_[score] for all_, _ in pairs) / len(pairs)
            part = sum(some[score] for _, some in pairs) / len(pairs)
            cells += [f"{whole:.1f}", f"{part:.1f}", f"{part - whole:+.1f}"]
        seeds = ", ".join(str(line["config"]["seed"]) for line in own)
        counts = [f"{own[0]['texts']:,}", f"{int(size):,}", str(own[0]["n_categories"])]
        body.append([name, effort, *counts, seeds, *cells])
    header = ["data set", "effort", "texts", "sample", "K", "seeds"]
    for score in ("All", "per category"):
        header += [f"{score}: fit on all", "fit on the sample", "difference"]
    return markdown(header, body)
