"""Measure static vectors: how fast they predict, and how often they agree with the full model.

    python -m benchmarks.static_prediction --data DATA --run RUN

RUN is a run of `newfound discover --effort fast` on the training texts of BANKING; without it, one
is made, with a tenth of the texts of 75% of the categories labelled and K given. Both models then
predict the test texts. One result line is appended, from which `make tables` renders the table of
``docs/performance.md``. Run it on an idle machine.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch

from newfound.bench.datasets import data_folder, read_data_set
from newfound.bench.lines import append_line, commit
from newfound.config import RunConfig
from newfound.data.corpus import Corpus
from newfound.devices import describe_device
from newfound.model import Model
from newfound.pipeline import discover, to_static
from newfound.storage.model_files import load_model, save_model
from newfound.versions import versions

LINES = Path("benchmarks/results/static.jsonl")
DATA_SET = "banking"
KNOWN, LABELLED = 0.75, 0.1  # shares of the categories, and of their texts
REPEATS = 3


def make_model(texts: list[str], labels: list[str], folder: Path) -> None:
    """Discover the categories of the texts, a part of which is labelled, and save the model."""
    rng = np.random.default_rng(0)
    truth, categories = np.array(labels), sorted(set(labels))
    given: list[str | None] = [None] * len(texts)
    for category in rng.choice(categories, round(KNOWN * len(categories)), replace=False):
        rows = rng.permutation(np.flatnonzero(truth == category))
        for row in rows[: max(1, round(LABELLED * len(rows)))]:
            given[row] = str(category)
    config = RunConfig(n_categories=len(categories), effort="fast", device="cpu")
    result = discover(Corpus.from_lists(texts, given), config)
    assert result.model is not None
    save_model(result.model, folder)


def seconds(work: Callable[[], object]) -> float:
    """Return the median time of a function, after a first call that does not count."""
    work()
    times = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def measure(model: Model, texts: list[str], new: list[str]) -> dict[str, object]:
    """Return speeds and agreement of the full and the static model."""
    begun = time.perf_counter()
    static, agreement = to_static(model, texts)
    distilling = time.perf_counter() - begun
    full, fast = model.predict(new), static.predict(new)
    times = {
        "fp32": {"encode": seconds(lambda: model.features(new)), "predict": 0.0},
        "static": {"encode": seconds(lambda: static.features(new)), "predict": 0.0},
    }
    times["fp32"]["predict"] = seconds(lambda: model.predict(new))
    times["static"]["predict"] = seconds(lambda: static.predict(new))
    before, after = model.features(new), static.features(new)
    return {
        "texts": len(new),
        "seconds": times,
        "distilling_seconds": round(distilling, 1),
        "held_out": asdict(agreement),
        "same": float((full.index == fast.index).mean()),
        "cosine": float((before * after).sum(1).mean()),
        "known_or_novel_same": float((full.kinds == fast.kinds).mean()),
    }


def main(arguments: list[str] | None = None) -> None:
    """Measure, append the line and print it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.static_prediction")
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    parser.add_argument("--run", type=Path, help="run folder or model on the training texts")
    parser.add_argument("-o", "--out", type=Path, default=LINES)
    options = parser.parse_args(arguments)
    data = read_data_set(data_folder(options.data), DATA_SET)
    texts, new = data.texts["train"], data.texts["test"]
    with tempfile.TemporaryDirectory() as folder:
        place = options.run or Path(folder) / "model"
        if options.run is None:
            make_model(texts, data.labels["train"], place)
        model = replace(load_model(place, "cpu"), device="cpu")
    line = {
        "kind": "static",
        "data_set": DATA_SET,
        "encoder": model.config["encoder"],
        "config": {"effort": model.config["effort"], "repeats": REPEATS},
        **measure(model, texts, new),
        "threads": torch.get_num_threads(),
        "device": describe_device(torch.device("cpu")),
        "versions": versions(),
        "commit": commit(),
    }
    append_line(options.out, line)
    print(line)


if __name__ == "__main__":
    main()
