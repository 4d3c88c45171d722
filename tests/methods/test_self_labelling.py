"""Self-Labeling: its loss against a loop, what the balance is for, its way through an easy task."""

import dataclasses
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from support.small_texts import KNOWN, SmallTask, small_task
from torch import Tensor

from newfound import CategoryDiscoverer
from newfound.clustering.assignment import assign
from newfound.clustering.metrics import accuracy
from newfound.clustering.optimal_transport import sinkhorn
from newfound.data.task import Task, make_task
from newfound.encoding.feature_cache import features_of
from newfound.encoding.loading import load_encoder
from newfound.methods import resolve_config, self_labelling
from newfound.methods.fitted import Fitted
from newfound.methods.self_labelling import (
    CosineHead,
    Hints,
    SelfLabellingConfig,
    swapped_loss,
)
from newfound.progress import Stages
from newfound.training.preparation import begin

QUICK = {"pretrain_epochs": 3, "epochs": 2, "starts": 2}


@pytest.fixture(scope="module")
def small() -> SmallTask:
    return small_task()


def as_task(small: SmallTask, n_categories: int | None = 4, **options: Any) -> Task:
    place = {name: i for i, name in enumerate(sorted(KNOWN))}
    targets = np.array([place.get(label or "", -1) for label in small.labels])
    return make_task(small.texts, targets, sorted(KNOWN), n_categories, **options)


def fit(encoder: str, task: Task, effort: str = "fast", seed: int = 0, **changes: Any) -> Fitted:
    torch.manual_seed(seed)
    config = resolve_config("self-labeling", effort, {**QUICK, **changes})
    return self_labelling.fit(task, load_encoder(encoder), config, seed=seed, stages=Stages(False))


def predicted(fitted: Fitted) -> np.ndarray:
    return assign(fitted.training_features, fitted.prototypes, fitted.temperature)[0]


def unit(rows: int, width: int, seed: int) -> Tensor:
    return F.normalize(torch.randn(rows, width, generator=torch.Generator().manual_seed(seed)))


# The classifier and its loss.


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 999), st.floats(0.1, 9))
def test_the_nearest_prototype_has_the_largest_cosine(seed: int, length: float) -> None:
    origin = unit(1, 4, seed + 2)[0]
    head = CosineHead(3 * unit(5, 4, seed), origin)
    with torch.no_grad():
        head.rows.mul_(torch.tensor([[0.3], [1.0], [2.0], [5.0], [0.7]]))  # as training leaves it
    features = length * unit(20, 4, seed + 1)
    prototypes = head.prototypes(features)
    nearest = assign(features.numpy(), prototypes.numpy(), 1.0)[0]
    scores = head(features).detach()
    assert (scores.argmax(1).numpy() == nearest).all()
    for i, text in enumerate(features):
        for j, row in enumerate(head.rows.detach()):
            wanted = torch.cosine_similarity(text - origin, row, dim=0)
            assert float(scores[i, j]) == pytest.approx(float(wanted), abs=1e-5)


def test_pace_turns_directions_further_and_leaves_their_cosines() -> None:
    origin, centres, features = unit(1, 8, 2)[0], unit(5, 8, 0), unit(20, 8, 1)
    turned = []
    for pace in (1.0, 10.0):
        head = CosineHead(3 * unit(5, 8, 3), origin, pace)
        head.turn(F.normalize(centres - origin, dim=1))
        before = head(features).detach()
        assert torch.allclose(before, CosineHead(centres, origin)(features), atol=1e-5)
        adamw = torch.optim.AdamW([head.rows], lr=1e-4)
        head(features)[:, 0].sum().backward()
        adamw.step()
        turned.append(float((head(features) - before)[:, 0].mean().detach()))
    assert turned[1] == pytest.approx(10 * turned[0], rel=0.05)


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 6), st.integers(0, 9), st.integers(1, 5), st.integers(0, 999))
def test_each_view_learns_from_the_other(size: int, waiting: int, k: int, seed: int) -> None:
    config = SelfLabellingConfig()
    draw = torch.Generator().manual_seed(seed)
    first, second, queue = (2 * torch.rand(n, k, generator=draw) - 1 for n in (size, size, waiting))
    balanced = sinkhorn(torch.cat([first, second, queue]), 0.05, 3)  # any order gives the same
    total = 0.0
    for i in range(size):
        for scores, wanted in ((first[i], balanced[size + i]), (second[i], balanced[i])):
            chances = (scores / 0.1).softmax(0)
            total -= sum(float(wanted[j]) * float(chances[j].log()) for j in range(k))
    found = swapped_loss(first, second, queue, config)
    assert float(found) == pytest.approx(total / (2 * size), abs=1e-3)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 999))
def test_a_prior_multiplies_the_shares_before_the_balance(seed: int) -> None:
    config = SelfLabellingConfig()
    draw = torch.Generator().manual_seed(seed)
    first, second, queue = (2 * torch.rand(n, 4, generator=draw) - 1 for n in (5, 5, 3))
    prior = torch.randn(13, 4, generator=draw)
    shares = (torch.cat([second, first, queue]) / 0.05).exp() * prior.exp()
    balanced = sinkhorn(shares.log(), 1.0, 3)
    wanted = F.cross_entropy(torch.cat([first, second]) / 0.1, balanced[:10])
    found = swapped_loss(first, second, queue, config, prior)
    assert float(found) == pytest.approx(float(wanted), rel=1e-4)


def test_odds_follow_the_texts_of_the_batch_and_of_the_queue(
    tiny_encoder: str, small: SmallTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The prior of a row is that of its text, on known categories alone, step after step."""
    task = as_task(small, validation_share=0)
    seen: list[Tensor] = []
    wanted: list[Tensor] = []
    real = self_labelling.swapped_loss

    def watched(
        first: Tensor, second: Tensor, waiting: Tensor, config: Any, prior: Any, shares: Tensor
    ) -> Tensor:
        seen.append(prior.clone())
        wanted.append(shares)
        return real(first, second, waiting, config, prior, shares)

    monkeypatch.setattr(self_labelling, "swapped_loss", watched)
    config = resolve_config("self-labeling", "fast", {**QUICK, "batch": 3, "queue": 6})
    start = begin(
        task, load_encoder(tiny_encoder), config, seed=0, stages=Stages(False), cache=None
    )
    features = features_of(start.model, start.inputs)
    odds = torch.arange(len(task.texts), dtype=torch.float32) + 1  # tells who is who
    shares = torch.tensor([0.1, 0.2, 0.3, 0.4])
    self_labelling.label_and_settle(
        start,
        task,
        config,
        features,
        features[:4],
        seed=0,
        stages=Stages(False),
        hints=Hints(odds, True, relocate_every=0, shares=shares, uneven=0.0, farthest=0.0),
    )
    assert all(torch.equal(given, shares) for given in wanted)
    labelled = torch.from_numpy(task.labelled) + 1.0
    for now, then in pairwise(seen):
        assert (now[:, 2:] == 0).all()
        assert torch.equal(now[:, 0], now[:, 1])
        assert torch.equal(now[:3], now[3:6])  # two views of the same texts
        assert torch.equal(then[6:9], now[:3])  # they wait next
        assert torch.equal(then[9:], now[6:-3])
        assert not torch.isin(now[:, 0], labelled).any()


def test_a_batch_smaller_than_the_categories_is_balanced_with_the_queue(
    tiny_encoder: str, small: SmallTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trap of small batches: three texts alone say nothing of four categories."""
    seen: list[tuple[int, Tensor]] = []
    real = self_labelling.swapped_loss

    def watched(first: Tensor, second: Tensor, waiting: Tensor, *rest: Any) -> Tensor:
        seen.append((len(first), waiting.clone()))
        return real(first, second, waiting, *rest)

    monkeypatch.setattr(self_labelling, "swapped_loss", watched)
    task = as_task(small, validation_share=0)
    fit(tiny_encoder, task, batch=3, queue=6, learning_rate=1e-6)
    assert {(size, len(waiting)) for size, waiting in seen} == {(3, 24)}
    # The queue moves on by one batch a step.
    torch.testing.assert_close(seen[1][1][3:], seen[0][1][:-3], atol=1e-3, rtol=0)
    seen.clear()
    fit(tiny_encoder, task, batch=50)  # never more than the texts beside the batch
    assert {(size, len(waiting)) for size, waiting in seen} == {(50, 52 - 50)}


# Known prototypes farther out.


def on_a_sphere(seed: int, n: int = 200, k: int = 6) -> tuple[Tensor, Tensor, Tensor]:
    """Features [n, 5] and prototypes [k, 5], all at radius 0.8 around an origin [5]."""
    generator = torch.Generator().manual_seed(seed)
    origin = 0.3 * torch.randn(5, generator=generator)
    rows = F.normalize(torch.randn(k, 5, generator=generator), dim=1)
    features = F.normalize(torch.randn(n, 5, generator=generator), dim=1)
    return origin + 0.8 * features, origin + 0.8 * rows, origin


def share_of_known(features: Tensor, prototypes: Tensor, known: int) -> float:
    return float((torch.cdist(features, prototypes).argmin(1) < known).float().mean())


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 999), known=st.integers(1, 5), share=st.floats(0.05, 0.95))
def test_known_prototypes_go_out_until_few_enough_texts_are_theirs(
    seed: int, known: int, share: float
) -> None:
    features, prototypes, origin = on_a_sphere(seed)
    found = self_labelling.move_known_out(prototypes, origin, features, known, share, 5.0)
    before = share_of_known(features, prototypes, known)
    after = share_of_known(features, found, known)
    factor = (found - origin).norm(dim=1) / 0.8
    torch.testing.assert_close(found[known:], prototypes[known:])
    torch.testing.assert_close(factor[:known], factor[:1].expand(known))
    if before <= share:
        torch.testing.assert_close(found, prototypes)
    elif factor[0] < 5.9:
        assert after == pytest.approx(share, abs=0.0076)  # a text and a half of 200
        # A little less far out, and there would be more.
        nearer = torch.cat([origin + 0.97 * (found - origin)[:known], prototypes[known:]])
        assert share_of_known(features, nearer, known) >= after


def test_known_prototypes_go_out_no_farther_than_allowed() -> None:
    features, prototypes, origin = on_a_sphere(3)
    found = self_labelling.move_known_out(prototypes, origin, features, 3, 0.01, 0.2)
    torch.testing.assert_close(found[:3] - origin, 1.2 * (prototypes[:3] - origin))
    same = self_labelling.move_known_out(prototypes, origin, features, 3, 0.01, 0.0)
    assert torch.equal(same, prototypes)
    for known in (0, 6):  # nothing to part
        same = self_labelling.move_known_out(prototypes, origin, features, known, 0.01, 0.2)
        assert torch.equal(same, prototypes)


def test_blocks_of_texts_move_prototypes_as_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    features, prototypes, origin = on_a_sphere(4)
    whole = self_labelling.move_known_out(prototypes, origin, features, 3, 0.3, 0.5)
    monkeypatch.setattr("newfound.clustering.distances.BLOCK", 42)
    torch.testing.assert_close(
        self_labelling.move_known_out(prototypes, origin, features, 3, 0.3, 0.5), whole
    )


# The whole way.


@pytest.mark.parametrize("effort", ["fast", "balanced", "best"])
def test_an_easy_task_is_solved(tiny_encoder: str, small: SmallTask, effort: str) -> None:
    fitted = fit(tiny_encoder, as_task(small), effort, epochs=4, pretrain_epochs=5)
    hidden = np.array([label is None for label in small.labels])
    names = np.array(["bank", "travel", "novel 1", "novel 2"], object)
    found = names[predicted(fitted)][hidden]
    assert accuracy(found, small.truth[hidden], set(KNOWN)).all > 95
    known = np.isin(small.truth[hidden], KNOWN)
    assert (found[known] == small.truth[hidden][known]).mean() > 0.95
    assert {"self_labels", "cross_entropy"} <= set(fitted.history[-1])


def test_the_balance_finds_novel_categories_from_a_poor_start(
    tiny_encoder: str, small: SmallTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Novel categories that start far from all texts: only the balance calls texts to them."""
    real = self_labelling.seeded_kmeans

    def poor(features: Tensor, *rest: Any, **options: Any) -> Any:
        found = real(features, *rest, **options)
        novel = features.mean(0) + 0.1 * unit(2, 32, 5)
        return dataclasses.replace(found, centres=torch.cat([found.centres[:2], novel]))

    monkeypatch.setattr(self_labelling, "seeded_kmeans", poor)

    def learnt(**changes: Any) -> np.ndarray:
        return predicted(fit(tiny_encoder, as_task(small), learning_rate=0.002, **changes))

    start, balanced, unbalanced = learnt(epochs=0), learnt(epochs=40), learnt(epochs=40, balance=0)
    assert len(set(balanced)) == 4
    assert len(set(unbalanced)) < 4
    scores = [accuracy(x, small.truth, set()).all for x in (start, balanced, unbalanced)]
    assert scores[1] > scores[0] + 10
    assert scores[2] < scores[0]


def test_words_are_replaced_only_where_they_are_read(
    tiny_encoder: str, small: SmallTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    real = self_labelling.replace_words
    cls = load_encoder(tiny_encoder).tokenizer.token_to_id("[CLS]")

    def watched(ids: Tensor, mask: Tensor, *rest: Any) -> Tensor:
        seen.append(int((ids[mask] == cls).sum()))  # how many texts there are
        return real(ids, mask, *rest)

    monkeypatch.setattr(self_labelling, "replace_words", watched)
    for layers in (0, 1):
        fit(tiny_encoder, as_task(small), trainable_layers=layers)
    fit(tiny_encoder, as_task(small), "best", replaced_words=0)
    assert seen == []
    fit(tiny_encoder, as_task(small), "best", batch=8, labelled_batch=4)
    assert set(seen) == {2 * (8 + 4)}  # both views


def test_the_same_seed_gives_the_same_result(tiny_encoder: str, small: SmallTask) -> None:
    one, same, other = (fit(tiny_encoder, as_task(small), seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.prototypes, same.prototypes)
    assert one.history == same.history
    assert (one.prototypes != other.prototypes).any()


def test_save_and_load_give_equal_predictions(
    tiny_encoder: str, small: SmallTask, tmp_path: Path
) -> None:
    found = CategoryDiscoverer(
        method="self-labeling",
        encoder=tiny_encoder,
        n_categories=4,
        effort="fast",
        device="cpu",
        settings=QUICK,
    ).fit(small.texts, small.labels)
    found.save(tmp_path / "model")
    again = CategoryDiscoverer.load(tmp_path / "model")
    assert (again.predict(small.texts) == found.predict(small.texts)).all()
    np.testing.assert_array_equal(
        again.predict_proba(small.texts), found.predict_proba(small.texts)
    )


def test_held_out_texts_are_learnt_from_without_their_label(
    tiny_encoder: str, small: SmallTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = as_task(small, validation_share=0.5)
    batches: list[np.ndarray] = []
    real = self_labelling.paired_batches

    def watched(rows: np.ndarray, *rest: Any) -> Any:
        batches.extend([rows, rest[1]])
        return real(rows, *rest)

    monkeypatch.setattr(self_labelling, "paired_batches", watched)
    fit(tiny_encoder, task, epochs=1)
    free, labelled = batches
    assert task.learnable[labelled].all()
    assert not task.learnable[free].any()
    assert len(free) + len(labelled) == len(small.texts)


# Edges.


@pytest.mark.parametrize("effort", ["fast", "best"])
def test_no_labels_at_all(tiny_encoder: str, small: SmallTask, effort: str) -> None:
    nobody = make_task(small.texts, np.full(len(small.texts), -1), [], 4)
    fitted = fit(tiny_encoder, nobody, effort)
    assert "cross_entropy" not in fitted.history[-1]
    assert accuracy(predicted(fitted), small.truth, set()).all > 80


@pytest.mark.parametrize("k", [1, 2, None])
def test_few_or_unnamed_categories(tiny_encoder: str, small: SmallTask, k: int | None) -> None:
    task = as_task(small, k) if k != 1 else make_task(small.texts, np.full(64, -1), [], 1)
    fitted = fit(tiny_encoder, task)
    assert len(fitted.prototypes) == (k or fitted.estimate.n_categories)  # type: ignore[union-attr]
    assert np.isfinite(fitted.prototypes).all()


def test_every_text_labelled(tiny_encoder: str, small: SmallTask) -> None:
    names = sorted(set(small.truth))
    targets = np.array([names.index(name) for name in small.truth])
    fitted = fit(tiny_encoder, make_task(small.texts, targets, names, 4, validation_share=0))
    assert (predicted(fitted) == targets).mean() > 0.95


def test_nothing_that_could_learn(tiny_encoder: str, small: SmallTask) -> None:
    fitted = fit(tiny_encoder, as_task(small), head="none")
    assert [line for line in fitted.history if line["stage"] == "training"] == []
    assert fitted.prototypes.shape == (4, 32)
