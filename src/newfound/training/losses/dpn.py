"""The losses of DPN, one function per equation (numbers as in the paper).

Shapes: features [B, d], prototypes [K, d]. Greek letters of the paper live only here: tau is
`temperature`, gamma is `transfer_weight`.
"""

import torch.nn.functional as F
from torch import Tensor

from newfound.clustering.distances import cosines, distances


def masked_word_loss(scores: Tensor, words: Tensor) -> Tensor:
    """Second half of Eq. 1: cross-entropy over the vocabulary at the masked places only.

    scores [places, vocabulary], words [places]; a word of -100 is left out.
    """
    total = F.cross_entropy(scores.float(), words, ignore_index=-100, reduction="sum")
    return total / (words != -100).sum().clamp(min=1)


def hard_prototypical_loss(features: Tensor, prototypes: Tensor, clusters: Tensor) -> Tensor:
    """Eq. 4: -log softmax over negative distances, at the text's own cluster."""
    return F.cross_entropy(-distances(features, prototypes), clusters)


def assignment_weights(features: Tensor, prototypes: Tensor, temperature: float) -> Tensor:
    """The semantic weights of Eq. 6: softmax over cosine similarity / temperature [B, K]."""
    return (cosines(features, prototypes) / temperature).softmax(1)


def soft_prototypical_loss(
    features: Tensor, prototypes: Tensor, temperature: float, *, uniform: bool = False
) -> Tensor:
    """Eq. 6, per text [B]: sum over prototypes of distance times semantic weight.

    `uniform` gives every prototype the same weight (the ablation without semantic weights).
    """
    apart = distances(features, prototypes)
    if uniform:
        return apart.mean(1)
    return (apart * assignment_weights(features, prototypes, temperature)).sum(1)


def transfer_loss(features: Tensor, labelled_prototypes: Tensor, temperature: float) -> Tensor:
    """Eq. 8, per text [B]: sum over labelled prototypes of (1 - cosine) times semantic weight."""
    similar = cosines(features, labelled_prototypes)
    return ((1 - similar) * (similar / temperature).softmax(1)).sum(1)


def masked_mean(values: Tensor, chosen: Tensor) -> Tensor:
    """Mean of values [B] over the chosen rows; zero if there are none. No host synchronisation."""
    chosen = chosen.to(values.dtype)
    return (values * chosen).sum() / chosen.sum().clamp(min=1)


def novel_loss(
    features: Tensor, novel_prototypes: Tensor, is_novel: Tensor, temperature: float
) -> Tensor:
    """Eq. 7: the soft prototypical loss of novel texts over the novel prototypes."""
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
    """Eq. 9: soft prototypical loss + cross-entropy on labels + weight * transfer, known texts."""
    if len(known_prototypes) == 0:
        return cross_entropy
    own = masked_mean(soft_prototypical_loss(features, known_prototypes, temperature), is_known)
    transfer = masked_mean(transfer_loss(features, labelled_prototypes, temperature), is_known)
    return own + cross_entropy + transfer_weight * transfer


def dpn_loss(novel: Tensor, known: Tensor) -> Tensor:
    """Eq. 10: the sum of the two goals."""
    return novel + known
