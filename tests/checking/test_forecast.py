"""The accuracy to expect on the whole table."""

import math
from dataclasses import replace

import numpy as np
import pytest
from support.decided import small_result

from newfound.checking.forecast import CARRIED, Whole, believed, forecast
from newfound.checking.scores import DrawScores

WHOLE = Whole(known=80.0, novel=60.0, novel_share=0.25, n_categories=9)
DRAW = DrawScores(70.0, 75.0, 65.0, 75.0, 100.0, 0.0, 3.0, 8, 2, 5, 7, known_gap=4, novel_gap=-20)


def test_believed_are_probabilities_of_unlabelled_texts_by_verdict() -> None:
    result = small_result()
    found = believed(result)
    known, novel = [], []
    for row, label in enumerate(result.corpus.labels):
        if label is None:
            verdict = result.categories[result.predicted[row]].kind
            (known if verdict == "known" else novel).append(100 * result.probability[row])
    assert found.known == pytest.approx(sum(known) / len(known))
    assert found.novel == pytest.approx(sum(novel) / len(novel))
    assert found.novel_share == pytest.approx(len(novel) / (len(known) + len(novel)))
    assert found.n_categories == 5


def test_without_novel_texts_the_forecast_is_that_of_known_ones() -> None:
    result = small_result()
    found = believed(replace(result, predicted=result.predicted % 2))
    assert math.isnan(found.novel)
    expected = forecast(found, [DRAW])
    assert expected.all == expected.known
    assert math.isnan(expected.novel)


def test_the_forecast_is_what_is_believed_with_a_part_of_the_gaps() -> None:
    assert forecast(WHOLE, []).all == pytest.approx(0.75 * 80 + 0.25 * 60)
    other = replace(DRAW, known_gap=0, novel_gap=-30)
    found = forecast(WHOLE, [DRAW, other])
    assert found.known == pytest.approx(80 + CARRIED * 2)
    assert found.novel == pytest.approx(60 - CARRIED * 25)
    assert found.all == pytest.approx(0.75 * found.known + 0.25 * found.novel)


def test_draws_without_a_gap_change_nothing_and_forecasts_stay_percentages() -> None:
    without = replace(DRAW, known_gap=math.nan)
    assert forecast(WHOLE, [without]).known == WHOLE.known
    assert forecast(WHOLE, [replace(DRAW, known_gap=90)]).known == 100
    assert (
        forecast(replace(WHOLE, novel=np.float64(5.0)), [replace(DRAW, novel_gap=-90)]).novel == 0
    )
