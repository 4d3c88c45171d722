"""search.md: the runs that settings were chosen by, from `benchmarks/search`."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from newfound.bench.lines import Line, read_lines
from newfound.bench.rows import SCORES, markdown, mean_spread, seed_list
from newfound.bench.runner import resolve_variant

NOT_OF_METHOD = ("effort", "max_tokens", "given_k")  # stored in a line beside the settings


def search_table(folder: Path) -> str:
    """Return one row per configuration, with its differences from the current settings."""
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
    """Return the settings of a line that differ from the method's current ones."""
    tried: dict[str, Any] = line["config"]
    effort, data_set = tried["effort"], line["data_set"]
    current = asdict(resolve_variant(line["method"], data_set, effort, None)[1])
    found = [
        f"{name}={tried[name]}"
        for name in current
        if name in tried and tried[name] != current[name]
    ]
    # Settings that were removed since, and settings that were added since
    found += [
        f"{name}={tried[name]} (removed)"
        for name in tried
        if name not in {*current, *NOT_OF_METHOD}
    ]
    found += [f"without {name}" for name in current if name not in tried]
    return ", ".join(found) if found else "current"
