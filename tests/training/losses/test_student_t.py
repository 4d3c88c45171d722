"""The Student-t soft assignment, compared with its formulas."""

import math

import numpy as np
import torch

from newfound.training.losses.student_t import (
    self_training_loss,
    soft_assignment,
    target_distribution,
)


def random_q(n: int = 9, k: int = 4) -> torch.Tensor:
    drawn = torch.rand(n, k, generator=torch.Generator().manual_seed(1)) ** 3
    return drawn / drawn.sum(1, keepdim=True)


def test_soft_assignment_equals_the_formula() -> None:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(7, 3, generator=generator)
    centres = torch.randn(4, 3, generator=generator)
    q = soft_assignment(features, centres)
    for i in range(7):
        kernel = [1 / (1 + sum((features[i] - centre) ** 2).item()) for centre in centres]
        for j in range(4):
            assert math.isclose(q[i, j].item(), kernel[j] / sum(kernel), rel_tol=1e-5)


def test_nearest_centre_has_the_largest_share() -> None:
    generator = torch.Generator().manual_seed(0)
    features, centres = torch.randn(50, 5, generator=generator), torch.randn(6, 5)
    apart = torch.cdist(features, centres)
    assert torch.equal(soft_assignment(features, centres).argmax(1), apart.argmin(1))


def test_target_equals_the_formula_over_all_texts() -> None:
    q = random_q()
    p = target_distribution(q)
    n, k = q.shape
    f = [sum(q[i, j].item() for i in range(n)) for j in range(k)]
    for i in range(n):
        total = sum(q[i, j].item() ** 2 / f[j] for j in range(k))
        for j in range(k):
            assert math.isclose(p[i, j].item(), q[i, j].item() ** 2 / f[j] / total, rel_tol=1e-5)
    # The shares of a batch alone give another target.
    assert not torch.allclose(target_distribution(q[:3]), p[:3], atol=1e-3)


def test_target_is_sharper_and_has_no_gradient() -> None:
    q = torch.tensor([[0.7, 0.3], [0.3, 0.7]], requires_grad=True)
    p = target_distribution(q)
    assert p[0, 0] > 0.7
    assert not p.requires_grad


def test_loss_is_the_sum_over_centres_and_the_mean_over_rows() -> None:
    q = random_q()
    p = target_distribution(q)
    rows = [
        sum(p[i, j].item() * math.log(p[i, j].item() / q[i, j].item()) for j in range(q.shape[1]))
        for i in range(len(q))
    ]
    assert math.isclose(self_training_loss(q, p).item(), float(np.mean(rows)), rel_tol=1e-4)
    assert self_training_loss(p, p).item() == 0


def test_empty_cluster_gives_finite_numbers() -> None:
    q = torch.tensor([[1.0, 0.0], [1.0, 0.0]], requires_grad=True)
    p = target_distribution(q)
    loss = self_training_loss(q, p)
    loss.backward()
    assert torch.equal(p, q.detach())
    assert loss.item() == 0
    assert q.grad is not None
    assert torch.isfinite(q.grad).all()


def test_gradient_moves_a_text_to_its_centre() -> None:
    features = torch.tensor([[0.2, 0.0], [1.0, 0.1]], requires_grad=True)
    centres = torch.tensor([[0.0, 0.0], [1.0, 0.0]])
    q = soft_assignment(features, centres)
    self_training_loss(q, target_distribution(q)).backward()
    assert features.grad is not None
    assert features.grad[0, 0] > 0  # gradient descent moves it towards 0


def test_distances_are_exact_far_from_the_origin_and_under_autocast() -> None:
    generator = torch.Generator().manual_seed(0)
    features, centres = torch.randn(20, 8, generator=generator), torch.randn(5, 8)
    near = soft_assignment(features, centres)
    far = soft_assignment(features + 1000, centres + 1000)
    torch.testing.assert_close(far, near, atol=1e-3, rtol=0)
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(soft_assignment(features, centres), near)
