"""Settings of the method `newfound`, and what each effort changes in them."""

from dataclasses import dataclass
from typing import Any

from newfound.config import Layers, setting
from newfound.training.preparation import PreparationConfig
from newfound.training.swapped_prediction import SwappedPredictionConfig

MIN_STEPS = 48  # of each training stage: an epoch of a small table has few steps
EPSILON = 0.05  # entropy regularisation of the optimal transport
# Of a round of pseudo-label training in the initialisation:
INITIALISATION_EPOCHS = 4
INITIALISATION_LEARNING_RATE = 2e-3
INITIALISATION_QUEUE = 16


@dataclass(frozen=True)
class NewfoundConfig(PreparationConfig):
    """Settings of the method; none depends on the name of a data set."""

    pretrain_epochs: int = setting(
        0, "maximum number of epochs of pretraining; a sentence encoder needs none"
    )
    classifier_from_means: bool = setting(
        True, "initialise the classifier of pretraining with the class means, not at random"
    )
    pretrain_contrast: bool = setting(
        True, "add a contrastive loss of two views to masked-word modelling in pretraining"
    )
    trainable_layers: Layers = setting(
        "all", "how many of the last layers learn in contrast and pseudo-label training"
    )
    epochs: int = setting(20, "epochs of neighbour contrast; more for a small table")
    learning_rate: float = setting(5e-5, "learning rate of neighbour contrast")
    batch: int = setting(256, "texts per step, each with one neighbour or in two views", low=1)
    labelled_batch: int = setting(64, "labelled texts per step for the cross-entropy", low=1)
    temperature: float = setting(0.07, "temperature of the contrastive loss", low=1e-3)
    neighbour_share: float = setting(
        0.4, "neighbours of a text, as a share of the mean size of a category"
    )
    refresh: int = setting(5, "find the neighbours again every so many epochs", low=1)
    replaced_words: float = setting(
        0.1, "share of words replaced at random in each view, if all layers learn"
    )
    lsa_features: bool = setting(
        True, "add TF-IDF/LSA features to count and initialise the categories, weighted by labels"
    )
    initialisation_rounds: int = setting(
        3, "rounds of pseudo-label training in the initialisation; 0: k-means only"
    )
    initialisations: int = setting(
        10, "initial clusterings with different seeds; the one of least loss is kept", low=1
    )
    split_merge_every: int = setting(
        2, "epochs of the initialisation between split-merge moves; 0: no such moves"
    )
    known_prior: bool = setting(
        True, "weight pseudo-labels by the probability that a text is known, from labels near it"
    )
    class_prior: bool = setting(
        True, "estimate category sizes from the numbers of labels; false: all of one size"
    )
    pseudo_label_epochs: int = setting(
        45, "epochs of pseudo-label training; more for a small table"
    )
    pseudo_label_steps: int = setting(
        1600, "maximum number of steps of pseudo-label training; a large table needs no more", low=1
    )
    pseudo_label_learning_rate: float = setting(1e-5, "learning rate of pseudo-label training")
    classifier_learning_rate_factor: float = setting(
        10.0, "how many times faster the classifier learns than the encoder", low=0.1
    )
    pseudo_label_temperature: float = setting(
        0.1, "temperature of the classifier in pseudo-label training", low=1e-3
    )
    sinkhorn_iterations: int = setting(
        10, "iterations of the optimal transport of pseudo-labels; 0: category sizes are free"
    )
    queue: int = setting(32, "recent texts per category that join the transport of a batch")
    known_farther: float = setting(
        0.2,
        "how much farther out prototypes of known categories may lie, where they draw more texts "
        "than expected; 0: not at all",
    )

    def initialisation(self, texts: int) -> SwappedPredictionConfig:
        """Return the settings of a round of pseudo-label training in the initialisation."""
        return self._pseudo_labels(
            texts, INITIALISATION_EPOCHS, INITIALISATION_LEARNING_RATE, INITIALISATION_QUEUE
        )

    def pseudo_labels(self, texts: int) -> SwappedPredictionConfig:
        """Return the settings of the final pseudo-label training."""
        return self._pseudo_labels(
            texts, self.pseudo_label_epochs, self.pseudo_label_learning_rate, self.queue
        )

    def _pseudo_labels(
        self, texts: int, epochs: int, learning_rate: float, queue: int
    ) -> SwappedPredictionConfig:
        """Return settings of pseudo-label training on so many texts."""
        return SwappedPredictionConfig(
            epochs=enough_epochs(epochs, texts, self.batch, self.pseudo_label_steps),
            learning_rate=learning_rate,
            batch=self.batch,
            labelled_batch=self.labelled_batch,
            temperature=self.pseudo_label_temperature,
            epsilon=EPSILON,
            sinkhorn_iterations=self.sinkhorn_iterations,
            queue=queue,
            replaced_words=self.replaced_words,
        )


_FAST: dict[str, Any] = {
    "head": "residual",
    "pretrain_layers": 0,
    "trainable_layers": 0,
    "epochs": 0,
    "initialisation_rounds": 2,
    "initialisations": 1,
    "pseudo_label_epochs": INITIALISATION_EPOCHS,
    "pseudo_label_learning_rate": INITIALISATION_LEARNING_RATE,
    "classifier_learning_rate_factor": 1.0,
    "queue": INITIALISATION_QUEUE,
}
EFFORTS: dict[str, dict[str, Any]] = {
    "fast": _FAST,
    "balanced": {**_FAST, "initialisations": 5},
    "best": {},
}


def enough_epochs(epochs: int, texts: int, batch: int, max_steps: int | None = None) -> int:
    """Return the number of epochs, raised to `MIN_STEPS` steps and limited to `max_steps`.

    The last epoch may begin before the limit and end after it. Zero epochs stay zero.

    Examples
    --------
    >>> enough_epochs(4, texts=9000, batch=256)
    4
    >>> enough_epochs(4, texts=256, batch=256)
    48
    """
    steps = max(1, -(-texts // batch))
    least = -(-MIN_STEPS // steps)
    if max_steps is not None:
        epochs = min(epochs, -(-max_steps // steps))
    return max(epochs, least) if epochs else 0
