"""Long texts are split into overlapping parts, whose vectors are averaged, everywhere alike."""

import dataclasses
import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import save_tiny_encoder
from hypothesis import given
from hypothesis import strategies as st
from support.faults import FaultError, FaultyCheckpoints
from support.small_texts import SmallTask

from newfound import pipeline
from newfound.config import RunConfig
from newfound.data.corpus import Corpus
from newfound.encoding import parts as parts_module
from newfound.encoding.batching import Batch, Ragged, tokenize
from newfound.encoding.feature_cache import features_of, run_frozen
from newfound.encoding.feature_maps import EncoderFeatures
from newfound.encoding.loading import Encoder, load_encoder
from newfound.encoding.parts import MOST_PARTS, OVERLAP, Parts, split, token_ids
from newfound.files import CheckedFolder
from newfound.methods.newfound.lsa_features import weighted_words
from newfound.progress import Stages

LONG = "lost my card please " * 12 + "rain and sun " * 12 + "play a loud song now " * 12
TEXTS = ["lost my card", LONG, "rain", "play the song " * 30, "a trip"]
SIZE = 16  # tokens per part


@pytest.fixture(params=["cls", "mean"])
def encoder(tiny_encoder: str, request: pytest.FixtureRequest) -> Encoder:
    loaded = load_encoder(tiny_encoder, pooling=request.param)
    return dataclasses.replace(loaded, max_tokens=SIZE)


def make(encoder: Encoder, frozen: int) -> EncoderFeatures:
    torch.manual_seed(0)
    model = EncoderFeatures(encoder, head="residual", frozen_layers=frozen)
    with torch.no_grad():
        for weight in model.head.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    return model.eval()


def rows_of(tokens: Ragged) -> list[list[int]]:
    return [row.tolist() for row in torch.split(tokens.values, tokens.lengths.tolist())]


# --- splitting ---------------------------------------------------------------------------------


@given(st.integers(1, 600), st.integers(0, 100_000))
def test_parts_have_one_length_overlap_and_reach_both_ends(size: int, more: int) -> None:
    tokens = size + more
    found = split(tokens, size)
    starts, stops = zip(*found, strict=True)
    assert starts[0] == 0
    assert stops[-1] == tokens
    assert len({stop - start for start, stop in found}) == 1
    assert stops[0] - starts[0] <= size
    assert len(found) <= MOST_PARTS
    assert list(starts) == sorted(starts)
    if len(found) < MOST_PARTS:  # otherwise there may be gaps
        assert all(
            stop - start >= size // OVERLAP
            for stop, start in zip(stops[:-1], starts[1:], strict=True)
        )


def test_parts_hold_all_tokens_between_special_ones(encoder: Encoder) -> None:
    tokens = encoder.tokens(TEXTS)
    assert tokens.parts is not None
    rows, whole = rows_of(tokens), encoder.tokenizer
    whole.no_truncation()
    for text, first, count in zip(TEXTS, tokens.parts.first, tokens.parts.counts, strict=True):
        ids = whole.encode(text, add_special_tokens=False).ids
        own = rows[first : first + count]
        assert all(row[0] == 2 and row[-1] == 3 and len(row) <= SIZE for row in own)
        inner = [row[1:-1] for row in own]
        if count == 1:
            assert inner == [ids]
        else:
            wanted = [ids[start:stop] for start, stop in split(len(ids), SIZE - 2)]
            assert inner == wanted
    assert tokens.parts.counts.tolist()[::2] == [1, 1, 1]
    assert tokens.long == 2


def test_texts_that_just_fit_are_not_split(encoder: Encoder) -> None:
    tokens = encoder.tokens(["rain " * (SIZE - 2), "sun"])
    assert tokens.parts is None
    assert tokens.long == 0
    assert encoder.tokens(["rain " * (SIZE - 1)]).long == 1


def test_short_texts_are_tokenised_as_without_splitting(encoder: Encoder) -> None:
    short = [text for text in TEXTS if len(text) < 40]
    found, wanted = encoder.tokens(short), tokenize(encoder.tokenizer, short, SIZE)
    assert found.parts is None
    assert rows_of(found) == rows_of(wanted)


def test_limit_uses_the_first_tokens_only(tiny_encoder: str) -> None:
    encoder = load_encoder(tiny_encoder, max_tokens=100)
    assert (encoder.max_tokens, encoder.limit) == (66, 100)
    tokens = encoder.tokens(["rain " * 98 + "sun " * 500])
    assert set(tokens.values.tolist()) == {2, 3, *encoder.tokenizer.encode("rain").ids}
    note = encoder.long_text_note(tokens)
    assert note is not None
    assert "more than 66 tokens, of which the first 100 are used" in note


def test_truncation_is_reported(tiny_encoder: str) -> None:
    encoder = load_encoder(tiny_encoder, max_tokens=9)
    tokens = encoder.tokens(TEXTS)
    assert tokens.parts is None
    assert rows_of(tokens) == rows_of(tokenize(encoder.tokenizer, TEXTS, 9))
    note = encoder.long_text_note(tokens)
    assert note is not None
    assert note.startswith("2 of 5 texts have more than 9 tokens, and the rest")


@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta"])
def test_blocks_give_the_tokens_of_the_whole_text(
    family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = ["card", "lost", "rain", "été", "雨"]
    if family == "bert":
        tokenizer = load_encoder(str(save_tiny_encoder(tmp_path))).tokenizer
    else:
        vocabulary = {token: i for i, token in enumerate(pre_tokenizers.ByteLevel.alphabet())}
        tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=family == "roberta")
    monkeypatch.setattr(parts_module, "BLOCK", 50)
    text = " ".join(words[i % 5] for i in range(500))
    tokenizer.no_truncation()
    assert token_ids(tokenizer, text) == tokenizer.encode(text, add_special_tokens=False).ids
    unbroken = "雨" * 1000
    found = token_ids(tokenizer, unbroken)
    wanted = len(tokenizer.encode(unbroken, add_special_tokens=False).ids)
    assert abs(len(found) - wanted) <= 20  # a block may begin with a space of its own


# --- vectors -----------------------------------------------------------------------------------


def test_mean_equals_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts_module, "AVERAGED", 2)
    parts = Parts(np.array([1, 3, 1, 2, 4]))
    vectors = torch.randn(11, 5)
    wanted = torch.stack([vectors[parts.texts == text].mean(0) for text in range(5)])
    found = parts.mean(vectors)
    torch.testing.assert_close(found, wanted)
    assert torch.equal(found[[0, 2]], vectors[[0, 4]])  # nothing is rounded


@pytest.mark.parametrize("frozen", [-1, 1, 3])
def test_features_are_those_of_the_mean_over_parts(encoder: Encoder, frozen: int) -> None:
    model = make(encoder, frozen)
    tokens = encoder.tokens(TEXTS)
    assert tokens.parts is not None
    vectors = []
    with torch.inference_mode():
        for row in rows_of(tokens):
            ids, mask = torch.tensor([row]), torch.ones(1, len(row), dtype=torch.bool)
            states = model.lower(ids, mask)
            vectors.append(
                states[0].float() if frozen == 3 else model.pooled_states(states, mask)[0]
            )
        mean = torch.stack(
            [torch.stack(vectors)[tokens.parts.texts == i].mean(0) for i in range(5)]
        )
        if frozen == 3:
            mean = mean.half().float()
        wanted = model.finish(model.head(mean))
    np.testing.assert_allclose(model(TEXTS), wanted.numpy(), atol=2e-5)
    inputs = run_frozen(model, tokens)
    assert inputs.n_texts == 5
    torch.testing.assert_close(features_of(model, inputs), wanted, atol=2e-5, rtol=1e-4)
    some = np.array([3, 0, 1])
    torch.testing.assert_close(features_of(model, inputs, some), wanted[some], atol=2e-5, rtol=1e-4)
    frozen_vectors = model.with_frozen(TEXTS)[1]
    if frozen == 3:
        np.testing.assert_allclose(frozen_vectors, mean.numpy(), atol=1e-3)


def test_every_part_of_a_text_matters(encoder: Encoder) -> None:
    model = make(encoder, 3)
    changed = LONG.replace("song", "hotel")
    assert not np.allclose(model([LONG]), model([changed]), atol=1e-4)
    truncated = make(dataclasses.replace(encoder, limit=SIZE), 3)
    np.testing.assert_array_equal(truncated([LONG]), truncated([changed]))


@pytest.mark.parametrize("frozen", [1, 3])
def test_cache_and_memory_map_hold_parts(encoder: Encoder, frozen: int, tmp_path: Path) -> None:
    model, tokens = make(encoder, frozen), encoder.tokens(TEXTS)
    done: list[int] = []
    wanted = features_of(model, run_frozen(model, tokens, advance=done.append))
    assert sum(done) == len(TEXTS)
    mapped = run_frozen(model, tokens, memory_limit=0)
    written = run_frozen(model, tokens, folder=tmp_path)
    read = run_frozen(model, tokens, folder=tmp_path)
    for inputs in (mapped, written, read):
        torch.testing.assert_close(features_of(model, inputs), wanted, atol=1e-5, rtol=1e-4)
    # The same rows, of other texts
    assert tokens.parts is not None
    other = dataclasses.replace(tokens, parts=Parts(np.ones(len(tokens), np.int64)))
    assert run_frozen(model, other, folder=tmp_path).n_texts == len(tokens)
    assert len(list(tmp_path.glob("*.features"))) == 2


def test_words_of_all_parts_count_for_their_text(encoder: Encoder) -> None:
    tokens = encoder.tokens([LONG, "play the song", "rain", "song"])
    rows, _, values = weighted_words(tokens)
    assert set(rows.tolist()) == {0, 1, 2, 3}
    np.testing.assert_allclose(np.bincount(rows, values.astype(float) ** 2), 1, rtol=1e-5)


# --- training ----------------------------------------------------------------------------------


def test_a_step_draws_one_part_of_each_text(encoder: Encoder) -> None:
    model, tokens = make(encoder, 1), encoder.tokens(TEXTS)
    assert tokens.parts is not None
    inputs = run_frozen(model, tokens)
    drawn = np.random.default_rng(0).integers(5, size=(200, 4))
    batches = inputs.batches(drawn)
    chosen = np.concatenate([batch.parts.numpy() for batch in batches])
    texts = np.concatenate([batch.rows.numpy() for batch in batches])
    np.testing.assert_array_equal(texts, drawn.ravel())
    np.testing.assert_array_equal(tokens.parts.texts[chosen], texts)
    assert set(chosen) == set(range(len(tokens)))  # in time, each part is drawn
    again = np.concatenate([batch.parts.numpy() for batch in inputs.batches(drawn)])
    np.testing.assert_array_equal(chosen, again)
    other = np.concatenate([batch.parts.numpy() for batch in inputs.batches(drawn[::-1].copy())])
    assert (other != chosen).any()


def test_a_batch_holds_the_tokens_of_the_drawn_parts(encoder: Encoder) -> None:
    tokens = encoder.tokens(TEXTS)
    rows = rows_of(tokens)
    inputs = run_frozen(make(encoder, -1), tokens)
    (batch,) = inputs.batches(np.array([[1, 0, 3, 1]]))
    assert isinstance(batch, Batch)
    ids, cells = inputs.batch(batch)
    for slot, part in enumerate(batch.parts.tolist()):
        assert ids[cells.slot == slot].tolist() == rows[part]  # type: ignore[union-attr]


def long_task(task: SmallTask) -> Corpus:
    """Return the task with texts of several times the encoder's tokens."""
    texts = [" ".join([text] * 40) if i % 3 else text for i, text in enumerate(task.texts)]
    return Corpus.from_lists(texts, task.labels)


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("bert", {}),
        ("dpn", {"pretrain_epochs": 2, "trainable_layers": 1, "epochs": 2, "starts": 2}),
        ("dpn", {"pretrain_epochs": 1, "trainable_layers": "all", "epochs": 1, "starts": 2}),
        ("deepcluster", {"epochs": 2, "starts": 2}),
    ],
)
def test_fit_and_predict_agree_on_long_texts_after_faults(
    method: str,
    settings: dict[str, object],
    task: SmallTask,
    tiny_encoder: str,
    tmp_path: Path,
    keeping: None,
) -> None:
    corpus = long_task(task)
    config = RunConfig(
        method=method, encoder=tiny_encoder, effort="best", n_categories=4, device="cpu"
    )
    unbroken = pipeline.discover(corpus, config, settings=settings)
    predicted = pipeline.predict(unbroken.model, corpus.texts)  # type: ignore[arg-type]
    np.testing.assert_array_equal(predicted.index, unbroken.predicted)
    assert unbroken.long_texts == sum(len(text) > 100 for text in corpus.texts)
    assert any("split into overlapping parts" in note for note in unbroken.notes)
    for limit in range(2, 30, 9):
        checkpoints = FaultyCheckpoints(tmp_path / "unfinished")
        checkpoints.limit = limit
        stages = Stages(False, checkpoints=checkpoints)
        try:
            pipeline.discover(corpus, config, settings=settings, stages=stages)
        except FaultError:
            checkpoints.close(complete=False)
    stages = Stages(False, checkpoints=FaultyCheckpoints(tmp_path / "unfinished"))
    resumed = pipeline.discover(corpus, config, settings=settings, stages=stages)
    np.testing.assert_array_equal(resumed.predicted, unbroken.predicted)
    np.testing.assert_array_equal(resumed.training_features, unbroken.training_features)


# --- models and commands -----------------------------------------------------------------------


def test_saved_models_split_and_older_ones_truncate(encoder: Encoder, tmp_path: Path) -> None:
    model = make(encoder, 3)
    wanted = model(TEXTS)
    model.save(tmp_path)
    np.testing.assert_allclose(
        EncoderFeatures.load(CheckedFolder(tmp_path))(TEXTS), wanted, atol=1e-6
    )
    settings = json.loads((tmp_path / "encoder.json").read_text())
    del settings["limit"]
    (tmp_path / "encoder.json").write_text(json.dumps(settings))
    older = EncoderFeatures.load(CheckedFolder(tmp_path))
    truncated = make(dataclasses.replace(encoder, limit=0), 3)
    np.testing.assert_allclose(older(TEXTS), truncated(TEXTS), atol=1e-6)
    assert not np.allclose(older(TEXTS), wanted, atol=1e-4)


def test_memory_does_not_grow_with_a_text(tiny_encoder: str) -> None:
    encoder = load_encoder(tiny_encoder)
    model = make(encoder, 3)
    peaks = []
    for words in (20_000, 160_000):  # of 5 bytes
        text = "rain " * words
        tracemalloc.start()
        model([text])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] - peaks[0] < 12 * 2**20  # the tokens of the text, as a list


def test_texts_of_a_megabyte_are_discovered_and_predicted(
    command, task: SmallTask, flags: list[str], tmp_path: Path
) -> None:  # type: ignore[no-untyped-def]
    huge = "lost my card please " * 50_000
    assert len(huge) == 10**6
    table = tmp_path / "table.csv"
    table.write_text(task.csv() + f"{huge},\n")
    run = tmp_path / "run"
    done = command("discover", table, "-o", run, "--categories", "4", *flags)
    assert done.code == 0, done.err
    assert "1 of 65 texts has more than 66 tokens: split into overlapping parts" in done.err
    assert json.loads((run / "run.json").read_text())["long_texts"] == 1
    new = tmp_path / "new.csv"
    new.write_text(f"text\n{huge}\nplay a song\n")
    done = command("predict", run, new, "-o", tmp_path / "out.csv")
    assert done.code == 0, done.err
    assert (tmp_path / "out.csv").read_text().count("\n") == 3
