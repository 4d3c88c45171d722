"""Common behaviour of the methods that ignore labels."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.small_texts import KNOWN, WORDS_OF, SmallTask, small_task

from newfound import CategoryDiscoverer, InputError
from newfound.cli.main import main
from newfound.data.task import Task, make_task
from newfound.encoding.loading import Encoder, load_encoder
from newfound.methods import METHODS, resolve_config
from newfound.methods.fitted import Fitted
from newfound.progress import Stages
from newfound.training import autoencoder

NAMES = ["km-glove", "ag-glove", "sae", "dec", "dcn", "bert"]
EACH = pytest.mark.parametrize("method", NAMES)


@pytest.fixture(autouse=True)
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autoencoder, "HIDDEN", (24, 24, 32))


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a file of word vectors that are similar within a category."""
    rng = np.random.default_rng(0)
    lines = []
    for place, words in enumerate(WORDS_OF.values()):
        for word in words.split():
            vector = 3 * np.eye(4)[place] + 0.3 * rng.normal(size=4)
            lines.append(" ".join([word, *map(str, vector.round(4))]))
    path = tmp_path_factory.mktemp("vectors") / "vectors.txt"
    path.write_text("\n".join(lines))
    return str(path)


@pytest.fixture(scope="module")
def encoder(tiny_encoder: str) -> Encoder:
    return load_encoder(tiny_encoder)


@pytest.fixture(scope="module")
def small() -> SmallTask:
    return small_task()


def quick(method: str, vectors: str) -> dict[str, Any]:
    """Return settings with which a fit takes a fraction of a second."""
    names = {field.name for field in dataclasses.fields(METHODS[method].config)}
    wanted: dict[str, Any] = {
        "vectors": vectors,
        "epochs": 40,
        "batch": 16,
        "learning_rate": 3e-3,
        "iterations": 30,
        "refresh": 10,
        "starts": 5,
    }
    return {name: value for name, value in wanted.items() if name in names}


def as_task(small: SmallTask, n_categories: int | None = 4) -> Task:
    place = {name: i for i, name in enumerate(sorted(KNOWN))}
    targets = np.array([place.get(label or "", -1) for label in small.labels])
    return make_task(small.texts, targets, sorted(KNOWN), n_categories)


def fit(method: str, encoder: Encoder, task: Task, vectors: str, seed: int = 0) -> Fitted:
    config = resolve_config(method, "best", quick(method, vectors))
    return METHODS[method].fit(task, encoder, config, seed=seed, stages=Stages(False))


@EACH
def test_labels_change_only_the_names(
    method: str, encoder: Encoder, small: SmallTask, vectors: str
) -> None:
    assert not METHODS[method].uses_labels
    task = as_task(small)
    with_labels = fit(method, encoder, task, vectors)
    nobody = make_task(task.texts, np.full(len(task.texts), -1), [], 4)
    without = fit(method, encoder, nobody, vectors)
    order = [np.lexsort(f.prototypes.T) for f in (with_labels, without)]
    np.testing.assert_array_equal(with_labels.prototypes[order[0]], without.prototypes[order[1]])
    note = f"{method} ignores labels: they only name the nearest clusters"
    assert with_labels.notes == [note]
    assert without.notes == []
    assert without.labelled_prototypes is None


@EACH
def test_known_categories_name_the_nearest_clusters(
    method: str, encoder: Encoder, small: SmallTask, vectors: str, tiny_encoder: str
) -> None:
    discoverer = CategoryDiscoverer(
        method, tiny_encoder, 4, pooling="mean", device="cpu", settings=quick(method, vectors)
    )
    discoverer.fit(small.texts, small.labels)
    hidden = np.array([label is None for label in small.labels])
    known = hidden & np.isin(small.truth, KNOWN)
    right = discoverer.labels_[known] == small.truth[known]
    assert right.mean() > 0.8
    assert any("ignores labels" in note for note in discoverer.notes_)


@EACH
def test_loaded_model_gives_equal_predictions(
    method: str, small: SmallTask, vectors: str, tiny_encoder: str, tmp_path: Path
) -> None:
    discoverer = CategoryDiscoverer(
        method, tiny_encoder, 4, device="cpu", settings=quick(method, vectors)
    )
    discoverer.fit(small.texts, small.labels)
    discoverer.save(tmp_path / "model")
    loaded = CategoryDiscoverer.load(tmp_path / "model", "cpu")
    later = ["rain and sun", "pay the bill", "words nobody knows", "?"]
    np.testing.assert_array_equal(loaded.transform(later), discoverer.transform(later))
    np.testing.assert_array_equal(loaded.predict(later), discoverer.predict(later))
    # A training text gets the category of the fit, whatever the other texts.
    again = [loaded.predict([text])[0] for text in small.texts[:10]]
    assert again == discoverer.classes_[discoverer.predicted_[:10]].tolist()


@EACH
def test_same_seed_gives_the_same_result(
    method: str, encoder: Encoder, small: SmallTask, vectors: str
) -> None:
    one, two = (fit(method, encoder, as_task(small), vectors, seed=3) for _ in range(2))
    np.testing.assert_array_equal(one.prototypes, two.prototypes)


@EACH
def test_number_of_categories_can_be_estimated(
    method: str, encoder: Encoder, small: SmallTask, vectors: str
) -> None:
    fitted = fit(method, encoder, as_task(small, None), vectors)
    assert fitted.estimate is not None
    assert len(fitted.prototypes) == fitted.estimate.n_categories >= 2


@EACH
def test_fit_edge_cases(method: str, encoder: Encoder, small: SmallTask, vectors: str) -> None:
    texts, nobody = small.texts[:5], np.full(5, -1)
    assert len(fit(method, encoder, make_task(texts, nobody, [], 1), vectors).prototypes) == 1
    assert len(fit(method, encoder, make_task(texts, nobody, [], 5), vectors).prototypes) == 5
    same = make_task(["pay the bill"] * 4, np.full(4, -1), [], 2)
    assert np.isfinite(fit(method, encoder, same, vectors).prototypes).all()
    labelled = make_task(
        texts, np.array([0, 0, 1, 1, 1]), ["a", "b"], 2
    )  # all labelled, none novel
    fitted = fit(method, encoder, labelled, vectors)
    assert fitted.known == ["a", "b"]
    assert len(fitted.prototypes) == 2


@pytest.mark.parametrize("method", ["km-glove", "sae"])
def test_int8_is_refused_without_an_encoder(
    method: str, small: SmallTask, vectors: str, tiny_encoder: str
) -> None:
    discoverer = CategoryDiscoverer(
        method, tiny_encoder, 4, device="cpu", settings=quick(method, vectors)
    )
    discoverer.fit(small.texts)
    with pytest.raises(InputError, match="this model has none: leave int8 out"):
        discoverer.use_int8(small.texts)


def test_discover_and_predict_on_the_command_line(
    small: SmallTask, vectors: str, tiny_encoder: str, tmp_path: Path, capsys: Any
) -> None:
    (tmp_path / "table.csv").write_text(small.csv())
    run, answers = tmp_path / "run", tmp_path / "answers.csv"
    flags = ["--method", "km-glove", "--encoder", tiny_encoder, "--categories", "4"]
    table, chosen = str(tmp_path / "table.csv"), ["--set", f"vectors={vectors}"]
    assert main(["discover", table, "-o", str(run), *flags, *chosen]) == 0
    assert "km-glove ignores labels" in capsys.readouterr().err
    assert main(["predict", str(run), table, "-o", str(answers)]) == 0
    assert len(answers.read_text().splitlines()) == len(small.texts) + 1
    missing = ["--set", f"vectors={tmp_path / 'nothing.txt'}"]
    assert main(["discover", table, "-o", str(tmp_path / "other"), *flags, *missing]) != 0
    assert "nothing.txt cannot be read" in capsys.readouterr().err
    assert main(["methods"]) == 0
    shown = capsys.readouterr().out
    assert all(f"{name:<16} " in shown for name in NAMES)
