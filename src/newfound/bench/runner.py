"""Run a method on a split of a data set and return its result line."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from newfound.bench.datasets import DataSet, Split, make_split, search_split
from newfound.bench.lines import Line, commit
from newfound.bench.published import PublishedSet, published_split
from newfound.clustering.assignment import assign
from newfound.clustering.kmeans import kmeans
from newfound.clustering.metrics import Scores, accuracy
from newfound.clustering.n_categories import overclustering_count
from newfound.data.task import Task, make_task
from newfound.devices import describe_device, find_device
from newfound.encoding.loading import load_encoder
from newfound.methods import find_method, resolve_config
from newfound.methods.dpn import PAPER
from newfound.methods.fitted import Fitted
from newfound.progress import Stages
from newfound.versions import versions

# Names of methods with changed settings in result lines: the loss of the released code, and the
# five ablations of Table 3.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "dpn-coupled": ("dpn", {"coupled": True}),
    "dpn-no-ce": ("dpn", {"cross_entropy": False}),
    "dpn-no-ema": ("dpn", {"moving_average": False}),
    "dpn-no-decoupling": ("dpn", {"decoupling": False}),
    "dpn-hard-assignment": ("dpn", {"soft_assignment": False}),
    "dpn-uniform-weights": ("dpn", {"semantic_weights": False}),
}
PUBLISHED = "published"  # kind of the result lines on published splits
TEST_STARTS = 20
TEST_SEEDS = (0, 1, 2)
MULTIPLES = (1.0, 1.5, 2.0, 3.0)  # of the true number of categories, for over-clustering


@dataclass(frozen=True)
class Plan:
    """The settings of a run.

    Parameters
    ----------
    data_set : str
        Name of a data set.
    method : str
        Name of a method or of one of `VARIANTS`.
    encoder : str
        Short name, folder or Hub id of the encoder.
    seed : int
        Seed of the split and of the method.
    known_ratio, labelled_ratio : float
        Shares of the categories that are known, and of their texts that are labelled.
    given_k : bool
        Whether the method is given the true number of categories, or estimates it.
    effort : str
        ``"fast"``, ``"balanced"`` or ``"best"``.
    max_tokens : int
        Longer texts are truncated.
    settings : mapping, optional
        Settings of the method that differ from its defaults.
    search : bool
        Whether the run is scored for choosing settings, see `search_split`.
    published : bool
        Whether the split is a published one, see `newfound.bench.published`.
    """

    data_set: str
    method: str
    encoder: str = "minilm"
    seed: int = 0
    known_ratio: float = 0.75
    labelled_ratio: float = 0.1
    given_k: bool = True
    effort: str = "best"
    max_tokens: int = 128
    settings: Mapping[str, Any] | None = None
    search: bool = False
    published: bool = False

    def line(self) -> Line:
        """Return the fields of the result line that are known before the run and identify it."""
        _, config = resolve_variant(self.method, self.data_set, self.effort, self.settings)
        return {
            **({"kind": "search"} if self.search else {}),
            **({"kind": PUBLISHED} if self.published else {}),
            "data_set": self.data_set,
            "method": self.method,
            "encoder": Path(self.encoder).name,
            "seed": self.seed,
            "known_ratio": self.known_ratio,
            "labelled_ratio": self.labelled_ratio,
            "config": {
                **asdict(config),
                "effort": self.effort,
                "max_tokens": self.max_tokens,
                "given_k": self.given_k,
            },
        }


def run(
    plan: Plan,
    data: DataSet,
    *,
    device: str | None = None,
    cache: Path | None = None,
    stages: Stages | None = None,
) -> tuple[Line, Fitted, Split]:
    """Make one run.

    Parameters
    ----------
    plan : Plan
        The settings of the run.
    data : DataSet
        The data set that the plan names.
    device : str, optional
        ``"cpu"``, ``"cuda"`` or ``"cuda:N"``; by default a GPU if available.
    cache : Path, optional
        A folder in which runs share their pretraining.
    stages : Stages, optional
        What times the stages and shows their progress; by default shown on a terminal.

    Returns
    -------
    tuple
        The result line, the fitted method and the split.
    """
    begun = time.perf_counter()
    stages = stages or Stages()
    fitted, split = fit(plan, data, stages, device, cache)
    with stages.stage("scoring"):
        cluster = find_method(method_behind(plan.method)).cluster
        # The dev texts of a search are of known categories only, which determines K.
        k = len(set(split.test_labels)) if plan.search else len(fitted.prototypes)
        scores = score(fitted, split, plan.seed, k, cluster)
    line = {
        **plan.line(),
        "scores": scores,
        "categories": {
            "true": split.n_categories,
            "used": len(fitted.prototypes),
            "estimated": fitted.estimate.n_categories if fitted.estimate else None,
        },
        **measured(begun, stages, device),
    }
    return line, fitted, split


def count_plan(plan: Plan) -> Line:
    """Return the fields of a `count` line that are known before the measurement."""
    line = plan.line()
    del line["method"]
    return {"kind": "count", **line}


def count(
    plan: Plan,
    data: DataSet,
    *,
    device: str | None = None,
    cache: Path | None = None,
    stages: Stages | None = None,
) -> Line:
    """Estimate the number of categories (Table 4) and return the result line.

    The number is estimated in two ways: as in `discover`, without the true number, and as in the
    paper, by over-clustering the pretrained features into a multiple of the true number.
    """
    begun = time.perf_counter()
    stages = stages or Stages()
    fitted, split = fit(replace(plan, given_k=False), data, stages, device, cache)
    found, truth = fitted.estimate, split.n_categories
    assert found is not None
    features = torch.from_numpy(fitted.training_features).to(find_device(device))
    with stages.stage("over-clustering"):
        counts = {
            f"{multiple:g}": overclustering_count(features, round(multiple * truth), seed=plan.seed)
            for multiple in MULTIPLES
        }
    return {
        **count_plan(plan),
        "truth": truth,
        "estimated": found.n_categories,
        "low": found.low,
        "high": found.high,
        "overclustering": counts,
        **measured(begun, stages, device),
    }


def fit(
    plan: Plan, data: DataSet, stages: Stages, device: str | None, cache: Path | None
) -> tuple[Fitted, Split]:
    """Draw the plan's split and fit its method to it."""
    if isinstance(data, PublishedSet):
        split = published_split(data, plan.known_ratio)
    else:
        split = make_split(
            data,
            known_ratio=plan.known_ratio,
            labelled_ratio=plan.labelled_ratio,
            seed=plan.seed,
        )
    if plan.search:
        split = search_split(split, plan.seed)
    method, config = resolve_variant(plan.method, data.name, plan.effort, plan.settings)
    with stages.stage("loading"):
        loaded = load_encoder(plan.encoder, max_tokens=plan.max_tokens, note=stages.note)
        loaded.backbone.to(find_device(device))
    torch.manual_seed(plan.seed)
    fitted = find_method(method).fit(
        split_task(split, plan.given_k),
        loaded,
        config,
        seed=plan.seed,
        stages=stages,
        cache=cache,
    )
    return fitted, split


def measured(begun: float, stages: Stages, device: str | None) -> Line:
    """Return the measured fields of every line: seconds, device, versions and commit."""
    return {
        "seconds": {
            "total": round(time.perf_counter() - begun, 2),
            **{stage: round(value, 2) for stage, value in stages.seconds.items()},
        },
        "device": describe_device(find_device(device)),
        "versions": versions(),
        "commit": commit(),
    }


def method_behind(name: str) -> str:
    """Return the method of a name in result lines."""
    return VARIANTS.get(name, (name, {}))[0]


def resolve_variant(
    name: str, data_set: str, effort: str, settings: Mapping[str, Any] | None
) -> tuple[str, Any]:
    """Return the method and the configuration of a name in result lines.

    DPN uses the paper's epochs per data set; no other method depends on the name of the data set.
    The settings of a variant override those of the user, because they define the variant.
    """
    method, changes = VARIANTS.get(name, (name, {}))
    paper = PAPER.get(data_set, {}) if method == "dpn" and effort == "best" else {}
    return method, resolve_config(method, effort, {**paper, **(settings or {}), **changes})


def split_task(split: Split, given_k: bool) -> Task:
    """Return the task of a split; dev texts of known categories are the validation texts."""
    place = {category: i for i, category in enumerate(split.known)}
    targets = np.array([-1 if label is None else place[label] for label in split.labels])
    validation = np.array([place[label] for label in split.validation_labels], np.int64)
    return make_task(
        split.texts,
        targets,
        split.known,
        split.n_categories if given_k else None,
        validation=(split.validation_texts, validation) if split.validation_texts else None,
    )


def score(
    fitted: Fitted,
    split: Split,
    seed: int,
    k: int,
    cluster: Callable[[np.ndarray, int, int], np.ndarray] | None = None,
) -> dict[str, dict[str, float]]:
    """Score the test part by k-means (k clusters) on its features and by the nearest prototype.

    A method with its own clustering uses that instead of k-means.
    """
    features = fitted.features(split.test_texts)
    truth, known = np.array(split.test_labels, object), set(split.known)
    place = getattr(fitted.features, "device", torch.device("cpu"))
    points = torch.from_numpy(features).to(place)

    def grouped(number: int) -> np.ndarray:
        if cluster is not None:
            return cluster(features, k, number)
        return kmeans(points, k, starts=TEST_STARTS, seed=number).labels.cpu().numpy()

    by_kmeans = [accuracy(grouped(1000 * seed + number), truth, known) for number in TEST_SEEDS]
    nearest, _ = assign(features, fitted.prototypes, fitted.temperature)
    return {
        "kmeans": _mean(by_kmeans),
        "prototype": _mean([accuracy(nearest, truth, known)]),
    }


def _mean(scores: list[Scores]) -> dict[str, float]:
    """Return the mean of each score."""
    rows = [one.to_dict() for one in scores]
    return {key: round(float(np.mean([row[key] for row in rows])), 2) for key in rows[0]}
