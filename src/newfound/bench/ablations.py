"""What was tried: the lines of `benchmarks/ablations`, one file an idea, as a table."""

from pathlib import Path

from newfound.bench.lines import Line, read_lines
from newfound.bench.rows import markdown, mean_spread, seed_list

MEASURES = ("all", "known", "novel")


def ablation_table(folder: Path) -> str:
    """Accuracy of every method in every file of the folder, by data set and known ratio."""
    body = []
    for path in sorted(folder.glob("*.jsonl")):
        groups: dict[tuple[str, str, float], list[Line]] = {}
        for line in read_lines(path):
            key = (line["data_set"], line["method"], line["known_ratio"])
            groups.setdefault(key, []).append(line)
        for (data_set, method, known_ratio), lines in groups.items():
            accuracy = [
                mean_spread([line["scores"][by][measure] for line in lines])
                for by in ("kmeans", "prototype")
                for measure in MEASURES
            ]
            seeds = seed_list(sorted(line["seed"] for line in lines))
            body.append([path.stem, data_set, method, f"{known_ratio:g}", seeds, *accuracy])
    if not body:
        return "No runs yet.\n"
    header = ["what was tried", "data set", "method", "known ratio", "seeds"]
    header += [f"{by}: {m}" for by in ("k-means", "prototype") for m in MEASURES]
    return markdown(header, body)
