"""How many texts fit nowhere, and whether that is more than expected."""

from math import comb

import numpy as np
import pytest
from scipy.stats import binomtest

from newfound.clustering.fit_scores import FitReference, make_reference
from newfound.clustering.misfits import LEVEL, excess_p_value, judge_misfits, usual_threshold


@pytest.mark.parametrize(("count", "texts", "below"), [(1, 20, 3), (9, 40, 3), (40, 40, 0)])
def test_p_value_is_the_sum_of_binomial_probabilities(count: int, texts: int, below: int) -> None:
    bound = binomtest(below, 60, alternative="less").proportion_ci(0.95).high
    terms = [
        comb(texts, k) * bound**k * (1 - bound) ** (texts - k) for k in range(count, texts + 1)
    ]
    assert excess_p_value(count, texts, below, 60) == pytest.approx(sum(terms), rel=1e-6)


def test_nothing_is_unexpected_without_misfits_or_without_training_texts() -> None:
    assert excess_p_value(0, 100, 5, 100) == 1
    assert excess_p_value(50, 100, 0, 0) == 1
    assert excess_p_value(100, 100, 10, 10) == 1


def reference_of(rng: np.random.Generator, texts: int) -> FitReference:
    vectors = rng.normal(size=(texts, 4)) + 1
    nothing = np.zeros(texts, bool)
    return make_reference(vectors, np.zeros(texts, int), nothing, frozen=False, seed=0)[0]


def test_new_texts_of_the_same_kind_rarely_raise_an_alarm() -> None:
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(200):
        reference = reference_of(rng, 300)
        new = rng.normal(size=(400, 4)) + 1
        threshold = usual_threshold(reference)
        below = int((reference.scores(new, np.zeros(400, int)) < threshold).sum())
        alarms += judge_misfits(below, 400, reference, threshold).more_than_expected
    assert alarms <= 200 * 2 * LEVEL


def test_misfits_state_the_share_and_the_verdict() -> None:
    reference = reference_of(np.random.default_rng(1), 400)
    found = judge_misfits(100, 400, reference, usual_threshold(reference))
    assert found.to_dict()["more_than_expected"] is True
    assert str(found) == (
        "100 texts fit nowhere (25.0% of 400; 5.0% in the run): more than expected"
    )
    few = judge_misfits(1, 400, reference, usual_threshold(reference))
    assert str(few).startswith("1 text fits nowhere (0.2% of 400; 5.0% in the run): no more")
