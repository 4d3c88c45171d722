"""Finalisation: probabilities are calibrated on held-out labels."""

from typing import cast

import numpy as np
import torch

from newfound.data.task import Task
from newfound.encoding.feature_maps import FeatureMap
from newfound.methods.finalisation import make_fitted


def temperature(points: np.ndarray, targets: np.ndarray, learnable: np.ndarray) -> float:
    """Return the calibrated temperature of two categories with prototypes on the axes."""
    task = Task(
        texts=["a text"] * len(points),
        targets=targets,
        known=["left", "right"],
        n_categories=2,
        learnable=learnable,
        validation_texts=[],
        validation_targets=np.empty(0, np.int64),
    )
    features = torch.from_numpy(points.astype(np.float32))
    return make_fitted(cast(FeatureMap, None), task, features, torch.eye(2)).temperature


def draw() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 300)
    return np.eye(2)[truth] + 0.3 * rng.normal(size=(300, 2)), truth


def test_labels_learnt_from_do_not_affect_calibration() -> None:
    points, truth = draw()
    trained = np.arange(300) < 100
    labels = np.where(trained, truth, -1)
    wrong = np.where(trained, 1 - truth, -1)
    assert temperature(points, labels, trained) == temperature(points, wrong, trained)


def test_wrong_held_out_labels_lower_the_confidence() -> None:
    points, truth = draw()
    nobody = np.zeros(300, bool)
    right = np.where(np.arange(300) < 100, truth, -1)
    wrong = np.where(np.arange(300) < 30, 1 - truth, right)
    assert temperature(points, wrong, nobody) > 1.5 * temperature(points, right, nobody)
