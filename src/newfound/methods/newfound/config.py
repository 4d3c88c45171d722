"""Settings of the method `newfound`, and what each effort changes in them."""

from dataclasses import dataclass
from typing import Any

from newfound.config import Layers, setting
from newfound.training.preparation import PreparationConfig
from newfound.training.swapped_prediction import SwappedPredictionConfig

MIN_STEPS = 48  # of each training stage: an epoch of a small table has few steps
LABELLED_BATCH = 64  # labelled texts per step for the cross-entropy
REFRESH = 5  # epochs of contrast after which neighbours are found again
TEMPERATURE = 0.1  # of the classifier in pseudo-label training
EPSILON = 0.05  # entropy regularisation of the optimal transport
SINKHORN_ITERATIONS = 10
QUEUE = 16  # recent texts per category that join the transport of a batch
ENCODER_QUEUE = 32  # the same where the encoder learns
SMALL_TABLE = 12_000  # texts; a table of half as many has two initial clusterings, and so on
MOST_BY_SIZE = 5  # initial clusterings that a small table has for its size
INITIALISATION_EPOCHS = 4  # of a round of pseudo-label training on fixed points
# Steps of training on a frozen encoder, of a round and of the end, at most; the last epoch is
# completed. More categories need more of them.
MAX_STEPS = 96
STEPS_PER_CATEGORY = 1.25
INITIALISATION_LEARNING_RATE = 4e-3


@dataclass(frozen=True)
class NewfoundConfig:
    """Settings of the method; none depends on the name of a data set."""

    trainable_layers: Layers = setting(
        "all", "how many of the last layers learn; 0: a residual head learns on the frozen encoder"
    )
    pretrain_epochs: int = setting(
        0, "maximum number of epochs of pretraining; a sentence encoder needs none"
    )
    lsa_features: bool = setting(
        True, "add TF-IDF/LSA features to count and initialise the categories, weighted by labels"
    )
    neighbour_share: float = setting(
        0.4, "neighbours of a text, as a share of the mean size of a category"
    )
    known_prior: bool = setting(
        True, "weight pseudo-labels by the probability that a text is known, from labels near it"
    )
    class_prior: bool = setting(
        True, "estimate category sizes, and how even they are; false: weakly held to equal sizes"
    )
    initialisation_rounds: int = setting(
        3, "rounds of pseudo-label training in the initialisation; 0: k-means only"
    )
    initialisations: int = setting(
        10,
        "initial clusterings with different seeds; the one of least loss is kept; 0: one, or up to "
        "five for a table of less than 12,000 texts",
    )
    epochs: int = setting(20, "epochs of neighbour contrast; more for a small table")
    learning_rate: float = setting(5e-5, "learning rate of neighbour contrast")
    temperature: float = setting(0.07, "temperature of the contrastive loss", low=1e-3)
    replaced_words: float = setting(
        0.1, "share of words replaced at random in each view, if all layers learn"
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
    batch: int = setting(256, "texts per step, each with one neighbour or in two views", low=1)

    @property
    def frozen(self) -> bool:
        """Whether the encoder stays as it is, and a head on it learns.

        Training then uses one thread: it takes seconds, and the last digit of a sum that threads
        share depends on their number.
        """
        return self.trainable_layers == 0

    def preparation(self) -> PreparationConfig:
        """Return the settings of preparation."""
        return PreparationConfig(
            head="small-residual" if self.frozen else "none",
            pretrain_layers=0 if self.frozen else "all",
            pretrain_epochs=self.pretrain_epochs,
            classifier_from_means=True,
            pretrain_contrast=True,
        )

    def initialisation_runs(self, texts: int) -> int:
        """Return the number of initial clusterings of so many texts.

        Examples
        --------
        >>> fast = NewfoundConfig(**EFFORTS["fast"])
        >>> fast.initialisation_runs(9_000), fast.initialisation_runs(3_000)
        (1, 4)
        """
        if not self.initialisation_rounds:
            return 1
        by_size = max(1, min(SMALL_TABLE // max(texts, 1), MOST_BY_SIZE))
        return self.initialisations or by_size

    def initialisation(self, texts: int, categories: int) -> SwappedPredictionConfig:
        """Return the settings of a round of pseudo-label training in the initialisation."""
        steps = frozen_steps(categories)
        epochs = enough_epochs(INITIALISATION_EPOCHS, texts, self.batch, steps)
        return self._pseudo_labels(epochs, INITIALISATION_LEARNING_RATE, QUEUE)

    def pseudo_labels(self, texts: int, categories: int) -> SwappedPredictionConfig:
        """Return the settings of the final pseudo-label training."""
        steps, queue = self.pseudo_label_steps, ENCODER_QUEUE
        if self.frozen:
            steps, queue = min(steps, frozen_steps(categories)), QUEUE
        epochs = enough_epochs(self.pseudo_label_epochs, texts, self.batch, steps)
        return self._pseudo_labels(epochs, self.pseudo_label_learning_rate, queue)

    def _pseudo_labels(
        self, epochs: int, learning_rate: float, queue: int
    ) -> SwappedPredictionConfig:
        """Return settings of pseudo-label training for so many epochs."""
        return SwappedPredictionConfig(
            epochs=epochs,
            learning_rate=learning_rate,
            batch=self.batch,
            labelled_batch=LABELLED_BATCH,
            temperature=TEMPERATURE,
            epsilon=EPSILON,
            sinkhorn_iterations=SINKHORN_ITERATIONS,
            queue=queue,
            replaced_words=self.replaced_words,
        )


_FAST: dict[str, Any] = {
    "trainable_layers": 0,
    "epochs": 0,
    "initialisation_rounds": 2,
    "initialisations": 0,
    "pseudo_label_epochs": INITIALISATION_EPOCHS,
    "pseudo_label_learning_rate": INITIALISATION_LEARNING_RATE,
    "classifier_learning_rate_factor": 1.0,
}
EFFORTS: dict[str, dict[str, Any]] = {
    "fast": _FAST,
    "balanced": {**_FAST, "initialisations": 5},
    "best": {},
}


def frozen_steps(categories: int) -> int:
    """Return how many steps training on a frozen encoder may take.

    Examples
    --------
    >>> frozen_steps(20), frozen_steps(150)
    (96, 188)
    """
    return max(MAX_STEPS, round(STEPS_PER_CATEGORY * categories))


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
