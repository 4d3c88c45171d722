"""Static vectors: the fit, agreement with the full model, cache, and errors."""

import json
import shutil
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from support.commands import Command, Refuse
from support.small_texts import SmallTask, small_task

from newfound import CategoryDiscoverer, InputError
from newfound.encoding import static
from newfound.encoding.batching import Ragged
from newfound.encoding.feature_maps import EncoderFeatures
from newfound.encoding.loading import load_encoder
from newfound.encoding.parts import Parts
from newfound.encoding.static import (
    StaticVectors,
    distil,
    find_pairs,
    fit_corrections,
    frequent_pairs,
    token_vectors,
)
from newfound.prediction import Predictor

ROWS = [[2, 5, 6, 5, 3], [2, 7, 3], [2, 5, 6, 3], [2, 3]]


def ragged(rows: list[list[int]], parts: Parts | None = None) -> Ragged:
    lengths = np.array([len(row) for row in rows], np.int64)
    found = Ragged.from_lengths(torch.tensor([token for row in rows for token in row]), lengths)
    return Ragged(found.values, found.starts, lengths, parts)


def owners(rows: list[list[int]]) -> torch.Tensor:
    return torch.tensor([i for i, row in enumerate(rows) for _ in row])


def test_frequent_pairs_are_those_of_several_texts() -> None:
    ids = torch.tensor([token for row in ROWS for token in row])
    found = frequent_pairs(ids, owners(ROWS), 10).tolist()
    counted = Counter(pair for row in ROWS for pair in {a * 10 + b for a, b in pairwise(row)})
    assert found == sorted(pair for pair, texts in counted.items() if texts >= 2)
    assert found == [25, 56]


def test_vectors_of_texts_equal_a_loop() -> None:
    codes = torch.tensor([25, 56, 73])
    draw = torch.Generator().manual_seed(0)
    tokens, pairs = torch.randn(10, 4, generator=draw), torch.randn(3, 4, generator=draw)
    bias = torch.randn(4, generator=draw)
    wanted = []
    for row in ROWS:
        total = sum(tokens[token] for token in row)
        for pair in pairwise(row):
            if pair[0] * 10 + pair[1] in codes.tolist():
                total = total + pairs[codes.tolist().index(pair[0] * 10 + pair[1])]
        wanted.append(total / len(row) + bias)
    vectors = StaticVectors(tokens, pairs, codes, bias)
    torch.testing.assert_close(vectors(ragged(ROWS)), torch.stack(wanted))
    none = StaticVectors(tokens, pairs[:0], codes[:0], bias)
    assert none(ragged(ROWS)).shape == (4, 4)


def test_parts_of_a_text_count_together() -> None:
    draw = torch.Generator().manual_seed(0)
    tokens, nothing = torch.randn(10, 4, generator=draw), torch.zeros(0, 4)
    vectors = StaticVectors(tokens, nothing, torch.zeros(0, dtype=torch.int64), torch.zeros(4))
    found = vectors(ragged(ROWS, Parts(np.array([2, 1, 1]))))
    wanted = tokens[ROWS[0] + ROWS[1]].mean(0)
    torch.testing.assert_close(found[0], wanted)
    assert len(found) == 3


def test_pairs_do_not_span_two_texts() -> None:
    ids = torch.tensor([1, 2, 1, 2])
    place, text = find_pairs(ids, torch.tensor([0, 0, 1, 1]), torch.tensor([12, 21]), 10)
    assert place.tolist() == [0, 0]
    assert text.tolist() == [0, 1]


def test_corrections_solve_the_ridge_regression() -> None:
    rng = np.random.default_rng(0)
    counts, pairs = rng.random((20, 6)), rng.random((20, 4))
    start, wanted = rng.standard_normal((6, 3)), rng.standard_normal((20, 3))
    bias, change, single, double = fit_corrections(
        csr_matrix(counts), csr_matrix(pairs), start, wanted
    )
    mean = counts @ start
    np.testing.assert_allclose(bias, (wanted - mean).mean(0))
    scales = [
        np.sqrt(variance / ((part**2).sum() / 20))
        for part, variance in ((mean, static.MAP), (counts, static.TOKENS), (pairs, static.PAIRS))
    ]
    design = np.hstack([scales[0] * mean, scales[1] * counts, scales[2] * pairs])
    plain = np.linalg.solve(design.T @ design + np.eye(13), design.T @ (wanted - mean - bias))
    np.testing.assert_allclose(change, scales[0] * plain[:3], atol=1e-8)
    np.testing.assert_allclose(single, scales[1] * plain[3:9], atol=1e-8)
    np.testing.assert_allclose(double, scales[2] * plain[9:], atol=1e-8)


@pytest.mark.parametrize("frozen", [-1, 3])
def test_token_vectors_are_those_of_tokens_alone(tiny_encoder: str, frozen: int) -> None:
    model = EncoderFeatures(load_encoder(tiny_encoder), frozen_layers=frozen).eval()
    found = token_vectors(model, ragged([[2, 8, 3]]))
    card = model.encoder.tokenizer.token_to_id("card")
    wanted = model.vectors_of(model.encoder.tokens(["card"]))[0]
    torch.testing.assert_close(found[card], wanted, atol=1e-3, rtol=1e-3)


def test_fitted_vectors_are_closer_to_the_encoder_than_those_of_tokens(
    tiny_encoder: str,
) -> None:
    model = EncoderFeatures(load_encoder(tiny_encoder), frozen_layers=3).eval()
    texts = small_task(each=40).texts
    fitted = distil(model, texts[:120])
    tokens = model.encoder.tokens(texts[120:])
    wanted = model.vectors_of(tokens)
    start = token_vectors(model, tokens)
    plain = StaticVectors(start, fitted.pairs[:0], fitted.codes[:0], fitted.bias)
    assert len(fitted.codes) > 0

    def error(vectors: StaticVectors) -> float:
        return float((vectors(tokens) - wanted).square().mean())

    without_pairs = StaticVectors(fitted.tokens, plain.pairs, plain.codes, fitted.bias)
    assert error(fitted) < error(without_pairs)
    assert error(fitted) < 0.5 * error(plain)


@pytest.fixture
def copied_run(small_run: Path, tmp_path: Path) -> Path:
    """Return a copy of a run that can be written to."""
    return Path(shutil.copytree(small_run, tmp_path / "run"))


@pytest.fixture
def table(task: SmallTask, tmp_path: Path) -> Path:
    path = tmp_path / "new.csv"
    path.write_text("text\n" + "\n".join(task.texts) + "\n" + "play a song " * 300 + "\n")
    return path


def test_predict_distils_once_and_reports_the_agreement(
    command: Command, copied_run: Path, table: Path, tmp_path: Path
) -> None:
    plain, fast = tmp_path / "plain.jsonl", tmp_path / "fast.jsonl"
    assert command("predict", copied_run, table, "-o", plain).code == 0
    assert not (copied_run / "model" / "static").exists()  # never without being asked for
    done = command("predict", copied_run, table, "-o", fast, "--static")
    assert done.code == 0, done.err
    assert "static: mean cosine to full precision 0." in done.err
    assert "on texts that it was not fitted to" in done.err

    def categories(path: Path) -> np.ndarray:
        return np.array([json.loads(line)["category"] for line in path.read_text().splitlines()])

    assert len(categories(fast)) == 65
    assert np.mean(categories(plain) == categories(fast)) > 0.6
    about = copied_run / "model" / "static" / "static.json"
    assert json.loads(about.read_text())["agreement"]["texts"] == 12  # a fifth is held out
    made, first = about.stat().st_mtime_ns, fast.read_bytes()
    again = command("predict", copied_run, table, "-o", fast, "--static", "--force")
    assert (again.code, again.err) == (0, done.err)  # also the speed, which is stored
    assert about.stat().st_mtime_ns == made
    assert fast.read_bytes() == first
    path = copied_run / "model" / "static" / "static.safetensors"
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    damaged = command("predict", copied_run, table, "-o", fast, "--static", "--force")
    assert damaged.code == 2
    assert "static.safetensors does not have its recorded sha256" in damaged.err


def test_static_refuses_what_it_cannot_do(
    refuse: Refuse, copied_run: Path, table: Path, tmp_path: Path
) -> None:
    out = ["-o", tmp_path / "out.csv", "--static"]
    assert "give a run folder" in refuse("predict", copied_run / "model", table, *out)


def test_estimator_switches_to_static_and_saves_the_full_model(
    small_run: Path, task: SmallTask, tmp_path: Path
) -> None:
    plain = CategoryDiscoverer.load(small_run, "cpu")
    fast = CategoryDiscoverer.load(small_run, "cpu")
    assert "static" in fast.use_static(task.texts)
    before, after = plain.transform(task.texts), fast.transform(task.texts)
    assert not np.array_equal(before, after)
    again = fast.model_.features([task.texts[3], task.texts[0]])
    np.testing.assert_allclose(again, after[[3, 0]], atol=1e-5)
    fast.save(tmp_path / "model")
    restored = CategoryDiscoverer.load(tmp_path / "model", "cpu")
    np.testing.assert_array_equal(restored.transform(task.texts), before)
    with pytest.raises(InputError, match="exclude each other"):
        Predictor(small_run, int8=True, static=True).model  # noqa: B018
    with pytest.raises(InputError, match="needs texts"):
        fast.use_static([])
