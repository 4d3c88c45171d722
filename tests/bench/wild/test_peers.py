"""Peers on points that are easy to separate."""

import numpy as np
import pytest

from newfound.bench.wild.peers import PEERS, name_clusters
from newfound.bench.wild.scoring import NONE, Answer, score
from newfound.bench.wild.tables import Table

KNOWN, NOVEL, EACH = 6, 2, 20


@pytest.fixture(scope="module")
def table() -> Table:
    names = [f"k{i}" for i in range(KNOWN)] + [f"n{i}" for i in range(NOVEL)]
    truth: list[str | None] = [name for name in names for _ in range(EACH)]
    labels = [t if t and t[0] == "k" and i % EACH < 6 else None for i, t in enumerate(truth)]
    return Table([f"text {i}" for i in range(len(truth))], labels, truth, names[:KNOWN])


@pytest.fixture(scope="module")
def vectors(table: Table) -> np.ndarray:
    rng = np.random.default_rng(0)
    centres = np.eye(KNOWN + NOVEL, 16)
    points = np.repeat(centres, EACH, 0) + rng.normal(0, 0.05, (len(table.texts), 16))
    return (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)


def ask(name: str, table: Table, vectors: np.ndarray, k: int | None = KNOWN + NOVEL) -> Answer:
    return PEERS[name].answer(table, vectors, k, 0)


def test_script_separates_known_from_novel_texts(table: Table, vectors: np.ndarray) -> None:
    answer = ask("script", table, vectors)
    found = score(answer, table)
    assert found["all"] == found["exact_known"] == found["f1_novel"] == 100
    assert answer.n_categories == KNOWN + NOVEL
    assert answer.estimated is None
    assert ask("script", table, vectors, None).estimated is not None


def test_script_without_room_for_novel_categories_classifies_everything(
    table: Table, vectors: np.ndarray
) -> None:
    answer = ask("script", table, vectors, KNOWN)
    assert answer.category.max() < KNOWN
    assert answer.n_categories == KNOWN


@pytest.mark.parametrize("number", [1, 2])
def test_script_chooses_a_threshold_with_few_labels(
    table: Table, vectors: np.ndarray, number: int
) -> None:
    labels = [label if i % EACH < number else None for i, label in enumerate(table.labels)]
    few = Table(table.texts, labels, table.truth, table.known)
    found = score(ask("script", few, vectors), few)
    assert found["f1_novel"] > 90  # type: ignore[operator]
    assert found["exact_known"] > 90  # type: ignore[operator]


@pytest.mark.parametrize("known", [[], ["k0"]])
def test_script_with_fewer_than_two_known_categories_clusters_everything(
    table: Table, vectors: np.ndarray, known: list[str]
) -> None:
    labels = [label if label in known else None for label in table.labels]
    few = Table(table.texts, labels, table.truth, known)
    found = score(ask("script", few, vectors), few)
    assert found["all"] == 100
    assert found["exact_known"] == (100 if known else None)


def test_oracle_names_known_texts(table: Table, vectors: np.ndarray) -> None:
    found = score(ask("oracle", table, vectors), table)
    assert found["exact_known"] == 100
    assert found["all"] is None


def test_hdbscan_finds_the_clusters_and_takes_names_from_labels(
    table: Table, vectors: np.ndarray
) -> None:
    found = score(ask("hdbscan", table, vectors, None), table)
    assert found["all"] > 80  # type: ignore[operator]
    assert found["exact_known"] == found["known"]


def test_clusters_are_named_once_and_outliers_stay_out() -> None:
    table = Table(["x"] * 7, ["a", "a", "b", None, None, None, None], ["a"] * 7, ["a", "b"])
    category, number = name_clusters(np.array([4, 4, 4, 4, 7, 9, -1]), table)
    assert category.tolist() == [0, 0, 0, 0, 2, 3, NONE]  # b has no cluster of its own
    assert number == 4


def test_peer_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert not PEERS["bertopic"].installed
    assert PEERS["script"].installed


@pytest.mark.slow
def test_bertopic_answers_every_text(table: Table, vectors: np.ndarray) -> None:
    pytest.importorskip("bertopic")
    found = score(ask("bertopic", table, vectors), table)
    assert found["all"] > 50  # type: ignore[operator]
