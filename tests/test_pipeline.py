"""The pipeline: the same as the estimator, without scikit-learn."""

import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from support.endpoint import FakeEndpoint, chat, keyword_of
from support.languages import MESSAGES
from support.small_texts import QUICK, QUICK_FLAGS, SmallTask, small_task

from newfound import CategoryDiscoverer, InputError, pipeline
from newfound.config import RunConfig
from newfound.data.corpus import Corpus
from newfound.data.languages import Languages
from newfound.describing.llm_names import Endpoint
from newfound.progress import Stages
from newfound.report.data import prepare
from newfound.report.findings import findings
from newfound.result import Result
from newfound.storage.run_folder import new_run, read_run, write_run


@pytest.fixture(scope="module")
def task() -> SmallTask:
    return small_task()


@pytest.fixture(scope="module")
def config(tiny_encoder: str) -> RunConfig:
    return RunConfig("dpn", tiny_encoder, 4, "fast", device="cpu")


@pytest.fixture(scope="module")
def result(task: SmallTask, config: RunConfig) -> Result:
    return pipeline.discover(Corpus.from_lists(task.texts, task.labels), config, settings=QUICK)


def test_estimator_stores_the_result_of_discover(
    result: Result, config: RunConfig, task: SmallTask
) -> None:
    found = CategoryDiscoverer(**asdict(config), settings=QUICK).fit(task.texts, task.labels)
    for name in ("assigned", "predicted", "probability", "map_positions"):
        np.testing.assert_array_equal(getattr(found.result_, name), getattr(result, name))
    assert found.result_.categories == result.categories
    assert found.config_ == result.config
    assert result.model is not None
    assert found.get_params() == result.model.parameters


def test_predict_matches_discover_on_training_texts(result: Result, task: SmallTask) -> None:
    assert result.model is not None
    found = pipeline.predict(result.model, task.texts)
    np.testing.assert_array_equal(found.index, result.predicted)
    np.testing.assert_allclose(found.probability, result.probability, atol=1e-3)
    assert found.names.tolist() == result.names[result.predicted].tolist()
    with pytest.raises(ValueError, match="read-only"):
        found.index[0] = 3


@pytest.mark.parametrize("categories", [4, "auto"])
def test_neither_the_order_of_rows_nor_threads_change_an_answer(
    task: SmallTask,
    tiny_encoder: str,
    categories: int | Literal["auto"],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("newfound.methods.newfound.config.MIN_STEPS", 6)
    config = RunConfig("newfound", tiny_encoder, categories, "fast", device="cpu")
    order = np.random.default_rng(0).permutation(len(task.texts))
    before, answers = torch.get_num_threads(), []
    try:
        for threads, rows in ((1, np.arange(len(order))), (2, np.arange(len(order))), (2, order)):
            torch.set_num_threads(threads)
            corpus = Corpus.from_lists(task.texts, task.labels).take(rows)
            found = pipeline.discover(corpus, config)
            assert torch.get_num_threads() == threads
            answers.append((found, np.argsort(rows)))
    finally:
        torch.set_num_threads(before)
    first, _ = answers[0]
    for found, place in answers[1:]:
        assert found.categories == first.categories
        assert [found.corpus.texts[i] for i in place] == task.texts
        for name in ("assigned", "predicted", "probability", "best_known", "fit", "map_positions"):
            np.testing.assert_array_equal(getattr(found, name)[place], getattr(first, name))


@pytest.mark.parametrize(
    ("method", "settings"),
    [("dpn", {"pretrain_epochs": 2, "epochs": 2}), ("sae", {"epochs": 1})],
)
def test_threads_do_not_change_an_answer_where_no_layer_is_trained(
    method: str, settings: dict[str, int]
) -> None:
    rng = np.random.default_rng(0)
    given = rng.integers(0, 30, 2000)
    vectors = rng.normal(size=(30, 384))[given] + 3 * rng.normal(size=(2000, 384))
    texts = [f"word{at} {' '.join(f'w{n}' for n in rng.integers(0, 400, 9))}" for at in given]
    labels = [f"c{at}" if at < 20 and row % 3 == 0 else None for row, at in enumerate(given)]
    corpus = Corpus.from_lists(texts, labels, vectors=None if method == "sae" else vectors)
    config = RunConfig(method, n_categories=30, effort="fast", device="cpu")
    before, answers = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            answers.append(pipeline.discover(corpus, config, settings=settings))
    finally:
        torch.set_num_threads(before)
    for name in ("assigned", "probability", "fit", "training_features"):
        np.testing.assert_array_equal(*(getattr(answer, name) for answer in answers))


def test_map_positions_are_computed_once_on_first_use(result: Result) -> None:
    calls = []

    def positions() -> np.ndarray:
        calls.append(1)
        return np.zeros((len(result.corpus), 2))

    lazy = replace(result, positions=positions)
    assert calls == []
    assert lazy.map_positions is lazy.map_positions
    assert len(calls) == 1


def test_name_novel_returns_a_new_result(result: Result, endpoint: FakeEndpoint) -> None:
    endpoint.reply = lambda body: chat(f"Named {keyword_of(body)}")
    before = result.names.tolist()
    named = pipeline.name_novel(result, Endpoint(endpoint.url, "tiny", "a-key"))
    assert result.names.tolist() == before
    assert named.names[:2].tolist() == before[:2]
    assert all(name.startswith("Named ") for name in named.names[2:])
    assert named.model is not None
    assert named.model.names.tolist() == named.names.tolist()
    assert "2 of 2 novel names come from tiny" in named.notes[-1]
    assert set(named.seconds) == {*result.seconds, "naming"}
    assert "a-key" not in repr(Endpoint(endpoint.url, "tiny", "a-key"))


def test_validation_texts_are_given_as_a_corpus(config: RunConfig, task: SmallTask) -> None:
    corpus = Corpus.from_lists(task.texts, task.labels)
    with pytest.raises(InputError, match="no validation text has the label of a training text"):
        pipeline.discover(corpus, config, validation=Corpus.from_lists(["rain"], ["weather"]))


def test_discover_command_does_not_import_scikit_learn(
    tiny_encoder: str, task: SmallTask, tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text(task.csv())
    flags = ["--categories", "4", "--encoder", tiny_encoder, *QUICK_FLAGS]
    commands = [
        ["discover", str(tmp_path / "t.csv"), "-o", str(tmp_path / "run"), *flags],
        ["predict", str(tmp_path / "run"), str(tmp_path / "t.csv"), "-o", str(tmp_path / "p.csv")],
    ]
    code = (
        "import sys; from newfound.cli.main import main; "
        f"assert [main(c) for c in {commands!r}] == [0, 0]; "
        "sys.exit('sklearn' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# Languages.


def test_languages_are_recorded_and_noted(tiny_encoder: str, tmp_path: Path) -> None:
    texts = [text for group in MESSAGES["de"].values() for text in group]
    config = RunConfig(n_categories=3, effort="fast", device="cpu", encoder=tiny_encoder)
    told: list[str] = []
    stages = Stages(False)
    stages.tell = told.append
    result = pipeline.discover(Corpus.from_lists(texts), config, stages=stages)
    assert result.languages == Languages({"de": 1.0}, 18)
    note = "languages of the texts, estimated from 18 texts: German 100%"
    assert told == [note]  # before the work begins
    assert note in result.notes
    with new_run(tmp_path / "run", force=False) as folder:
        write_run(result, folder, model=False)
    assert read_run(tmp_path / "run").languages == result.languages


def test_report_warns_of_an_encoder_for_other_languages(tiny_encoder: str) -> None:
    texts = [text for group in MESSAGES["de"].values() for text in group]
    config = RunConfig(n_categories=3, effort="fast", device="cpu", encoder=tiny_encoder)
    result = pipeline.discover(Corpus.from_lists(texts), config)
    assert not any(finding.kind == "languages" for finding in findings(result))
    english = replace(result, config={**result.config, "encoder": "minilm"})
    (finding,) = [finding for finding in findings(english) if finding.kind == "languages"]
    assert finding.level == "check"
    assert "About 100% of the texts" in finding.text
    assert "multilingual" in finding.advice
    numbers = {each["name"]: each["note"] for each in prepare(english)["numbers"]}
    assert numbers["Languages"] == "German 100%"
