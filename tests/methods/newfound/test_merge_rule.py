"""The merge rule: its fit against a general optimiser, and its correction."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from newfound.methods.newfound.merge_rule import (
    ENOUGH,
    MIN_RATIO,
    MOST,
    PRECISION,
    TYPICAL,
    TYPICAL_WEIGHT,
    MergeRule,
    corrected,
    fit_merge_rule,
    halves_offset,
    pair_evidence,
)


def samples(seed: int, one: int = 30, two: int = 50) -> tuple[np.ndarray, np.ndarray]:
    """Return evidence on pairs that are one category, and on pairs that are two."""
    rng = np.random.default_rng(seed)
    spread = np.array([0.6, 0.2])
    same = np.array([-0.8, 0.6]) + spread * rng.normal(size=(one, 2))
    other = np.array([-2.0, 0.2]) + spread * rng.normal(size=(two, 2))
    return same, other


def loss(rule: np.ndarray, one: np.ndarray, two: np.ndarray) -> float:
    """Return the penalised loss, term by term."""
    prior = (TYPICAL.offset, TYPICAL.mixing, TYPICAL.cosine)
    total = sum(p * (w - t) ** 2 / 2 for p, w, t in zip(PRECISION, rule, prior, strict=True))
    for sample, sign in ((one, 1), (two, -1)):
        for ratio, cosine in sample:
            score = rule[0] + rule[1] * ratio + rule[2] * cosine
            weight = (len(one) + len(two)) / 2 / len(sample)
            total += weight * np.log1p(np.exp(-sign * score))
    return float(total)


@pytest.mark.parametrize("seed", range(3))
def test_the_fit_minimises_the_penalised_loss(seed: int) -> None:
    one, two = samples(seed)
    rule = fit_merge_rule(one, two)
    wanted = minimize(loss, np.zeros(3), args=(one, two)).x
    np.testing.assert_allclose([rule.offset, rule.mixing, rule.cosine], wanted, atol=1e-3)


def test_the_rule_separates_the_samples_it_was_fitted_to() -> None:
    one, two = samples(0)
    rule = fit_merge_rule(one, two)
    assert (rule.score(torch.from_numpy(one)) > 0).float().mean() > 0.85
    assert (rule.score(torch.from_numpy(two)) < 0).float().mean() > 0.85


def test_few_samples_leave_the_rule_near_the_typical_one() -> None:
    one, two = samples(1, one=1, two=1)
    rule = fit_merge_rule(one, two)
    assert rule.mixing == pytest.approx(TYPICAL.mixing, abs=0.1)
    assert rule.cosine == pytest.approx(TYPICAL.cosine, abs=0.1)
    assert fit_merge_rule(one, two[:0]) == fit_merge_rule(one[:0], two) == TYPICAL


def test_pair_evidence_by_loop() -> None:
    rng = np.random.default_rng(0)
    ratios, means = rng.uniform(0, 1, (4, 4)), rng.normal(size=(4, 3))
    ratios[0, 1] = 0
    found = pair_evidence(torch.from_numpy(ratios), torch.from_numpy(means))
    for a in range(4):
        for b in range(4):
            lengths = np.linalg.norm(means[a]) * np.linalg.norm(means[b])
            wanted = [np.log(max(ratios[a, b], MIN_RATIO)), means[a] @ means[b] / lengths]
            np.testing.assert_allclose(found[a, b].numpy(), wanted)


def test_at_the_halves_offset_half_of_the_cut_categories_stay_apart() -> None:
    one, _ = samples(2, one=2001)
    rule = MergeRule(0.0, 1.2, 3.0)
    offset = halves_offset(rule, one)
    scores = MergeRule(offset, 1.2, 3.0).score(torch.from_numpy(one))
    assert float((scores > 0).float().mean()) == pytest.approx(0.5, abs=0.01)
    assert halves_offset(rule, one[:0]) == TYPICAL.offset
    few = halves_offset(rule, one[:TYPICAL_WEIGHT])  # as many as the typical one counts for
    own = -float(np.median(1.2 * one[:TYPICAL_WEIGHT, 0] + 3 * one[:TYPICAL_WEIGHT, 1]))
    assert few == pytest.approx((own + TYPICAL.offset) / 2)


def test_the_rule_is_corrected_where_few_of_many_categories_are_known() -> None:
    one, two = samples(3)
    rule = fit_merge_rule(one, two)
    assert corrected(rule, one, 30, MOST) == corrected(rule, one, 30, 1.0) == rule
    fully = corrected(rule, one, ENOUGH, 0.0)
    assert fully.offset == pytest.approx(halves_offset(rule, one))
    assert fully.offset < rule.offset  # fewer mergers
    assert rule.offset > corrected(rule, one, ENOUGH, MOST / 2).offset > fully.offset
    assert rule.offset > corrected(rule, one, ENOUGH // 3, 0.0).offset > fully.offset
    assert (fully.mixing, fully.cosine) == (rule.mixing, rule.cosine)
