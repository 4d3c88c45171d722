"""Peers: what users may run instead of this package, on the vectors of the frozen encoder.

- `script`: logistic regression, and k-means on the texts below a threshold of its probability.
- `oracle`: logistic regression, scored only on texts of known categories.
- `hdbscan` (scikit-learn) and `bertopic` (extra `peers`), both with their defaults.

Each is a function of the table, the vectors [N, d], the number of categories (None: not given) and
a random seed. Clusters are named by the labelled texts in them.
"""

import importlib.util
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.linear_model import LogisticRegression

from newfound.bench.wild.scoring import NONE, Answer
from newfound.bench.wild.tables import Table

INVERSE_PENALTY = 10.0  # C of logistic regression: unit vectors need less regularisation than 1.0
STARTS = 10  # of k-means
DRAWS = 3  # draws of hidden categories by which the threshold is chosen
HIDDEN = 0.25  # share of the known categories, and of the labels of the others, that is held out


@dataclass(frozen=True)
class Peer:
    """A way to find the categories of a table that is not a method of this package."""

    answer: Callable[[Table, np.ndarray, int | None, int], Answer]
    settings: Mapping[str, Any]  # recorded in the result line
    package: str | None = None  # that must be installed
    needs_labels: bool = False

    @property
    def installed(self) -> bool:
        """Whether the required package is installed."""
        return self.package is None or importlib.util.find_spec(self.package) is not None


def script(table: Table, vectors: np.ndarray, k: int | None, seed: int) -> Answer:
    """Classify texts whose probability is above a threshold, and cluster the others by k-means.

    Parameters
    ----------
    table : Table
        The table.
    vectors : ndarray of shape [N, d]
        Vectors of its texts.
    k : int or None
        Number of categories; None estimates it.
    seed : int
        Random seed.

    Returns
    -------
    Answer
        The fit is the classifier's highest probability.
    """
    targets, known = _targets(table), len(table.known)
    estimated = _estimate(vectors, targets, seed) if k is None else None
    k = estimated if k is None else k
    assert k is not None
    if known < 2:  # a classifier needs two classes
        clusters = _kmeans(vectors, k, seed)
        return _named(clusters, np.ones(len(vectors)), table, estimated)
    likely = _probabilities(vectors, targets, targets >= 0)
    category, sure = likely.argmax(1), likely.max(1)
    threshold = _threshold(vectors, targets, seed)
    if threshold is None:  # as if all categories had the same size
        threshold = float(np.quantile(sure[targets < 0], max(0, 1 - known / k)))
    below = sure < threshold
    novel = min(k - known, int(below.sum()))
    probability = sure.copy()
    if novel > 0:
        category[below] = known + _kmeans(vectors[below], novel, seed)
        probability[below] = 1 - sure[below]
    return Answer(category, known + max(0, novel), probability, fit=sure, estimated=estimated)


def oracle(table: Table, vectors: np.ndarray, k: int | None, seed: int) -> Answer:
    """Classify all texts into known categories by logistic regression."""
    targets = _targets(table)
    if len(table.known) < 2:
        category = np.zeros(len(vectors), np.int64)
    else:
        category = _probabilities(vectors, targets, targets >= 0).argmax(1)
    return Answer(category, len(table.known), known_only=True)


def hdbscan(table: Table, vectors: np.ndarray, k: int | None, seed: int) -> Answer:
    """Cluster by HDBSCAN, which finds the number of clusters and assigns no cluster to outliers."""
    found = HDBSCAN(copy=True).fit(vectors)
    return _named(found.labels_, found.probabilities_, table)


def bertopic(table: Table, vectors: np.ndarray, k: int | None, seed: int) -> Answer:
    """Cluster by BERTopic: its defaults, or k-means in place of HDBSCAN if K is given."""
    from bertopic import BERTopic
    from umap import UMAP

    # BERTopic's default with a random seed.
    umap = UMAP(15, 5, min_dist=0.0, metric="cosine", low_memory=False, random_state=seed)
    models = {} if k is None else {"hdbscan_model": KMeans(k, n_init=STARTS, random_state=seed)}
    model = BERTopic(umap_model=umap, **models)
    clusters, probability = model.fit_transform(table.texts, embeddings=vectors)
    return _named(np.array(clusters), probability, table)


_LOGISTIC = {"inverse_penalty": INVERSE_PENALTY}
PEERS: dict[str, Peer] = {
    "script": Peer(script, {**_LOGISTIC, "starts": STARTS, "hidden": HIDDEN, "draws": DRAWS}),
    "oracle": Peer(oracle, _LOGISTIC, needs_labels=True),
    "hdbscan": Peer(hdbscan, {}),
    "bertopic": Peer(bertopic, {}, package="bertopic"),
}


def name_clusters(clusters: np.ndarray, table: Table) -> tuple[np.ndarray, int]:
    """Name clusters by their labelled texts, one to one, so that as many labels as possible agree.

    Parameters
    ----------
    clusters : ndarray of int, shape [N]
        Cluster of each text, -1 if it has none.
    table : Table
        The table.

    Returns
    -------
    category : ndarray of int64, shape [N]
        Index of each text's category, known ones first; `NONE` if it has no cluster.
    n_categories : int
        Number of known categories and of clusters without a name.
    """
    known, targets = len(table.known), _targets(table)
    ids, place = np.unique(clusters[clusters >= 0], return_inverse=True)
    agree = np.zeros((known, len(ids)), np.int64)
    labelled = targets[clusters >= 0] >= 0
    np.add.at(agree, (targets[clusters >= 0][labelled], place[labelled]), 1)
    position = np.full(len(ids), NONE, np.int64)
    for name, cluster in zip(*linear_sum_assignment(agree, maximize=True), strict=True):
        if agree[name, cluster]:
            position[cluster] = name
    unnamed = np.flatnonzero(position == NONE)
    position[unnamed] = known + np.arange(len(unnamed))
    category = np.full(len(clusters), NONE, np.int64)
    category[clusters >= 0] = position[place]
    return category, known + len(unnamed)


def _named(
    clusters: np.ndarray,
    probability: np.ndarray | None,
    table: Table,
    estimated: int | None = None,
) -> Answer:
    """Return the answer for clusters, which are named by their labelled texts."""
    category, number = name_clusters(clusters, table)
    return Answer(category, number, probability, estimated=estimated)


def _targets(table: Table) -> np.ndarray:
    """Return the index of each text's label among the known categories, -1 if it has none."""
    place = {name: position for position, name in enumerate(table.known)}
    return np.array([-1 if label is None else place[label] for label in table.labels], np.int64)


def _probabilities(vectors: np.ndarray, targets: np.ndarray, learnt: np.ndarray) -> np.ndarray:
    """Return the probabilities [N, classes] of a classifier trained on the `learnt` rows."""
    model = LogisticRegression(C=INVERSE_PENALTY, max_iter=1000)
    with warnings.catch_warnings():  # scikit-learn warns if most categories have one label
        warnings.simplefilter("ignore", UserWarning)
        model.fit(vectors[learnt], targets[learnt])
    likely: np.ndarray = model.predict_proba(vectors)
    return likely


def _threshold(vectors: np.ndarray, targets: np.ndarray, seed: int) -> float | None:
    """Return the probability that best separates held-out texts of seen and of hidden categories.

    Each draw hides a quarter of the known categories, and holds out a quarter of the labels of each
    other category that has at least two. The best threshold has the highest balanced accuracy. None
    if there are too few labels.
    """
    rng, known = np.random.default_rng(seed), int(targets.max()) + 1
    hidden = max(1, round(HIDDEN * known))
    if known - hidden < 2:
        return None
    seen_sure, hidden_sure = [], []
    for _ in range(DRAWS):
        away = np.isin(targets, rng.choice(known, hidden, replace=False))
        held = np.zeros(len(targets), bool)
        for category in range(known):
            rows = rng.permutation(np.flatnonzero((targets == category) & ~away))
            if len(rows) > 1:
                held[rows[: max(1, round(HIDDEN * len(rows)))]] = True
        sure = _probabilities(vectors, targets, (targets >= 0) & ~away & ~held).max(1)
        seen_sure.append(sure[held])
        hidden_sure.append(sure[away])
    seen, unseen = np.sort(np.concatenate(seen_sure)), np.sort(np.concatenate(hidden_sure))
    if len(seen) == 0:
        return None
    candidates = np.unique(np.concatenate([seen, unseen]))
    kept = 1 - np.searchsorted(seen, candidates) / len(seen)
    refused = np.searchsorted(unseen, candidates) / len(unseen)
    return float(candidates[np.argmax(kept + refused)])


def _kmeans(vectors: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Return the cluster of each row."""
    found: np.ndarray = KMeans(k, n_init=STARTS, random_state=seed).fit_predict(vectors)
    return found.astype(np.int64)


def _estimate(vectors: np.ndarray, targets: np.ndarray, seed: int) -> int:
    """Return the number of categories, estimated as by methods without their own estimate."""
    import torch

    from newfound.clustering.n_categories import estimate_categories

    points = torch.from_numpy(np.ascontiguousarray(vectors, np.float32))
    return estimate_categories(points, torch.from_numpy(targets), seed=seed).n_categories
