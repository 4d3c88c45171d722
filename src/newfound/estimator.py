"""CategoryDiscoverer: the scikit-learn estimator."""

from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_html_repr

from newfound import pipeline
from newfound.clustering.metrics import open_accuracy
from newfound.config import RunConfig, override
from newfound.data.corpus import Corpus, check_labels
from newfound.data.vectors import check_vectors
from newfound.decisions import Decision
from newfound.decisions.refitting import refit
from newfound.errors import InputError
from newfound.files import read_steadily
from newfound.model import Model
from newfound.report import write_report
from newfound.report.notebook import categories_html
from newfound.result import Result
from newfound.storage.assignments import has_assignments
from newfound.storage.model_files import load_model, save_model
from newfound.storage.run_folder import read_run

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from newfound.clustering.estimate import Estimate
    from newfound.encoding.int8 import Agreement


class NotKeptError(InputError, AttributeError):
    """A fitted attribute that a saved model does not store."""


class CategoryDiscoverer(ClusterMixin, BaseEstimator):
    """Discover categories in texts of which some are labelled.

    A label is the name of a known category. `fit` assigns every other text to a known category or
    to a novel one, and names and describes the novel categories. `predict` assigns new texts to
    these categories.

    Parameters
    ----------
    method : str, default "newfound"
        Name of the method; `newfound methods` lists them.
    encoder : str, default "minilm"
        Encoder of the texts: a short name (minilm, mpnet, bert, multilingual), a folder, a Hub id,
        or the address of an embedding service with the model after "#".
    n_categories : int or "auto", default "auto"
        Number of categories, including the known ones; "auto" estimates it.
    effort : str or None, default None
        "fast" trains a small head on the frozen encoder; "balanced" takes more time, for more
        repetitions or for training the last layers, depending on the method; "best" trains all
        layers. None means "best" on a GPU and "balanced" on a CPU.
    seed : int, default 0
        Random seed; on a CPU, the same seed gives the same result on the same machine.
    device : str or None, default None
        "cpu", "cuda" or "cuda:N"; None uses a GPU if available.
    pooling : str or None, default None
        Pooling of token vectors, "cls" or "mean"; None uses that of the encoder's training,
        "cls" if it is unknown.
    prompt : str or None, default None
        Text to put before every text, or the name of one of the encoder's prompts; None uses the
        encoder's own prompt for clustering, if it has one. The encoder stays frozen.
    trust_remote_code : bool, default False
        Whether to run code that comes with the encoder; only for encoders whose author you trust.
    max_tokens : int or None, default None
        Use only the first so many tokens of each text. None uses all: a text longer than the
        encoder reads at once is split into overlapping parts, whose vectors are averaged.
    validation_share : float, default 0.15
        Share of the labelled texts of each category that is held out and decides when training
        stops.
    cache : str or None, default None
        Folder that caches the output of frozen layers, so that the next fit on the same texts skips
        them; None means no cache.
    fit_texts : int, default 50000
        Of a table with more texts, a sample of this size is fitted, which keeps labels and rare
        texts; every text is assigned by the fitted model.
    outside : float or None, default None
        Share of the unlabelled texts to mark as fitting nowhere, from 0 to 1. They keep their
        category. None marks no text; fit scores are computed in any case.
    false_alarms : float or None, default None
        Instead of `outside`: share of texts of known categories that may be marked by mistake, from
        0 to 1. The threshold comes from the fit scores of the labelled texts.
    settings : dict or None, default None
        Hyper-parameters of the method by name, such as ``{"epochs": 3}``; they override those of
        `effort`. `newfound methods NAME` lists them.
    verbose : bool or None, default False
        Whether to show progress; None shows it on a terminal.

    Attributes
    ----------
    classes_ : ndarray of str, shape (n_categories_,)
        Names of the categories: the known ones in alphabetical order, then the novel ones.
    kinds_ : ndarray of str, shape (n_categories_,)
        "known" or "novel" for each of `classes_`.
    n_categories_ : int
        Number of categories.
    categories_ : pandas.DataFrame
        One row per category: id, name, kind, status, size, share, labelled, keywords, examples,
        border, confidence, nearest, nearest_distance, distance, fit, fits_nowhere, history.
    labels_ : ndarray of str, shape (n_texts,)
        Category of each training text: its label if it has one, else the prediction.
    predicted_ : ndarray of int, shape (n_texts,)
        Predicted category of each training text, as an index into `classes_`.
    probability_ : ndarray of float, shape (n_texts,)
        Probability of that category, rounded to four decimals.
    fit_scores_ : ndarray of float, shape (n_texts,), or None
        Fit score of each training text in its category, with the text itself left out; None if a
        run of an earlier version was loaded.
    fits_nowhere_ : ndarray of bool, shape (n_texts,), or None
        Which training texts are marked as fitting nowhere; None without `outside` and
        `false_alarms`.
    estimate_ : Estimate or None
        The estimated number of categories with its plausible range and scores; None if the number
        was given.
    history_ : list of dict
        One entry per epoch: stage, epoch, losses.
    notes_ : list of str
        Notes on the texts and the fit.
    seconds_ : dict
        Seconds per stage.
    config_ : dict
        All parameters and settings of the fit.
    device_ : str
        Device of the model.
    model_ : newfound.model.Model
        The model that predicts: feature map, prototypes, temperature.
    result_ : newfound.result.Result
        All of the above as one immutable value; `newfound.storage.run_folder.write_run` writes it
        as a run folder.

    Notes
    -----
    The attributes are read-only. After `load` of a folder that holds only a model, those that
    describe the training texts (`labels_`, `predicted_`, `probability_`, `fit_scores_`,
    `fits_nowhere_`, `estimate_`, `history_`, `notes_`, `seconds_`, `result_`) raise an
    AttributeError; after `load` of a run folder they are available.

    `fit` raises an error for an empty text (or one of white space only). `predict` returns None for
    it, and `predict_proba` NaN, as the command `newfound predict` does.

    In a grid search, use a splitter that ignores the labels, such as ``KFold(shuffle=True)``,
    because most labels are None:
    ``GridSearchCV(CategoryDiscoverer(), {"n_categories": [5, 10]}, cv=KFold(3, shuffle=True))``.

    Examples
    --------
    >>> from newfound import CategoryDiscoverer
    >>> texts = [
    ...     "I lost my card", "My card was stolen", "Please block my credit card",
    ...     "Where is the new card I ordered?", "Someone took my bank card",
    ...     "Book a flight to Rome", "I need a plane ticket to Berlin",
    ...     "Is there a cheap flight tomorrow?", "Change the date of my flight",
    ... ]
    >>> labels = ["card", "card", None, None, None, None, None, None, None]
    >>> discoverer = CategoryDiscoverer(n_categories=2, effort="fast", device="cpu")
    >>> discoverer.fit_predict(texts, labels)[2]
    'card'
    >>> discoverer.kinds_.tolist()
    ['known', 'novel']
    >>> discoverer.predict(["my card is gone", ""]).tolist()
    ['card', None]
    >>> discoverer.score(["the card is lost", "a flight to Oslo"], ["card", "travel"])
    1.0
    """

    _model: Model
    _result: Result | None

    def __init__(
        self,
        method: str = "newfound",
        encoder: str = "minilm",
        n_categories: int | str = "auto",
        effort: str | None = None,
        seed: int = 0,
        device: str | None = None,
        pooling: str | None = None,
        prompt: str | None = None,
        trust_remote_code: bool = False,
        max_tokens: int | None = None,
        validation_share: float = 0.15,
        cache: str | None = None,
        fit_texts: int = 50_000,
        outside: float | None = None,
        false_alarms: float | None = None,
        settings: dict[str, Any] | None = None,
        verbose: bool | None = False,
    ) -> None:
        self.method = method
        self.encoder = encoder
        self.n_categories = n_categories
        self.effort = effort
        self.seed = seed
        self.device = device
        self.pooling = pooling
        self.prompt = prompt
        self.trust_remote_code = trust_remote_code
        self.max_tokens = max_tokens
        self.validation_share = validation_share
        self.cache = cache
        self.fit_texts = fit_texts
        self.outside = outside
        self.false_alarms = false_alarms
        self.settings = settings
        self.verbose = verbose

    # --- fitting -------------------------------------------------------------------------------

    def fit(
        self,
        X: Sequence[str] | None = None,
        y: Sequence[str | None] | None = None,
        *,
        embeddings: Any = None,
        ids: Sequence[str] | None = None,
        validation: tuple[Any, ...] | None = None,
        texts: Sequence[str] | None = None,
        labels: Sequence[str | None] | None = None,
    ) -> Self:
        """Discover the categories of texts.

        Parameters
        ----------
        X : sequence of str
            The texts: a list, a NumPy array or a pandas column.
        y : sequence of str or None, optional
            The label of each text; None, NaN, "" or -1 means unlabelled. Without labels all
            categories are novel.
        embeddings : array-like of shape (n_texts, d), optional
            Vectors of the texts from an embedding model of your own, used in place of `encoder`;
            `predict` then needs the vectors of its texts, too. The texts still give names and
            keywords.
        ids : sequence of str, optional
            Ids of the texts, used in notes; by default the texts are numbered from 1.
        validation : tuple of (texts, labels) or (texts, labels, embeddings), optional
            Labelled texts of known categories that decide when training stops; by default a share
            of the labelled texts (`validation_share`) is held out.
        texts, labels : optional
            Aliases of `X` and `y`.

        Returns
        -------
        CategoryDiscoverer
            The fitted estimator itself.
        """
        given, names = _one_of(X, texts, "X", "texts"), _one_of(y, labels, "y", "labels")
        if given is None:
            raise InputError("there is no text: give the texts as X")
        chosen = {f.name: getattr(self, f.name) for f in fields(RunConfig)}
        config = override(RunConfig(), chosen, "CategoryDiscoverer")
        pipeline.find_method(config.method)
        result = pipeline.discover(
            Corpus.from_lists(given, names, ids, embeddings),
            config,
            settings=self.settings,
            validation=None if validation is None else _validation(*validation),
            verbose=self.verbose,
        )
        assert result.model is not None
        self._result, self._model = result, result.model
        return self

    def fit_predict(
        self,
        X: Sequence[str] | None = None,
        y: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> np.ndarray:
        """Fit and return the category of each text.

        Parameters
        ----------
        X, y, **kwargs
            As for `fit`.

        Returns
        -------
        ndarray of str, shape (n_texts,)
            `labels_`.
        """
        return self.fit(X, y, **kwargs).labels_

    def refit(self, decisions: Sequence[Decision], *, embeddings: Any = None) -> Self:
        """Discover the categories again, with what a person decided.

        Accepted, merged and split categories are known from now on, rejected ones do not come back,
        and moved texts stay. Ids and names of categories persist; `result_.changes` lists what
        changed.

        Parameters
        ----------
        decisions : sequence of newfound.decisions.Decision
            The decisions on the result of this estimator, oldest first.
        embeddings : array-like of shape (n_texts, d), optional
            Vectors of the texts, if the estimator was fitted on `embeddings` and loaded from a
            folder, which does not keep them.

        Returns
        -------
        CategoryDiscoverer
            The estimator itself, fitted again. Decisions that cannot be applied are in `notes_`.
        """
        before = self.result_
        if embeddings is not None:
            given = check_vectors(embeddings, len(before.corpus))
            before = replace(before, corpus=replace(before.corpus, vectors=given))
        result, problems = refit(before, decisions, verbose=self.verbose)
        assert result.model is not None
        self._result = replace(result, notes=(*map(str, problems), *result.notes))
        self._model = result.model
        return self

    # --- using ---------------------------------------------------------------------------------

    def predict(self, X: Sequence[str], *, embeddings: Any = None) -> np.ndarray:
        """Return the category of each text.

        Parameters
        ----------
        X : sequence of str
            Texts.
        embeddings : array-like of shape (n_texts, d), optional
            Vectors of the texts, for a model that was fitted on `embeddings`.

        Returns
        -------
        ndarray of object, shape (n_texts,)
            Names of categories; None for an empty text.
        """
        return self.model_.predict(X, vectors=embeddings).names

    def predict_proba(self, X: Sequence[str], *, embeddings: Any = None) -> np.ndarray:
        """Return the probability of each category.

        Parameters
        ----------
        X : sequence of str
            Texts.
        embeddings : array-like of shape (n_texts, d), optional
            Vectors of the texts, for a model that was fitted on `embeddings`.

        Returns
        -------
        ndarray of float, shape (n_texts, n_categories_)
            Columns in the order of `classes_`. A row sums to 1, and its largest value is that of
            the category that `predict` returns; a row of NaN for an empty text.
        """
        return self.model_.probabilities(X, vectors=embeddings)

    def predict_fit(self, X: Sequence[str], *, embeddings: Any = None) -> np.ndarray:
        """Return the fit score of each text: how well it fits its predicted category.

        Every text gets a category, possibly with a high probability even if it fits nowhere. Its
        fit score is then low: the mean of its cosines to the five nearest training texts of that
        category and to their common mean, in the space of the encoder before training.

        Parameters
        ----------
        X : sequence of str
            Texts.
        embeddings : array-like of shape (n_texts, d), optional
            Vectors of the texts, for a model that was fitted on `embeddings`.

        Returns
        -------
        ndarray of float32, shape (n_texts,)
            At most 1, higher is better; NaN for an empty text, and for all texts if the model was
            saved by an earlier version.
        """
        return self.model_.predict(X, vectors=embeddings).fit

    def predict_fits_nowhere(self, X: Sequence[str], *, embeddings: Any = None) -> np.ndarray:
        """Return which texts fit nowhere, by `outside` or `false_alarms`.

        Parameters
        ----------
        X : sequence of str
            Texts.
        embeddings : array-like of shape (n_texts, d), optional
            Vectors of the texts, for a model that was fitted on `embeddings`.

        Returns
        -------
        ndarray of bool, shape (n_texts,)
            False for an empty text.
        """
        marked = self.model_.predict(X, vectors=embeddings).fits_nowhere
        if marked is None:
            raise InputError(
                "the model has no rule for texts that fit nowhere; fit with outside (a share of "
                "texts) or false_alarms (a rate), or use the scores of predict_fit"
            )
        return marked

    def transform(self, X: Sequence[str], *, embeddings: Any = None) -> np.ndarray:
        """Return the features of texts.

        Parameters
        ----------
        X : sequence of str
            Texts.
        embeddings : array-like of shape (n_texts, d), optional
            Vectors of the texts, for a model that was fitted on `embeddings`.

        Returns
        -------
        ndarray of float32, shape (n_texts, n_features)
            A row of NaN for an empty text.
        """
        return self.model_.transform(X, vectors=embeddings)

    def score(self, X: Sequence[str], y: Sequence[str | None], *, embeddings: Any = None) -> float:
        """Return the accuracy of `predict`, with novel categories matched one to one.

        A known label must be predicted by name. Other labels are matched one to one with novel
        categories so that as many texts as possible agree, as in clustering accuracy (Hungarian
        algorithm).
        Texts without a label are ignored.

        Parameters
        ----------
        X : sequence of str
            Texts.
        y : sequence of str or None
            The true label of each text, None if it is not known.
        embeddings : array-like of shape (n_texts, d), optional
            Vectors of the texts, for a model that was fitted on `embeddings`.

        Returns
        -------
        float
            From 0 to 1.
        """
        model = self.model_
        predicted = model.predict(X, vectors=embeddings).names
        truth = check_labels(y, len(predicted))
        labelled = [i for i, label in enumerate(truth) if label is not None]
        if not labelled:
            raise InputError("score needs at least one text with a label in y")
        return open_accuracy(
            [predicted[i] for i in labelled], [str(truth[i]) for i in labelled], model.known
        )

    def use_int8(self, X: Sequence[str], folder: str | Path | None = None) -> str:
        """Switch the encoder to int8 on a CPU; needs the extra ``newfound[openvino]``.

        Parameters
        ----------
        X : sequence of str
            Texts for the calibration, similar to those to predict.
        folder : str or Path, optional
            Folder that stores the converted model for the next call.

        Returns
        -------
        str
            A sentence on the agreement of int8 with full precision.
        """
        place = None if folder is None else Path(folder)
        return self._converted(*pipeline.to_int8(self.model_, X, place))

    def use_static(self, X: Sequence[str], folder: str | Path | None = None) -> str:
        """Put static vectors in place of the encoder, on a CPU: no layer runs; less exact.

        Parameters
        ----------
        X : sequence of str
            Texts to fit the vectors to, similar to those to predict; thousands are better.
        folder : str or Path, optional
            Folder that stores the vectors for the next call.

        Returns
        -------
        str
            A sentence on the agreement with the full model, on some of the texts that are held out.
        """
        place = None if folder is None else Path(folder)
        return self._converted(*pipeline.to_static(self.model_, X, place))

    def _converted(self, model: Model, agreement: "Agreement") -> str:
        """Predict with a converted model from now on; return its agreement as a sentence."""
        self._model = model
        if self._result is not None:
            self._result = replace(self._result, model=model)
        return str(agreement)

    # --- fitted attributes: read-only views of the result -------------------------------------

    @property
    def result_(self) -> Result:
        """The result of the fit."""
        self._require_fit()
        if self._result is None:
            raise NotKeptError(
                "this model was loaded without its run folder, so labels_, history_, notes_ and "
                "other attributes of the training texts are missing; load the run folder or refit"
            )
        return self._result

    @property
    def model_(self) -> Model:
        """The model that predicts: feature map, prototypes, temperature."""
        self._require_fit()
        return self._model

    @property
    def classes_(self) -> np.ndarray:
        """Names of the categories, known ones first."""
        return self.model_.names

    @property
    def kinds_(self) -> np.ndarray:
        """Kinds of the categories, "known" or "novel", in the order of `classes_`."""
        return self.model_.kinds

    @property
    def n_categories_(self) -> int:
        """Number of categories."""
        return len(self.model_.categories)

    @property
    def categories_(self) -> "pd.DataFrame":
        """One row per category: id, name, kind, status, size, keywords, examples, ..."""
        import pandas as pd

        table = pd.DataFrame([asdict(category) for category in self.model_.categories])
        for column in ("keywords", "examples", "border"):
            table[column] = table[column].map(list)
        table["history"] = [list(map(str, c.history)) for c in self.model_.categories]
        return table

    @property
    def config_(self) -> dict[str, Any]:
        """All parameters and settings of the fit."""
        return dict(self.model_.config)

    @property
    def device_(self) -> str:
        """Device of the model."""
        return self.model_.device

    @property
    def labels_(self) -> np.ndarray:
        """Category of each training text, by name."""
        return self.result_.labels

    @property
    def predicted_(self) -> np.ndarray:
        """Predicted category of each training text, as an index into `classes_`."""
        return self.result_.predicted

    @property
    def probability_(self) -> np.ndarray:
        """Probability of the predicted category of each training text."""
        return self.result_.probability

    @property
    def fit_scores_(self) -> np.ndarray | None:
        """Fit score of each training text in its category."""
        return self.result_.fit

    @property
    def fits_nowhere_(self) -> np.ndarray | None:
        """Which training texts are marked as fitting nowhere."""
        return self.result_.fits_nowhere

    @property
    def estimate_(self) -> "Estimate | None":
        """The estimated number of categories; None if the number was given."""
        return self.result_.estimate

    @property
    def history_(self) -> list[dict[str, Any]]:
        """One entry per epoch: stage, epoch, losses."""
        return list(self.result_.history)

    @property
    def notes_(self) -> list[str]:
        """Notes on the texts and the fit."""
        return list(self.result_.notes)

    @property
    def seconds_(self) -> dict[str, float]:
        """Seconds per stage."""
        return dict(self.result_.seconds)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def _require_fit(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError("this CategoryDiscoverer is not fitted yet; call fit first")

    # --- showing -------------------------------------------------------------------------------

    def plot_map(self) -> "Figure":
        """Draw the texts on a map, coloured by category; needs matplotlib (``newfound[plot]``).

        Returns
        -------
        matplotlib.figure.Figure
        """
        result = self.result_
        from newfound.figures import plot_map

        return plot_map(result)

    def plot_matching(self) -> "Figure":
        """Draw the distances between labelled and discovered prototypes (the paper's Fig. 3).

        Returns
        -------
        matplotlib.figure.Figure
        """
        model = self.model_
        from newfound.figures import plot_matching

        return plot_matching(model)

    def plot_estimate(self) -> "Figure":
        """Draw the score of each candidate number of categories.

        Returns
        -------
        matplotlib.figure.Figure
        """
        result = self.result_
        from newfound.figures import plot_estimate

        return plot_estimate(result)

    def report(self, path: str | Path) -> Path:
        """Write the HTML report: one file that opens without a network.

        Parameters
        ----------
        path : str or Path
            File to write.

        Returns
        -------
        Path
            The file written.
        """
        return write_report(self.result_, Path(path))

    def _repr_html_(self) -> str:
        if not self.__sklearn_is_fitted__():
            return str(estimator_html_repr(self))
        return categories_html(self.model_.categories)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        # Overrides that of scikit-learn, which shows the parameters.
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    # --- files ---------------------------------------------------------------------------------

    def save(self, folder: str | Path) -> None:
        """Save the model as safetensors and JSON, including the encoder.

        Parameters
        ----------
        folder : str or Path
            A new or empty folder, or one with a model, which is replaced.
        """
        save_model(self.model_, Path(folder))

    @classmethod
    def load(
        cls,
        folder: str | Path,
        device: str | None = None,
        *,
        trust_remote_code: bool = False,
    ) -> Self:
        """Load a model written by `save`, or a run folder.

        Parameters
        ----------
        folder : str or Path
            A folder with a model, or a run folder, which also has the attributes of the training
            texts (`labels_`, `history_`, ...).
        device : str, optional
            "cpu", "cuda" or "cuda:N"; by default a GPU if available.
        trust_remote_code : bool, default False
            Whether to run code that comes with a frozen encoder.

        Returns
        -------
        CategoryDiscoverer
            A fitted estimator.
        """
        place = Path(folder)

        def read() -> tuple[Model, Result | None]:
            model = load_model(place, device, trust_remote_code=trust_remote_code)
            if not (place / "run.json").is_file() or not has_assignments(place):
                return model, None
            return model, replace(read_run(place), model=model)

        # Both must be of the same run, even if the run is replaced meanwhile.
        model, result = read_steadily(place, read, unchanged=True)
        loaded = cls(**model.parameters)
        loaded._model, loaded._result = model, result
        return loaded


def _one_of(value: Any, other: Any, name: str, other_name: str) -> Any:
    """Return the argument that was given under one of its two names."""
    if value is not None and other is not None:
        raise InputError(f"{name} and {other_name} are the same argument; give one of them")
    return other if value is None else value


def _validation(texts: Any, labels: Any, embeddings: Any = None) -> Corpus:
    """Return the validation texts as a corpus."""
    return Corpus.from_lists(texts, labels, vectors=embeddings)
