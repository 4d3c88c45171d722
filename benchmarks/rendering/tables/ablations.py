"""ablations.md: variants of methods, one file of `benchmarks/ablations` each."""

import statistics
from pathlib import Path

from newfound.bench.lines import Line, read_lines
from newfound.bench.rows import SCORES, markdown, mean_spread, seed_list


def ablation_table(folder: Path) -> str:
    """Return one row per file, data set, method, encoder and known ratio."""
    body = []
    for path in sorted(folder.glob("*.jsonl")):
        groups: dict[tuple[str, ...], list[Line]] = {}
        for line in read_lines(path):
            chosen = (line["data_set"], line["method"], line["encoder"])
            groups.setdefault((*chosen, f"{line['known_ratio']:g}"), []).append(line)
        for key, lines in groups.items():
            accuracy = [
                mean_spread([line["scores"][by][measure] for line in lines])
                for by in ("kmeans", "prototype")
                for measure in SCORES
            ]
            seeds = seed_list(sorted(line["seed"] for line in lines))
            seconds = statistics.fmean(line["seconds"]["total"] for line in lines)
            body.append([path.stem, *key, seeds, *accuracy, f"{seconds:.0f}"])
    if not body:
        return "No runs yet.\n"
    header = ["file", "data set", "method", "encoder", "known ratio", "seeds"]
    header += [f"{by}: {m}" for by in ("k-means", "prototype") for m in SCORES]
    return markdown([*header, "seconds"], body)
