"""Class prior: how many of the unlabelled texts each category is expected to have, and how surely.

Pseudo-labels that are free drift into few categories; pseudo-labels that are held to equal sizes
tear large categories apart. Which of the two a table needs, its known categories show: labels pin
them, so the sizes that a weakly constrained clustering gives them are reliable.

1. `size_variation` measures how much the known categories that occur differ in size.
2. `evenness` turns that into a weight between 0 (sizes differ) and 1 (sizes are equal).
3. Where sizes are roughly equal, `relative_sizes` takes them to be in proportion to the numbers of
   labels, if the sizes found bear that out: they do where labels are a random share, not where each
   category has ten. Only what labels do not explain then counts as variation.
4. `estimate_class_prior` moves the sizes that were found towards the expected ones by that weight,
   and sets how strongly the optimal transport holds to them.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

WEAK = 0.2  # strength at which sizes are first found, and the least later on
STRONG = 0.9  # strength where all categories are of one size
STRONG_ENCODER = 1.0  # the same where the encoder learns
STRONG_ESTIMATED = 0.75  # the same if K was estimated: a category too many has to stay small
UNTOLD = 0.5  # strength where no label tells whether sizes differ
MIN_OCCURRING = 3  # known categories that it takes to tell
HALF = 0.45  # variation of sizes at which the evenness is one half
STEEPNESS = 4.0  # of the evenness around it
OCCURS = 0.2  # of the median size: a known category that has fewer texts is taken to be absent
USUAL = 0.5  # of the expected size: a category that has fewer texts keeps the size found
MIN_UNLABELLED = 0.25  # of a category's size, left to be found however many labels it has
LABEL_SMOOTHING = 4.0  # added to each number of labels: few labels say little
MIN_SPREAD = 0.05  # of logarithms; numbers that differ by less are taken to be equal
# Where known categories differ more than this, so do novel ones, of whose sizes no label tells.
MIN_EVENNESS = 0.5
MIN_AGREEMENT = 0.3  # share of the variation of sizes that numbers of labels must explain


@dataclass(frozen=True, eq=False)
class ClassPrior:
    """Expected sizes for the optimal transport, and how strongly it holds to them."""

    shares: Tensor  # [K], summing to 1
    strength: float  # see `clustering.optimal_transport.sinkhorn`
    evenness: float | None = None  # None: no label tells

    def to(self, device: torch.device) -> "ClassPrior":
        """Return the same prior on another device."""
        return ClassPrior(self.shares.to(device), self.strength, self.evenness)


def uniform_prior(k: int, strength: float) -> ClassPrior:
    """Return equal shares for k categories."""
    return ClassPrior(torch.full((k,), 1 / k), strength)


def size_variation(sizes: np.ndarray) -> float | None:
    """Return how much the sizes of the categories that occur differ: 0 if they are all equal.

    The interquartile range divided by the median, scaled to be the coefficient of variation of a
    normal distribution. Categories that were given the texts of several, or that no longer occur,
    hardly change it. With fewer than `MIN_OCCURRING` categories that occur it is None.

    Examples
    --------
    >>> round(size_variation(np.array([40, 41, 39, 0, 40, 200])), 2)
    0.02
    >>> size_variation(np.array([20, 40, 80, 160, 320])) > 1
    True
    """
    occurring = sizes[occurs(sizes)].astype(float)
    if len(occurring) < MIN_OCCURRING:
        return None
    low, median, high = np.percentile(occurring, [25, 50, 75])
    return float((high - low) / (1.349 * median))


def relative_sizes(labels: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Return the expected sizes [M] of known categories relative to each other.

    In proportion to the smoothed numbers of labels, if these explain at least `MIN_AGREEMENT` of
    the variation of the sizes (squared correlation of logarithms, over categories that occur);
    otherwise all 1.

    Parameters
    ----------
    labels : ndarray of shape (M,)
        Number of labelled texts of each category.
    found : ndarray of shape (M,)
        Number of unlabelled texts that a clustering gave each category.

    Examples
    --------
    >>> share = np.array([4.0, 8.0, 16.0, 32.0])
    >>> relative_sizes(share, 9 * share).round(2).tolist()
    [0.42, 0.63, 1.05, 1.89]
    >>> relative_sizes(np.full(4, 10.0), share).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    there = occurs(found)
    equal = np.ones(len(labels))
    if there.sum() < MIN_OCCURRING:
        return equal
    given, sizes = np.log(labels[there]), np.log(found[there])
    if min(given.std(), sizes.std()) < MIN_SPREAD:
        return equal
    agreement = float(np.corrcoef(given, sizes)[0, 1])
    if agreement <= 0 or agreement**2 < MIN_AGREEMENT:
        return equal
    smoothed = labels + LABEL_SMOOTHING
    return np.asarray(smoothed / smoothed[there].mean())


def evenness(variation: float) -> float:
    """Return the weight of equal sizes, from 1 (no variation) to 0.

    Examples
    --------
    >>> evenness(0.0), evenness(HALF)
    (1.0, 0.5)
    """
    return float(1 / (1 + (variation / HALF) ** STEEPNESS))


def estimate_class_prior(
    assigned: Tensor, targets: Tensor, k: int, strong: float = STRONG
) -> ClassPrior:
    """Estimate the share of the unlabelled texts that each category has.

    Parameters
    ----------
    assigned : Tensor of shape [N]
        Category that a weakly constrained clustering gave each text.
    targets : Tensor of shape [N]
        Known category of each text, -1 where unlabelled.
    k : int
        Number of categories, known ones first.
    strong : float
        Strength if all categories are of one size.

    Returns
    -------
    ClassPrior
        Uniform and of medium strength where the labels do not tell how sizes vary.

    Examples
    --------
    >>> import torch
    >>> targets = torch.tensor([0, 1, 2] + [-1] * 40)
    >>> assigned = torch.tensor([0, 1, 2] + [0] * 10 + [1] * 10 + [2] * 10 + [3] * 10)
    >>> prior = estimate_class_prior(assigned, targets, 4)
    >>> round(prior.strength, 2), [round(share, 2) for share in prior.shares.tolist()]
    (0.9, [0.24, 0.24, 0.24, 0.27])
    """
    labelled = targets >= 0
    labels = targets[labelled].bincount().cpu().numpy().astype(float)  # [M]
    known = len(labels)
    found = assigned[~labelled].bincount(minlength=k).cpu().numpy().astype(float)  # [K]
    variation = size_variation(found[:known])
    if variation is None:
        return uniform_prior(k, UNTOLD).to(assigned.device)
    weight, relative, total = evenness(variation), np.ones(known), found[:known] + labels
    if weight >= MIN_EVENNESS:
        relative = relative_sizes(labels, found[:known])  # [M]
        beyond = size_variation(found[:known] / relative)
        weight = max(weight, evenness(variation if beyond is None else beyond))
    there = occurs(found[:known])
    size = float(total[there].mean())
    sizes = np.maximum(found, 1.0)
    left = np.maximum(relative * size - labels, MIN_UNLABELLED * relative * size)
    usual = there & (sizes[:known] > USUAL * left)
    even = np.concatenate([np.where(usual, left, sizes[:known]), np.full(k - known, size)])
    sizes = even**weight * sizes ** (1 - weight)
    shares = torch.from_numpy(sizes / sizes.sum()).float().to(assigned.device)
    return ClassPrior(shares, WEAK + (strong - WEAK) * weight, weight)


def occurs(sizes: np.ndarray) -> np.ndarray:
    """Return which categories occur among the unlabelled texts: few texts are likely mistakes.

    Parameters
    ----------
    sizes : ndarray of shape (M,)
        Number of unlabelled texts of each category.

    Returns
    -------
    ndarray of bool, shape (M,)
    """
    if not (sizes > 0).any():
        return np.zeros(len(sizes), bool)
    return np.asarray(sizes >= OCCURS * np.median(sizes[sizes > 0]))
