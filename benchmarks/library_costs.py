"""Measure what own code saves against a library: CPU seconds of its first use in a fresh process.

Appends a line to ``benchmarks/results/library_costs.jsonl``, from which `make tables` renders the
table of ``docs/performance.md``. Usage, in the root of the repository, on an idle machine and with
the data sets of the paper in FOLDER::

    python -m benchmarks.library_costs FOLDER
"""

import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from newfound.bench.datasets import read_data_set
from newfound.bench.lines import append_line, commit
from newfound.versions import versions

RESULTS = Path("benchmarks/results/library_costs.jsonl")
REPEATS = 5  # the least of them counts: other programs on the machine only add
TEXTS = 4_000  # of the discovery that the costs are compared with
START = """
import time
import numpy as np, torch
import newfound.describing.descriptions, newfound.methods.newfound.method
weight = torch.nn.Parameter(torch.ones(384, 512))
weight.grad = torch.ones_like(weight)
points = np.random.default_rng(0).standard_normal((77, 384))
plane = 1e-4 * points[:, :2]
begun = time.process_time()
{}
print(time.process_time() - begun)
"""
CASES = {
    "adamw": (
        "from newfound.training.optimiser import CpuAdamW\n"
        "CpuAdamW([([weight], 0.01)], torch.tensor(1e-3)).step()",
        "torch.optim.AdamW([weight], lr=1e-3, fused=True).step()",
    ),
    "tsne": (
        "from newfound.describing.tsne import embed\nembed(points, plane, 8.0, 0)",
        "from sklearn.manifold import TSNE\n"
        "TSNE(perplexity=8, init=plane.astype('f4'), random_state=0).fit_transform(points)",
    ),
}


def cpu_seconds(code: str) -> float:
    """Return the least CPU time of a piece of code over fresh processes."""
    command = [sys.executable, "-c", START.format(code)]
    return min(float(subprocess.check_output(command, text=True)) for _ in range(REPEATS))


def discovery_seconds(data: Path) -> float:
    """Return the least time of `newfound discover --effort fast` on texts of BANKING."""
    train = read_data_set(data, "banking")
    texts, labels = train.texts["train"], train.labels["train"]
    every = len(texts) // TEXTS  # the file is sorted by category
    known = set(train.categories[::2])
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        with table.open("w", newline="", encoding="utf-8") as file:
            rows = csv.writer(file)
            rows.writerow(["text", "category"])
            for i in range(TEXTS):
                text, label = texts[i * every], labels[i * every]
                rows.writerow([text, label if i % 10 == 0 and label in known else ""])
        command = [sys.executable, "-m", "newfound", "discover", str(table), "--effort", "fast"]
        command += ["-o", str(Path(folder) / "run"), "--force", "--quiet"]
        seconds = []
        for _ in range(3):
            begun = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            seconds.append(time.perf_counter() - begun)
        return min(seconds)


def main(data: Path) -> None:
    """Measure everything and append the line."""
    measures = {
        name: {"own": cpu_seconds(own), "library": cpu_seconds(library)}
        for name, (own, library) in CASES.items()
    }
    line = {
        "kind": "library_costs",
        "config": {"texts": TEXTS, "repeats": REPEATS},
        "discovery_seconds": discovery_seconds(data),
        "measures": measures,
        "device": f"cpu, {os.cpu_count()} cores",
        "versions": versions(),
        "commit": commit(),
    }
    append_line(RESULTS, line)
    print(json.dumps(line, indent=2))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
