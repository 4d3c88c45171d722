"""The sample keeps labels and rare texts, and large groups stay large."""

import numpy as np
import pytest
import torch

from newfound.large import sample
from newfound.large.sample import cell_of, draw_sample

CPU = torch.device("cpu")
RARE = 12


@pytest.fixture(scope="module")
def points() -> np.ndarray:
    """Three large groups of 2,000, 1,000 and 1,000 points, and two rare ones of 12."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((5, 16))
    group = np.repeat(np.arange(5), [2_000, 1_000, 1_000, RARE, RARE])
    spread = 0.3 * rng.standard_normal((len(group), 16))
    return (centres[group] + spread).astype(np.float16)


def drawn(points: np.ndarray, targets: np.ndarray, size: int, seed: int = 0) -> np.ndarray:
    return draw_sample(lambda rows: points[rows], targets, size, seed, CPU)


def test_rare_groups_stay_in_the_sample(
    points: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = np.full(len(points), -1)
    monkeypatch.setattr(sample, "CELL_SHARE", 0.5)
    rows = drawn(points, free, 300)
    assert len(rows) == len(set(rows.tolist())) == 300
    assert (rows >= 4_000).sum() >= RARE  # a plain sample has 2 of these 24
    monkeypatch.setattr(sample, "CELL_SHARE", 0.0)
    assert (drawn(points, free, 300) >= 4_000).sum() < RARE
    sizes = np.histogram(rows, [0, 2_000, 3_000, 4_000])[0]
    assert sizes[0] > sizes[1:].max()


def test_all_labelled_texts_are_drawn_if_there_is_room(points: np.ndarray) -> None:
    targets = np.full(len(points), -1)
    targets[::40] = 0
    targets[7] = 1
    rows = drawn(points, targets, 400)
    assert len(rows) == 400
    assert np.isin(np.flatnonzero(targets >= 0), rows).all()


def test_too_many_labelled_texts_are_drawn_from_every_category(points: np.ndarray) -> None:
    targets = np.where(np.arange(len(points)) % 4, np.arange(len(points)) // 1_000, -1)
    targets[:3] = 5  # a category of three texts
    rows = drawn(points, targets, 400)
    assert len(rows) == 400
    counts = np.bincount(targets[rows][targets[rows] >= 0])
    assert counts[5] == 3
    assert (counts[:4] >= sample.LEAST_LABELLED).all()
    assert counts.sum() == 200


def test_a_small_table_is_drawn_whole(points: np.ndarray) -> None:
    assert drawn(points[:50], np.full(50, -1), 50).tolist() == list(range(50))


def test_labelled_texts_fill_the_sample_if_others_are_missing(points: np.ndarray) -> None:
    targets = np.arange(len(points)) % 3
    targets[:10] = -1
    rows = drawn(points, targets, 400)
    assert len(rows) == 400
    assert np.isin(np.arange(10), rows).all()


def test_the_number_of_threads_does_not_change_the_sample() -> None:
    rng = np.random.default_rng(0)
    group = rng.integers(0, 40, 20_000)
    spread = 1.2 * rng.standard_normal((len(group), 384))
    points = (rng.standard_normal((40, 384))[group] + spread).astype(np.float16)
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.append(drawn(points, np.full(len(points), -1), 3_000).tolist())
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert found[0] == found[1]


def test_cells_are_the_nearest_centres_whatever_the_block(
    points: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = np.arange(0, len(points), 2)
    whole, distances = cell_of(lambda some: points[some], rows, 9, 0, CPU)
    monkeypatch.setattr(sample, "BLOCK", 100)
    again = cell_of(lambda some: points[some], rows, 9, 0, CPU)
    assert (again[0] == whole).all()
    np.testing.assert_allclose(again[1], distances, atol=1e-5)
    assert len(set(whole.tolist())) == 9
