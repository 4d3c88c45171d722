"""Class prior: the share of the unlabelled texts that each category is expected to have.

1. `estimate_class_prior` reads the sizes of known categories off their numbers of labels.
2. `size_variation` measures how much known categories differ in size beyond chance.
3. `update_class_prior` then mixes in the sizes that a clustering found: the more known categories
   differ, the less is known about the sizes of novel ones.
"""

import math

import torch
from torch import Tensor

SMOOTHING = 4  # pseudo-counts added to a category's number of labels: few labels are unreliable
MIN_UNLABELLED = 0.5  # share of a category left to be found, however many labels it has
CHANCE = 2.0  # standard deviations by which numbers of labels may differ by chance
EVEN_WEIGHT = 0.1  # variation at which the sizes found count as much as the estimated ones
TYPICAL = 0.3  # variation that must be distinguishable from chance for labels to be relied on


def estimate_class_prior(targets: Tensor, k: int, *, from_labels: bool = True) -> Tensor:
    """Estimate the share of the unlabelled texts that each category has.

    Known categories are taken to be as large as novel ones on average, and relative to each other
    as their smoothed numbers of labels. Labelled texts are subtracted. Labels may come from
    elsewhere, so at least `MIN_UNLABELLED` of a category is assumed to be left.

    Parameters
    ----------
    targets : Tensor of shape [N]
        Known category of each text, -1 where unlabelled.
    k : int
        Number of categories, known ones included.
    from_labels : bool
        Whether to use the numbers of labels; otherwise the prior is uniform.

    Returns
    -------
    Tensor of shape [K]
        Shares that sum to 1.

    Examples
    --------
    >>> import torch
    >>> estimate_class_prior(torch.tensor([-1, -1, -1, -1]), 2).tolist()
    [0.5, 0.5]
    """
    even = torch.full((k,), 1 / k, device=targets.device)
    labels = targets[targets >= 0].bincount().float()  # [M]
    if not from_labels or not len(labels):
        return even
    sizes = even * len(targets)
    known = sizes[: len(labels)] * (labels + SMOOTHING) / (labels + SMOOTHING).mean()
    sizes[: len(labels)] = torch.maximum(known - labels, MIN_UNLABELLED * known)
    return sizes / sizes.sum()


def size_variation(targets: Tensor) -> float:
    """Return the squared coefficient of variation of the sizes of known categories.

    Numbers of labels differ by chance, too: drawn from categories of one size, their variance would
    be about their mean. Only the excess counts; it is 0 where chance explains all of it. Where
    labels are so few that chance could hide a typical variation, the result is `EVEN_WEIGHT`, so
    that estimated and found sizes count equally.

    Parameters
    ----------
    targets : Tensor of shape [N]
        Known category of each text, -1 where unlabelled.

    Examples
    --------
    >>> import torch
    >>> size_variation(torch.arange(4).repeat_interleave(50))
    0.0
    """
    labels = targets[targets >= 0].bincount().double()  # [M]
    free = len(labels) - 1
    if free < 1:
        return EVEN_WEIGHT
    mean = float(labels.mean())
    dispersion = float((labels - mean).square().sum()) / mean  # by chance: free +- sqrt(2 free)
    chance = CHANCE * math.sqrt(2 * free)
    if dispersion > free + chance:
        return float(labels.var() - mean) / mean**2
    return 0.0 if free * mean * TYPICAL > chance else EVEN_WEIGHT


def update_class_prior(estimated: Tensor, labels: Tensor, variation: float) -> Tensor:
    """Mix the estimated class prior with the category sizes that a clustering found.

    Parameters
    ----------
    estimated : Tensor of shape [K]
        What `estimate_class_prior` returned.
    labels : Tensor of shape [N]
        Category that the clustering gave each unlabelled text.
    variation : float
        What `size_variation` returned: the larger, the more the found sizes count; at 0 the
        estimate stays as it is.

    Returns
    -------
    Tensor of shape [K]
        Shares that sum to 1.

    Examples
    --------
    >>> import torch
    >>> update_class_prior(torch.tensor([0.5, 0.5]), torch.tensor([0, 0, 0, 1]), 0.1).tolist()
    [0.625, 0.375]
    """
    if variation <= 0 or not len(labels):
        return estimated
    found = labels.bincount(minlength=len(estimated)).clamp(min=1).to(estimated.dtype)
    weight = variation / (variation + EVEN_WEIGHT)
    return (1 - weight) * estimated + weight * found / found.sum()
