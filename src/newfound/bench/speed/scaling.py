"""`newfound discover --effort fast` on growing tables with the real encoder.

All tables have the categories of one data set, and their number is given. The smaller tables are
drawn from the largest one, so that they differ in nothing but their size (`sample.enlarge`).
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from newfound.bench.datasets import DataSet
from newfound.bench.speed.processes import newfound_command, run_process
from newfound.bench.speed.sample import Sample, draw_sample, enlarge, predictions
from newfound.bench.speed.timing import Measures


def measure_scaling(
    folder: Path, encoder: str, data: DataSet, sizes: Sequence[int], seed: int = 0
) -> Measures:
    """Measure one run per size, each in its own process.

    Parameters
    ----------
    folder : Path
        A temporary folder for the tables and the runs.
    encoder : str
        Short name, folder or Hub id of the encoder.
    data : DataSet
    sizes : sequence of int
        Numbers of texts.
    seed : int
        Seed of the tables and the runs.

    Returns
    -------
    dict
        For each size the seconds and the peak memory, in all and per text, the seconds of each
        stage, and the accuracy.
    """
    largest = enlarge(data, max(sizes), seed)
    return {
        f"{size:,} texts": _measure(folder, encoder, draw_sample(largest, size, seed), seed)
        for size in sizes
    }


def _measure(folder: Path, encoder: str, sample: Sample, seed: int) -> dict[str, Any]:
    """Return the measurements of one run."""
    size = len(sample.texts)
    table, run = sample.write(folder / f"{size}.csv"), folder / f"run-{size}"
    flags = ["--text-column", "text", "--label-column", "label", "--encoder", encoder]
    flags += ["--categories", str(len(set(sample.truth))), "--effort", "fast", "--device", "cpu"]
    command = ["discover", str(table), "-o", str(run), *flags, "--seed", str(seed)]
    done = run_process(newfound_command(*command))
    stages = json.loads((run / "run.json").read_text(encoding="utf-8"))["seconds"]
    return {
        "texts": size,
        "seconds": round(done.seconds, 3),
        "ms_per_text": round(1e3 * done.seconds / size, 4),
        "peak_mb": round(done.peak_mb),
        "kb_per_text": round(1024 * done.peak_mb / size, 2),
        "accuracy": sample.accuracy(predictions(run / "assignments.csv")),
        "stages": {name: value for name, value in stages.items() if name != "total"},
    }
