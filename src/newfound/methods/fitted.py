"""What a method gives back: a feature map and prototypes in its space."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from newfound.clustering.n_categories import Estimate
from newfound.encoding.feature_maps import FeatureMap


@dataclass
class Fitted:
    """What every method returns: a feature map and the prototypes in its space."""

    features: FeatureMap
    prototypes: np.ndarray  # float32 [K, d]; the known categories come first, in order
    known: list[str]  # names of the first M prototypes' categories
    temperature: float  # turns distances into probabilities
    training_features: np.ndarray  # float32 [N, d]: what `features` says of the task's texts
    labelled_prototypes: np.ndarray | None = None  # float32 [M, d]: mean of each label's texts
    estimate: Estimate | None = None  # if the number of categories was not given
    history: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
