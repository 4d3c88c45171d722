"""The equations of DPN, compared with loops over texts and prototypes."""

import math

import pytest
import torch

from newfound.training.losses import dpn as losses


@pytest.fixture
def some() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(3)
    return torch.randn(7, 5, dtype=torch.float64), torch.randn(4, 5, dtype=torch.float64)


def norm(x: torch.Tensor) -> float:
    return math.sqrt(sum(float(v) ** 2 for v in x))


def cosine(x: torch.Tensor, y: torch.Tensor) -> float:
    return sum(float(a) * float(b) for a, b in zip(x, y, strict=True)) / (norm(x) * norm(y))


def softmax(values: list[float]) -> list[float]:
    exponentials = [math.exp(v) for v in values]
    return [e / sum(exponentials) for e in exponentials]


def soft_loss(x: torch.Tensor, prototypes: torch.Tensor, tau: float) -> float:
    weights = softmax([cosine(x, p) / tau for p in prototypes])
    return sum(norm(x - p) * w for p, w in zip(prototypes, weights, strict=True))


def reg_loss(x: torch.Tensor, prototypes: torch.Tensor, tau: float) -> float:
    similar = [cosine(x, p) for p in prototypes]
    return sum(
        (1 - s) * w for s, w in zip(similar, softmax([s / tau for s in similar]), strict=True)
    )


def test_distances_equal_a_loop(some: tuple[torch.Tensor, torch.Tensor]) -> None:
    x, p = some
    wanted = torch.tensor([[norm(a - b) for b in p] for a in x], dtype=torch.float64)
    assert torch.allclose(losses.distances(x, p), wanted)


def test_eq_4_hard_loss(some: tuple[torch.Tensor, torch.Tensor]) -> None:
    x, p = some
    clusters = torch.tensor([0, 1, 2, 3, 0, 1, 2])
    terms = [
        -math.log(softmax([-norm(a - b) for b in p])[c]) for a, c in zip(x, clusters, strict=True)
    ]
    assert losses.hard_prototypical_loss(x, p, clusters).item() == pytest.approx(sum(terms) / 7)


def test_eq_6_soft_loss(some: tuple[torch.Tensor, torch.Tensor]) -> None:
    x, p = some
    wanted = [soft_loss(a, p, 0.3) for a in x]
    assert losses.soft_prototypical_loss(x, p, 0.3).tolist() == pytest.approx(wanted)


def test_eq_6_uniform_weights(some: tuple[torch.Tensor, torch.Tensor]) -> None:
    x, p = some
    wanted = [sum(norm(a - b) for b in p) / 4 for a in x]
    assert losses.soft_prototypical_loss(x, p, 0.3, uniform=True).tolist() == pytest.approx(wanted)


def test_eq_7_novel_loss(some: tuple[torch.Tensor, torch.Tensor]) -> None:
    x, p = some
    novel = torch.tensor([True, False, True, False, False, True, False])
    wanted = sum(soft_loss(a, p[2:], 0.2) for a in x[novel]) / 3
    assert losses.novel_loss(x, p[2:], novel, 0.2).item() == pytest.approx(wanted)


def test_eq_8_transfer_loss(some: tuple[torch.Tensor, torch.Tensor]) -> None:
    x, p = some
    wanted = [reg_loss(a, p, 0.2) for a in x]
    assert losses.transfer_loss(x, p, 0.2).tolist() == pytest.approx(wanted)


def test_eqs_9_and_10_sum_their_parts(some: tuple[torch.Tensor, torch.Tensor]) -> None:
    x, p = some
    known = torch.tensor([True, False, True, False, False, True, False])
    labelled = p[:2] + 0.1
    cross_entropy = torch.tensor(0.7, dtype=torch.float64)
    wanted_known = (
        sum(soft_loss(a, p[:2], 0.2) for a in x[known]) / 3
        + 0.7
        + 10 * sum(reg_loss(a, labelled, 0.2) for a in x[known]) / 3
    )
    found_known = losses.known_loss(x, p[:2], labelled, known, cross_entropy, 0.2, 10.0)
    assert found_known.item() == pytest.approx(wanted_known)
    found_novel = losses.novel_loss(x, p[2:], ~known, 0.2)
    wanted_novel = sum(soft_loss(a, p[2:], 0.2) for a in x[~known]) / 4
    assert losses.dpn_loss(found_novel, found_known).item() == pytest.approx(
        wanted_novel + wanted_known
    )


def test_empty_parts_give_zero(some: tuple[torch.Tensor, torch.Tensor]) -> None:
    x, p = some
    nobody = torch.zeros(7, dtype=torch.bool)
    assert losses.novel_loss(x, p, nobody, 0.2).item() == 0
    assert losses.novel_loss(x, p[:0], ~nobody, 0.2).item() == 0


def test_masked_word_loss_ignores_unmasked_tokens() -> None:
    torch.manual_seed(0)
    scores, words = torch.randn(5, 9), torch.tensor([3, -100, 0, 8, -100])
    wanted = [-math.log(softmax(scores[i].tolist())[int(words[i])]) for i in (0, 2, 3)]
    assert losses.masked_word_loss(scores, words).item() == pytest.approx(sum(wanted) / 3, rel=1e-5)
    assert losses.masked_word_loss(scores, torch.full((5,), -100)).item() == 0


@pytest.mark.parametrize(
    "loss",
    [
        lambda x, p: losses.soft_prototypical_loss(x, p, 0.07).sum(),
        lambda x, p: losses.hard_prototypical_loss(x, p, torch.zeros(len(x), dtype=torch.long)),
        lambda x, p: losses.transfer_loss(x, p, 0.07).sum(),
    ],
)
def test_gradient_is_finite_at_a_prototype(loss) -> None:  # type: ignore[no-untyped-def]
    prototypes = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    features = torch.tensor([[1.0, 0.0], [0.0, 0.0]], requires_grad=True)
    loss(features, prototypes).backward()
    assert torch.isfinite(features.grad).all()
