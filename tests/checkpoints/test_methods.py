"""Every method gives the result of an unbroken run after faults at any moment."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.faults import FaultError, FaultyCheckpoints
from support.small_texts import SmallTask

from newfound import pipeline
from newfound.config import RunConfig
from newfound.data.corpus import Corpus
from newfound.encoding import feature_cache
from newfound.methods import METHODS
from newfound.methods.newfound import config as newfound_config
from newfound.progress import Stages
from newfound.result import Result
from newfound.training.optimiser import Optimiser

ALL_LAYERS = {"trainable_layers": "all", "epochs": 2, "pretrain_epochs": 1}
# Every stage of a method, as short as it can be. Those with an encoder that learns run at `best`.
SETTINGS: dict[str, dict[str, Any]] = {
    "newfound": {
        **ALL_LAYERS,
        "initialisations": 2,
        "initialisation_rounds": 1,
        "pseudo_label_epochs": 1,
        "batch": 64,
    },
    "dpn": {"pretrain_epochs": 2, "trainable_layers": 1, "epochs": 6, "starts": 2},
    "sae": {"epochs": 2, "vocabulary": 20},
    "dec": {"epochs": 2, "vocabulary": 20, "iterations": 5},
    "dcn": {
        "published": True,
        "published_pretraining": 1,
        "published_epochs": 3,
        "vocabulary": 20,
    },
    "bert": {},
    "deepcluster": {"epochs": 6, "starts": 2},
    "semi-km": {"pretrain_epochs": 3, "starts": 2},
    "semi-dc": {"pretrain_epochs": 2, "epochs": 6, "starts": 2},
    "dtc": {"pretrain_epochs": 2, "warm_up": 1, "epochs": 6, "starts": 2},
    "cdac+": {"tightening": 0.1, "epochs": 6, "starts": 2},
    "dac": {"pretrain_epochs": 2, "epochs": 6, "starts": 2},
    "self-labeling": {"pretrain_epochs": 2, "trainable_layers": 1, "epochs": 6, "starts": 2},
    "laskm": {"trainable_layers": 1, "epochs": 6, "starts": 2},
}


def test_all_methods_but_those_of_word_vectors_are_tried() -> None:
    assert set(METHODS) - set(SETTINGS) == {"km-glove", "ag-glove"}  # both take seconds


def discover(
    method: str, task: SmallTask, encoder: str, folder: Path | None, limit: float = float("inf")
) -> tuple[Result, int]:
    """Return the result, and how often the run recorded its place; raise FaultError at `limit`."""
    checkpoints = FaultyCheckpoints(folder)
    checkpoints.limit = limit
    config = RunConfig(
        method=method,
        encoder=encoder,
        effort="best",
        device="cpu",
        n_categories="auto" if method == "newfound" else 4,
    )
    stages = Stages(False, checkpoints=checkpoints)
    try:
        result = pipeline.discover(
            Corpus.from_lists(task.texts, task.labels),
            config,
            settings=SETTINGS[method],
            stages=stages,
        )
    except FaultError:
        checkpoints.close(complete=False)
        raise
    checkpoints.close(complete=True)
    return result, checkpoints.recorded


@pytest.fixture(autouse=True)
def small_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Encode in several batches, so that a fault can fall between them, and train little."""
    monkeypatch.setitem(feature_cache.TOKEN_BUDGET, "cpu", 96)
    monkeypatch.setattr(newfound_config, "MIN_STEPS", 4)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the steps of all optimisers."""
    counted: Counter[str] = Counter()
    step = Optimiser.step

    def count(optimiser: Optimiser) -> None:
        counted["steps"] += 1
        step(optimiser)

    monkeypatch.setattr(Optimiser, "step", count)
    return counted


@pytest.mark.parametrize("method", SETTINGS)
def test_faults_do_not_change_the_result(
    method: str,
    task: SmallTask,
    tiny_encoder: str,
    tmp_path: Path,
    keeping: None,
    steps: Counter[str],
) -> None:
    unbroken, _ = discover(method, task, tiny_encoder, None)
    all_steps = steps["steps"]
    stride = 7 if method == "newfound" else 3  # which has many more moments than the others
    result = discover_with_faults(
        method, task, tiny_encoder, tmp_path / "unfinished", stride, steps
    )
    assert steps["steps"] < all_steps or not all_steps  # the last command repeated less
    assert_equal(result, unbroken)
    assert not (tmp_path / "unfinished").exists()


def test_faults_do_not_change_the_result_of_two_threads(
    task: SmallTask, tiny_encoder: str, tmp_path: Path, keeping: None, steps: Counter[str]
) -> None:
    """Each thread encodes whole batches, and they finish in no fixed order."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        unbroken, _ = discover("bert", task, tiny_encoder, None)
        folder = tmp_path / "unfinished"
        assert_equal(discover_with_faults("bert", task, tiny_encoder, folder, 1, steps), unbroken)
    finally:
        torch.set_num_threads(before)


def discover_with_faults(
    method: str, task: SmallTask, encoder: str, folder: Path, stride: int, steps: Counter[str]
) -> Result:
    """Return the result of the last of several commands, all of which but it end by a fault.

    Each one comes further than the one before it; `steps` counts those of the last.
    """
    faults = 0
    while True:
        steps.clear()
        try:
            result, recorded = discover(method, task, encoder, folder, 3 + stride * faults)
        except FaultError:
            faults += 1
            continue
        assert faults >= max(1, recorded // (stride + 1) - 1)
        return result


def assert_equal(one: Result, other: Result) -> None:
    """Check that two results are equal to the last bit, but for their timings."""
    for name in ("assigned", "predicted", "probability", "best_known_probability", "fit"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.categories == other.categories
    assert json.dumps(one.history) == json.dumps(other.history)  # in the same order, too
    assert one.notes == other.notes
    assert one.estimate == other.estimate
    assert one.model is not None
    assert other.model is not None
    np.testing.assert_array_equal(one.model.prototypes, other.model.prototypes)
    assert one.model.temperature == other.model.temperature
    assert (one.training_features == other.training_features).all()
    weights = [result.model.features.state_dict() for result in (one, other)]  # type: ignore
    assert weights[0].keys() == weights[1].keys()
    for name, weight in weights[0].items():
        assert weight.equal(weights[1][name]), name
