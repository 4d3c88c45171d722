"""`newfound bench speed`: what the goals for speed are held against, measured in one run."""

import csv
import importlib.util
import json
import random
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from newfound.bench.datasets import DataSet
from newfound.bench.lines import Line, append_line, commit
from newfound.bench.peers import PACKAGES
from newfound.bench.processes import Finished, newfound_command, run_process
from newfound.errors import InputError

SECTIONS = ("encoding", "training", "kmeans", "discover", "imports", "growth", "epochs", "runs")
USUAL = SECTIONS[:-3]  # growth takes many minutes, epochs and runs want a GPU: only when named
ON_GPU = ("epochs", "runs")  # if there is one
KNOWN_RATIO, LABELLED_RATIO = 0.75, 0.1
TRAINING_TEXTS = 512
Measures = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Asked:
    """What is to be measured, on what, how often."""

    data: DataSet
    folder: Path | None = None  # of all data sets; whole runs take every one that is there
    texts: int = 4000
    repeats: int = 3
    encoder: str = "minilm"
    efforts: tuple[str, ...] = ("fast", "balanced")
    growth_texts: int = 200_000
    seed: int = 0


@dataclass(frozen=True)
class Drawn:
    """Texts of which some are labelled: 75% of categories known, 10% of their texts labelled."""

    texts: list[str]
    labels: list[str]  # "" where there is none
    truth: list[str]
    known: list[str]

    def write(self, path: Path) -> Path:
        """The table that a user would have."""
        with path.open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["text", "label"])
            rows.writerows(zip(self.texts, self.labels, strict=True))
        return path

    def accuracy(self, found: Sequence[Any]) -> float:
        """Percent of the unlabelled texts that are right (All)."""
        from newfound.clustering.metrics import accuracy

        hidden = [i for i, label in enumerate(self.labels) if not label]
        guessed = np.array([str(found[i]) for i in hidden])
        truth = np.array([self.truth[i] for i in hidden])
        return round(accuracy(guessed, truth, set(self.known)).all, 2)


def draw(data: DataSet, count: int, seed: int = 0) -> Drawn:
    """Draw `count` training texts and the labels that are given, category by category."""
    rng = random.Random(seed)
    rows = list(range(len(data.texts["train"])))
    if count < len(rows):
        rows = sorted(rng.sample(rows, count))
    truth = [data.labels["train"][row] for row in rows]
    categories = sorted(set(truth))
    known = sorted(rng.sample(categories, round(KNOWN_RATIO * len(categories))))
    labels = [""] * len(rows)
    for category in known:
        own = [i for i, label in enumerate(truth) if label == category]
        for i in rng.sample(own, max(1, round(LABELLED_RATIO * len(own)))):
            labels[i] = category
    return Drawn([data.texts["train"][row] for row in rows], labels, truth, known)


def measure(asked: Asked, sections: Sequence[str], out: Path) -> list[Line]:
    """Measure the named sections; each is one result line."""
    lines = []
    for section in sections:
        print(f"{section} ...", file=sys.stderr, flush=True)
        measures, notes = MEASURE[section](asked)
        line = _line(asked, section, measures, notes)
        append_line(out, line)
        lines.append(line)
    return lines


def _line(asked: Asked, section: str, measures: Measures, notes: list[str]) -> Line:
    from newfound.devices import describe_device, find_device
    from newfound.versions import versions

    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    return {
        "kind": "speed",
        "method": section,
        "data_set": asked.data.name,
        "encoder": Path(asked.encoder).name,
        "seed": asked.seed,
        "config": {"texts": asked.texts, "repeats": asked.repeats},
        "measures": measures,
        "notes": notes,
        "device": describe_device(find_device(None if section in ON_GPU else "cpu")),
        "versions": versions(),
        "commit": commit(),
    }


# --- sections ----------------------------------------------------------------------------------


def _encoding(asked: Asked) -> tuple[Measures, list[str]]:
    from newfound.bench.layouts import measure_encoding

    plain, notes = _plain(asked), []
    texts = draw(asked.data, asked.texts, asked.seed).texts
    peer: Callable[[list[str]], np.ndarray] | None = None
    if _installed("sentence_transformers"):
        from sentence_transformers import SentenceTransformer

        peer = SentenceTransformer(_folder(asked.encoder), device="cpu").encode
    else:
        notes.append("sentence-transformers is not installed: no encoding beside it")
    quantised: Callable[[list[str]], np.ndarray] | None = None
    if _installed("openvino") and _installed("nncf"):
        from newfound.encoding.int8 import CALIBRATION, Int8Features, quantise

        quantised = Int8Features(plain, quantise(plain, texts[:CALIBRATION]))
    else:
        notes.append("openvino and nncf are not installed: no int8")
    return measure_encoding(plain, texts, asked.repeats, peer, quantised), notes


def _training(asked: Asked) -> tuple[Measures, list[str]]:
    from newfound.bench.layouts import measure_training
    from newfound.encoding.loading import load_encoder

    texts = draw(asked.data, min(asked.texts, TRAINING_TEXTS), asked.seed).texts
    return measure_training(load_encoder(asked.encoder), texts, asked.repeats), []


def _kmeans(asked: Asked) -> tuple[Measures, list[str]]:
    from newfound.bench.layouts import measure_kmeans

    texts = asked.data.texts["train"]  # all of them, whatever the other sections take
    features = _plain(asked)(texts)
    found = measure_kmeans(features, len(asked.data.categories), asked.repeats)
    return found, [f"{len(texts):,} x {features.shape[1]}, K = {len(asked.data.categories)}"]


def _discover(asked: Asked) -> tuple[Measures, list[str]]:
    notes = []
    peers = [name for name, package in PACKAGES.items() if _installed(package)]
    notes += [f"{n} is not installed: skipped" for n in PACKAGES if n not in peers]
    ended: dict[str, list[tuple[float, Finished, float | None]]] = {}
    with tempfile.TemporaryDirectory(prefix="newfound-") as temporary:
        folder = Path(temporary)
        for turn in range(asked.repeats):
            drawn = draw(asked.data, asked.texts, asked.seed + turn)
            table, k = drawn.write(folder / "table.csv"), str(len(set(drawn.truth)))
            for name in peers:
                module = [sys.executable, "-m", "newfound.bench.peers", name]
                done = run_process([*module, str(table), _folder(asked.encoder), k])
                told = json.loads(done.output.splitlines()[-1])
                right = None if told["topics"] is None else drawn.accuracy(told["topics"])
                ended.setdefault(name, []).append((told["seconds"]["work"], done, right))
            for effort in asked.efforts:
                run = folder / effort
                flags = ["--categories", k, "--effort", effort, "--encoder", asked.encoder]
                flags += ["--seed", str(turn)]
                columns = ["--text-column", "text", "--label-column", "label", "--device", "cpu"]
                command = ["discover", str(table), "-o", str(run), "--force", *columns, *flags]
                done = run_process(newfound_command(*command))
                right = drawn.accuracy(_predicted(run / "assignments.csv"))
                ended.setdefault(effort, []).append((done.seconds, done, right))
    return {name: _summed_up(runs) for name, runs in ended.items()}, notes


def _predicted(path: Path) -> list[str]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return [row["predicted"] for row in csv.DictReader(file)]


def _summed_up(runs: Sequence[tuple[float, Finished, float | None]]) -> dict[str, Any]:
    """Medians over repeats and the mean accuracy: each has texts and a seed of its own."""
    right = [accuracy for _, _, accuracy in runs if accuracy is not None]
    return {
        "seconds": statistics.median(seconds for seconds, _, _ in runs),
        "runs": [round(seconds, 3) for seconds, _, _ in runs],
        "process_seconds": statistics.median(done.seconds for _, done, _ in runs),
        "peak_mb": round(max(done.peak_mb for _, done, _ in runs)),
        **({"accuracy": round(statistics.mean(right), 2)} if right else {}),
    }


def _imports(asked: Asked) -> tuple[Measures, list[str]]:
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
        runs = [run_process(command) for _ in range(asked.repeats)]
        measures[name] = {
            "seconds": statistics.median(done.seconds for done in runs),
            "peak_mb": round(max(done.peak_mb for done in runs)),
        }
    return measures, []


def _growth(asked: Asked) -> tuple[Measures, list[str]]:
    from newfound.bench.growth import SMALL, measure_large_kmeans, measure_predict

    with tempfile.TemporaryDirectory(prefix="newfound-") as folder:
        measures = measure_predict(Path(folder), asked.encoder, asked.growth_texts)
    if asked.growth_texts <= SMALL:
        return measures, ["few texts: k-means on a million points was left out"]
    return measures | measure_large_kmeans(), []


def _epochs(asked: Asked) -> tuple[Measures, list[str]]:
    from newfound.bench.steps import measure_epochs
    from newfound.devices import find_device

    return measure_epochs(asked.data, asked.encoder, find_device(None), asked.repeats), []


def _runs(asked: Asked) -> tuple[Measures, list[str]]:
    from newfound.bench.steps import measure_runs

    assert asked.folder is not None
    return measure_runs(asked.folder, asked.encoder, asked.seed), []


MEASURE: dict[str, Callable[[Asked], tuple[Measures, list[str]]]] = {
    "encoding": _encoding,
    "training": _training,
    "kmeans": _kmeans,
    "discover": _discover,
    "imports": _imports,
    "growth": _growth,
    "epochs": _epochs,
    "runs": _runs,
}


def _plain(asked: Asked) -> Any:
    """The encoder as `discover --effort fast` uses it: all layers frozen, no head."""
    from newfound.encoding.feature_maps import EncoderFeatures
    from newfound.encoding.loading import load_encoder

    encoder = load_encoder(asked.encoder)
    return EncoderFeatures(encoder, frozen_layers=encoder.backbone.shape.layers)


def _folder(encoder: str) -> str:
    """Where the encoder's files are: peers cannot read our short names."""
    from newfound.encoding.loading import find_folder

    return str(find_folder(encoder))


def _installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def chosen_sections(text: str | None) -> list[str]:
    """The sections named with --only."""
    if text is None:
        return list(USUAL)
    named = [part.strip() for part in text.split(",") if part.strip()]
    wrong = [name for name in named if name not in SECTIONS]
    if wrong or not named:
        raise InputError(f"--only takes some of {', '.join(SECTIONS)}, not {text!r}")
    return named
