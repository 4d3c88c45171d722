"""Model and Predictions: what assigns new texts to the categories of a result, and its answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from newfound.arrays import make_arrays_read_only, objects
from newfound.category import Category
from newfound.clustering.assignment import NOISE, assign, near_ties, squared_distances
from newfound.clustering.calibration import Answers, answers, calibrated_probabilities
from newfound.config import check_marking
from newfound.data.corpus import check_texts
from newfound.data.vectors import vectors_of
from newfound.errors import InputError

if TYPE_CHECKING:
    from newfound.clustering.calibration import Evidence
    from newfound.clustering.fit_scores import FitReference
    from newfound.encoding.feature_maps import FeatureMap
    from newfound.progress import Advance


@dataclass(frozen=True, eq=False)
class Predictions:
    """The predicted categories of N texts; an empty text has none.

    Attributes
    ----------
    index : ndarray of int64, shape (N,)
        Index of the category, -1 for an empty text.
    probability : ndarray of float32, shape (N,)
        Probability of that category, NaN for an empty text.
    names : ndarray of object, shape (N,)
        Name of the category, None for an empty text.
    kinds : ndarray of object, shape (N,)
        "known" or "novel", None for an empty text.
    ids : ndarray of object, shape (N,)
        Persistent id of the category, None for an empty text.
    statuses : ndarray of object, shape (N,)
        Status of the category: "known", "proposed" or "accepted", None for an empty text.
    best_known : ndarray of object, shape (N,)
        Name of the most probable known category, also if the category is novel; None for an empty
        text, and if no category is known.
    best_known_probability : ndarray of float32, shape (N,)
        Probability of that known category, NaN if there is none.
    fit : ndarray of float32, shape (N,)
        Fit score, NaN for an empty text, and if the model has no reference texts.
    fits_nowhere : ndarray of bool, shape (N,), or None
        Which texts are marked as fitting nowhere; they keep their category. None without `outside`
        and `false_alarms`.
    """

    index: np.ndarray
    probability: np.ndarray
    names: np.ndarray
    kinds: np.ndarray
    ids: np.ndarray
    statuses: np.ndarray
    best_known: np.ndarray
    best_known_probability: np.ndarray
    fit: np.ndarray
    fits_nowhere: np.ndarray | None

    def __post_init__(self) -> None:
        make_arrays_read_only(self)

    def __len__(self) -> int:
        return len(self.index)


@dataclass(frozen=True, eq=False)
class Model:
    """The model that predicts: a feature map, and the prototype of each category in its space.

    Attributes
    ----------
    features : FeatureMap
        Turns texts into vectors.
    prototypes : ndarray of float32, shape (K, d)
        One prototype per category, known ones first.
    known : tuple of str
        Labels of the first M categories.
    temperature : float
        Temperature of the softmax over squared distances.
    categories : tuple of Category
        The K categories.
    labelled_prototypes : ndarray of float32, shape (M, d), or None
        Mean feature of the texts with each label; None without labels.
    config : Mapping
        The resolved configuration: run, effort and every setting of the method.
    parameters : Mapping
        Arguments of the `CategoryDiscoverer` that repeats the fit.
    device : str
        Device on which features are computed.
    fit_reference : FitReference or None
        Reference texts for fit scores and for calibrated probabilities; None in a model saved by
        an earlier version.
    """

    features: "FeatureMap"
    prototypes: np.ndarray
    known: tuple[str, ...]
    temperature: float
    categories: tuple[Category, ...]
    labelled_prototypes: np.ndarray | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    device: str = "cpu"
    fit_reference: "FitReference | None" = None

    def __post_init__(self) -> None:
        make_arrays_read_only(self)

    @cached_property
    def names(self) -> np.ndarray:
        """Names of the categories, shape (K,)."""
        return objects([category.name for category in self.categories])

    @cached_property
    def kinds(self) -> np.ndarray:
        """Kinds of the categories, shape (K,)."""
        return objects([category.kind for category in self.categories])

    @cached_property
    def ids(self) -> np.ndarray:
        """Persistent ids of the categories, shape (K,)."""
        return objects([category.id for category in self.categories])

    @cached_property
    def statuses(self) -> np.ndarray:
        """Statuses of the categories, shape (K,)."""
        return objects([category.status for category in self.categories])

    @property
    def precision(self) -> str:
        """Precision in which texts are encoded: "fp32" or "int8"."""
        return getattr(self.features, "precision", "fp32")

    @cached_property
    def matching(self) -> np.ndarray | None:
        """Distances between labelled prototypes and all prototypes, shape (M, K), or None."""
        if self.labelled_prototypes is None:
            return None
        return np.sqrt(squared_distances(self.labelled_prototypes, self.prototypes))

    def transform(
        self,
        texts: Sequence[str],
        advance: "Advance | None" = None,
        *,
        vectors: Any = None,
    ) -> np.ndarray:
        """Return the features of texts.

        Parameters
        ----------
        texts : sequence of str
            N texts; an empty one has no features.
        advance : callable, optional
            Called with the number of texts done.
        vectors : array-like of shape (N, d), optional
            Vectors of the texts, for a model that was fitted on vectors of the user.

        Returns
        -------
        ndarray of float32, shape (N, d)
            A row of NaN for an empty text.
        """
        real, features, _ = self._encode(texts, advance, vectors)
        return _spread(features, real, np.nan)

    def probabilities(self, texts: Sequence[str], *, vectors: Any = None) -> np.ndarray:
        """Return the probability of each category.

        Parameters
        ----------
        texts : sequence of str
            N texts.
        vectors : array-like of shape (N, d), optional
            Vectors of the texts, for a model that was fitted on vectors of the user.

        Returns
        -------
        ndarray of float64, shape (N, K)
            Rows sum to 1; the largest value is the probability that `predict` returns. A row of NaN
            for an empty text.
        """
        real, features, frozen = self._encode(texts, None, vectors)
        index, _ = assign(features, self.prototypes, self.temperature)
        rows = calibrated_probabilities(
            features, self.prototypes, self.temperature, self._evidence(features, frozen, index)
        )
        return _spread(rows, real, np.nan)

    def predict(
        self,
        texts: Sequence[str],
        advance: "Advance | None" = None,
        *,
        vectors: Any = None,
        first_row: int = 0,
    ) -> Predictions:
        """Return the category of each text: the one with the nearest prototype.

        Parameters
        ----------
        texts : sequence of str
            N texts; an empty one, or one of white space only, gets no category.
        advance : callable, optional
            Called with the number of texts done.
        vectors : array-like of shape (N, d), optional
            Vectors of the texts, for a model that was fitted on vectors of the user.
        first_row : int, default 0
            Number of the first row in messages on vectors.

        Returns
        -------
        Predictions
        """
        real, features, frozen = self._encode(texts, advance, vectors, first_row)
        found = self.answers(features, frozen)
        index, known = found.index, found.best_known
        fit = np.full(len(features), np.nan, np.float32)
        reference, threshold = self.fit_reference, self.fit_threshold
        if reference is not None:
            fit = reference.scores(features if frozen is None else frozen, index)
        named = self.names[known] if len(self.known) else np.full(len(known), None, object)
        return Predictions(
            index=_spread(index, real, -1),
            probability=_spread(found.probability, real, np.nan),
            names=_spread(self.names[index], real, None),
            kinds=_spread(self.kinds[index], real, None),
            ids=_spread(self.ids[index], real, None),
            statuses=_spread(self.statuses[index], real, None),
            best_known=_spread(named, real, None),
            best_known_probability=_spread(found.best_known_probability, real, np.nan),
            fit=_spread(fit, real, np.nan),
            fits_nowhere=None if threshold is None else _spread(fit < threshold, real, False),
        )

    def answers(self, features: np.ndarray, frozen: np.ndarray | None) -> Answers:
        """Return the categories of texts by their features, and by their vectors before training.

        Parameters
        ----------
        features : ndarray of shape (N, d)
        frozen : ndarray of shape (N, w) or None
            Vectors of the encoder before training; None if the model does not have them.

        Returns
        -------
        Answers
        """
        index, _ = assign(features, self.prototypes, self.temperature)
        evidence = self._evidence(features, frozen, index)
        return answers(features, self.prototypes, self.temperature, len(self.known), evidence)

    def _evidence(
        self, features: np.ndarray, frozen: np.ndarray | None, index: np.ndarray
    ) -> "Evidence | None":
        """Return the evidence for these categories; None without reference texts."""
        if self.fit_reference is None:
            return None
        return self.fit_reference.evidence(features if frozen is None else frozen, index)

    @cached_property
    def fit_threshold(self) -> float | None:
        """Fit score below which a text is marked as fitting nowhere; None if no text is marked."""
        if self.fit_reference is None:
            return None
        return self.fit_reference.threshold(
            self.config.get("outside"), self.config.get("false_alarms")
        )

    def notes(self) -> list[str]:
        """Return what the user should know about the texts encoded so far, such as their cost."""
        find: Callable[[], list[str]] = getattr(self.features, "notes", list)
        return find()

    def marking(self, outside: float | None = None, false_alarms: float | None = None) -> "Model":
        """Return the model with another rule for texts that fit nowhere.

        Parameters
        ----------
        outside : float, optional
            Share of the unlabelled training texts whose fit score is below the threshold, from 0
            to 1. Texts below it are marked.
        false_alarms : float, optional
            Share of texts of known categories that may be marked by mistake, from 0 to 1. Without
            `outside` and `false_alarms`, no text is marked.

        Returns
        -------
        Model
        """
        wanted = {"outside": outside, "false_alarms": false_alarms}
        check_marking(outside, false_alarms, labelled=len(self.known) > 0)
        if self.fit_reference is None and wanted != dict.fromkeys(wanted):
            raise InputError(
                "this model has no reference texts, so texts that fit nowhere cannot be marked; "
                "run `newfound discover` again"
            )
        return replace(self, config={**self.config, **wanted})

    def _encode(
        self,
        texts: Sequence[str],
        advance: "Advance | None",
        vectors: Any,
        first_row: int = 0,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return which texts are not empty, bool [N], their features and their frozen vectors."""
        checked = check_texts(texts, keep_empty=True)
        real = np.array([bool(text.strip()) for text in checked], bool)
        filled: list[str] | np.ndarray = [text for text in checked if text.strip()]
        if vectors is not None:
            if not getattr(self.features, "takes_vectors", False):
                raise InputError(
                    "this model was fitted on texts alone and computes their vectors itself: leave "
                    "the vectors out (embeddings, --vectors, --vector-column)"
                )
            width: int = self.features.width  # type: ignore[attr-defined]
            filled = vectors_of(vectors, real, width, first_row)
        if self.fit_reference is not None and self.fit_reference.frozen:
            features, frozen = self.features.with_frozen(filled, advance)
        else:
            features, frozen = self.features(filled, advance), None
        return real, encode_ties_alone(self.features, self.prototypes, filled, features), frozen


def encode_ties_alone(
    feature_map: "FeatureMap",
    prototypes: np.ndarray,
    texts: "Sequence[str] | np.ndarray",
    features: np.ndarray,
) -> np.ndarray:
    """Return the features, with texts at the border of two categories encoded one by one.

    The last digits of a text's features depend on the other texts in the batch. Close to a border
    they could change the prediction, so such texts are encoded alone. `texts` may also be their
    vectors [N, d].
    """
    if len(texts) == 1:
        return features
    rows = near_ties(features, prototypes, getattr(feature_map, "noise", NOISE))
    if not len(rows):
        return features
    features = features.copy()
    alone: dict[str | int, np.ndarray] = {}
    for row in rows.tolist():
        key = row if isinstance(texts, np.ndarray) else texts[row]
        if key not in alone:
            alone[key] = feature_map(texts[row : row + 1])[0]
        features[row] = alone[key]
    return features


def _spread(values: np.ndarray, real: np.ndarray, missing: Any) -> np.ndarray:
    """Return values [N, ...] of all texts: `values` where `real`, `missing` for empty texts."""
    if real.all():
        return values
    spread = np.full((len(real), *values.shape[1:]), missing, values.dtype)
    spread[real] = values
    return spread
