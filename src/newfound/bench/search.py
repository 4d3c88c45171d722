"""How settings were chosen: the lines of `benchmarks/search` as a table."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from newfound.bench.lines import Line, read_lines
from newfound.bench.rows import markdown, mean_spread, seed_list
from newfound.bench.runner import resolve_variant

SCORES = ("all", "known", "novel")
NO_SETTINGS = ("effort", "max_tokens", "given_k")  # of a method, though a line keeps them there


def search_table(folder: Path) -> str:
    """Accuracy of every configuration that was tried, named by how it differs from the present."""
    groups: dict[str, list[Line]] = {}
    for path in sorted(folder.glob("*.jsonl")):
        for line in read_lines(path):
            key = [line[name] for name in ("data_set", "method", "encoder", "known_ratio")]
            groups.setdefault(json.dumps([*key, line["config"]], sort_keys=True), []).append(line)
    body = []
    for lines in groups.values():
        first = lines[0]
        body.append(
            [
                first["data_set"],
                f"`{first['method']}`, {first['config']['effort']}",
                f"{first['known_ratio']:g}",
                changes(first),
                seed_list(sorted(line["seed"] for line in lines)),
                *(
                    mean_spread([line["scores"][by][score] for line in lines])
                    for by in ("prototype", "kmeans")
                    for score in SCORES
                ),
            ]
        )
    if not body:
        return "No runs yet.\n"
    header = ["data set", "method, effort", "known ratio", "settings", "seeds"]
    header += [f"{by}: {score}" for by in ("prototype", "k-means") for score in SCORES]
    return markdown(header, sorted(body, key=lambda row: (row[1], row[0], row[2])))


def changes(line: Line) -> str:
    """The settings of a line that differ from those that the method has at present."""
    tried: dict[str, Any] = line["config"]
    effort, data_set = tried["effort"], line["data_set"]
    present = asdict(resolve_variant(line["method"], data_set, effort, None)[1])
    found = [
        f"{name}={tried[name]}"
        for name in present
        if name in tried and tried[name] != present[name]
    ]
    # What a method once had, and what it has now that it had not then
    found += [
        f"{name}={tried[name]} (gone)" for name in tried if name not in {*present, *NO_SETTINGS}
    ]
    found += [f"no {name} yet" for name in present if name not in tried]
    return ", ".join(found) if found else "as it is"
