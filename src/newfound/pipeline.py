"""The main functions: discover, predict, estimate, name novel categories, convert to int8.

The steps of `discover`:

1. check the configuration, the corpus and the device;
2. detect the languages of the texts, load the encoder and let the method fit a feature map and
   prototypes;
3. assign every text to its nearest prototype; a labelled text keeps its label;
4. compute the fit score of each text, and mark texts that fit nowhere by `outside` or
   `false_alarms`;
5. describe each category: name, keywords, typical texts;
6. return everything as one frozen `Result`.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from newfound.arrays import as_recorded
from newfound.category import Category
from newfound.clustering.assignment import assign
from newfound.clustering.estimate import Estimate
from newfound.clustering.fit_scores import make_reference
from newfound.clustering.n_categories import estimate_categories
from newfound.config import RunConfig, check_marking
from newfound.data.corpus import Corpus, check_corpus, check_texts
from newfound.data.languages import detect_languages
from newfound.data.task import make_task
from newfound.data.vectors import order_notes
from newfound.describing.descriptions import describe
from newfound.describing.llm_names import Endpoint, names_from_endpoint
from newfound.describing.text_map import map_positions
from newfound.describing.tree import with_groups
from newfound.describing.volume import with_volumes
from newfound.devices import describe_environment, find_device, one_thread, seeded
from newfound.encoding.languages import language_notes
from newfound.encoding.loading import Encoder, load_encoder
from newfound.encoding.vectors.choice import find_frozen
from newfound.encoding.vectors.frozen_encoder import FrozenEncoder, VectorEncoder
from newfound.encoding.vectors.scaling import encode_corpus, scaled
from newfound.errors import InputError
from newfound.fingerprint import fingerprint
from newfound.large.fit_sample import FitSample, fit_sample, whole_result
from newfound.large.sharing import Engine
from newfound.lineage import Lineage
from newfound.marking import mark_outside, with_fits
from newfound.methods import choose_effort, find_method, resolve_config, trains_layers
from newfound.methods.fitted import Fitted
from newfound.model import Model, Predictions, encode_ties_alone
from newfound.progress import Stages
from newfound.result import Result, with_names
from newfound.versions import versions
from newfound.wording import plural

if TYPE_CHECKING:
    from newfound.encoding.int8 import Agreement

MOST_DISTANCES = 1_000_000  # between labelled and all prototypes that a Result holds


def discover(
    corpus: Corpus,
    config: RunConfig | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
    validation: Corpus | None = None,
    verbose: bool | None = False,
    stages: Stages | None = None,
    engine: Engine | None = None,
) -> Result:
    """Discover the known and the novel categories of a corpus.

    Parameters
    ----------
    corpus : Corpus
        The texts, and the labels that some of them carry.
    config : RunConfig, optional
        Settings of the run; the defaults if omitted.
    settings : Mapping, optional
        Hyper-parameters of the method by name; they override those of the effort.
    validation : Corpus, optional
        Labelled texts of known categories that decide when training stops; by default a share
        of the labelled texts is held out.
    verbose : bool or None, default False
        Whether to show progress; None shows it on a terminal.
    stages : Stages, optional
        Times the stages and shows their progress; overrides `verbose`. Its checkpoints keep the
        work, so that an equal call goes on from there after a fault.
    engine : callable, optional
        Shares the encoding of a table with more than `fit_texts` texts among workers; see
        `newfound.large.sharing`. By default, this process encodes.

    Returns
    -------
    Result

    Examples
    --------
    >>> from newfound.config import RunConfig
    >>> from newfound.data.corpus import Corpus
    >>> from newfound.pipeline import discover, predict
    >>> texts = ["my card is lost", "card stolen", "book a flight", "cheap flights to Rome"]
    >>> corpus = Corpus.from_lists(texts, ["card", None, None, None])
    >>> result = discover(corpus, RunConfig(n_categories=2, effort="fast", device="cpu"))
    >>> [category.kind for category in result.categories]
    ['known', 'novel']
    >>> predict(result.model, ["I lost my card"]).names.tolist()
    ['card']
    """
    config = config or RunConfig()
    method = find_method(config.method)
    wanted = None if config.n_categories == "auto" else int(config.n_categories)
    notes = check_corpus(corpus, wanted)
    _check_room(corpus, wanted)
    _check_validation_vectors(corpus, validation)
    check_marking(config.outside, config.false_alarms, labelled=bool(corpus.known))
    device = find_device(config.device)
    frozen, effort, method_config, more = _choose(config, corpus, settings, device)
    notes += more
    cache = _cache_folder(config.cache)
    # Random draws go by rows, so the rows of a table are sorted first: its order does not matter.
    order = corpus.sorted_rows
    ordered = corpus.take(order)
    held = _validation_part(validation, corpus.known)
    stages = stages or Stages(verbose)
    resolved = {**asdict(config), "effort": effort, "settings": asdict(method_config)}
    if frozen is not None:
        resolved["encoder"] = frozen.name
    earlier = len(stages.notes)  # of another run
    with seeded(config.seed, device):
        # Its model takes most of a second to load, during which the encoder is read.
        with ThreadPoolExecutor(1) as beside:
            detected = beside.submit(detect_languages, ordered.texts)
            encoder = _load(frozen, config, device, stages.note)
            languages = detected.result()
        if frozen is None:
            for note in language_notes(languages, config.encoder):
                stages.note(note)
        if stages.checkpoints.folder is not None:
            stages.checkpoints.open(fingerprint(ordered, validation, resolved, encoder, device))
        sample = _sample(ordered, encoder, config, wanted, stages, cache, engine)
        fitted_on = ordered if sample is None else ordered.take(sample.rows)
        vectors = _task_vectors(frozen, fitted_on, sample, config, method_config, stages, cache)
        task = make_task(
            fitted_on.texts,
            fitted_on.targets,
            fitted_on.known,
            wanted,
            validation=None if held is None else (held[0].texts, held[1]),
            validation_share=config.validation_share,
            seed=config.seed,
            vectors=vectors,
            validation_vectors=None if held is None else _vectors(frozen, held[0], stages, cache),
        )
        # One thread is fast enough where no layer of the encoder is trained, and the answer does
        # not depend on the number of threads then.
        with one_thread(not trains_layers(method_config)):
            fitted = method.fit(
                task, encoder, method_config, seed=config.seed, stages=stages, cache=cache
            )
    notes += stages.notes[earlier:]
    chosen = {name: resolved["settings"][name] for name in settings or {}}
    model = Model(
        features=fitted.features,
        prototypes=fitted.prototypes,
        known=tuple(fitted.known),
        temperature=fitted.temperature,
        categories=(),
        labelled_prototypes=fitted.labelled_prototypes,
        config=resolved,
        parameters={**asdict(config), "settings": chosen or None, "verbose": verbose},
        device=str(device),
    )
    result = replace(_result(fitted_on, model, fitted, notes, stages), languages=languages)
    if sample is not None:
        result = whole_result(result, ordered, sample, stages)
    return _reordered(result, corpus, order)


def _reordered(result: Result, corpus: Corpus, order: np.ndarray) -> Result:
    """Return the result on `corpus`, whose rows `order` it was computed on."""
    place = np.argsort(order)  # of each row of the corpus in the result
    return replace(
        result,
        corpus=corpus,
        assigned=result.assigned[place],
        predicted=result.predicted[place],
        probability=result.probability[place],
        best_known=None if result.best_known is None else result.best_known[place],
        best_known_probability=None
        if result.best_known_probability is None
        else result.best_known_probability[place],
        fit=None if result.fit is None else result.fit[place],
        fits_nowhere=None if result.fits_nowhere is None else result.fits_nowhere[place],
        training_features=None
        if result.training_features is None
        else result.training_features[place],
        positions=partial(_taken, result.positions, place),
    )


def _taken(positions: np.ndarray | Callable[[], np.ndarray], rows: np.ndarray) -> np.ndarray:
    """Return the map positions of these rows."""
    return (positions() if callable(positions) else positions)[rows]


def _result(
    corpus: Corpus, model: Model, fitted: Fitted, notes: list[str], stages: Stages
) -> Result:
    """Assign every text, describe the categories and return the result."""
    with stages.stage("describing"):
        features = encode_ties_alone(
            model.features,
            model.prototypes,
            corpus.texts if corpus.vectors is None else corpus.vectors,
            fitted.training_features,
        )
        predicted, _ = assign(features, model.prototypes, model.temperature)
        given = corpus.targets
        assigned = np.where(given >= 0, given, predicted)
        frozen = fitted.frozen_features
        reference, fit = make_reference(
            features if frozen is None else frozen,
            assigned,
            given >= 0,
            frozen=frozen is not None,
            seed=int(model.config["seed"]),
        )
        model = replace(model, fit_reference=reference)
        found = model.answers(features, frozen)
        outside, more = mark_outside(model, fit, given >= 0)
        described = _describe(corpus, model, features, assigned, found.probability)
        categories = with_fits(described, assigned, fit, outside)
        categories = with_volumes(categories, corpus, assigned)
        categories = with_groups(categories, features if frozen is None else frozen, assigned)
    return Result(
        corpus=corpus,
        categories=categories,
        assigned=assigned,
        predicted=predicted,
        probability=as_recorded(found.probability),
        best_known=found.best_known,
        best_known_probability=as_recorded(found.best_known_probability),
        fit=as_recorded(fit),
        fits_nowhere=outside,
        lineage=Lineage.begin(len(categories)),
        positions=partial(
            _positions, features, model.prototypes, assigned, int(model.config["seed"])
        ),
        config=model.config,
        device=model.device,
        model=replace(model, categories=categories),
        training_features=features,
        estimate=fitted.estimate,
        matching=recorded_matching(model),
        history=tuple(fitted.history),
        seconds=_rounded(stages.seconds),
        notes=(*notes, *fitted.notes, *more),
        versions=versions(),
        long_texts=stages.long_texts,
        environment=describe_environment(torch.device(model.device)),
    )


def recorded_matching(model: Model) -> np.ndarray | None:
    """Return the distances [M, K] of labelled to all prototypes, None if they are too many."""
    if len(model.known) * len(model.prototypes) > MOST_DISTANCES or model.matching is None:
        return None
    return as_recorded(model.matching)


def _positions(
    features: np.ndarray, prototypes: np.ndarray, assigned: np.ndarray, seed: int
) -> np.ndarray:
    """Return the map positions [N, 2], rounded as in a run folder."""
    return as_recorded(map_positions(features, prototypes, assigned, seed))


def _describe(
    corpus: Corpus, model: Model, features: np.ndarray, assigned: np.ndarray, sure: np.ndarray
) -> tuple[Category, ...]:
    """Return the categories with names, keywords, typical and border texts."""
    novel: list[None] = [None] * (len(model.prototypes) - len(model.known))
    distances: list[float | None] = [*novel]
    if model.labelled_prototypes is not None:
        own = model.prototypes[: len(model.known)] - model.labelled_prototypes
        distances = [*map(float, np.linalg.norm(own, axis=1)), *novel]
    described = describe(
        corpus.texts,
        assigned,
        sure,
        features,
        model.prototypes,
        [*model.known, *novel],
        corpus.targets,
        distances,
        method=str(model.config["method"]),
    )
    return tuple(described)


def predict(
    model: Model, texts: Sequence[str], *, vectors: np.ndarray | None = None
) -> Predictions:
    """Return the category of each text.

    Parameters
    ----------
    model : Model
        The model of a `Result`, or one read by `newfound.storage.model_files.load_model`.
    texts : sequence of str
        An empty text gets no category: index -1, probability NaN, name and kind None.
    vectors : array-like of shape (N, d), optional
        Vectors of the texts, for a model that was fitted on vectors of the user.

    Returns
    -------
    Predictions
    """
    return model.predict(texts, vectors=vectors)


def estimate(
    corpus: Corpus,
    config: RunConfig,
    *,
    settings: Mapping[str, Any] | None = None,
    verbose: bool | None = False,
    stages: Stages | None = None,
) -> Estimate:
    """Estimate the number of categories of a corpus, as `discover` does.

    Parameters
    ----------
    corpus : Corpus
        The texts, and the labels that some of them carry.
    config : RunConfig
        Settings of the run; `n_categories` is not used.
    settings : mapping, optional
        Hyper-parameters of the method by name; they override those of the effort.
    verbose : bool or None, default False
        Whether to show progress; None shows it on a terminal.
    stages : Stages, optional
        Times the stages and shows their progress; overrides `verbose`.

    Returns
    -------
    Estimate
    """
    check_corpus(corpus, None)
    stages = stages or Stages(verbose)
    device = find_device(config.device)
    frozen, _, method_config, notes = _choose(config, corpus, settings, device)
    stages.notes += notes
    ordered = corpus.take(corpus.sorted_rows)  # as in `discover`
    with seeded(config.seed, device):
        encoder = _load(frozen, config, device, stages.note)
        method, cache = find_method(config.method), _cache_folder(config.cache)
        sample = _sample(ordered, encoder, config, None, stages, cache)
        counted = ordered if sample is None else ordered.take(sample.rows)
        task = make_task(
            counted.texts,
            counted.targets,
            counted.known,
            None,
            seed=config.seed,
            vectors=_task_vectors(frozen, counted, sample, config, method_config, stages, cache),
        )
        arguments: dict[str, Any] = {"seed": config.seed, "stages": stages, "cache": cache}
        independent = not trains_layers(method_config)
        with one_thread(independent):
            if method.estimate is not None:
                return method.estimate(task, encoder, method_config, **arguments)
            features = method.counting_features(task, encoder, method_config, **arguments)
    with stages.stage("counting categories"), one_thread(independent):
        targets = torch.from_numpy(task.targets).to(features.device)
        return estimate_categories(features, targets, seed=config.seed)


def name_novel(
    result: Result,
    endpoint: Endpoint,
    *,
    verbose: bool | None = False,
    stages: Stages | None = None,
) -> Result:
    """Return the result with names for its novel categories from a language model.

    Parameters
    ----------
    result : Result
        The result of a discovery; it is not changed.
    endpoint : Endpoint
        An OpenAI-compatible endpoint; keywords and typical texts of novel categories are sent
        to it.
    verbose : bool or None, default False
        Whether to show progress; None shows it on a terminal.
    stages : Stages, optional
        Times the stages and shows their progress; overrides `verbose`.

    Returns
    -------
    Result
        With the new names, the seconds of this stage, and a note on each failure.
    """
    stages = stages or Stages(verbose)
    with stages.stage("naming"):
        named, notes = names_from_endpoint(
            list(result.categories), endpoint.url, endpoint.model, endpoint.key
        )
    before = [category.name for category in result.categories]
    names = {c.id: c.name for c, old in zip(named, before, strict=True) if c.name != old}
    return replace(
        with_names(result, names),
        notes=(*result.notes, *notes),
        seconds={**result.seconds, **_rounded(stages.seconds)},
    )


def to_int8(
    model: Model, texts: Sequence[str], folder: Path | None = None
) -> tuple[Model, "Agreement"]:
    """Return a model that encodes in int8 on a CPU, and its agreement with the given one.

    Parameters
    ----------
    model : Model
        The model to convert; it is not changed.
    texts : sequence of str
        Texts for the calibration, similar to those to predict.
    folder : Path, optional
        Folder that stores the converted model; if it holds one already, that one is read.

    Returns
    -------
    model : Model
    agreement : Agreement
        Agreement of both models on the texts; `str` returns a sentence for the user.
    """
    from newfound.encoding.int8 import int8_features

    features, agreement = int8_features(
        model.features, _categories_of(model), check_texts(texts), folder
    )
    return replace(model, features=features), agreement


def to_static(
    model: Model, texts: Sequence[str], folder: Path | None = None
) -> tuple[Model, "Agreement"]:
    """Return a model with static vectors in place of its encoder, and its agreement with it.

    Parameters
    ----------
    model : Model
        The model to convert, on a CPU; it is not changed.
    texts : sequence of str
        Texts to fit the vectors to, similar to those to predict. A part of them is held out for
        the agreement.
    folder : Path, optional
        Folder that stores the vectors; if it holds some already, those are read.

    Returns
    -------
    model : Model
    agreement : Agreement
        Agreement of both models on held-out texts; `str` returns a sentence for the user.
    """
    from newfound.encoding.static import static_features

    features, agreement = static_features(
        model.features, _categories_of(model), check_texts(texts), folder
    )
    return replace(model, features=features), agreement


def _categories_of(model: Model) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function from features [N, d] to the indices [N] of their categories."""
    return lambda features: assign(features, model.prototypes, model.temperature)[0]


def _rounded(seconds: Mapping[str, float]) -> dict[str, float]:
    """Return seconds, rounded as in a run folder."""
    return {stage: round(value, 3) for stage, value in seconds.items()}


def _validation_part(
    validation: Corpus | None, known: list[str]
) -> tuple[Corpus, np.ndarray] | None:
    """Return the validation texts of known categories, and the index of each text's category."""
    if validation is None:
        return None
    place = {name: i for i, name in enumerate(known)}
    kept = [i for i, label in enumerate(validation.labels) if label in place]
    if not kept:
        raise InputError(
            "no validation text has the label of a training text; give texts of known categories"
        )
    targets = np.array([place[str(validation.labels[i])] for i in kept], np.int64)
    return validation.take(np.array(kept)), targets


def _choose(
    config: RunConfig, corpus: Corpus, settings: Mapping[str, Any] | None, device: torch.device
) -> tuple[FrozenEncoder | None, str, Any, list[str]]:
    """Return the frozen encoder if there is one, the effort, the method's settings, and notes."""
    frozen = find_frozen(config, corpus.vectors)
    notes = _vector_notes(corpus, config)
    if frozen is not None and frozen.left_out is not None and config.effort is not None:
        wanted = resolve_config(config.method, config.effort, settings)
        if trains_layers(wanted):  # with the backbone of this package
            notes.append(
                f"effort {config.effort} trains the encoder {frozen.name}, and leaves out "
                f"{frozen.left_out}"
            )
            frozen = None
    effort, method_config = choose_effort(
        config.method,
        config.effort,
        settings,
        frozen=frozen is not None,
        gpu=device.type == "cuda",
    )
    return frozen, effort, method_config, notes


def _load(
    frozen: FrozenEncoder | None,
    config: RunConfig,
    device: torch.device,
    note: Callable[[str], None],
) -> Encoder | VectorEncoder:
    """Return the encoder of a run on its device."""
    if frozen is not None:
        return VectorEncoder(frozen).to(device)
    encoder = load_encoder(
        config.encoder, pooling=config.pooling, max_tokens=config.max_tokens, note=note
    )
    encoder.backbone.to(device)
    return encoder


def _vectors(
    frozen: FrozenEncoder | None, corpus: Corpus, stages: Stages, cache: Path | None
) -> np.ndarray | None:
    """Return the scaled vectors of a corpus, None if the backbone of this package computes them."""
    if frozen is None:
        return None
    if corpus.vectors is not None:
        return scaled(corpus.vectors)
    vectors = encode_corpus(frozen, corpus.texts, stages, cache)
    for note in frozen.notes():
        stages.note(note)
    return vectors


def _sample(
    corpus: Corpus,
    encoder: Encoder | VectorEncoder,
    config: RunConfig,
    n_categories: int | None,
    stages: Stages,
    cache: Path | None,
    engine: Engine | None = None,
) -> FitSample | None:
    """Return the sample to fit on, None if the sorted corpus is small enough to fit on all."""
    if len(corpus) <= config.fit_texts:
        if engine is not None:
            stages.note(
                f"workers share the encoding of tables with more than {config.fit_texts:,} texts "
                f"(--fit-texts, fit_texts); this one has {len(corpus):,}, so one process encodes it"
            )
        return None
    sample = fit_sample(
        corpus,
        encoder,
        config.fit_texts,
        n_categories,
        seed=config.seed,
        stages=stages,
        cache=cache,
        engine=engine,
    )
    stages.note(sample.note)
    return sample


def _task_vectors(
    frozen: FrozenEncoder | None,
    corpus: Corpus,
    sample: FitSample | None,
    config: RunConfig,
    method_config: Any,
    stages: Stages,
    cache: Path | None,
) -> np.ndarray | None:
    """Return the vectors of the texts to fit on, None if the method encodes them itself."""
    if sample is None:
        return _vectors(frozen, corpus, stages, cache)
    reads_texts = not find_method(config.method).keeps_encoder or trains_layers(method_config)
    return None if frozen is None and reads_texts else sample.vectors


def _check_validation_vectors(corpus: Corpus, validation: Corpus | None) -> None:
    """Raise InputError unless validation texts come with vectors like those of the corpus."""
    if validation is None or (corpus.vectors is None and validation.vectors is None):
        return
    if corpus.vectors is None or validation.vectors is None:
        raise InputError(
            "either the texts or the validation texts come without vectors; give vectors for both, "
            "or for neither"
        )
    width, other = corpus.vectors.shape[1], validation.vectors.shape[1]
    if width != other:
        raise InputError(
            f"the vectors of the texts have {width:,} dimensions and those of the validation texts "
            f"{other:,}; compute both with the same embedding model"
        )


def _vector_notes(corpus: Corpus, config: RunConfig) -> list[str]:
    """Return notes on vectors that the user computed."""
    if corpus.vectors is None:
        return []
    notes = order_notes(corpus.texts, corpus.ids, corpus.vectors)
    if config.encoder != RunConfig().encoder:
        notes.append(f"the vectors are given, so the encoder {config.encoder} is not used")
    return notes


def _check_room(corpus: Corpus, n_categories: int | None) -> None:
    """Raise InputError for more novel categories than unlabelled texts."""
    free = sum(label is None for label in corpus.labels)
    known = len(corpus.known)
    if n_categories is not None and n_categories - known > free:
        raise InputError(
            f"{plural(n_categories, 'category was', 'categories were')} requested (--categories, "
            f"n_categories), but {plural(known, 'is', 'are')} known and only "
            f"{plural(free, 'text has', 'texts have')} no label; give at most {known + free:,}"
        )


def _cache_folder(name: str | None) -> Path | None:
    """Create the cache folder and return its path."""
    if name is None:
        return None
    try:
        Path(name).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot create the cache folder {name}: {error.strerror or error}; choose another"
        ) from error
    return Path(name)
