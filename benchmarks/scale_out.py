"""Measure how prediction on Ray grows with the number of workers: texts per second, efficiency.

A model of `newfound discover --effort fast` with MiniLM predicts the same shards in one process
without Ray, with one worker and with two, each with one thread. Every way must give the same
answers. Appends a line to ``benchmarks/results/scale_out.jsonl``, from which `make tables` renders
the table of ``docs/scale-out.md``. Usage, in the root of the repository, on an idle machine with
the extra ray and with the data sets of the paper in FOLDER::

    python -m benchmarks.scale_out FOLDER
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from newfound.bench.datasets import read_data_set
from newfound.bench.lines import append_line, commit
from newfound.bench.speed.sample import draw_distinct_texts, draw_sample
from newfound.data.tables import TableWriter
from newfound.devices import instruction_set
from newfound.prediction import Predictor
from newfound.sharding.folder import Receipt
from newfound.sharding.runner import Engine, Outcomes, in_this_process, on_ray, predict_shards
from newfound.sharding.shards import Shard
from newfound.sharding.work import ShardWork
from newfound.versions import versions

RESULTS = Path("benchmarks/results/scale_out.jsonl")
FITTED = 2_000  # texts that the model is fitted on
WAYS = (("local", 1), ("ray", 1), ("ray", 2))


def put_shards(data: Path, folder: Path, texts: int, shards: int) -> list[Path]:
    """Write texts of the data sets, evenly, into Parquet files."""
    drawn, _ = draw_distinct_texts(data, texts)
    folder.mkdir()
    paths = []
    for number in range(shards):
        part = drawn[number::shards]
        paths.append(folder / f"part-{number:03d}.parquet")
        with TableWriter(paths[-1], {"id": str, "text": str}) as table:
            table.write({"id": [f"{number}-{row}" for row in range(len(part))], "text": part})
    return paths


class Timed:
    """An engine, and the time from the first shard's beginning to the last shard's end."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.first, self.last = engine, float("inf"), 0.0

    def __call__(self, work: ShardWork, shards: Sequence[Shard]) -> Outcomes:
        """Predict shards with the engine."""
        for position, found in self.engine(work, shards):
            self.last = time.perf_counter()
            assert isinstance(found, Receipt), found
            self.first = min(self.first, self.last - found.seconds)
            yield position, found


def measure(run: Path, paths: Sequence[Path], out: Path, engine: str, workers: int) -> Any:
    """Return the seconds of one way to predict the shards, and the digests of its answers."""
    timed = Timed(on_ray(workers) if engine == "ray" else in_this_process)
    begun = time.perf_counter()
    predictor = Predictor(run, text_column="text", id_column="id", device="cpu")
    done = predict_shards(predictor, paths, out, engine=timed)
    whole = time.perf_counter() - begun
    assert not done.failed, done.failed
    entries = json.loads((out / "manifest.json").read_text(encoding="utf-8"))["shards"]
    digests = {name: entry["sha256"] for name, entry in entries.items()}
    return {
        "engine": engine,
        "workers": workers,
        "texts": done.counts["written"],
        "predicting_seconds": timed.last - timed.first,
        "whole_seconds": whole,
    }, digests


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure every way and append the line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale_out", description=__doc__)
    parser.add_argument("data", type=Path, help="folder of the data sets")
    parser.add_argument("--texts", type=int, default=12_000)
    parser.add_argument("--shards", type=int, default=24)
    options = parser.parse_args(arguments)
    import torch

    torch.set_num_threads(1)  # as in a worker
    rows, answers = [], []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        draw_sample(read_data_set(options.data, "banking"), FITTED).write(folder / "table.csv")
        command = [sys.executable, "-m", "newfound", "discover", str(folder / "table.csv")]
        command += ["-o", str(folder / "run"), "--effort", "fast", "--device", "cpu", "--quiet"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        paths = put_shards(options.data, folder / "shards", options.texts, options.shards)
        for engine, workers in WAYS:
            out = folder / f"{engine}-{workers}"
            row, digests = measure(folder / "run", paths, out, engine, workers)
            rows.append(row)
            answers.append(digests)
            print(json.dumps(row), flush=True)
    assert all(digests == answers[0] for digests in answers), "answers differ"
    one, two = (row["predicting_seconds"] for row in rows[1:])
    line = {
        "kind": "scale_out",
        "config": {"texts": options.texts, "shards": options.shards, "encoder": "minilm"},
        "rows": rows,
        "efficiency": one / (2 * two),
        "device": f"cpu, {os.cpu_count()} cores",
        "instruction_set": instruction_set(),
        "versions": {**versions(), "ray": version("ray")},
        "commit": commit(),
    }
    append_line(RESULTS, line)
    print(json.dumps(line, indent=2))


if __name__ == "__main__":
    main()
