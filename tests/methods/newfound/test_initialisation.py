"""The draft of the categories: rounds that hand on labels alone, and the choice among drafts."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from newfound.clustering.metrics import accuracy
from newfound.clustering.optimal_transport import expected_shares
from newfound.data.task import Task, make_task
from newfound.encoding.feature_maps import PointFeatures
from newfound.methods.newfound import initialisation as drafting
from newfound.methods.newfound.initialisation import Draft, best_draft, make_draft
from newfound.methods.self_labelling import Hints, SelfLabellingConfig
from newfound.progress import Stages

SIZES = (40, 24, 12, 40, 8, 8)  # of uneven categories, the last three novel
CONFIG = SelfLabellingConfig(epochs=3, learning_rate=2e-3, batch=32, labelled_batch=8, queue=8)


def cloud(k: int = 6, each: int = 40, spread: float = 0.2) -> tuple[Tensor, np.ndarray]:
    """Points around k directions, and whose they are."""
    draw = torch.Generator().manual_seed(5)
    truth = np.repeat(np.arange(k), each)
    centres = F.normalize(torch.randn(k, 8, generator=draw), dim=1)
    return centres[truth] + spread * torch.randn(k * each, 8, generator=draw), truth


def half_known(truth: np.ndarray, k: int = 6) -> tuple[Task, Hints]:
    """The first half of the categories is known, by every fourth text."""
    targets = np.where((truth < k // 2) & (np.arange(len(truth)) % 4 == 0), truth, -1)
    names = [str(c) for c in range(k // 2)]
    task = make_task(["x"] * len(truth), targets, names, k, validation_share=0)
    odds = torch.from_numpy(np.where(truth < k // 2, 2.0, -2.0)).float()
    shares = expected_shares(torch.from_numpy(targets), k)
    return task, Hints(odds, True, 2, shares, uneven=0.0, farthest=0.0)


def drafted(rounds: int, seed: int = 0, **changes: Any) -> tuple[Draft, Task, np.ndarray]:
    points, truth = cloud()
    task, hints = half_known(truth)
    hints = replace(hints, **changes)
    found = make_draft(points, task, CONFIG, hints, rounds=rounds, seed=seed, stages=Stages(False))
    return found, task, truth


def test_labelled_texts_keep_their_category_and_the_others_find_theirs() -> None:
    found, task, truth = drafted(2)
    labels = found.labels.numpy()
    assert (labels[task.labelled] == task.targets[task.labelled]).all()
    assert accuracy(labels, truth.astype(str), {"0", "1", "2"}).all > 90
    assert (labels[truth < 3] == truth[truth < 3]).mean() > 0.9  # known ones by their own number
    assert found.doubt > 0


def test_the_same_seed_gives_the_same_draft_and_another_one_does_not() -> None:
    one, again, other = drafted(2)[0], drafted(2)[0], drafted(2, seed=1)[0]
    assert torch.equal(one.labels, again.labels)
    assert one.doubt == again.doubt != other.doubt


def test_without_rounds_a_draft_is_k_means() -> None:
    for moving in (0, 2):
        found, task, _ = drafted(0, relocate_every=moving)
        points, _ = cloud()
        targets = torch.from_numpy(task.targets)
        plain = drafting.seeded_kmeans(points, 6, targets, starts=1, seed=0)
        if moving:
            odds = half_known(cloud()[1])[1].odds
            plain = drafting.relocate(points, targets, odds, plain, seed=0)
        assert torch.equal(found.labels, plain.labels)
        assert found.doubt == 0


def test_a_round_hands_on_nothing_but_its_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each begins at the means that the last labels have among the points themselves."""
    starts: list[Tensor] = []
    ends: list[Tensor] = []
    models: list[PointFeatures] = []
    real = drafting.train

    def watched(model: Any, inputs: Any, head: Any, *rest: Any, **more: Any) -> Any:
        points = inputs.states
        torch.testing.assert_close(model.finish(model.from_states(points)), points)  # untrained
        starts.append(head.rows.detach().clone())
        history = real(model, inputs, head, *rest, **more)
        with torch.no_grad():
            ends.append(head(model.eval().finish(model.from_states(points))).argmax(1))
        models.append(model)
        assert not torch.allclose(model.finish(model.from_states(points)), points)
        return history

    monkeypatch.setattr(drafting, "train", watched)
    found, task, _ = drafted(3)
    points = F.normalize(cloud()[0], dim=1)
    targets = torch.from_numpy(task.targets)
    for labels, rows in zip(ends, [*starts[1:], None], strict=True):
        labels = torch.where(targets >= 0, targets, labels)
        if rows is None:
            assert torch.equal(found.labels, labels)
            continue
        for c in range(6):
            wanted = F.normalize(points[labels == c].mean(0) - points.mean(0), dim=0)
            torch.testing.assert_close(rows[c], wanted)
    assert len({id(model) for model in models}) == 3


def test_rounds_relocate_as_often_as_they_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[int] = []
    real = drafting.train

    def watched(*given: Any, **more: Any) -> Any:
        seen.append(given[8].relocate_every)
        return real(*given, **more)

    monkeypatch.setattr(drafting, "train", watched)
    drafted(1, relocate_every=0)
    drafted(1, relocate_every=5)
    assert seen == [0, 5]


def test_shares_stay_as_expected_where_known_categories_are_even() -> None:
    found, _, truth = drafted(2)
    assert torch.equal(found.shares, half_known(truth)[1].shares)


def test_where_known_categories_are_uneven_novel_ones_keep_the_sizes_that_they_have() -> None:
    points, truth = cloud(spread=0.15)
    kept = np.concatenate([np.flatnonzero(truth == c)[:n] for c, n in enumerate(SIZES)])
    points, truth = points[kept], truth[kept]
    task, hints = half_known(truth)
    config = replace(CONFIG, balance=10)
    options: dict[str, Any] = {"rounds": 3, "seed": 0, "stages": Stages(False)}
    right = []
    for uneven in (0.0, 0.5):
        found = make_draft(points, task, config, replace(hints, uneven=uneven), **options)
        right.append(accuracy(found.labels.numpy(), truth.astype(str), {"0", "1", "2"}).novel)
    assert right[1] > 95
    assert right[0] < 90
    free = truth[task.targets < 0]
    sizes = np.bincount(free, minlength=6) / len(free)
    expected, heeded = (np.sort(s.numpy()[3:]) for s in (hints.shares, found.shares))
    wanted = np.sort(sizes[3:])
    assert np.abs(heeded - wanted).sum() < 0.5 * np.abs(expected - wanted).sum()


@pytest.mark.parametrize("chosen", [0, 1, 2])
def test_of_several_drafts_the_one_with_least_doubt_is_kept(
    monkeypatch: pytest.MonkeyPatch, chosen: int
) -> None:
    seeds: list[int] = []

    def made(*_: Any, seed: int, **more: Any) -> Draft:
        seeds.append(seed)
        return Draft(torch.tensor([seed]), torch.ones(1), float(len(seeds) - 1 != chosen))

    monkeypatch.setattr(drafting, "make_draft", made)
    points, truth = cloud()
    task, hints = half_known(truth)
    options: dict[str, Any] = {"tries": 3, "seed": 7, "stages": Stages(False)}
    found = best_draft(points, task, CONFIG, hints, rounds=2, **options)
    assert seeds == [7, 8, 9]
    assert found.labels.tolist() == [7 + chosen]
    seeds.clear()
    best_draft(points, task, CONFIG, hints, rounds=0, **options)
    assert seeds == [7]  # without rounds there is nothing to choose by


def test_point_features_begin_as_the_points_and_have_views() -> None:
    torch.manual_seed(0)
    model = PointFeatures(8)
    points = torch.randn(5, 8)
    torch.testing.assert_close(model.finish(model.from_states(points)), F.normalize(points, dim=1))
    torch.nn.init.normal_(model.head.down.weight)
    one, other = model.train().views_of(points, 2).chunk(2)
    assert not torch.equal(one, other)
    one, other = model.eval().views_of(points, 2).chunk(2)
    torch.testing.assert_close(one, other)
