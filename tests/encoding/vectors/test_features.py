"""Feature maps on vectors, and a discovery that is given vectors."""

import json
from pathlib import Path

import numpy as np
import pytest
from support.given_vectors import vectors_of_task
from support.sealing import reseal
from support.small_texts import SmallTask

from newfound import CategoryDiscoverer, InputError
from newfound.clustering.metrics import accuracy
from newfound.config import RunConfig
from newfound.data.corpus import Corpus
from newfound.encoding.vectors.scaling import LENGTH, scaled
from newfound.methods import METHODS, choose_effort, trains_layers
from newfound.pipeline import discover, estimate

# What makes a run of newfound take a second.
QUICK = {"initialisations": 1, "initialisation_rounds": 1}


@pytest.fixture(scope="module")
def vectors(task: SmallTask) -> np.ndarray:
    return vectors_of_task(task)


@pytest.fixture(scope="module")
def fitted(task: SmallTask, vectors: np.ndarray) -> CategoryDiscoverer:
    discoverer = CategoryDiscoverer(n_categories=4, effort="fast", device="cpu", settings=QUICK)
    return discoverer.fit(task.texts, task.labels, embeddings=vectors)


def all_accuracy(task: SmallTask, names: np.ndarray) -> float:
    index = {name: i for i, name in enumerate(dict.fromkeys([*names, *task.truth]))}
    found, truth = (np.array([index[n] for n in each]) for each in (names, task.truth))
    return accuracy(found, truth, set()).to_dict()["all"]


def test_scaled_vectors_keep_their_direction_at_any_size() -> None:
    vectors = np.array([[3.0, 4.0], [3e-30, 4e-30], [3e200, 4e200]])
    expected = LENGTH * np.array([0.6, 0.8])
    assert np.allclose(scaled(vectors), expected, rtol=1e-3)
    assert scaled(vectors[:1].astype(np.float16)).dtype == np.float16


def test_discovery_uses_the_vectors_not_the_words(task: SmallTask, vectors: np.ndarray) -> None:
    discoverer = CategoryDiscoverer(n_categories=4, effort="fast", device="cpu", settings=QUICK)
    names = discoverer.fit_predict(task.texts, task.labels, embeddings=vectors)
    assert all_accuracy(task, names) == 100
    # Texts without a word in common, so that the vectors alone tell the categories.
    texts = [f"text{i}" for i in range(len(task.texts))]
    names = discoverer.fit_predict(texts, task.labels, embeddings=vectors)
    assert all_accuracy(task, names) == 100
    noise = np.random.default_rng(0).normal(size=vectors.shape)
    assert all_accuracy(task, discoverer.fit_predict(texts, task.labels, embeddings=noise)) < 80


def test_predict_matches_fit_and_survives_saving(
    task: SmallTask, vectors: np.ndarray, fitted: CategoryDiscoverer, tmp_path: Path
) -> None:
    expected = fitted.classes_[fitted.predicted_]
    assert (fitted.predict(task.texts, embeddings=vectors) == expected).all()
    assert (fitted.predict(task.texts[:1], embeddings=1000 * vectors[:1]) == expected[:1]).all()
    fitted.save(tmp_path / "model")
    loaded = CategoryDiscoverer.load(tmp_path / "model", device="cpu")
    for ask in ("predict", "predict_proba", "predict_fit", "transform"):
        one = getattr(fitted, ask)(task.texts, embeddings=vectors)
        other = getattr(loaded, ask)(task.texts, embeddings=vectors)
        assert np.array_equal(one, other), ask
    assert loaded.score(task.texts, task.labels, embeddings=vectors) == 1.0
    assert loaded.predict(["", "any text"], embeddings=[[np.nan] * 12, vectors[0]])[0] is None
    assert loaded.config_["encoder"] == "vectors of the user (12 dimensions)"


def test_float16_gives_the_same_categories(
    task: SmallTask, vectors: np.ndarray, fitted: CategoryDiscoverer
) -> None:
    half = vectors.astype(np.float16)
    expected = fitted.predict(task.texts, embeddings=vectors)
    assert (fitted.predict(task.texts, embeddings=half) == expected).all()


def test_texts_alone_are_refused_with_the_reason(fitted: CategoryDiscoverer) -> None:
    with pytest.raises(InputError, match="fitted on vectors that you computed"):
        fitted.predict(["a card"])
    with pytest.raises(InputError, match="vectors of 12"):
        fitted.predict(["a card"], embeddings=np.ones((1, 5)))
    with pytest.raises(InputError, match="int8 needs an encoder"):
        fitted.use_int8(["a card"])


def test_vectors_are_refused_by_a_model_of_texts(small_run: Path) -> None:
    with pytest.raises(InputError, match="computes their vectors itself: leave the vectors out"):
        CategoryDiscoverer.load(small_run).predict(["a card"], embeddings=np.ones((1, 32)))


WITH_ENCODER = [name for name, method in METHODS.items() if method.keeps_encoder]


@pytest.mark.parametrize("name", WITH_ENCODER)
def test_every_method_with_an_encoder_works_on_vectors(
    name: str, task: SmallTask, vectors: np.ndarray
) -> None:
    quick = QUICK if name == "newfound" else {"epochs": 1, "pretrain_epochs": 1}
    fields = METHODS[name].config.__dataclass_fields__
    settings = {key: value for key, value in quick.items() if key in fields}
    corpus = Corpus.from_lists(task.texts, task.labels, vectors=vectors)
    config = RunConfig(method=name, n_categories=4, device="cpu")
    result = discover(corpus, config, settings=settings)  # the default effort is one that works
    assert result.config["effort"] in ("balanced", "fast")
    assert result.model is not None
    again = result.model.predict(task.texts, vectors=vectors)
    assert np.array_equal(again.index, result.predicted)


def test_best_says_what_it_needs(task: SmallTask, vectors: np.ndarray) -> None:
    corpus = Corpus.from_lists(task.texts, task.labels, vectors=vectors)
    with pytest.raises(InputError, match="there are only vectors; use effort balanced or fast"):
        discover(corpus, RunConfig(effort="best", device="cpu"))
    with pytest.raises(InputError, match="use effort fast, or name an encoder"):
        discover(corpus, RunConfig(method="dpn", effort="balanced", device="cpu"))
    with pytest.raises(InputError, match="sae reads the words"):
        discover(corpus, RunConfig(method="sae", device="cpu"))


def test_default_effort_trains_no_layer_even_on_a_gpu() -> None:
    for name in WITH_ENCODER:
        effort, config = choose_effort(name, None, {}, frozen=True, gpu=True)
        assert not trains_layers(config)
        assert effort == ("balanced" if name in ("newfound", "bert") else "fast")
    assert choose_effort("newfound", None, {}, frozen=False, gpu=True)[0] == "best"
    with pytest.raises(InputError, match="set the numbers of layers to 0"):
        choose_effort("newfound", None, {"trainable_layers": 2}, frozen=True, gpu=False)


def test_estimate_and_validation_take_vectors(task: SmallTask, vectors: np.ndarray) -> None:
    corpus = Corpus.from_lists(task.texts, task.labels, vectors=vectors)
    config = RunConfig(effort="fast", device="cpu")
    assert 2 <= estimate(corpus, config).n_categories <= 8
    labelled = [i for i, label in enumerate(task.labels) if label is not None]
    held = ([task.texts[i] for i in labelled], [task.labels[i] for i in labelled])
    discoverer = CategoryDiscoverer(
        "dpn", n_categories=4, device="cpu", settings={"epochs": 1, "pretrain_epochs": 2}
    )
    discoverer.fit(
        task.texts, task.labels, embeddings=vectors, validation=(*held, vectors[labelled])
    )
    assert discoverer.history_[0]["validation_accuracy"] >= 0
    with pytest.raises(InputError, match="come without vectors; give vectors for both"):
        discoverer.fit(task.texts, task.labels, embeddings=vectors, validation=held)
    narrow = vectors[labelled][:, :5]
    with pytest.raises(InputError, match="12 dimensions and those of the validation texts 5"):
        discoverer.fit(task.texts, task.labels, embeddings=vectors, validation=(*held, narrow))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"width": 13}, "does not fit"),
        ({"width": 0}, "does not fit"),
        ({"head": "magic"}, "a head that does not exist"),
        ({"head": "none", "width": 10**12}, "cannot be"),
        ({"logits": 7}, "'logits' cannot be"),
        ({"encoder": {"kind": "given", "width": True}}, "'width' cannot be"),
        ({"encoder": {"kind": "oracle"}}, "the kind 'oracle' does not exist"),
    ],
)
def test_damaged_model_is_refused(
    fitted: CategoryDiscoverer, tmp_path: Path, change: dict[str, object], message: str
) -> None:
    fitted.save(tmp_path / "model")
    path = tmp_path / "model" / "vectors.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    reseal(tmp_path / "model")
    with pytest.raises(InputError, match=message):
        CategoryDiscoverer.load(tmp_path / "model", device="cpu")
