"""Artefacts: data of a run that figures need in addition to its result line, as JSON."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from newfound.bench.datasets import Split
from newfound.bench.lines import Line
from newfound.clustering.distances import distances
from newfound.clustering.kmeans import kmeans
from newfound.clustering.prototypes import class_means, match_prototypes
from newfound.errors import InputError
from newfound.files import without_nan, write_text
from newfound.methods.fitted import Fitted

PERPLEXITY = 30


def make_artefact(line: Line, fitted: Fitted, split: Split) -> dict[str, Any]:
    """Return prototype distances (Fig. 3), a 2-D map of test texts (Fig. 5) and training curves."""
    categories = sorted(set(split.test_labels))
    number = {category: i for i, category in enumerate(categories)}
    features = fitted.features(split.test_texts)
    return {
        **{name: line[name] for name in ("data_set", "method", "encoder", "seed", "known_ratio")},
        "given_k": line["config"]["given_k"],
        "known": split.known,
        "distances": prototype_distances(fitted, split, line["seed"]).round(3).tolist(),
        "categories": categories,
        "truth": [number[label] for label in split.test_labels],
        "map": tsne_map(features, line["seed"]).round(1).tolist(),
        "history": [{key: _short(value) for key, value in step.items()} for step in fitted.history],
    }


def prototype_distances(fitted: Fitted, split: Split, seed: int) -> np.ndarray:
    """Return the distances [M, K] of labelled prototypes to the unlabelled texts' cluster centres.

    Columns are in matched order (Eqs. 2-3): the known categories first, then the novel ones.
    """
    device = getattr(fitted.features, "device", torch.device("cpu"))
    features = torch.from_numpy(fitted.training_features).to(device)
    place = {category: i for i, category in enumerate(split.known)}
    rows = [-1 if label is None else place[label] for label in split.labels]
    targets = torch.tensor(rows, device=device)
    labelled = class_means(features, targets, len(split.known))
    centres = kmeans(features[targets < 0], len(fitted.prototypes), starts=10, seed=seed).centres
    order = match_prototypes(labelled, centres).order
    return distances(labelled, centres).cpu().numpy().astype(float)[:, order]


def tsne_map(features: np.ndarray, seed: int) -> np.ndarray:
    """Return a t-SNE map [N, 2] of the test texts' features, scaled to -100..100."""
    from sklearn.manifold import TSNE

    perplexity = min(PERPLEXITY, (len(features) - 1) / 3)
    places = TSNE(perplexity=perplexity, init="pca", random_state=seed).fit_transform(features)
    places = places - places.mean(0)
    return np.asarray(100 * places / np.abs(places).max(), float)


def _short(value: Any) -> Any:
    """Round a float to five significant digits."""
    return float(f"{value:.5g}") if isinstance(value, float) else value


def file_name(line: Line) -> str:
    """Return the file name: one file per data set, method, encoder, known ratio and seed."""
    given = line["config"]["given_k"]
    parts = (line["data_set"], line["method"], line["encoder"], f"known{line['known_ratio']:g}")
    return "-".join((*parts, *(() if given else ("auto",)), f"seed{line['seed']}.json"))


def write_artefact(folder: Path, line: Line, fitted: Fitted, split: Split) -> Path:
    """Write the artefact of a run and return its path."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror or error}") from error
    path = folder / file_name(line)
    artefact = without_nan(make_artefact(line, fitted, split))
    write_text(path, json.dumps(artefact, separators=(",", ":")) + "\n")
    return path
