"""Semi-KM: k-means with pinned labels on pretrained features."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.small_texts import KNOWN, SmallTask, small_task

from newfound import CategoryDiscoverer
from newfound.clustering.assignment import assign
from newfound.clustering.metrics import accuracy
from newfound.data.task import Task, make_task
from newfound.encoding.loading import load_encoder
from newfound.methods import METHODS, resolve_config
from newfound.methods.dpn import DPNConfig
from newfound.methods.fitted import Fitted
from newfound.methods.semi_kmeans import SemiKMConfig
from newfound.progress import Stages


@pytest.fixture(scope="module")
def task() -> SmallTask:
    return small_task()


def as_task(small: SmallTask, n_categories: int | None = 4) -> Task:
    place = {name: i for i, name in enumerate(sorted(KNOWN))}
    targets = np.array([place.get(label or "", -1) for label in small.labels])
    return make_task(small.texts, targets, sorted(KNOWN), n_categories)


def fit(
    encoder: str,
    task: Task,
    effort: str = "best",
    *,
    method: str = "semi-km",
    stages: Stages | None = None,
    cache: Path | None = None,
    seed: int = 0,
    **changes: Any,
) -> Fitted:
    torch.manual_seed(seed)
    config = resolve_config(method, effort, {"pretrain_epochs": 3, **changes})
    return METHODS[method].fit(
        task,
        load_encoder(encoder),
        config,
        seed=seed,
        stages=stages or Stages(False),
        cache=cache,
    )


@pytest.mark.parametrize("effort", ["fast", "balanced", "best"])
def test_easy_task_is_solved(tiny_encoder: str, task: SmallTask, effort: str) -> None:
    fitted = fit(tiny_encoder, as_task(task), effort)
    hidden = np.array([label is None for label in task.labels])
    index = assign(fitted.training_features, fitted.prototypes, fitted.temperature)[0]
    found = np.array(["bank", "travel", "novel 1", "novel 2"], object)[index][hidden]
    assert accuracy(found, task.truth[hidden], set(KNOWN)).all > 95
    known = np.isin(task.truth[hidden], KNOWN)
    assert (found[known] == task.truth[hidden][known]).mean() > 0.95
    assert {line["stage"] for line in fitted.history} == {"pretraining"}
    np.testing.assert_allclose(fitted.features(task.texts), fitted.training_features, atol=1e-3)


def test_pretraining_equals_that_of_dpn(tiny_encoder: str, task: SmallTask, tmp_path: Path) -> None:
    assert SemiKMConfig().pretraining() == DPNConfig().pretraining()
    fit(tiny_encoder, as_task(task), method="dpn", cache=tmp_path, epochs=0)
    stages = Stages(False)
    fit(tiny_encoder, as_task(task), cache=tmp_path, stages=stages)
    assert "pretraining (kept)" in stages.seconds
    assert "pretraining" not in stages.seconds


def test_texts_are_encoded_once(tiny_encoder: str, task: SmallTask) -> None:
    for layers, frozen in (("all", -1), (1, 2), (0, 3)):
        fitted = fit(tiny_encoder, as_task(task), pretrain_layers=layers)
        assert fitted.features.frozen_layers == frozen  # type: ignore[attr-defined]


def test_pretraining_improves_the_clusters(tiny_encoder: str) -> None:
    """Pretraining on labels makes a category compact that the frozen encoder spreads."""
    small = small_task(each=30, labelled=20)
    targets = as_task(small).targets

    def spread(fitted: Fitted) -> float:
        features = torch.from_numpy(fitted.training_features[targets >= 0])
        from newfound.clustering.silhouette import silhouette_score

        return silhouette_score(features, torch.from_numpy(targets[targets >= 0]))

    changes = {"pretrain_learning_rate": 3e-3, "masked_words": False}
    with_it = fit(tiny_encoder, as_task(small), **changes, pretrain_epochs=10)
    without = fit(tiny_encoder, as_task(small), **changes, pretrain_epochs=0)
    assert without.history == []
    assert spread(with_it) > 1.3 * spread(without)


def test_masked_words_can_be_disabled(tiny_encoder: str, task: SmallTask) -> None:
    both, labels_only = (
        fit(tiny_encoder, as_task(task), masked_words=on).history for on in (True, False)
    )
    assert {"masked_words", "cross_entropy"} <= both[0].keys()
    assert "masked_words" not in labels_only[0]
    assert "cross_entropy" in labels_only[0]


def test_fit_edge_cases(tiny_encoder: str, task: SmallTask) -> None:
    n = len(task.texts)
    for k in (1, 4, None):
        fitted = fit(tiny_encoder, make_task(task.texts, np.full(n, -1), [], k), "fast")
        assert fitted.known == []
        assert k is None or len(fitted.prototypes) == k
    assert len(fit(tiny_encoder, as_task(task, 2), "fast").prototypes) == 2


def test_same_seed_gives_the_same_result(tiny_encoder: str, task: SmallTask) -> None:
    one, two = (fit(tiny_encoder, as_task(task), seed=5) for _ in range(2))
    assert np.array_equal(one.prototypes, two.prototypes)
    assert one.history == two.history


def test_loaded_model_gives_equal_predictions(
    tiny_encoder: str, task: SmallTask, tmp_path: Path
) -> None:
    discoverer = CategoryDiscoverer(
        method="semi-km",
        encoder=tiny_encoder,
        n_categories=4,
        effort="fast",
        device="cpu",
        settings={"pretrain_epochs": 2},
    ).fit(task.texts, task.labels)
    discoverer.save(tmp_path / "model")
    again = CategoryDiscoverer.load(tmp_path / "model")
    assert again.predict(task.texts).tolist() == discoverer.predict(task.texts).tolist()
