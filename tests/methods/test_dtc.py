"""DTC: initialisation of logits, averaged targets, early stopping."""

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from support.drawn_states import Drawn, draw
from torch import Tensor

from newfound.methods import dtc
from newfound.methods.dtc import AveragedTarget, DTCConfig
from newfound.progress import Stages
from newfound.training import self_training as refining
from newfound.training.losses.student_t import target_distribution
from newfound.training.self_training import assignments, main_directions

CONFIG = DTCConfig(warm_up=2, epochs=30, learning_rate=3e-3, batch=64, tolerance=0.0, starts=3)


def trained(drawn: Drawn, config: DTCConfig) -> Tensor:
    """Return q [N, K] of all texts after training."""
    centres = dtc.train(drawn.prepared, drawn.task, config, 0, Stages(False))
    return assignments(drawn.prepared.model, centres, drawn.prepared.inputs)


@given(st.integers(0, 10_000), st.integers(1, 8))
@settings(deadline=None, max_examples=30)
def test_main_directions_equal_singular_vectors(seed: int, count: int) -> None:
    x = np.random.default_rng(seed).normal(size=(20, 5)) * [5, 3, 2, 1, 0.5] + 7
    found = (x - x.mean(0)) @ main_directions(torch.from_numpy(x), count).numpy().T
    _, _, directions = np.linalg.svd(x - x.mean(0), full_matrices=False)
    wanted = np.zeros((20, count))
    wanted[:, : min(5, count)] = (x - x.mean(0)) @ directions.T[:, :count]
    np.testing.assert_allclose(np.abs(found), np.abs(wanted), atol=1e-6)  # signs are arbitrary


@given(st.integers(0, 10_000), st.floats(0, 0.99), st.integers(1, 6))
@settings(deadline=None, max_examples=30)
def test_averaged_target_equals_a_loop(seed: int, momentum: float, every: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    seen = [torch.rand(5, 3, generator=draw, dtype=torch.float64).softmax(1) for _ in range(12)]
    target = AveragedTarget(torch.zeros_like(seen[0]), momentum, every)
    for t, q in enumerate(seen, start=1):
        found = target(t, q)
        if (t - 1) % every:
            assert found is None
            continue
        # Epoch s of t has weight momentum^(t - s), scaled so that the weights sum to one.
        weights = np.array([momentum ** (t - s) for s in range(1, t + 1)])
        average = sum(w * old for w, old in zip(weights / weights.sum(), seen[:t], strict=True))
        assert isinstance(average, Tensor)
        assert found is not None
        torch.testing.assert_close(found, target_distribution(average))


def test_target_is_recomputed_after_epochs_1_6_and_11() -> None:
    q = torch.full((2, 2), 0.5)
    target = AveragedTarget(torch.zeros_like(q), 0.6, 5)
    assert [t for t in range(1, 15) if target(t, q) is not None] == [1, 6, 11]
    never = AveragedTarget(torch.zeros_like(q), 0.6, 0)
    assert all(never(t, q) is None for t in range(1, 15))


def test_recomputed_targets_raise_the_confidence(tiny_encoder: str) -> None:
    sure = []
    for refresh in (5, 0):
        drawn = draw(tiny_encoder, apart=1.2, head="residual")
        q = trained(drawn, dataclasses.replace(CONFIG, refresh=refresh)).numpy()[drawn.hidden]
        truth = drawn.truth[drawn.hidden]
        table = np.zeros((q.shape[1], q.shape[1]), np.int64)  # clusters by categories
        np.add.at(table, (q.argmax(1), truth), 1)
        clusters, categories = linear_sum_assignment(table, maximize=True)
        own = clusters[np.argsort(categories)][truth]
        assert (q.argmax(1) == own).mean() > 0.9
        sure.append(q[np.arange(len(own)), own].mean())
    # Without recomputed targets the assignments converge to the first target.
    assert sure[0] > sure[1] + 0.05


def test_only_unlabelled_texts_are_clustered_and_trained_on(
    tiny_encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: list[np.ndarray] = []
    real = dtc.refine

    def watched(start: object, task: object, chosen: np.ndarray, *given: object, **o: object):  # type: ignore[no-untyped-def]
        rows.append(chosen)
        return real(start, task, chosen, *given, **o)  # type: ignore[arg-type]

    monkeypatch.setattr(dtc, "refine", watched)
    drawn = draw(tiny_encoder, each=10)
    trained(drawn, dataclasses.replace(CONFIG, epochs=1))
    np.testing.assert_array_equal(rows[0], drawn.task.unlabelled)
    drawn = draw(tiny_encoder, each=10, known=6, labelled=10)
    trained(drawn, dataclasses.replace(CONFIG, epochs=1))
    assert len(rows[1]) == len(drawn.truth)  # all texts, because none is unlabelled


def test_logits_can_be_initialised_at_random(tiny_encoder: str) -> None:
    lengths = []
    for how in ("pca", "random"):
        drawn = draw(tiny_encoder, each=10)
        config = dataclasses.replace(CONFIG, epochs=0, logits_start=how)  # type: ignore[arg-type]
        dtc.train(drawn.prepared, drawn.task, config, 0, Stages(False))
        layer = drawn.prepared.model.logits
        assert layer is not None
        lengths.append(layer.weight.detach().norm(dim=1))
    torch.testing.assert_close(lengths[0], torch.ones(6))
    assert lengths[1].max() < 0.8  # assignments are almost uniform


def test_tolerance_is_ignored_with_validation_texts(
    tiny_encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths = []
    for scores in ([], [0.9, 0.8, 0.8, 0.8], [i / 100 for i in range(12)]):
        drawn = draw(tiny_encoder, each=10)
        if scores:
            drawn.task = dataclasses.replace(
                drawn.task, validation_texts=["rain"], validation_targets=np.array([0])
            )
            script = iter(scores)
            monkeypatch.setattr(refining, "validation_nmi", lambda *given, s=script: next(s))
        config = dataclasses.replace(
            CONFIG, epochs=12, learning_rate=0.0, tolerance=0.001, patience=3
        )
        trained(drawn, config)
        lengths.append(len(drawn.prepared.pretrained.history) - config.warm_up)
    # No text changes cluster, which stops training at the second refresh, after epoch 6. With
    # validation texts only their NMI stops training.
    assert lengths == [6, 4, 12]
