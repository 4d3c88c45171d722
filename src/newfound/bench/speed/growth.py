"""Large inputs: `newfound predict` on growing tables, and k-means on a million points."""

import csv
import json
import random
import sys
import time
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from newfound.bench.speed.processes import newfound_command, run_process
from newfound.bench.speed.timing import Measures
from newfound.encoding.architecture import Architecture
from newfound.encoding.loading import load_encoder
from newfound.files import write_json

SMALL = 10_000  # texts of the table that larger ones are compared with
CATEGORIES = 50
POINTS, WIDTH, CLUSTERS = 1_000_000, 384, 200


def measure_predict(folder: Path, encoder: str, texts: int) -> Measures:
    """Measure `newfound predict` on growing tables of generated texts, with a tiny encoder.

    The encoder is a random BERT with one layer, because only the parts that grow with the table are
    measured: reading, batching and writing. `prediction.measure_prediction` measures a real
    encoder.

    Parameters
    ----------
    folder : Path
        A temporary folder for the encoder, the run and the tables.
    encoder : str
        Short name, folder or Hub id of the encoder whose tokeniser is used.
    texts : int
        Number of texts of the largest table; the others have half as many and 10,000.

    Returns
    -------
    dict
        Seconds and peak memory per table.
    """
    words = write_tiny_encoder(folder / "encoder", encoder)
    sample = write_texts(folder / "sample.csv", words, 600, seed=1)
    run = folder / "run"
    flags = ["--encoder", str(folder / "encoder"), "--effort", "fast", "--device", "cpu"]
    count = ["--categories", str(CATEGORIES)]
    run_process(newfound_command("discover", str(sample), "-o", str(run), *flags, *count))
    measures: Measures = {}
    for size in sorted({min(SMALL, texts // 4), texts // 2, texts}):
        table = write_texts(folder / f"{size}.csv", words, size, seed=2)
        out = folder / f"{size}.out.csv"
        command = ["predict", str(run), str(table), "-o", str(out), "--device", "cpu"]
        done = run_process(newfound_command(*command))
        measures[f"predict {size:,} texts"] = {
            "texts": size,
            "seconds": done.seconds,
            "peak_mb": round(done.peak_mb),
        }
        table.unlink()
        out.unlink()
    return measures


def measure_large_kmeans(
    points: int = POINTS, width: int = WIDTH, clusters: int = CLUSTERS
) -> Measures:
    """Measure k-means on many points, in a process of its own."""
    module = [sys.executable, "-m", "newfound.bench.speed.growth"]
    done = run_process([*module, str(points), str(width), str(clusters)])
    found = json.loads(done.output.splitlines()[-1])
    name = f"k-means {points:,} x {width}, K = {clusters}, 1 start"
    return {name: {**found, "peak_mb": round(done.peak_mb)}}


def write_texts(path: Path, words: list[str], count: int, seed: int) -> Path:
    """Write a table of short random texts and return its path."""
    rng = random.Random(seed)
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["text"])
        for _ in range(count):
            rows.writerow([" ".join(rng.choices(words, k=rng.randint(5, 12)))])
    return path


def write_tiny_encoder(folder: Path, tokenizer_of: str) -> list[str]:
    """Write a random one-layer BERT with the tokeniser of a real encoder; return some words."""
    tokenizer = load_encoder(tokenizer_of).tokenizer
    folder.mkdir(parents=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    shape = Architecture(
        vocabulary=tokenizer.get_vocab_size(), width=32, layers=1, heads=4, inner=64, positions=128
    )
    write_json(
        folder / "config.json",
        {
            "model_type": "bert",
            "vocab_size": shape.vocabulary,
            "hidden_size": shape.width,
            "num_hidden_layers": shape.layers,
            "num_attention_heads": shape.heads,
            "intermediate_size": shape.inner,
            "max_position_embeddings": shape.positions,
        },
    )
    generator = torch.Generator().manual_seed(0)
    width, inner, layer = shape.width, shape.inner, "encoder.layer.0"
    sizes = {
        "embeddings.word_embeddings": (shape.vocabulary, width),
        "embeddings.position_embeddings": (shape.positions, width),
        **{f"{layer}.attention.self.{part}": (width, width) for part in ("query", "key", "value")},
        f"{layer}.attention.output.dense": (width, width),
        f"{layer}.intermediate.dense": (inner, width),
        f"{layer}.output.dense": (width, inner),
    }
    weights = {f"{n}.weight": torch.randn(s, generator=generator) / 6 for n, s in sizes.items()}
    for name, size in sizes.items():
        if name.startswith(layer):
            weights[f"{name}.bias"] = torch.zeros(size[0])
    for name in ("embeddings", f"{layer}.attention.output", f"{layer}.output"):
        weights[f"{name}.LayerNorm.weight"] = torch.ones(width)
        weights[f"{name}.LayerNorm.bias"] = torch.zeros(width)
    save_file(weights, folder / "model.safetensors")
    return sorted(w for w in tokenizer.get_vocab() if w.isascii() and w.isalpha())[:5000]


def main(points: str, width: str, clusters: str) -> None:
    """Cluster generated points and print the seconds as JSON."""
    from newfound.clustering.kmeans import kmeans

    rng = np.random.default_rng(0)
    centres = rng.standard_normal((int(clusters), int(width)), dtype=np.float32)
    features = np.empty((int(points), int(width)), np.float32)
    for start in range(0, len(features), 65536):
        part = features[start : start + 65536]
        rng.standard_normal(out=part, dtype=np.float32)
        part += centres[rng.integers(len(centres), size=len(part))]
    begun = time.perf_counter()
    found = kmeans(torch.from_numpy(features), len(centres), starts=1, seed=0)
    seconds = time.perf_counter() - begun
    held = features.nbytes / 2**20
    print(json.dumps({"seconds": seconds, "iterations": found.iterations, "data_mb": round(held)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
