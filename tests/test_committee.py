"""Several models as one: how their categories are matched, and what their features are together."""

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from newfound.committee import match_labels, side_by_side
from newfound.encoder import load_encoder
from newfound.errors import InputError
from newfound.features import ByteDropout, EncoderFeatures
from newfound.methods.newfound import NewfoundConfig, fit
from newfound.stages import Stages
from newfound.task import make_task


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 3), st.integers(0, 3), st.integers(0, 999))
def test_no_other_matching_keeps_more_texts_together(known: int, novel: int, seed: int) -> None:
    k = known + novel
    if k == 0:
        return
    draw = torch.Generator().manual_seed(seed)
    first, other = (torch.randint(k, (30,), generator=draw) for _ in range(2))
    order = match_labels(first, other, k, known)
    assert sorted(order) == list(range(k))
    assert list(order[:known]) == list(range(known))

    def together(order: np.ndarray) -> int:
        novel_texts = [(int(a), int(b)) for a, b in zip(first, other, strict=True) if a >= known]
        return sum(order[a] == b for a, b in novel_texts)

    best = max(
        together(np.array([*range(known), *(known + j for j in rest)]))
        for rest in permutations(range(novel))
    )
    assert together(order) == best


def test_a_text_goes_where_its_members_agree_best() -> None:
    draw = torch.Generator().manual_seed(0)
    features = [F.normalize(torch.randn(40, 6, generator=draw), dim=1) for _ in range(3)]
    prototypes = [F.normalize(torch.randn(5, 6, generator=draw), dim=1) for _ in range(3)]
    joined = side_by_side(prototypes, features, known=2)
    labels = [torch.cdist(f, p).argmin(1) for f, p in zip(features, prototypes, strict=True)]
    orders = [match_labels(labels[0], own, 5, 2) for own in labels]
    together = F.normalize(torch.cat(features, 1), dim=1)
    for i in range(40):
        wanted = [
            sum(
                float((f[i] - p[order[j]]).square().sum())
                for f, p, order in zip(features, prototypes, orders, strict=True)
            )
            / 3
            for j in range(5)
        ]
        found = (together[i] - joined).square().sum(1)
        assert found.tolist() == pytest.approx(wanted, abs=1e-5)


def test_heads_side_by_side_survive_saving(tiny_encoder: str, tmp_path: Path) -> None:
    tiny = load_encoder(tiny_encoder)
    model = EncoderFeatures(tiny, head="residual", frozen_layers=99, members=3)
    for weights in model.head.parameters():
        torch.nn.init.normal_(weights, std=0.3)
    texts = ["alpha beta", "gamma", "beta delta alpha"]
    found = model(texts)
    assert found.shape == (3, 3 * tiny.backbone.shape.width)
    assert np.linalg.norm(found, axis=1) == pytest.approx(1, abs=1e-5)
    model.save(tmp_path)
    assert np.array_equal(EncoderFeatures.load(tmp_path)(texts), found)


def test_members_differ_and_the_same_seed_gives_the_same(tiny_encoder: str) -> None:
    tiny = load_encoder(tiny_encoder)
    texts = [f"{word} number {i}" for word in ("alpha", "beta", "gamma") for i in range(12)]
    targets = np.full(36, -1)
    targets[:6], targets[12:18] = 0, 1
    task = make_task(texts, targets, ["a", "b"], 3, seed=0)
    settings = {"head": "residual", "trainable_layers": 0, "pretrain_layers": 0, "batch": 8}
    config = NewfoundConfig(**settings, learning_rate=1e-2, label_rate=1e-2, epochs=2, members=3)
    results = []
    for _ in range(2):
        torch.manual_seed(0)
        results.append(fit(task, tiny, config, seed=0, stages=Stages(False)))
    assert np.array_equal(results[0].prototypes, results[1].prototypes)
    assert np.array_equal(results[0].training_features, results[1].training_features)
    width = tiny.backbone.shape.width
    members = results[0].training_features.reshape(36, 3, width)
    assert not np.allclose(members[:, 0], members[:, 1], atol=1e-4)
    assert np.allclose(results[0].features(texts), results[0].training_features, atol=1e-5)


def test_members_need_a_frozen_encoder(tiny_encoder: str) -> None:
    task = make_task(["a", "b", "c"], np.full(3, -1), [], 2, seed=0)
    with pytest.raises(InputError, match="members"):
        fit(
            task,
            load_encoder(tiny_encoder),
            NewfoundConfig(members=2),
            seed=0,
            stages=Stages(False),
        )


@pytest.mark.parametrize("kind", ["residual", "tanh"])
def test_views_are_passes_with_their_own_dropout(tiny_encoder: str, kind: str) -> None:
    model = EncoderFeatures(load_encoder(tiny_encoder), head=kind, frozen_layers=99).train()
    for weights in model.head.parameters():
        torch.nn.init.normal_(weights, std=0.3)
    pooled = torch.randn(7, model.width, generator=torch.Generator().manual_seed(0))
    first, second = model.views_of(pooled, 2).chunk(2)
    assert not torch.allclose(first, second)
    model.eval()
    found = model.views_of(pooled, 2)
    found.square().sum().backward()
    ours = [weights.grad.clone() for weights in model.head.parameters()]
    model.zero_grad()
    wanted = torch.cat([model.from_states(pooled, None) for _ in range(2)])
    wanted.square().sum().backward()
    assert torch.allclose(found, wanted, atol=1e-5)
    for own, weights in zip(ours, model.head.parameters(), strict=True):
        assert torch.allclose(own, weights.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5])
def test_byte_dropout_drops_its_share_and_keeps_the_mean(share: float) -> None:
    torch.manual_seed(0)
    dropout, values = ByteDropout(share), torch.ones(501, 333)
    dropped = dropout(values)
    assert float((dropped == 0).float().mean()) == pytest.approx(share, abs=0.005)
    assert float(dropped.mean()) == pytest.approx(1, abs=0.005)
    assert not torch.equal(dropout(values), dropped) or share == 0
    assert torch.equal(dropout.eval()(values), values)
