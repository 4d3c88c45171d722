"""The losses of DPN, one function per equation, numbered as in the paper.

Shapes: features [B, d], prototypes [K, d]. The paper's tau is `temperature`, its gamma is
`transfer_weight`.
"""

import torch.nn.functional as F
from torch import Tensor

from newfound.clustering.distances import cosines, distances


def masked_word_loss(scores: Tensor, words: Tensor) -> Tensor:
    """Return the second term of Eq. 1: cross-entropy over the vocabulary at masked tokens.

    scores [places, vocabulary], words [places]; a word of -100 is ignored.
    """
    total = F.cross_entropy(scores.float(), words, ignore_index=-100, reduction="sum")
    return total / (words != -100).sum().clamp(min=1)


def hard_prototypical_loss(features: Tensor, prototypes: Tensor, clusters: Tensor) -> Tensor:
    """Return Eq. 4: -log softmax over negative distances, at the text's own cluster."""
    return F.cross_entropy(-distances(features, prototypes), clusters)


def assignment_weights(features: Tensor, prototypes: Tensor, temperature: float) -> Tensor:
    """Return the semantic weights [B, K] of Eq. 6: softmax over cosine / temperature."""
    return (cosines(features, prototypes) / temperature).softmax(1)


def soft_prototypical_loss(
    features: Tensor, prototypes: Tensor, temperature: float, *, uniform: bool = False
) -> Tensor:
    """Return Eq. 6 per text [B]: sum over prototypes of distance times semantic weight.

    `uniform` gives every prototype the same weight (the ablation without semantic weights).
    """
    apart = distances(features, prototypes)
    if uniform:
        return apart.mean(1)
    return (apart * assignment_weights(features, prototypes, temperature)).sum(1)


def transfer_loss(features: Tensor, labelled_prototypes: Tensor, temperature: float) -> Tensor:
    """Return Eq. 8 per text [B]: sum over labelled prototypes of (1 - cosine) times weight."""
    similar = cosines(features, labelled_prototypes)
    return ((1 - similar) * (similar / temperature).softmax(1)).sum(1)


def masked_mean(values: Tensor, chosen: Tensor) -> Tensor:
    """Return the mean of values [B] over chosen rows, 0 without any; no host synchronisation."""
    chosen = chosen.to(values.dtype)
    return (values * chosen).sum() / chosen.sum().clamp(min=1)


def novel_loss(
    features: Tensor, novel_prototypes: Tensor, is_novel: Tensor, temperature: float
) -> Tensor:
    """Return Eq. 7: the soft prototypical loss of novel texts over the novel prototypes."""
    if len(novel_prototypes) == 0:
        return features.sum() * 0
    return masked_mean(soft_prototypical_loss(features, novel_prototypes, temperature), is_novel)


def known_loss(
    features: Tensor,
    known_prototypes: Tensor,
    labelled_prototypes: Tensor,
    is_known: Tensor,
    cross_entropy: Tensor,
    temperature: float,
    transfer_weight: float,
) -> Tensor:
    """Return Eq. 9 of known texts: soft prototypical loss + cross-entropy + weight * transfer."""
    if len(known_prototypes) == 0:
        return cross_entropy
    own = masked_mean(soft_prototypical_loss(features, known_prototypes, temperature), is_known)
    transfer = masked_mean(transfer_loss(features, labelled_prototypes, temperature), is_known)
    return own + cross_entropy + transfer_weight * transfer


def dpn_loss(novel: Tensor, known: Tensor) -> Tensor:
    """Return Eq. 10: the sum of the losses of novel and known texts."""
    return novel + known
