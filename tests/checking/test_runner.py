"""A check from corpus to scores, with a tiny encoder."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.small_texts import QUICK, SmallTask, small_task

from newfound.checking import runner
from newfound.checking.check import Check, MethodCheck
from newfound.checking.runner import check
from newfound.checking.scores import DrawScores
from newfound.config import RunConfig
from newfound.data.corpus import Corpus
from newfound.encoding import feature_cache
from newfound.errors import InputError

pytestmark = pytest.mark.usefixtures("quick_newfound")


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    """Four known categories of 16 texts, 8 labelled."""
    task = small_task()
    half = [name if at % 2 else None for at, name in enumerate(task.truth)]
    return Corpus.from_lists(task.texts, half)


@pytest.fixture(scope="module")
def config(tiny_encoder: str) -> RunConfig:
    return RunConfig("dpn", tiny_encoder, 4, "fast", device="cpu")


@pytest.fixture(scope="module")
def found(corpus: Corpus, config: RunConfig) -> Check:
    return check(corpus, config, draws=2, settings=QUICK)


def test_scores_of_every_draw(found: Check, corpus: Corpus) -> None:
    (method,) = found.methods
    assert method.method == "dpn"
    assert len(method.draws) == 2
    for draw in method.draws:
        assert draw.n_hidden == 1
        assert draw.n_categories == 4
        assert 0 <= draw.all <= 100
        assert draw.known_texts > 0
        assert draw.novel_texts > 2
    assert (found.texts, found.n_known) == (64, 4)
    assert found.labelled == sum(label is not None for label in corpus.labels)


def test_the_same_seed_gives_the_same_check(
    found: Check, corpus: Corpus, config: RunConfig
) -> None:
    again = check(corpus, config, draws=2, settings=QUICK)
    assert again.methods[0].draws == found.methods[0].draws


def test_texts_are_encoded_once_for_all_draws_and_methods(
    corpus: Corpus, config: RunConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = []
    fill = feature_cache._fill

    def counted(states: object, model: object, tokens: object, *others: object) -> None:
        runs.append(len(tokens))  # type: ignore[arg-type]
        fill(states, model, tokens, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(feature_cache, "_fill", counted)
    check(corpus, config, methods=["bert", "newfound"], draws=2)
    assert runs.count(len(corpus)) == 1


def test_methods_are_told_apart_and_progress_is_told(corpus: Corpus, config: RunConfig) -> None:
    told: list[tuple[str, int]] = []
    found = check(
        corpus,
        config,
        methods=["bert", "sae", "bert"],
        draws=1,
        tell=lambda method, draw, scores: told.append((method, draw)),
    )
    assert [each.method for each in found.methods] == ["bert", "sae"]
    assert told == [("bert", 0), ("sae", 0)]


def test_wrong_arguments_are_refused_before_any_work(
    corpus: Corpus, config: RunConfig, task: SmallTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "discover", None)
    with pytest.raises(InputError, match="unknown; did you mean 'newfound'"):
        check(corpus, config, methods=["bert", "newfond"])
    with pytest.raises(InputError, match="one method at a time"):
        check(corpus, config, methods=["dpn", "bert"], settings=QUICK)
    with pytest.raises(InputError, match="at least 1, not 0"):
        check(corpus, config, draws=0)
    with pytest.raises(InputError, match="2 categories are known"):
        check(Corpus.from_lists(task.texts, task.labels), config)


def test_a_chosen_cache_is_used_and_stays(
    corpus: Corpus, config: RunConfig, tmp_path: Path
) -> None:
    check(corpus, replace(config, method="bert", cache=str(tmp_path)), draws=1)
    assert list(tmp_path.glob("*.features"))


def scores(all: float, known: float) -> DrawScores:
    return DrawScores(all, known, 50.0, 60.0, 100.0, -50.0, 3.0, 9, 2, 5, 7)


def test_mean_and_spread_leave_out_draws_without_a_value() -> None:
    nan = float("nan")
    method = MethodCheck("dpn", (scores(80, nan), scores(90, 70)), 1.0)
    assert method.mean("all") == 85
    assert method.spread("all") == pytest.approx(50**0.5)
    assert method.shown("all") == "85.0 \u00b1 7.1"
    assert method.shown("known") == "70.0"
    assert method.shown("k_error") == "-50.0 \u00b1 0.0"
    assert MethodCheck("dpn", (scores(80, nan),), 1.0).shown("known") == "-"
