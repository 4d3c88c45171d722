"""KM-GloVe and AG-GloVe on texts with similar meanings but different words."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.small_vectors import subject_texts, write_vectors

from newfound.clustering.assignment import assign
from newfound.clustering.metrics import accuracy
from newfound.data.task import make_task
from newfound.encoding.loading import Encoder, load_encoder
from newfound.methods import METHODS, resolve_config
from newfound.methods.fitted import Fitted
from newfound.methods.glove import ward
from newfound.progress import Stages

BOTH = pytest.mark.parametrize("method", ["km-glove", "ag-glove"])


@pytest.fixture(scope="module")
def encoder(tiny_encoder: str) -> Encoder:
    return load_encoder(tiny_encoder)


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_vectors(tmp_path_factory.mktemp("vectors") / "vectors.txt")


def fit(method: str, encoder: Encoder, texts: list[str], vectors: Path, **changes: Any) -> Fitted:
    task = make_task(texts, np.full(len(texts), -1), [], 4)
    config = resolve_config(method, "best", {"vectors": str(vectors), **changes})
    return METHODS[method].fit(task, encoder, config, seed=0, stages=Stages(False))


def score(fitted: Fitted, texts: list[str], truth: np.ndarray) -> float:
    found = assign(fitted.features(texts), fitted.prototypes, fitted.temperature)[0]
    return accuracy(found, truth, set()).all


@BOTH
def test_texts_are_grouped_by_the_meaning_of_their_words(
    method: str, encoder: Encoder, vectors: Path, tmp_path: Path
) -> None:
    texts, truth = subject_texts()
    later, later_truth = subject_texts(seed=1)
    fitted = fit(method, encoder, texts, vectors)
    assert score(fitted, texts, truth) == 100
    assert (
        score(fitted, later, later_truth) == 100
    )  # with words that the training texts do not have
    # With shuffled vectors nothing can be found.
    meaningless = write_vectors(tmp_path / "meaningless.txt", meaning=False)
    assert score(fit(method, encoder, texts, meaningless), texts, truth) < 60


@BOTH
def test_prototypes_equal_the_cluster_means(method: str, encoder: Encoder, vectors: Path) -> None:
    texts, truth = subject_texts()
    fitted = fit(method, encoder, texts, vectors)
    means = [fitted.features(texts)[truth == subject].mean(0) for subject in range(4)]
    for mean in means:
        assert np.abs(fitted.prototypes - mean).sum(1).min() < 1e-4


def loop_ward(points: np.ndarray, k: int) -> list[set[int]]:
    """Merge, repeatedly, the two clusters whose union adds the least squared error."""
    groups = [{i} for i in range(len(points))]
    while len(groups) > k:
        best = (np.inf, 0, 0)
        for i in range(len(groups)):
            for j in range(i):
                a, b = points[list(groups[i])], points[list(groups[j])]
                apart = np.square(a.mean(0) - b.mean(0)).sum()
                best = min(best, (apart * len(a) * len(b) / (len(a) + len(b)), i, j))
        groups[best[2]] |= groups[best[1]]
        del groups[best[1]]
    return groups


@pytest.mark.parametrize("k", [1, 2, 5, 12])
def test_ward_equals_a_loop(k: int) -> None:
    points = np.random.default_rng(k).normal(size=(12, 3)).astype(np.float32)
    clusters = ward(points, k, 0)
    assert set(clusters) == set(range(k))
    found = {frozenset(np.flatnonzero(clusters == c).tolist()) for c in range(k)}
    assert found == {frozenset(group) for group in loop_ward(points, k)}


def test_identical_texts_give_k_clusters() -> None:
    assert set(ward(np.zeros((6, 2), np.float32), 4, 0)) == {0, 1, 2, 3}
    assert ward(np.zeros((1, 2), np.float32), 1, 0).tolist() == [0]


def test_only_ag_glove_clusters_a_test_set_by_itself() -> None:
    assert [name for name, method in METHODS.items() if method.cluster is not None] == ["ag-glove"]
    assert METHODS["ag-glove"].cluster is ward


def test_ward_runs_on_a_sample_of_many_texts(
    encoder: Encoder, vectors: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts, truth = subject_texts(50)
    sizes: list[int] = []

    def watched(points: np.ndarray, k: int, seed: int) -> np.ndarray:
        sizes.append(len(points))
        return ward(points, k, seed)

    monkeypatch.setattr("newfound.methods.glove.ward", watched)
    whole = fit("ag-glove", encoder, texts, vectors)
    part = fit("ag-glove", encoder, texts, vectors, largest=60)
    assert sizes == [200, 60]
    assert whole.notes == []
    assert "60 of the 200 texts" in part.notes[0]
    assert score(part, texts, truth) == 100
    # At least k texts are merged.
    fit("ag-glove", encoder, texts, vectors, largest=2)
    assert sizes[-1] == 4


@BOTH
def test_texts_without_known_words_get_a_category(
    method: str, encoder: Encoder, vectors: Path
) -> None:
    texts, _ = subject_texts(5)
    fitted = fit(method, encoder, [*texts, "unknown", "?"], vectors)
    assert not fitted.training_features[-2:].any()
    assert np.isfinite(fitted.prototypes).all()
    nothing = fit(method, encoder, ["un", "deux", "trois", "quatre", "cinq"], vectors)
    assert nothing.prototypes.shape == (4, 6)
    assert not nothing.prototypes.any()
