"""Measure how much an answer depends on the number of threads and on the order of the rows.

    python -m benchmarks.stability --data DATA

`newfound discover --effort fast` runs on the training texts of each data set, and on small tables
drawn from them, in a process of its own: with one thread, with more, and with shuffled rows. Each
run is compared with the one with one thread. One result line is appended per data set, number of
texts and way to choose K, from which `make tables` renders the table of ``docs/faults.md``.
"""

import argparse
import csv
import os
import random
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from newfound.bench.datasets import data_folder, read_data_set
from newfound.bench.lines import append_line, commit
from newfound.bench.speed.processes import newfound_command
from newfound.bench.speed.sample import Sample, draw_sample
from newfound.errors import InputError
from newfound.versions import versions

LINES = Path("benchmarks/results/stability.jsonl")
DATA_SETS = ("banking", "stackoverflow", "clinc")
SIZES = (200, 300, 500, 10**9)  # texts; the last: all
# Number of threads, and whether rows are shuffled; the first way is the reference.
WAYS = ((1, False), (2, False), (4, False), (1, True), (4, True))


def shuffled(sample: Sample, seed: int) -> tuple[Sample, list[int]]:
    """Return the texts in random order, and the row that each one had."""
    rows = list(range(len(sample.texts)))
    random.Random(seed).shuffle(rows)
    texts, labels, truth = (
        [column[row] for row in rows] for column in (sample.texts, sample.labels, sample.truth)
    )
    return Sample(texts, labels, truth, sample.known), rows


def answers(sample: Sample, folder: Path, threads: int, seed: int, k: str) -> list[str]:
    """Return the ids of the categories of the texts, as the command answers."""
    table, run = sample.write(folder / "table.csv"), folder / "run"
    flags = ["--text-column", "text", "--label-column", "label", "--categories", k]
    flags += ["--effort", "fast", "--device", "cpu", "--seed", str(seed), "--quiet"]
    done = subprocess.run(
        newfound_command("discover", str(table), "-o", str(run), *flags),
        # MKL would use no more threads than there are cores.
        env={**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_DYNAMIC": "FALSE"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise InputError(f"newfound discover failed: {done.stderr[-500:]}")
    with (run / "assignments.csv").open(encoding="utf-8-sig", newline="") as file:
        return [row["category_id"] for row in csv.DictReader(file)]


def measure(sample: Sample, seed: int, k: str) -> dict[str, Any]:
    """Return what every way answers, in comparison with the first one."""
    rows: list[dict[str, Any]] = []
    reference: list[str] = []
    for threads, mixed in WAYS:
        given, order = shuffled(sample, seed) if mixed else (sample, [*range(len(sample.texts))])
        with tempfile.TemporaryDirectory(prefix="newfound-") as folder:
            found = answers(given, Path(folder), threads, seed, k)
        own = [""] * len(order)
        for row, category in zip(order, found, strict=True):
            own[row] = category
        reference = reference or own
        same = sum(a == b for a, b in zip(own, reference, strict=True)) / len(own)
        rows.append(
            {
                "threads": threads,
                "shuffled": mixed,
                "same": round(100 * same, 3),
                "categories": len(set(own)),
            }
        )
        print(f"  {rows[-1]}", flush=True)
    return {"texts": len(sample.texts), "rows": rows}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure every table and append its line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stability")
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    parser.add_argument("--sets", nargs="+", default=list(DATA_SETS))
    parser.add_argument("--texts", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("-o", "--out", type=Path, default=LINES)
    options = parser.parse_args(arguments)
    for name in options.sets:
        data = read_data_set(data_folder(options.data), name)
        for size in options.texts:
            for seed in options.seeds:
                sample = draw_sample(data, size, seed)
                for k in ("auto", str(len(set(sample.truth)))):
                    print(f"{name}, {size} texts, seed {seed}, K {k}", flush=True)
                    line = {
                        "kind": "stability",
                        "data_set": name,
                        "encoder": "minilm",
                        "seed": seed,
                        "config": {
                            "effort": "fast",
                            "given_k": k != "auto",
                            "texts": len(sample.texts),
                        },
                        **measure(sample, seed, k),
                        "device": f"cpu, {os.cpu_count()} cores",
                        "versions": versions(),
                        "commit": commit(),
                    }
                    append_line(options.out, line)


if __name__ == "__main__":
    main()
