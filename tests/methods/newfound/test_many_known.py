"""Known categories that are taken together, to count the others quickly."""

import torch
import torch.nn.functional as F
from support.blobs import blobs

from newfound.clustering.neighbours import nearest_neighbours
from newfound.methods.newfound.many_known import estimate_with_many_known
from newfound.methods.newfound.merging import estimate_by_merging


def test_taking_known_categories_together_does_not_change_the_count() -> None:
    points, truth = blobs([30] * 14)
    labels = torch.from_numpy(truth)
    labels = torch.where((labels == 13) & (torch.arange(420) % 2 == 0), 14, labels)  # in pieces
    labels[torch.nonzero(labels == 1)[:8, 0]] = 15  # a piece of a known category
    targets = torch.where((labels < 12) & (torch.arange(420) % 3 == 0), labels, -1)
    unit = F.normalize(points, dim=1)
    neighbours = nearest_neighbours(points, 20)
    whole = estimate_by_merging(unit, neighbours, labels, targets, 16, seed=0)
    found = estimate_with_many_known(unit, neighbours, labels, targets, 16, seed=0, many=5)
    assert found.n_categories == whole.n_categories == 14
    assert found.low >= 12
    assert min(found.candidates) >= 12
    same = estimate_with_many_known(unit, neighbours, labels, targets, 16, seed=0)
    assert same == whole
