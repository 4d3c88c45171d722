"""Discovery in tables that are larger than what a method is fitted on."""

import mmap
import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.commands import Command, Refuse
from support.faults import FaultError, FaultyCheckpoints
from support.given_vectors import vectors_of_task
from support.small_texts import QUICK, QUICK_FLAGS, SmallTask, small_task

from newfound import CategoryDiscoverer, pipeline
from newfound.checkpoints import Checkpoints
from newfound.config import RunConfig
from newfound.data.corpus import Corpus
from newfound.encoding import feature_cache
from newfound.encoding.feature_maps import EncoderFeatures
from newfound.encoding.loading import load_encoder
from newfound.errors import InputError
from newfound.figures import plot_map
from newfound.large import assigning, sharing
from newfound.large.sharing import PartWork
from newfound.large.vectors import keep_vectors
from newfound.progress import Stages
from newfound.report.data import prepare
from newfound.result import Result
from newfound.storage.run_folder import new_run, read_run, write_run

FITTED = 100
QUIET: dict[str, Any] = {"device": "cpu", "fit_texts": FITTED}


@pytest.fixture(scope="module")
def task() -> SmallTask:
    """Texts of four categories, every fifth of which comes twice."""
    found = small_task(each=60, labelled=12)
    again = range(0, len(found.texts), 5)
    return SmallTask(
        [*found.texts, *(found.texts[row] for row in again)],
        [*found.labels, *(None for _ in again)],
        np.concatenate([found.truth, found.truth[::5]]),
    )


@pytest.fixture(scope="module")
def corpus(task: SmallTask) -> Corpus:
    return Corpus.from_lists(task.texts, task.labels)


def discover(
    corpus: Corpus,
    encoder: str,
    settings: dict[str, Any] | None = QUICK,
    stages: Stages | None = None,
    engine: Any = None,
    **changes: Any,
) -> Result:
    """Discover categories with a method that takes a fraction of a second."""
    values: dict[str, Any] = {"method": "dpn", "n_categories": 4, "effort": "fast", **QUIET}
    config = RunConfig(encoder=encoder, **{**values, **changes})
    return pipeline.discover(corpus, config, settings=settings, stages=stages, engine=engine)


@pytest.fixture(scope="module")
def result(corpus: Corpus, tiny_encoder: str) -> Result:
    return discover(corpus, tiny_encoder, outside=0.1)


def test_every_text_is_assigned_and_counted(
    result: Result, corpus: Corpus, task: SmallTask
) -> None:
    assert len(result.assigned) == len(corpus)
    assert sum(c.size for c in result.categories) == len(corpus)
    assert sum(c.labelled for c in result.categories) == sum(map(bool, task.labels))
    for position, category in enumerate(result.categories):
        own = result.probability[result.assigned == position]
        assert category.size == len(own)
        assert category.confidence == pytest.approx(own.mean(), abs=1e-3)
    labelled = corpus.targets >= 0
    assert (result.assigned[labelled] == corpus.targets[labelled]).all()


def test_sample_is_reported(result: Result, corpus: Corpus) -> None:
    different = len(set(zip(corpus.texts, corpus.labels, strict=True)))
    assert result.sample == {"texts": len(corpus), "different": different, "fitted": FITTED}
    assert any(f"a sample of {FITTED} of {len(corpus)} texts" in note for note in result.notes)
    assert result.training_features is None
    assert result.config["fit_texts"] == FITTED


def test_accuracy_is_that_of_the_fit_on_all_texts(
    result: Result, corpus: Corpus, task: SmallTask, tiny_encoder: str
) -> None:
    whole = discover(corpus, tiny_encoder, fit_texts=len(corpus))
    assert whole.sample is None

    def right(found: Result) -> float:
        """Return the share of texts of known categories that get them."""
        known = np.isin(task.truth, ["bank", "travel"])
        return float((found.names[found.predicted] == task.truth)[known].mean())

    assert right(result) >= right(whole) - 0.1


@pytest.mark.parametrize(
    ("method", "effort", "settings"),
    [
        ("newfound", "fast", None),
        ("dpn", "fast", QUICK),
        ("dpn", "best", {**QUICK, "trainable_layers": 1}),
        ("bert", "fast", None),
        ("sae", "fast", {"epochs": 2, "vocabulary": 20}),
    ],
)
def test_predict_matches_discover_on_all_texts(
    method: str,
    effort: str,
    settings: dict[str, Any] | None,
    corpus: Corpus,
    tiny_encoder: str,
    quick_newfound: None,
) -> None:
    result = discover(corpus, tiny_encoder, settings, method=method, effort=effort)
    assert result.model is not None
    found = pipeline.predict(result.model, corpus.texts)
    np.testing.assert_array_equal(found.index, result.predicted)
    # All vectors of the tiny encoder are similar, so that the last digit moves ranks of cosines.
    np.testing.assert_allclose(found.probability, result.probability, atol=2e-2)
    free = corpus.targets < 0
    assert result.fit is not None
    np.testing.assert_allclose(found.fit[free], result.fit[free], atol=2e-3)


def test_each_distinct_text_is_encoded_once(
    corpus: Corpus, tiny_encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: Counter[str] = Counter()
    lower = EncoderFeatures.lower

    def counted(model: EncoderFeatures, ids: Any, where: Any) -> Any:
        encoded["tokens"] += ids.numel()
        return lower(model, ids, where)

    monkeypatch.setattr(EncoderFeatures, "lower", counted)
    monkeypatch.setattr("newfound.large.assigning.encode_ties_alone", lambda a, b, c, found: found)
    monkeypatch.setattr("newfound.pipeline.encode_ties_alone", lambda a, b, c, found: found)
    discover(corpus, tiny_encoder)
    tokens = load_encoder(tiny_encoder).tokens(sorted(set(corpus.texts)))
    assert encoded["tokens"] == tokens.lengths.sum()


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("cached", [False, True])
def test_vectors_are_mapped_and_released(
    task: SmallTask,
    tiny_encoder: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    long: bool,
    cached: bool,
) -> None:
    texts = [*task.texts, "rain " * 200] if long else task.texts
    corpus = Corpus.from_lists(texts, [*task.labels, None][: len(texts)])
    corpus = corpus.take(corpus.sorted_rows)
    monkeypatch.setattr(feature_cache, "RELEASED", 10)
    encoder = load_encoder(tiny_encoder)
    kept = keep_vectors(corpus, encoder, Stages(show=False), tmp_path if cached else None)
    assert isinstance(kept.values.base, mmap.mmap)
    again = [np.array(kept.values), kept.of(np.arange(len(corpus)))]
    monkeypatch.setattr("newfound.large.vectors.release", lambda values: None)
    monkeypatch.setattr(feature_cache, "release", lambda values: None)
    wanted = keep_vectors(corpus, encoder, Stages(show=False), None)
    np.testing.assert_array_equal(again[0], wanted.values)
    np.testing.assert_array_equal(again[1], wanted.of(np.arange(len(corpus))))
    assert (kept.long or 0) == int(long)


def test_order_of_rows_and_size_of_blocks_do_not_change_an_answer(
    result: Result, corpus: Corpus, tiny_encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assigning, "BLOCK", 37)
    order = np.random.default_rng(0).permutation(len(corpus))
    found = discover(corpus.take(order), tiny_encoder, outside=0.1)
    assert [c.examples for c in found.categories] == [c.examples for c in result.categories]
    assert [c.size for c in found.categories] == [c.size for c in result.categories]
    np.testing.assert_array_equal(found.predicted, result.predicted[order])
    np.testing.assert_allclose(found.probability, result.probability[order], atol=5e-3)


def test_the_number_of_threads_does_not_change_an_answer(
    corpus: Corpus, tiny_encoder: str, quick_newfound: None
) -> None:
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.append(discover(corpus, tiny_encoder, None, method="newfound"))
    finally:
        torch.set_num_threads(before)
    assert found[0].categories == found[1].categories
    for name in ("assigned", "predicted", "probability", "best_known", "fit", "map_positions"):
        np.testing.assert_array_equal(getattr(found[0], name), getattr(found[1], name))


def test_share_of_marked_texts_is_that_of_all_texts(result: Result, corpus: Corpus) -> None:
    assert result.fits_nowhere is not None
    free = corpus.targets < 0
    assert result.fits_nowhere[free].mean() == pytest.approx(0.1, abs=0.02)
    assert not result.fits_nowhere[~free].any()


def test_the_map_shows_the_sample_and_says_so(result: Result, tmp_path: Path) -> None:
    placed = np.isfinite(result.map_positions).all(axis=1)
    assert placed.sum() == FITTED
    page = prepare(result)
    assert page["texts"]["sampled"]
    assert len(page["texts"]["text"]) == FITTED
    assert not page["texts"]["unplaced"]
    assert f"fitted on a sample of {FITTED}" in page["numbers"][0]["note"]
    plot_map(result).savefig(tmp_path / "map.png")


@pytest.mark.parametrize("table_format", ["csv", "parquet"])
def test_run_folder_keeps_the_sample(result: Result, tmp_path: Path, table_format: str) -> None:
    with new_run(tmp_path / "run", force=False) as folder:
        write_run(result, folder, table_format=table_format)
    again = read_run(tmp_path / "run")
    assert again.sample == result.sample
    np.testing.assert_array_equal(again.map_positions, result.map_positions)
    assert again.categories == result.categories


def test_vectors_of_the_user_are_sampled_as_well(task: SmallTask) -> None:
    vectors = vectors_of_task(task)
    discoverer = CategoryDiscoverer(
        n_categories=4, method="bert", effort="fast", device="cpu", fit_texts=FITTED
    ).fit(task.texts, task.labels, embeddings=vectors)
    result = discoverer.result_
    assert result.sample is not None
    assert result.sample["fitted"] == FITTED
    found = discoverer.predict(task.texts, embeddings=vectors)
    assert (found == result.names[result.predicted]).all()


def test_more_texts_are_fitted_than_asked_for_if_there_are_many_categories(
    corpus: Corpus, tiny_encoder: str
) -> None:
    result = discover(corpus, tiny_encoder, n_categories=8)
    assert result.sample is not None
    assert result.sample["fitted"] == 160


def test_estimate_counts_on_the_sample(
    corpus: Corpus, tiny_encoder: str, quick_newfound: None
) -> None:
    stages = Stages(False)
    config = RunConfig(encoder=tiny_encoder, effort="fast", **QUIET)
    found = pipeline.estimate(corpus, config, stages=stages)
    assert 2 <= found.n_categories <= FITTED
    assert any("a sample of" in note for note in stages.notes)


def test_command_has_the_flag(
    command: Command, put: Any, task: SmallTask, tiny_encoder: str, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    table = put("table.csv", task.csv())
    done = command(
        "discover", table, "-o", out, "--encoder", tiny_encoder, *QUICK_FLAGS,
        "--categories", "4", "--fit-texts", str(FITTED),
    )  # fmt: skip
    assert done.code == 0
    assert f"a sample of {FITTED} of {len(task.texts)} texts" in done.err
    assert read_run(out).sample is not None


def test_faults_do_not_change_the_result(
    corpus: Corpus,
    tiny_encoder: str,
    tmp_path: Path,
    keeping: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(feature_cache.TOKEN_BUDGET, "cpu", 384)
    monkeypatch.setattr(assigning, "BLOCK", 100)
    encoded: Counter[str] = Counter()
    lower = EncoderFeatures.lower

    def counted(model: EncoderFeatures, ids: Any, where: Any) -> Any:
        encoded["tokens"] += ids.numel()
        return lower(model, ids, where)

    monkeypatch.setattr(EncoderFeatures, "lower", counted)
    unbroken = discover(corpus, tiny_encoder)
    limit, counts = 2, []
    while True:
        checkpoints = FaultyCheckpoints(tmp_path / "unfinished")
        checkpoints.limit = limit
        encoded.clear()
        try:
            result = discover(corpus, tiny_encoder, stages=Stages(False, checkpoints=checkpoints))
            break
        except FaultError:
            checkpoints.close(complete=False)
            limit += 4
            counts.append(encoded["tokens"])
    checkpoints.close(complete=True)
    assert limit > 14  # faults in the encoding, the fit and the assignment
    # Of 1,440 tokens: at the end, only those of ties are encoded again.
    assert max(counts) > 300 > counts[-1]
    np.testing.assert_array_equal(result.predicted, unbroken.predicted)
    np.testing.assert_array_equal(result.probability, unbroken.probability)
    assert result.categories == unbroken.categories


def in_threads(work: Any, items: Any) -> Any:
    """An engine that answers in another order, with a copy of the work as a process would have."""
    own = pickle.loads(pickle.dumps(work))
    own.load()
    for position in reversed(range(len(items))):
        yield position, own(items[position])


def test_workers_share_the_encoding(
    result: Result, corpus: Corpus, tiny_encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "PART", 50)
    found = discover(corpus, tiny_encoder, engine=in_threads, outside=0.1)
    np.testing.assert_array_equal(found.predicted, result.predicted)
    np.testing.assert_allclose(found.probability, result.probability, atol=2e-2)


def test_parts_that_workers_encoded_are_kept(
    corpus: Corpus,
    tiny_encoder: str,
    tmp_path: Path,
    keeping: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sharing, "PART", 50)
    given: list[int] = []

    def failing(work: Any, items: Any) -> Any:
        given.append(len(items))
        for answer in in_threads(work, items):
            yield answer
            if len(given) == 1 and answer[0] == 2:
                raise FaultError

    for fault in (True, False):
        checkpoints = Checkpoints(tmp_path / "unfinished")
        stages = Stages(False, checkpoints=checkpoints)
        if fault:
            with pytest.raises(FaultError):
                discover(corpus, tiny_encoder, stages=stages, engine=failing)
        else:
            discover(corpus, tiny_encoder, stages=stages, engine=failing)
        checkpoints.close(complete=not fault)
    assert given == [5, 2]  # of five parts the last three were kept


def test_lost_workers_and_other_weights_are_reported(corpus: Corpus, tiny_encoder: str) -> None:
    def losing(work: Any, items: Any) -> Any:
        yield 0, "5 workers ended"

    with pytest.raises(InputError, match="could not be encoded: 5 workers ended"):
        discover(corpus, tiny_encoder, engine=losing)
    other = PartWork(tiny_encoder, "mean", 64, 64, "another", "cpu")
    with pytest.raises(InputError, match="other weights"):
        other.load()


def test_a_small_table_is_encoded_by_one_process(corpus: Corpus, tiny_encoder: str) -> None:
    found = discover(corpus, tiny_encoder, engine=in_threads, fit_texts=1_000)
    assert found.sample is None
    assert any("one process encodes it" in note for note in found.notes)


def test_workers_need_an_engine(refuse: Refuse, put: Any, task: SmallTask, tmp_path: Path) -> None:
    table = put("table.csv", task.csv())
    said = refuse("discover", table, "-o", tmp_path / "run", "--workers", "2")
    assert "--workers is for --engine ray" in said
