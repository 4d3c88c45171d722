"""The map: in its frame, the same each time, categories apart and neighbours near."""

import math
import time

import numpy as np
import pytest
from numpy.typing import NDArray

from newfound.clustering.assignment import squared_distances
from newfound.describing import text_map as layout
from newfound.describing.text_map import map_positions


def clusters(
    count: int, each: int, width: int = 32, spread: float = 0.15, seed: int = 0
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int64]]:
    random = np.random.default_rng(seed)
    prototypes = random.standard_normal((count, width))
    prototypes /= np.linalg.norm(prototypes, axis=1, keepdims=True)
    assigned = np.repeat(np.arange(count), each)
    noise = spread * random.standard_normal((len(assigned), width))
    features = prototypes[assigned] + noise
    return features.astype(np.float32), prototypes.astype(np.float32), assigned


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 7, 20, 60])
def test_positions_have_the_right_shape_and_range(count: int) -> None:
    features, prototypes, assigned = clusters(count, 15)
    found = map_positions(features, prototypes, assigned, 0)
    assert found.shape == (15 * count, 2)
    assert found.dtype == np.float32
    assert np.isfinite(found).all()
    assert np.abs(found).max() <= 1
    assert np.abs(found).max() > 0.6  # the frame is used
    assert len(np.unique(found, axis=0)) > 0.9 * len(found)


def test_the_same_seed_gives_the_same_map() -> None:
    data = clusters(20, 10)
    assert np.array_equal(map_positions(*data, 3), map_positions(*data, 3))


def test_input_is_not_changed() -> None:
    data = clusters(8, 5)
    copies = [array.copy() for array in data]
    map_positions(*data, 0)
    assert all(np.array_equal(a, b) for a, b in zip(data, copies, strict=True))


@pytest.mark.parametrize("count", [2, 3, 8, 40])
def test_texts_are_close_to_their_own_category(count: int) -> None:
    features, prototypes, assigned = clusters(count, 40, spread=0.05)
    found = map_positions(features, prototypes, assigned, 0)
    middle = np.stack([found[assigned == c].mean(axis=0) for c in range(count)])
    nearest = np.linalg.norm(found[:, None] - middle[None], axis=2).argmin(axis=1)
    assert (nearest == assigned).mean() > 0.97


def test_similar_categories_are_close() -> None:
    # Eight groups of five: a category's neighbours on the map are mostly of its group.
    random = np.random.default_rng(0)
    groups = random.standard_normal((8, 32))
    wide = np.repeat(groups, 5, axis=0) + 0.2 * random.standard_normal((40, 32))
    prototypes = wide.astype("f4")
    assigned = np.repeat(np.arange(40), 10)
    features = prototypes[assigned] + 0.05 * random.standard_normal((400, 32)).astype("f4")
    found = map_positions(features, prototypes, assigned, 0)
    middle = np.stack([found[assigned == c].mean(axis=0) for c in range(40)])
    gap = np.linalg.norm(middle[:, None] - middle[None], axis=2)
    np.fill_diagonal(gap, np.inf)
    nearest = np.argsort(gap, axis=1)[:, :3]
    assert (nearest // 5 == np.arange(40)[:, None] // 5).mean() > 0.8


def test_text_between_two_categories_is_shifted_to_the_other() -> None:
    features, prototypes, assigned = clusters(10, 40, spread=0.05)
    typical = map_positions(features, prototypes, assigned, 0)
    middle = np.stack([typical[assigned == c].mean(axis=0) for c in range(10)])
    moved = features.copy()
    rows = np.arange(0, 400, 40)
    other = (assigned[rows] + 1) % 10
    moved[rows] = 0.52 * prototypes[assigned[rows]] + 0.48 * prototypes[other]
    found = map_positions(moved, prototypes, assigned, 0)
    away = ((found[rows] - middle[assigned[rows]]) * (middle[other] - middle[assigned[rows]])).sum(
        1
    )
    assert (away > 0).mean() >= 0.9


def test_larger_categories_have_larger_discs() -> None:
    features, prototypes, _ = clusters(5, 200)
    assigned = np.array([0] * 600 + [1] * 300 + [2] * 80 + [3] * 19 + [4])
    features = prototypes[assigned] + 0.1 * np.random.default_rng(0).standard_normal((1000, 32))
    found = map_positions(features.astype("f4"), prototypes, assigned, 0)
    area = [found[assigned == c].std(axis=0).prod() for c in range(4)]
    assert area == sorted(area, reverse=True)


def test_empty_and_single_categories_are_placed() -> None:
    features, prototypes, assigned = clusters(9, 6)
    keep = (assigned != 4) & ((assigned != 5) | (np.arange(len(assigned)) == 30))
    found = map_positions(features[keep], prototypes, assigned[keep], 0)
    assert np.isfinite(found).all()
    assert found.shape == (keep.sum(), 2)


def test_no_texts_give_no_positions() -> None:
    _, prototypes, _ = clusters(9, 6)
    found = map_positions(np.zeros((0, 32), dtype="f4"), prototypes, np.zeros(0, dtype=int), 0)
    assert found.shape == (0, 2)


@pytest.mark.parametrize("count", [2, 3, 12])
def test_equal_features_are_placed(count: int) -> None:
    prototypes = np.ones((count, 4), dtype=np.float32)
    assigned = np.arange(5 * count) % count
    found = map_positions(np.ones((5 * count, 4), dtype=np.float32), prototypes, assigned, 0)
    assert np.isfinite(found).all()
    middle = np.stack([found[assigned == c].mean(axis=0) for c in range(count)])
    assert len(np.unique(middle.round(3), axis=0)) == count  # still distinct


@pytest.mark.parametrize("width", [1, 2])
def test_features_with_few_dimensions_are_placed(width: int) -> None:
    features, prototypes, assigned = clusters(7, 6, width=width)
    assert np.isfinite(map_positions(features, prototypes, assigned, 0)).all()


def test_blocks_do_not_change_the_map(monkeypatch: pytest.MonkeyPatch) -> None:
    data = clusters(12, 30)
    whole = map_positions(*data, 0)
    monkeypatch.setattr(layout, "CELLS", 32 * 50)
    assert np.allclose(map_positions(*data, 0), whole, atol=1e-5)


def test_ten_thousand_texts_are_fast() -> None:
    data = clusters(100, 100, width=384)
    map_positions(*clusters(8, 4), 0)  # imports and threads
    start = time.process_time()
    map_positions(*data, 0)
    assert time.process_time() - start < 4  # about 0.5 s; the margin is for slow machines


@pytest.mark.parametrize("count", [2, 3, 10, 40])
def test_adjacent_centres_have_no_third_between_them(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = np.random.default_rng(count).standard_normal((count, 2))
    expected = np.zeros((count, count), dtype=bool)
    for one in range(count):
        for two in range(count):
            middle, radius = (
                (points[one] + points[two]) / 2,
                math.dist(points[one], points[two]) / 2,
            )
            others = [points[i] for i in range(count) if i not in (one, two)]
            expected[one, two] = one != two and all(math.dist(o, middle) >= radius for o in others)
    assert (layout._net(points) == expected).all()
    if count > 3:
        monkeypatch.setattr(layout, "FEW", 3)  # those of a triangulation are enough to look at
        assert (layout._net(points) == expected).all()


def test_thousands_of_categories_get_discs_that_do_not_overlap() -> None:
    draw = np.random.default_rng(0)
    centres, radii = layout._grid(draw.normal(size=(1_500, 2)))
    apart = np.sqrt(squared_distances(centres, centres)) + 2 * np.eye(1_500)
    assert apart.min() >= 2 * radii.max()
    assert np.abs(centres).max() + radii.max() <= 1
    begun = time.process_time()
    prototypes = draw.normal(size=(3_000, 8))
    positions = map_positions(prototypes, prototypes, np.arange(3_000), 0)
    assert np.abs(positions).max() <= 1
    assert time.process_time() - begun < 20
