"""The values that a discovery returns: `Result`, `Category`, `Model` and `Predictions`.

All are frozen dataclasses. `newfound.pipeline.discover` returns a Result; the estimator, the
command line, run folders, the report, figures and export read it. Renaming categories returns a new
Result.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from newfound.clustering.assignment import (
    NOISE,
    assign,
    near_ties,
    squared_distances,
)
from newfound.clustering.calibration import Answers, answers, calibrated_probabilities
from newfound.config import check_marking
from newfound.data.corpus import Corpus, check_texts
from newfound.data.vectors import vectors_of
from newfound.errors import InputError

if TYPE_CHECKING:
    from newfound.clustering.calibration import Evidence
    from newfound.clustering.estimate import Estimate
    from newfound.clustering.fit_scores import FitReference
    from newfound.data.languages import Languages
    from newfound.encoding.feature_maps import FeatureMap
    from newfound.progress import Advance

DIGITS = 4  # decimals of the numbers in a Result and in a run folder


@dataclass(frozen=True)
class Category:
    """A category: known (a label of the user) or novel (discovered).

    Attributes
    ----------
    id : int
        Index of the category; known categories come first.
    name : str
        The label of a known category, or the generated name of a novel one.
    kind : {"known", "novel"}
        Whether the category has labelled texts.
    size : int
        Number of texts in the category.
    share : float
        Share of all texts.
    labelled : int
        Number of its texts that have a label.
    keywords : tuple of str
        Words that distinguish the category from others, best first.
    examples : tuple of str
        Typical texts, closest to the prototype.
    border : tuple of str
        Border texts, which have the lowest probability.
    confidence : float
        Mean probability of its texts.
    nearest : int
        Id of the category with the closest prototype, -1 if there is only one category.
    nearest_distance : float
        Distance to that prototype, NaN if there is only one category.
    distance : float or None
        Known categories: distance of the prototype to the mean of the labelled texts.
    fit : float or None
        Mean fit score of its texts; None if it has no texts, or in a file of an earlier version.
    fits_nowhere : int or None
        Number of its texts that are marked as fitting nowhere; None without `outside` and
        `false_alarms`.
    """

    id: int
    name: str
    kind: str
    size: int
    share: float
    labelled: int
    keywords: tuple[str, ...]
    examples: tuple[str, ...]
    border: tuple[str, ...]
    confidence: float
    nearest: int
    nearest_distance: float
    distance: float | None
    fit: float | None = None
    fits_nowhere: int | None = None


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
    best_known: np.ndarray
    best_known_probability: np.ndarray
    fit: np.ndarray
    fits_nowhere: np.ndarray | None

    def __post_init__(self) -> None:
        _make_arrays_read_only(self)

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
        _make_arrays_read_only(self)

    @cached_property
    def names(self) -> np.ndarray:
        """Names of the categories, shape (K,)."""
        return _objects([category.name for category in self.categories])

    @cached_property
    def kinds(self) -> np.ndarray:
        """Kinds of the categories, shape (K,)."""
        return _objects([category.kind for category in self.categories])

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


@dataclass(frozen=True, eq=False)
class Result:
    """The result of a discovery: K categories of a corpus of N texts.

    A run folder is a Result on disk (`newfound.storage.run_folder`). Probabilities, fit scores,
    positions and matching distances are rounded to four decimals, in memory and on disk.

    Attributes
    ----------
    corpus : Corpus
        The texts, their labels and ids.
    categories : tuple of Category
        The K categories, known ones first.
    assigned : ndarray of int64, shape (N,)
        Index of each text's category: its label if it has one, else the prediction.
    predicted : ndarray of int64, shape (N,)
        Index of the predicted category, also for labelled texts.
    probability : ndarray of float64, shape (N,)
        Probability of the predicted category.
    best_known : ndarray of int64, shape (N,), or None
        Index of the most probable known category, -1 if no category is known; None in a run of an
        earlier version.
    best_known_probability : ndarray of float64, shape (N,), or None
        Probability of that known category, NaN if there is none.
    fit : ndarray of float64, shape (N,), or None
        Fit score of each text in its category; None in a run of an earlier version.
    fits_nowhere : ndarray of bool, shape (N,), or None
        Which texts are marked as fitting nowhere; None without `outside` and `false_alarms`.
    positions : ndarray of float64, shape (N, 2), or callable
        Map positions, or a function that computes them; use `map_positions` to read them.
    config : Mapping
        The resolved configuration: run, effort and every setting of the method.
    device : str
        Device of the computation.
    model : Model or None
        The model for new texts; None if it was not read from the run folder.
    training_features : ndarray of float32, shape (N, d), or None
        Features of the texts; None if the Result was read from a run folder.
    estimate : Estimate or None
        The estimated number of categories; None if the number was given.
    matching : ndarray of float64, shape (M, K), or None
        Distances between labelled prototypes and all prototypes; None without labels, and if there
        are more than a million of them.
    history : tuple of dict
        One entry per epoch: stage, epoch, losses.
    seconds : Mapping
        Seconds per stage.
    notes : tuple of str
        Notes for the user on the texts and the run.
    versions : Mapping
        Versions of the packages that the result depends on.
    environment : Mapping
        Threads, instruction set and hardware that its last digits depend on; empty in a run of an
        earlier version.
    scores : Mapping or None
        Accuracy in percent if the true categories are known, as in the demo.
    command : str or None
        The command line of the run.
    languages : Languages or None
        Languages of the texts; None if no text has one, and in a run of an earlier version.
    """

    corpus: Corpus
    categories: tuple[Category, ...]
    assigned: np.ndarray
    predicted: np.ndarray
    probability: np.ndarray
    positions: np.ndarray | Callable[[], np.ndarray]
    config: Mapping[str, Any]
    device: str
    best_known: np.ndarray | None = None
    best_known_probability: np.ndarray | None = None
    fit: np.ndarray | None = None
    fits_nowhere: np.ndarray | None = None
    model: Model | None = None
    training_features: np.ndarray | None = None
    estimate: "Estimate | None" = None
    matching: np.ndarray | None = None
    history: tuple[dict[str, Any], ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    scores: Mapping[str, float | None] | None = None
    command: str | None = None
    languages: "Languages | None" = None
    environment: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _make_arrays_read_only(self)

    @cached_property
    def names(self) -> np.ndarray:
        """Names of the categories, shape (K,)."""
        return _objects([category.name for category in self.categories])

    @cached_property
    def kinds(self) -> np.ndarray:
        """Kinds of the categories, "known" or "novel", shape (K,)."""
        return _objects([category.kind for category in self.categories])

    @cached_property
    def labels(self) -> np.ndarray:
        """Name of each text's category, shape (N,)."""
        return _read_only(self.names[self.assigned])

    @cached_property
    def labelled(self) -> np.ndarray:
        """Which texts have a label, bool, shape (N,)."""
        return _read_only(np.array([label is not None for label in self.corpus.labels], bool))

    @cached_property
    def is_known(self) -> np.ndarray:
        """Which categories are known, bool, shape (K,)."""
        return _read_only(self.kinds == "known")

    @cached_property
    def unlabelled_sizes(self) -> np.ndarray:
        """Number of unlabelled texts in each category, shape (K,)."""
        return np.bincount(self.assigned[~self.labelled], minlength=len(self.categories))

    @cached_property
    def map_positions(self) -> np.ndarray:
        """Position of each text on the map, in [-1, 1], shape (N, 2); computed on first use."""
        return _read_only(self.positions() if callable(self.positions) else self.positions)


def with_names(result: Result, names: Mapping[int, str]) -> Result:
    """Return the result with new names for novel categories.

    Parameters
    ----------
    result : Result
        The result of a discovery; it is not changed.
    names : Mapping of int to str
        New name by category id; other categories keep their names.

    Returns
    -------
    Result
        With the new names in its categories and in its model.
    """
    kinds = {category.id: category.kind for category in result.categories}
    for id_ in names:
        if kinds.get(id_) != "novel":
            raise InputError(
                f"category {id_} is not a novel category, so it cannot be renamed; give ids of "
                "novel categories"
            )
    renamed = tuple(replace(c, name=names.get(c.id, c.name)) for c in result.categories)
    for category in renamed:
        same = [other for other in renamed if other.name == category.name]
        if category.id in names and len(same) > 1:
            raise InputError(f"the name {category.name!r} is taken; choose another")
    model = None if result.model is None else replace(result.model, categories=renamed)
    positions = result.__dict__.get("map_positions", result.positions)  # never computed twice
    return replace(result, categories=renamed, model=model, positions=positions)


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


def as_recorded(values: np.ndarray) -> np.ndarray:
    """Return values as stored in a run folder: float64, rounded to four decimals."""
    # Rounded twice, because 0.1235 in float32 is 0.12349999696 in float64.
    return values.round(DIGITS).astype(np.float64).round(DIGITS)


def _spread(values: np.ndarray, real: np.ndarray, missing: Any) -> np.ndarray:
    """Return values [N, ...] of all texts: `values` where `real`, `missing` for empty texts."""
    if real.all():
        return values
    spread = np.full((len(real), *values.shape[1:]), missing, values.dtype)
    spread[real] = values
    return spread


def _objects(values: list[str]) -> np.ndarray:
    return _read_only(np.array(values, object))


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view


def _make_arrays_read_only(value: Any) -> None:
    """Replace every array of a frozen dataclass by a read-only view."""
    for each in fields(value):
        found = getattr(value, each.name)
        if isinstance(found, np.ndarray):
            object.__setattr__(value, each.name, _read_only(found))
