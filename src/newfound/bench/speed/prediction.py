"""`newfound predict` with the real encoder, in full precision and in int8, on distinct texts.

1. `newfound discover --effort fast` makes a model from a sample of BANKING.
2. int8 is calibrated once, before timing starts; the result is stored in the run folder.
3. fp32 and int8 take turns, each in its own process, including imports and reading and writing of
   tables.
"""

import csv
import importlib.util
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from newfound.bench.speed.processes import Finished, newfound_command, run_process
from newfound.bench.speed.sample import Sample
from newfound.bench.speed.timing import Measures

ON_CPU = ["--device", "cpu"]


def measure_prediction(
    folder: Path, encoder: str, sample: Sample, texts: Sequence[str], repeats: int
) -> Measures:
    """Return the seconds and the memory of `newfound predict` on distinct texts.

    Parameters
    ----------
    folder : Path
        A temporary folder for the run and the tables.
    encoder : str
        Short name, folder or Hub id of the encoder.
    sample : Sample
        The texts that the model is trained on.
    texts : sequence of str
        The texts to predict.
    repeats : int
        Number of runs whose median is reported.

    Returns
    -------
    dict
        One measurement for fp32 and, if openvino and nncf are installed, one for int8.
    """
    run = _discover(folder, encoder, sample)
    flags: dict[str, list[str]] = {"fp32": ["--fp32"]}
    if int8_installed():
        flags["int8"] = ["--int8"]
        first = _write_texts(folder / "first.csv", texts[:32])
        run_process(_predict(run, first, folder / "first.out.csv", *flags["int8"]))
    table = _write_texts(folder / "texts.csv", texts)
    ended: dict[str, list[Finished]] = {precision: [] for precision in flags}
    for _ in range(repeats):
        for precision, more in flags.items():
            command = _predict(run, table, folder / f"{precision}.csv", "--force", *more)
            ended[precision].append(run_process(command))
    return {
        f"predict {len(texts):,} distinct texts, {precision}": _measure(runs, len(texts))
        for precision, runs in ended.items()
    }


def int8_installed() -> bool:
    """Return True if the packages that int8 needs are installed."""
    return all(importlib.util.find_spec(package) for package in ("openvino", "nncf"))


def _discover(folder: Path, encoder: str, sample: Sample) -> Path:
    """Discover the categories of the sample and return the run folder."""
    table, run = sample.write(folder / "sample.csv"), folder / "run"
    columns = ["--text-column", "text", "--label-column", "label"]
    settings = ["--encoder", encoder, "--effort", "fast", *ON_CPU]
    settings += ["--categories", str(len(set(sample.truth)))]
    run_process(newfound_command("discover", str(table), "-o", str(run), *columns, *settings))
    return run


def _predict(run: Path, table: Path, out: Path, *flags: str) -> list[str]:
    """Return the command that predicts a table."""
    return newfound_command("predict", str(run), str(table), "-o", str(out), *ON_CPU, *flags)


def _measure(runs: Sequence[Finished], texts: int) -> dict[str, Any]:
    """Return the medians of some runs of a command."""
    seconds = statistics.median(done.seconds for done in runs)
    return {
        "texts": texts,
        "seconds": seconds,
        "runs": [round(done.seconds, 3) for done in runs],
        "texts_per_second": round(texts / seconds, 1),
        "peak_mb": round(max(done.peak_mb for done in runs)),
    }


def _write_texts(path: Path, texts: Sequence[str]) -> Path:
    """Write a table with one column of texts."""
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["text"])
        rows.writerows([text] for text in texts)
    return path
