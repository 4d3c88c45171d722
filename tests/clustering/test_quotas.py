"""How many texts are drawn from each group, and which."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from newfound.clustering.quotas import draw, quotas

SIZES = st.lists(st.integers(0, 500), min_size=1, max_size=30)


@given(SIZES, st.integers(1, 600), st.integers(0, 40))
def test_quotas_add_up_and_do_not_exceed_sizes(sizes: list[int], total: int, least: int) -> None:
    take = quotas(np.array(sizes), total, least)
    assert (take >= 0).all()
    assert (take <= sizes).all()
    assert take.sum() == min(total, sum(sizes))


@given(SIZES, st.integers(1, 40))
def test_every_group_keeps_the_least_number_if_there_is_room(sizes: list[int], least: int) -> None:
    take = quotas(np.array(sizes), least * len(sizes), least)
    assert (take >= np.minimum(sizes, least)).all()


@given(st.lists(st.integers(0, 6), min_size=1, max_size=60), st.integers(0, 99))
def test_drawn_texts_are_distinct_and_as_many_as_asked_for(groups: list[int], seed: int) -> None:
    own = np.array(groups)
    take = np.bincount(own, minlength=7) // 2
    drawn = draw(own, take, np.random.default_rng(seed))
    assert (np.diff(drawn) > 0).all()
    assert np.bincount(own[drawn], minlength=7).tolist() == take.tolist()
