"""Result: the value that a discovery returns.

`newfound.pipeline.discover` returns a Result; the estimator, the command line, run folders, the
report, figures and export read it. It is a frozen dataclass: renaming categories returns a new one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from newfound.arrays import make_arrays_read_only, objects, read_only
from newfound.category import Category
from newfound.data.corpus import Corpus
from newfound.errors import InputError
from newfound.lineage import Lineage
from newfound.model import Model

if TYPE_CHECKING:
    from newfound.clustering.estimate import Estimate
    from newfound.data.languages import Languages


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
        Features of the texts; None if the Result was read from a run folder, or the method was
        fitted on a sample.
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
    reviewed : ndarray of bool, shape (N,), or None
        Texts whose category a person decided on: placed, seen in an accepted category, or marked as
        fitting nowhere; None if there are none.
    changes : Mapping or None
        What a refit changed: number of texts, categories that appeared, dissolved or changed in
        size; None if the run is no refit.
    lineage : Lineage
        Which ids of categories have been given in this run and those that it is derived from.
    long_texts : int or None
        Number of texts that were split into parts, or truncated by `max_tokens`; None if the
        encoder's own tokens were not counted, and in a run of an earlier version.
    sample : Mapping or None
        If the method was fitted on a sample: the number of texts, how many of them differ in more
        than case, spacing and long numbers, and how many were fitted on, as "texts", "different"
        and "fitted". Only the texts of the sample then have a position on the map.
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
    long_texts: int | None = None
    environment: Mapping[str, Any] = field(default_factory=dict)
    lineage: Lineage = field(default_factory=Lineage)
    reviewed: np.ndarray | None = None
    changes: Mapping[str, Any] | None = None
    sample: Mapping[str, int] | None = None

    def __post_init__(self) -> None:
        make_arrays_read_only(self)

    @cached_property
    def ids(self) -> np.ndarray:
        """Ids of the categories, shape (K,)."""
        return objects([category.id for category in self.categories])

    @cached_property
    def position(self) -> Mapping[str, int]:
        """Position of each category in `categories`, by id."""
        return {category.id: at for at, category in enumerate(self.categories)}

    @cached_property
    def names(self) -> np.ndarray:
        """Names of the categories, shape (K,)."""
        return objects([category.name for category in self.categories])

    @cached_property
    def kinds(self) -> np.ndarray:
        """Kinds of the categories, "known" or "novel", shape (K,)."""
        return objects([category.kind for category in self.categories])

    @cached_property
    def labels(self) -> np.ndarray:
        """Name of each text's category, shape (N,)."""
        return read_only(self.names[self.assigned])

    @cached_property
    def labelled(self) -> np.ndarray:
        """Which texts have a label, bool, shape (N,)."""
        return read_only(np.array([label is not None for label in self.corpus.labels], bool))

    @cached_property
    def is_known(self) -> np.ndarray:
        """Which categories are known, bool, shape (K,)."""
        return read_only(self.kinds == "known")

    @cached_property
    def unlabelled_sizes(self) -> np.ndarray:
        """Number of unlabelled texts in each category, shape (K,)."""
        return np.bincount(self.assigned[~self.labelled], minlength=len(self.categories))

    @cached_property
    def map_positions(self) -> np.ndarray:
        """Position of each text on the map, in [-1, 1], shape (N, 2); computed on first use.

        Of a large table only the texts of the sample have one; the others have NaN.
        """
        return read_only(self.positions() if callable(self.positions) else self.positions)


def with_names(result: Result, names: Mapping[str, str]) -> Result:
    """Return the result with new names for novel categories.

    Parameters
    ----------
    result : Result
        The result of a discovery; it is not changed.
    names : Mapping of str to str
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
