"""The sections of `newfound bench speed`; each gives one result line."""

import importlib.util
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from newfound.bench.datasets import DataSet
from newfound.bench.lines import Line, append_line, commit
from newfound.bench.speed.peers import PACKAGES
from newfound.bench.speed.processes import Finished, newfound_command, run_process
from newfound.bench.speed.sample import draw_distinct_texts, draw_sample, predictions
from newfound.bench.speed.timing import Measures
from newfound.errors import InputError

if TYPE_CHECKING:
    from newfound.cli.output import Output

ON_GPU = ("epochs", "runs")  # if there is one
WHEN_NAMED = ("growth", "scaling", *ON_GPU)  # the first two take many minutes
TRAINING_TEXTS = 512


@dataclass(frozen=True)
class SpeedOptions:
    """What is measured, on which texts, how often.

    Parameters
    ----------
    data : DataSet
        The data set that samples are drawn from: BANKING.
    folder : Path or None
        The folder of all data sets, which the sections `prediction` and `runs` read.
    texts : int
        Texts per sample.
    repeats : int
        Number of runs whose median is reported.
    encoder : str
        Short name, folder or Hub id of the encoder.
    efforts : tuple of str
        The efforts of `discover` that are measured.
    prediction_texts : int
        Distinct texts that the section `prediction` predicts.
    growth_texts : int
        Texts of the largest table of the section `growth`.
    scaling_texts : tuple of int
        Texts of the tables of the section `scaling`.
    seed : int
        Seed of the samples.
    """

    data: DataSet
    folder: Path | None = None
    texts: int = 4000
    repeats: int = 3
    encoder: str = "minilm"
    efforts: tuple[str, ...] = ("fast", "balanced")
    prediction_texts: int = 20_000
    growth_texts: int = 200_000
    scaling_texts: tuple[int, ...] = (5_000, 20_000, 60_000, 200_000)
    seed: int = 0


def measure(
    options: SpeedOptions, sections: Sequence[str], out: Path, output: "Output"
) -> list[Line]:
    """Measure the named sections.

    Parameters
    ----------
    options : SpeedOptions
        What is measured.
    sections : sequence of str
        Some of the names in `MEASURE`.
    out : Path
        The file that result lines are appended to, one per section.
    output : Output
        Where progress and notes go.

    Returns
    -------
    list of dict
        The result lines.
    """
    lines = []
    for section in sections:
        output.progress(f"{section} ...")
        measures, notes = MEASURE[section](options)
        output.notes(notes)
        line = _line(options, section, measures, notes)
        append_line(out, line)
        lines.append(line)
    return lines


def _line(options: SpeedOptions, section: str, measures: Measures, notes: list[str]) -> Line:
    """Return the result line of a section."""
    from newfound.devices import describe_device, find_device, instruction_set
    from newfound.versions import versions

    return {
        "kind": "speed",
        "method": section,
        "data_set": options.data.name,
        "encoder": Path(options.encoder).name,
        "seed": options.seed,
        "config": {"texts": options.texts, "repeats": options.repeats},
        "measures": measures,
        "notes": notes,
        "device": describe_device(find_device(None if section in ON_GPU else "cpu")),
        "instruction_set": instruction_set(),
        "versions": versions(),
        "commit": commit(),
    }


# --- sections ----------------------------------------------------------------------------------


def _encoding(options: SpeedOptions) -> tuple[Measures, list[str]]:
    """Measure encoding beside sentence-transformers, and in int8."""
    from newfound.bench.speed.components import measure_encoding
    from newfound.bench.speed.prediction import int8_installed

    plain, notes = _plain(options), []
    texts = draw_sample(options.data, options.texts, options.seed).texts
    peer: Callable[[list[str]], np.ndarray] | None = None
    if _installed("sentence_transformers"):
        from sentence_transformers import SentenceTransformer

        peer = SentenceTransformer(_folder(options.encoder), device="cpu").encode
    else:
        notes.append("sentence-transformers is not installed: no encoding beside it")
    quantised: Callable[[list[str]], np.ndarray] | None = None
    if int8_installed():
        from newfound.encoding.int8 import CALIBRATION_TEXTS, Int8Features, quantise

        quantised = Int8Features(plain, quantise(plain, texts[:CALIBRATION_TEXTS]))
    else:
        notes.append("openvino and nncf are not installed: no int8")
    return measure_encoding(plain, texts, options.repeats, peer, quantised), notes


def _training(options: SpeedOptions) -> tuple[Measures, list[str]]:
    """Measure a pass over some texts, by what learns."""
    from newfound.bench.speed.components import measure_training
    from newfound.encoding.loading import load_encoder

    texts = draw_sample(options.data, min(options.texts, TRAINING_TEXTS), options.seed).texts
    return measure_training(load_encoder(options.encoder), texts, options.repeats), []


def _kmeans(options: SpeedOptions) -> tuple[Measures, list[str]]:
    """Measure k-means on all training texts, compared with scikit-learn."""
    from newfound.bench.speed.components import measure_kmeans

    texts = options.data.texts["train"]  # all of them, not a sample
    features = _plain(options)(texts)
    found = measure_kmeans(features, len(options.data.categories), options.repeats)
    return found, [f"{len(texts):,} x {features.shape[1]}, K = {len(options.data.categories)}"]


def _discover(options: SpeedOptions) -> tuple[Measures, list[str]]:
    """Measure `newfound discover` and other packages, each in its own process."""
    notes = []
    peers = [name for name, package in PACKAGES.items() if _installed(package)]
    notes += [f"{n} is not installed: skipped" for n in PACKAGES if n not in peers]
    ended: dict[str, list[tuple[float, Finished, float | None]]] = {}
    with tempfile.TemporaryDirectory(prefix="newfound-") as temporary:
        folder = Path(temporary)
        for turn in range(options.repeats):
            sample = draw_sample(options.data, options.texts, options.seed + turn)
            table, k = sample.write(folder / "table.csv"), str(len(set(sample.truth)))
            for name in peers:
                module = [sys.executable, "-m", "newfound.bench.speed.peers", name]
                done = run_process([*module, str(table), _folder(options.encoder), k])
                found = json.loads(done.output.splitlines()[-1])
                right = None if found["topics"] is None else sample.accuracy(found["topics"])
                ended.setdefault(name, []).append((found["seconds"]["work"], done, right))
            for effort in options.efforts:
                run = folder / effort
                flags = ["--categories", k, "--effort", effort, "--encoder", options.encoder]
                flags += ["--seed", str(turn)]
                columns = ["--text-column", "text", "--label-column", "label", "--device", "cpu"]
                command = ["discover", str(table), "-o", str(run), "--force", *columns, *flags]
                done = run_process(newfound_command(*command))
                right = sample.accuracy(predictions(run / "assignments.csv"))
                ended.setdefault(effort, []).append((done.seconds, done, right))
    return {name: _medians(runs) for name, runs in ended.items()}, notes


def _medians(runs: Sequence[tuple[float, Finished, float | None]]) -> dict[str, Any]:
    """Return median seconds and mean accuracy over repeats with different samples and seeds."""
    right = [accuracy for _, _, accuracy in runs if accuracy is not None]
    return {
        "seconds": statistics.median(seconds for seconds, _, _ in runs),
        "runs": [round(seconds, 3) for seconds, _, _ in runs],
        "process_seconds": statistics.median(done.seconds for _, done, _ in runs),
        "peak_mb": round(max(done.peak_mb for _, done, _ in runs)),
        **({"accuracy": round(statistics.mean(right), 2)} if right else {}),
    }


def _prediction(options: SpeedOptions) -> tuple[Measures, list[str]]:
    """Measure `newfound predict` on distinct texts with the real encoder, in fp32 and int8."""
    from newfound.bench.speed.prediction import int8_installed, measure_prediction

    assert options.folder is not None
    texts, joined = draw_distinct_texts(options.folder, options.prediction_texts, options.seed)
    notes = []
    if joined:
        notes.append(
            f"{joined:,} of the texts begin as one real text and end as another of its category"
        )
    if not int8_installed():
        notes.append("openvino and nncf are not installed: no int8")
    sample = draw_sample(options.data, options.texts, options.seed)
    with tempfile.TemporaryDirectory(prefix="newfound-") as folder:
        found = measure_prediction(Path(folder), options.encoder, sample, texts, options.repeats)
    return found, notes


def _imports(options: SpeedOptions) -> tuple[Measures, list[str]]:
    """Measure how long imports and `newfound --help` take."""
    python = [sys.executable, "-c"]
    commands = {
        "python": [*python, "pass"],
        "import newfound": [*python, "import newfound"],
        "newfound --help": newfound_command("--help"),
        "import torch": [*python, "import torch"],
        "newfound.CategoryDiscoverer": [*python, "import newfound; newfound.CategoryDiscoverer"],
    }
    for package in dict.fromkeys(PACKAGES.values()):
        if _installed(package):
            commands[f"import {package}"] = [*python, f"import {package}"]
    measures = {}
    for name, command in commands.items():
        runs = [run_process(command) for _ in range(options.repeats)]
        measures[name] = {
            "seconds": statistics.median(done.seconds for done in runs),
            "peak_mb": round(max(done.peak_mb for done in runs)),
        }
    return measures, []


def _growth(options: SpeedOptions) -> tuple[Measures, list[str]]:
    """Measure large inputs: memory and time as the number of texts grows."""
    from newfound.bench.speed.growth import SMALL, measure_large_kmeans, measure_predict

    with tempfile.TemporaryDirectory(prefix="newfound-") as folder:
        measures = measure_predict(Path(folder), options.encoder, options.growth_texts)
    if options.growth_texts <= SMALL:
        return measures, ["few texts: k-means on a million points was skipped"]
    return measures | measure_large_kmeans(), []


def _scaling(options: SpeedOptions) -> tuple[Measures, list[str]]:
    """Measure `newfound discover` on growing tables."""
    from newfound.bench.speed.scaling import measure_scaling

    with tempfile.TemporaryDirectory(prefix="newfound-") as folder:
        measures = measure_scaling(
            Path(folder), options.encoder, options.data, options.scaling_texts, options.seed
        )
    real = len(set(options.data.texts["train"]))
    notes = [f"K = {len(options.data.categories)} given"]
    if max(options.scaling_texts) > real:
        notes.append(
            f"tables drawn from {real:,} real texts and {max(options.scaling_texts) - real:,} that "
            "begin as one of them and end as another of its category"
        )
    return measures, notes


def _epochs(options: SpeedOptions) -> tuple[Measures, list[str]]:
    """Measure an epoch of DPN."""
    from newfound.bench.speed.epochs import measure_epochs
    from newfound.devices import find_device

    return measure_epochs(options.data, options.encoder, find_device(None), options.repeats), []


def _runs(options: SpeedOptions) -> tuple[Measures, list[str]]:
    """Measure whole runs of DPN."""
    from newfound.bench.speed.epochs import measure_runs

    assert options.folder is not None
    return measure_runs(options.folder, options.encoder, options.seed), []


MEASURE: dict[str, Callable[[SpeedOptions], tuple[Measures, list[str]]]] = {
    "encoding": _encoding,
    "training": _training,
    "kmeans": _kmeans,
    "discover": _discover,
    "prediction": _prediction,
    "imports": _imports,
    "growth": _growth,
    "scaling": _scaling,
    "epochs": _epochs,
    "runs": _runs,
}


def _plain(options: SpeedOptions) -> Any:
    """Return the encoder as `discover --effort fast` uses it: all layers frozen, no head."""
    from newfound.encoding.feature_maps import EncoderFeatures
    from newfound.encoding.loading import load_encoder

    encoder = load_encoder(options.encoder)
    return EncoderFeatures(encoder, frozen_layers=encoder.backbone.shape.layers)


def _folder(encoder: str) -> str:
    """Return the folder of the encoder; other packages do not know our short names."""
    from newfound.encoding.loading import find_folder

    return str(find_folder(encoder))


def _installed(package: str) -> bool:
    """Return True if a package is installed."""
    return importlib.util.find_spec(package) is not None


def chosen_sections(text: str | None) -> list[str]:
    """Return the sections given by --only; by default those that take minutes on a CPU."""
    if text is None:
        return [section for section in MEASURE if section not in WHEN_NAMED]
    named = [part.strip() for part in text.split(",") if part.strip()]
    if not named or not set(named) <= set(MEASURE):
        raise InputError(f"--only takes some of {', '.join(MEASURE)}, not {text!r}")
    return named
