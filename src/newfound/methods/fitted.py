"""What every method returns: a feature map and prototypes in its space."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from newfound.clustering.n_categories import Estimate
from newfound.encoding.feature_maps import FeatureMap


@dataclass
class Fitted:
    """A fitted method: a feature map and the prototypes of the categories in its space.

    Attributes
    ----------
    features : FeatureMap
        Maps texts to features.
    prototypes : ndarray of shape [K, d], float32
        One per category; the known categories come first, in order.
    known : list of str
        Names of the first M categories.
    temperature : float
        Turns squared distances into probabilities.
    training_features : ndarray of shape [N, d], float32
        Features of the task's texts.
    frozen_features : ndarray of shape [N, w], float32, optional
        Vectors of the same texts that training did not change: those of the encoder, if all its
        layers are frozen.
    labelled_prototypes : ndarray of shape [M, d], float32, optional
        Mean feature of each known category's labelled texts.
    estimate : Estimate, optional
        How the number of categories was estimated, if it was not given.
    history : list of dict
        Losses per epoch of every stage that trains.
    notes : list of str
        What the user should know about the fit.
    """

    features: FeatureMap
    prototypes: np.ndarray
    known: list[str]
    temperature: float
    training_features: np.ndarray
    frozen_features: np.ndarray | None = None
    labelled_prototypes: np.ndarray | None = None
    estimate: Estimate | None = None
    history: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
