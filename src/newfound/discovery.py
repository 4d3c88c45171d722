"""Discovery of categories from texts to what is used, shown and kept.

Without scikit-learn, whose import takes longer than most steps of a discovery: commands work with
this class, `discoverer` makes an estimator of it.
"""

from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from newfound import notebook
from newfound.clustering.assignment import (
    NOISE,
    assign,
    near_ties,
    probabilities,
    squared_distances,
)
from newfound.config import RunConfig, override
from newfound.data.corpus import Corpus, check_corpus, check_texts
from newfound.data.task import make_task
from newfound.describing.descriptions import describe
from newfound.devices import find_device, seeded
from newfound.encoding.loading import load_encoder
from newfound.errors import InputError
from newfound.methods import find_method, resolve_config
from newfound.methods.fitted import Fitted
from newfound.progress import Advance, Stages
from newfound.result import Category
from newfound.storage.model_files import load_model, save_model

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class Discovery:
    """Gives every text a category: a known one, or a new one that it discovers.

    Parameters are those of `newfound.config.RunConfig`; `settings` holds hyper-parameters of the
    method by name and goes before what `effort` picks.
    """

    def __init__(
        self,
        method: str = "newfound",
        encoder: str = "minilm",
        n_categories: int | str = "auto",
        effort: str | None = None,
        seed: int = 0,
        device: str | None = None,
        pooling: str | None = None,
        max_tokens: int = 128,
        validation_share: float = 0.15,
        cache: str | None = None,
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
        self.max_tokens = max_tokens
        self.validation_share = validation_share
        self.cache = cache
        self.settings = settings
        self.verbose = verbose

    # --- fitting -------------------------------------------------------------------------------

    def fit(
        self,
        texts: Sequence[str],
        labels: Sequence[str | None] | None = None,
        *,
        ids: Sequence[str] | None = None,
        validation: tuple[Sequence[str], Sequence[str | None]] | None = None,
    ) -> Self:
        """Discover the categories of `texts`; `labels` holds a name or None for each.

        `ids` are what notes call the texts; without them they are numbered from 1.
        `validation` (texts, labels) of known categories says when to stop; without it a part of
        the labelled texts does.
        """
        config = self._checked_config()
        corpus = Corpus.from_lists(texts, labels, ids)
        wanted = None if config.n_categories == "auto" else int(config.n_categories)
        notes = check_corpus(corpus, wanted)
        _check_room(corpus, wanted)
        device = find_device(config.device)
        effort = config.effort or ("best" if device.type == "cuda" else "balanced")
        method_config = resolve_config(config.method, effort, self.settings)
        cache = _cache_folder(config.cache)
        targets, known = corpus.targets, corpus.known
        task = make_task(
            corpus.texts,
            targets,
            known,
            wanted,
            validation=self._validation(validation, known),
            validation_share=config.validation_share,
            seed=config.seed,
        )
        stages = Stages(self.verbose)
        with seeded(config.seed, device):
            encoder = load_encoder(
                config.encoder, pooling=config.pooling, max_tokens=config.max_tokens
            )
            encoder.backbone.to(device)
            fitted = find_method(config.method).fit(
                task,
                encoder,
                method_config,
                seed=config.seed,
                stages=stages,
                cache=cache,
            )
        self.config_ = {**asdict(config), "effort": effort, "settings": asdict(method_config)}
        self.device_ = str(device)
        self.notes_ = notes + fitted.notes
        self._finish(fitted, corpus, stages)
        return self

    def _checked_config(self) -> RunConfig:
        chosen = {f.name: getattr(self, f.name) for f in fields(RunConfig)}
        config = override(RunConfig(), chosen, "CategoryDiscoverer")
        find_method(config.method)
        return config

    def _validation(
        self, validation: tuple[Sequence[str], Sequence[str | None]] | None, known: list[str]
    ) -> tuple[list[str], np.ndarray] | None:
        if validation is None:
            return None
        part = Corpus.from_lists(*validation)
        place = {name: i for i, name in enumerate(known)}
        kept = [i for i, label in enumerate(part.labels) if label in place]
        if not kept:
            raise InputError(
                "no validation text has a label that also stands in the training texts"
            )
        targets = np.array([place[str(part.labels[i])] for i in kept], np.int64)
        return [part.texts[i] for i in kept], targets

    def _finish(self, fitted: Fitted, corpus: Corpus, stages: Stages) -> None:
        """Derive the fitted attributes from what the method found."""
        with stages.stage("describing"):
            fitted.training_features = _settled(fitted, corpus.texts, fitted.training_features)
            predicted, sure = assign(
                fitted.training_features, fitted.prototypes, fitted.temperature
            )
            given = corpus.targets
            final = np.where(given >= 0, given, predicted)
            k = len(fitted.prototypes)
            names: list[str | None] = [*fitted.known, *[None] * (k - len(fitted.known))]
            self.category_list_: list[Category] = describe(
                corpus.texts,
                final,
                sure,
                fitted.training_features,
                fitted.prototypes,
                names,
                given,
                _labelled_distances(fitted),
            )
        self.fitted_, self.corpus_ = fitted, corpus
        self.n_categories_ = k
        self.history_ = fitted.history
        self.seconds_ = dict(stages.seconds)
        self.assigned_, self.predicted_, self.probability_ = final, predicted, sure
        self._set_names()
        self.labels_ = self.classes_[final]

    def _set_names(self) -> None:
        self.classes_ = np.array([category.name for category in self.category_list_], object)
        self.kinds_ = np.array([category.kind for category in self.category_list_], object)

    @property
    def categories_(self) -> "pd.DataFrame":
        """One row a category: id, name, kind, size, keywords, examples, mean confidence, ..."""
        import pandas as pd

        self._require_fit()
        table = pd.DataFrame([asdict(category) for category in self.category_list_])
        for column in ("keywords", "examples", "border"):
            table[column] = table[column].map(list)
        return table

    # --- using ---------------------------------------------------------------------------------

    def fit_predict(
        self, texts: Sequence[str], labels: Sequence[str | None] | None = None, **kwargs: Any
    ) -> np.ndarray:
        """Fit, and return the category of each text."""
        return self.fit(texts, labels, **kwargs).labels_

    def predict(self, texts: Sequence[str]) -> np.ndarray:
        """The category of each text, by name."""
        index, _ = self.predict_index(texts)
        return self.classes_[index]

    def predict_index(
        self, texts: Sequence[str], advance: Advance | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """(category id, its probability) of each text."""
        features = self._features(texts, advance)
        return assign(features, self.fitted_.prototypes, self.fitted_.temperature)

    def predict_proba(self, texts: Sequence[str]) -> np.ndarray:
        """Probability of each category [N, K]; columns in the order of `classes_`."""
        features = self._features(texts)
        return probabilities(features, self.fitted_.prototypes, self.fitted_.temperature)

    def transform(self, texts: Sequence[str]) -> np.ndarray:
        """Features [N, d] of texts."""
        return self._features(texts)

    def use_int8(self, texts: Sequence[str], folder: str | Path | None = None) -> str:
        """Encode in int8 from now on, on a CPU, calibrated on `texts`; say how near that comes.

        With a `folder` the converted model is kept there and read by the next call. Needs the extra
        newfound[openvino].
        """
        from newfound.encoding.int8 import use_int8

        self._require_fit()
        place = None if folder is None else Path(folder)
        return str(use_int8(self.fitted_, check_texts(texts), place))

    def _features(self, texts: Sequence[str], advance: Advance | None = None) -> np.ndarray:
        self._require_fit()
        checked = check_texts(texts)
        return _settled(self.fitted_, checked, self.fitted_.features(checked, advance))

    def _require_fit(self) -> None:
        if not hasattr(self, "fitted_"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError("this CategoryDiscoverer is not fitted yet; call fit first")

    # --- showing -------------------------------------------------------------------------------

    def plot_map(self) -> "Figure":
        """The texts on a map, coloured by category; needs matplotlib (newfound[plot])."""
        self._require_fit()
        return notebook.map_figure(self)

    def plot_matching(self) -> "Figure":
        """Labelled against discovered prototypes as a heat map (the paper's Fig. 3)."""
        self._require_fit()
        return notebook.matching_figure(self)

    def plot_estimate(self) -> "Figure":
        """The curve behind the estimated number of categories."""
        self._require_fit()
        return notebook.estimate_figure(self)

    def report(self, path: str | Path) -> Path:
        """Write the HTML report: one file that opens without a network."""
        self._require_fit()
        return notebook.write_report_of(self, Path(path))

    # --- files ---------------------------------------------------------------------------------

    def save(self, folder: str | Path) -> None:
        """Write the model: safetensors and JSON, complete, readable without the Hub."""
        self._require_fit()
        save_model(self, Path(folder))

    @classmethod
    def load(cls, folder: str | Path, device: str | None = None) -> Self:
        """Read what `save` wrote (or a run folder that holds it)."""
        return load_model(cls, Path(folder), find_device(device))


def _check_room(corpus: Corpus, n_categories: int | None) -> None:
    """Refuse more novel categories than there are texts that could be in them."""
    free = sum(label is None for label in corpus.labels)
    known = len(corpus.known)
    if n_categories is not None and n_categories - known > free:
        raise InputError(
            f"{n_categories} categories are asked for (--categories, n_categories), but {known} "
            f"are known and only {free} texts have no label: give at most {known + free}"
        )


def _cache_folder(name: str | None) -> Path | None:
    """The folder for kept results; one that cannot be made is said before the work begins."""
    if name is None:
        return None
    try:
        Path(name).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"the cache folder {name} cannot be made: {error.strerror or error}; name another"
        ) from error
    return Path(name)


def _settled(fitted: Fitted, texts: list[str], features: np.ndarray) -> np.ndarray:
    """Features in which a text at the border of two categories is encoded by itself.

    A text's features differ in their last digits with the batch that it is encoded in. At a border
    these would decide; there the text by itself does, so that it gets the same answer always.
    """
    if len(texts) == 1:
        return features
    noise = getattr(fitted.features, "noise", NOISE)
    rows = near_ties(features, fitted.prototypes, noise)
    if not len(rows):
        return features
    features = features.copy()
    alone = {text: fitted.features([text])[0] for text in {texts[row] for row in rows}}
    features[rows] = [alone[texts[row]] for row in rows]
    return features


def _labelled_distances(fitted: Fitted) -> list[float | None]:
    """Of each category, how far its prototype lies from the mean of its labelled texts."""
    novel: list[float | None] = [None] * (len(fitted.prototypes) - len(fitted.known))
    if fitted.labelled_prototypes is None:
        return novel
    own = fitted.prototypes[: len(fitted.known)] - fitted.labelled_prototypes
    return [float(value) for value in np.linalg.norm(own, axis=1)] + novel


def matching_table(fitted: Fitted) -> np.ndarray | None:
    """Distances of labelled prototypes (rows) to all prototypes, matched ones first (Fig. 3)."""
    if fitted.labelled_prototypes is None:
        return None
    return np.sqrt(squared_distances(fitted.labelled_prototypes, fitted.prototypes))
