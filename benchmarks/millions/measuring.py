"""The measurements: a discovery of many texts, and fitting on a sample beside fitting on all."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.millions.small_encoder import write_small_encoder
from benchmarks.millions.texts import make_sample, make_texts
from newfound.bench.datasets import DataSet
from newfound.bench.speed.processes import newfound_command
from newfound.bench.speed.sample import Sample, draw_sample, predictions
from newfound.bench.wild.sources import read_source
from newfound.clustering.metrics import accuracy
from newfound.config import RunConfig
from newfound.data.corpus import Corpus
from newfound.errors import InputError
from newfound.pipeline import discover

SMALL = "small"  # the encoder of `small_encoder`
INTERRUPTED = 130  # exit code
ALL = 10**9  # more texts than any table has
MADE = "made"  # texts made from the paper's data sets
MADE_TEXTS = 100_000


@dataclass(frozen=True)
class Timed:
    """What a discovery of many texts is run with."""

    texts: int
    encoder: str  # SMALL, or the name of a real one
    real: str  # the encoder whose embeddings the small one has
    categories: int | None  # None: as many as the texts have
    effort: str
    device: str
    seed: int
    largest: int  # texts that are made, of which smaller tables are drawn


def measure_time(
    data: Path, case: Timed, folder: Path, minutes: float | None = None
) -> dict[str, Any] | None:
    """Return seconds, memory, stages and accuracy of `newfound discover` in its own process.

    Parameters
    ----------
    data : Path
        Folder of the paper's data sets.
    case : Timed
    folder : Path
        For the table, the encoder and the run.
    minutes : float, optional
        The command is interrupted after this time, and the next call on the same folder goes on;
        the seconds of all calls are added.

    Returns
    -------
    dict or None
        None if the command was interrupted.
    """
    folder.mkdir(parents=True, exist_ok=True)
    sample = _drawn(data, case)
    table, run = folder / f"{case.texts}.csv", folder / f"run-{case.texts}"
    if not table.exists():
        sample.write(table)
    encoder = case.encoder
    if encoder == SMALL:
        encoder = str(folder / "encoder")
        if not Path(encoder).is_dir():
            write_small_encoder(Path(encoder), case.real)
    count = len(set(sample.truth)) if case.categories is None else case.categories
    flags = ["--text-column", "text", "--label-column", "label", "--encoder", encoder]
    flags += ["--pooling", "mean", "--categories", str(count), "--effort", case.effort]
    flags += ["--device", case.device, "--seed", str(case.seed), "--quiet"]
    command = newfound_command("discover", str(table), "-o", str(run), *flags)
    done = run_parts(command, folder / f"parts-{case.texts}.json", minutes)
    if done is None:
        return None
    records = json.loads((run / "run.json").read_text(encoding="utf-8"))
    stages = {name: value for name, value in records["seconds"].items() if name != "total"}
    predicted = predictions(run / "assignments.csv")
    return {
        **done,
        "ms_per_text": round(1e3 * done["seconds"] / case.texts, 4),
        "n_categories": count,
        "sample": records["sample"],
        "stages": stages,
        "accuracy": sample.accuracy(predicted) if case.categories is None else None,
    }


def _drawn(data: Path, case: Timed) -> Sample:
    """Return the texts of a case: drawn from the largest table, so that all differ in size only."""
    made = make_sample(data, max(case.largest, case.texts), case.seed)
    if case.texts == len(made.texts):
        return made
    rows = np.random.default_rng(case.seed).permutation(len(made.texts))
    # The labelled texts come first: every table has the same ones.
    labelled = np.array([bool(label) for label in made.labels])[rows]
    rows = np.concatenate([rows[labelled], rows[~labelled]])[: case.texts]
    texts, labels, truth = (
        [column[row] for row in rows] for column in (made.texts, made.labels, made.truth)
    )
    return Sample(texts, labels, truth, made.known)


def run_parts(
    command: Sequence[str], state: Path, minutes: float | None
) -> dict[str, float] | None:
    """Run a command that goes on after an interrupt; return the sum of its seconds, and its peak.

    Parameters
    ----------
    command : sequence of str
    state : Path
        File with the seconds of earlier calls.
    minutes : float or None
        Time after which the command is interrupted.

    Returns
    -------
    dict or None
        Seconds, peak memory (`peak_mb`, in MiB) and number of calls; None if the command was
        interrupted.
    """
    before = json.loads(state.read_text()) if state.exists() else {"seconds": 0.0, "peak_mb": 0.0}
    begun = time.perf_counter()
    process = subprocess.Popen([*command])
    timer = threading.Timer(60 * (minutes or 1e6), process.send_signal, [signal.SIGINT])
    timer.daemon = True
    timer.start()
    _, status, usage = os.wait4(process.pid, 0)
    timer.cancel()
    code = os.waitstatus_to_exitcode(status)
    scale = 2**20 if sys.platform == "darwin" else 2**10  # bytes there, kilobytes elsewhere
    found = {
        "seconds": round(before["seconds"] + time.perf_counter() - begun, 2),
        "peak_mb": round(max(before["peak_mb"], usage.ru_maxrss / scale)),
        "calls": before.get("calls", 0) + 1,
    }
    if code == INTERRUPTED and minutes:
        state.write_text(json.dumps(found))
        return None
    if code:
        raise InputError(f"{' '.join(command[:5])} ... failed with exit code {code}")
    return found


def measure_sample(
    data: Path,
    name: str,
    sizes: Sequence[int],
    *,
    effort: str,
    encoder: str,
    seed: int,
    device: str = "cpu",
    cache: Path | None = None,
) -> dict[str, Any]:
    """Return the accuracy of fitting on all texts of a data set and on samples of them.

    Three quarters of the categories are known and a tenth of their texts is labelled; the number
    of categories is given. All is the accuracy of the unlabelled texts by one Hungarian matching;
    "per category" is the mean over categories, in which rare ones count as much as common ones.

    Parameters
    ----------
    data : Path
        Folder of the data sets.
    name : str
        One of the paper's data sets, or of the folder `wild`; "made" for 100,000 texts that are
        made from the paper's data sets by edits.
    sizes : sequence of int
        Texts of the samples.
    effort, encoder, seed, device
        Of the discoveries.
    cache : Path, optional
        Folder that keeps the vectors of the encoder; by default a temporary one.

    Returns
    -------
    dict
        Scores by number of texts fitted on, "all" for all of them.
    """
    drawn = draw_sample(_read(data, name), ALL, seed)
    corpus = Corpus.from_lists(drawn.texts, [label or None for label in drawn.labels])
    found = {}
    with tempfile.TemporaryDirectory(prefix="newfound-") as temporary:
        for size in (ALL, *sizes):
            config = RunConfig(
                encoder=encoder,
                n_categories=len(set(drawn.truth)),
                effort=effort,  # type: ignore[arg-type]
                seed=seed,
                device=device,
                cache=temporary if cache is None else str(cache),
                fit_texts=size,
            )
            result = discover(corpus, config)
            found["all" if size == ALL else str(size)] = _scores(drawn, result.predicted)
    return {"texts": len(corpus), "n_categories": len(set(drawn.truth)), "scores": found}


def _read(data: Path, name: str) -> DataSet:
    """Return the distinct texts of a data set."""
    if name == MADE:
        distinct = make_texts(data, MADE_TEXTS)
    else:
        source = read_source(data, name)
        # Distinct ones, so that all fits share one file of the cache.
        distinct = dict(zip(source.texts, source.labels, strict=True))
    return DataSet(name, {"train": list(distinct)}, {"train": list(distinct.values())})


def _scores(drawn: Sample, predicted: np.ndarray) -> dict[str, float]:
    """Return the scores of the unlabelled texts, in %."""
    free = np.array([not label for label in drawn.labels])
    truth = np.array(drawn.truth)[free]
    scores = accuracy(predicted[free], truth, set(drawn.known)).to_dict()
    return {**scores, "per_category": round(per_category(predicted[free], truth), 2)}


def per_category(predicted: np.ndarray, truth: np.ndarray) -> float:
    """Return the mean accuracy of true categories, in %, under the best one-to-one matching.

    Examples
    --------
    >>> per_category(np.array([0, 0, 0, 1]), np.array(["a", "a", "b", "b"]))
    75.0
    """
    from scipy.optimize import linear_sum_assignment

    names, true = np.unique(truth, return_inverse=True)
    clusters, own = np.unique(predicted, return_inverse=True)
    table = np.zeros((len(clusters), len(names)))
    np.add.at(table, (own, true), 1)
    right = np.zeros(len(names))
    for row, column in zip(*linear_sum_assignment(-table), strict=True):
        right[column] = table[row, column]
    return float(100 * (right / table.sum(0)).mean())


def device_line(device: str) -> str:
    """Return the device in words."""
    if device.startswith("cuda"):
        import torch

        return torch.cuda.get_device_name(device)
    return f"cpu, {os.cpu_count()} cores"
