"""Sinkhorn's balanced assignment: soft labels that use every category as often as expected."""

import math

import torch
from torch import Tensor

TINY = 1e-30  # a category that no text comes near still gets a finite scale
STEADY = 4  # labels a category that are thought of beside its own, for few labels say little
LEAST = 0.5  # of a category: what is left to be found however many of its texts carry a label
CHANCE = 2.0  # standard deviations by which numbers of labels may differ by chance
EVEN = 0.1  # unevenness at which sizes that were found count as much as those expected
USUAL = 0.3  # unevenness that labels must be able to tell from chance if they are to be believed


def sinkhorn(
    scores: Tensor, epsilon: float, iterations: int, shares: Tensor | None = None
) -> Tensor:
    """Soft assignment [N, K] from scores [N, K]: each row sums to 1, each column to about N / K.

    With `shares` [K], which sum to 1, each column comes to about its share of N.

    exp(scores / epsilon) is scaled column by column, then row by row, `iterations` times. Rows come
    last, so a text's shares are exact and the columns' as near as the iterations bring them; with
    none of them this is the softmax of each row, without balance.

    Only the two sets of scales change, so an iteration costs two products of a matrix with a
    vector. Nothing is learnt through it.
    """
    with torch.no_grad():
        logs = scores.float() / epsilon
        # The largest of each row is subtracted first, so that nothing overflows and no row
        # vanishes; `rows` begins with what this took from a row.
        top = logs.amax(1)
        kernel = (logs - top[:, None]).exp()  # [N, K]
        rows = (top - top.max()).exp()  # [N]
        columns = logs.new_ones(logs.shape[1])  # [K]
        share = logs.shape[0] / logs.shape[1] if shares is None else len(logs) * shares
        for _ in range(iterations):
            columns = share / (rows @ kernel).clamp(min=TINY)
            rows = 1 / (kernel @ columns)
        found = kernel * columns
        return found / found.sum(1, keepdim=True)


def expected_shares(targets: Tensor, k: int, *, by_labels: bool = True) -> Tensor:
    """Which share of the unlabelled texts each of k categories should have [K], by targets [N].

    Known categories are as large as novel ones on average, and among themselves as their numbers of
    labels say, which are evened a little. Texts that carry a label are not to be found any more.
    Labels may come from elsewhere, though, so at least half of a category is thought to be left.
    Not `by_labels`, all shares are even.
    """
    even = torch.full((k,), 1 / k, device=targets.device)
    labels = targets[targets >= 0].bincount().float()  # [M]
    if not by_labels or not len(labels):
        return even
    sizes = even * len(targets)
    known = sizes[: len(labels)] * (labels + STEADY) / (labels + STEADY).mean()
    sizes[: len(labels)] = torch.maximum(known - labels, LEAST * known)
    return sizes / sizes.sum()


def unevenness(targets: Tensor) -> float:
    """By how much known categories differ in size: the squared spread of sizes around a mean of 1.

    Numbers of labels, from targets [N] with -1 for unlabelled, differ by chance, too: if they were
    drawn from categories of one size their variance would be about their mean. Only what is beyond
    that is of the categories; it is 0 where chance explains it all. Where labels are so few that
    chance could hide what is usual, it is EVEN: then expected and found sizes count alike.
    """
    labels = targets[targets >= 0].bincount().double()  # [M]
    free = len(labels) - 1
    if free < 1:
        return EVEN
    mean = float(labels.mean())
    dispersion = float((labels - mean).square().sum()) / mean  # by chance: free +- sqrt(2 free)
    chance = CHANCE * math.sqrt(2 * free)
    if dispersion > free + chance:
        return float(labels.var() - mean) / mean**2
    return 0.0 if free * mean * USUAL > chance else EVEN


def heeded_shares(expected: Tensor, labels: Tensor, uneven: float) -> Tensor:
    """Shares [K] between those expected and those that self-made labels [N] have.

    The more known categories differ in size, the less is known of the sizes of novel ones, and the
    more counts what was found. Where they are even, what is expected stays.
    """
    if uneven <= 0 or not len(labels):
        return expected
    found = labels.bincount(minlength=len(expected)).clamp(min=1).to(expected.dtype)
    weight = uneven / (uneven + EVEN)
    return (1 - weight) * expected + weight * found / found.sum()
