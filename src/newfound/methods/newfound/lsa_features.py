"""What texts say in the same words, beside what an encoder makes of them.

A sentence encoder puts texts close that are about alike things: two content management systems,
two kinds of transfer. Where people's categories follow a name (one system, not the other), the
words say more. So a text is also a vector of its words' weights, reduced to the few directions in
which many texts differ (latent semantic analysis), which stands beside the encoder's vector.

How much words should weigh depends on the data, and labels tell: the right weight is the one under
which labelled texts have most neighbours of their own category.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from newfound.clustering.neighbours import nearest_neighbours
from newfound.encoding.batching import Ragged

WIDTH = 50
LEAST_TEXTS = 2  # that a word must be in: one that is in a single text compares nothing
PASSES = 3  # power iterations; each brings the directions closer to the exact ones
SPARE = 10  # directions more than wanted, which makes the wanted ones more exact
USUAL = 0.5  # weight of words unless the labels speak against it
OTHERS = (0.0, 0.25, 0.75, 1.0, 1.5, 2.0)
MOST_JUDGES = 4_000  # labelled texts that are asked, so that time does not grow with their square


def word_vectors(tokens: Ragged, width: int = WIDTH, seed: int = 0) -> Tensor:
    """Texts [N, width] by their words: tf-idf rows of length one along their longest directions.

    Words are the encoder's own (`tokens`), so they are cut once and in any language.
    """
    rows, words, values = weighted_words(tokens)
    n, vocabulary = len(tokens), int(words.max()) + 1 if len(words) else 0
    width, wider = min(width, n, vocabulary), min(width + SPARE, n, vocabulary)
    if width == 0:
        return torch.empty(n, 0)
    table = torch.sparse_coo_tensor(
        torch.from_numpy(np.stack([rows, words])),
        torch.from_numpy(values),
        (n, vocabulary),
        check_invariants=True,
        is_coalesced=True,  # sorted by text and word, each once
    )
    with torch.random.fork_rng(devices=[]):  # svd_lowrank draws from the global generator
        torch.default_generator.manual_seed(seed)
        left, lengths, _ = torch.svd_lowrank(table, q=wider, niter=PASSES)
    return (left * lengths)[:, :width]


def weighted_words(tokens: Ragged) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The entries of the tf-idf table, one for each word of each text: (text, word, weight).

    Words are numbered anew, those of fewer than LEAST_TEXTS texts left out; a text's weights have
    length one.
    """
    n, ids = len(tokens), tokens.values.cpu().numpy().astype(np.int64)
    most = int(ids.max()) + 1 if len(ids) else 1
    pairs, counts = np.unique(
        np.repeat(np.arange(n), tokens.lengths) * most + ids, return_counts=True
    )
    rows, found = pairs // most, pairs % most
    texts = np.bincount(found, minlength=most)  # that a word is in
    used = (texts >= LEAST_TEXTS) & (texts < n)  # a word of every text says nothing
    kept = used[found]
    rows, found, counts = rows[kept], found[kept], counts[kept]
    values = (1 + np.log(counts)) * (math.log(max(n, 1)) - np.log(texts[found]))
    lengths = np.sqrt(np.bincount(rows, values**2, minlength=n))
    return rows, (np.cumsum(used) - 1)[found], (values / lengths[rows]).astype(np.float32)


@torch.no_grad()
def choose_weight(features: Tensor, words: Tensor, targets: Tensor, share: float) -> float:
    """How much words [N, w] should weigh beside features [N, d], by the labels `targets` [N].

    The weight whose neighbourhoods of labelled texts, `share` of a category's labelled texts large,
    are purest. Another than the usual one has to be better by more than chance: by a standard error
    of the difference.
    """
    judges = torch.where(targets >= 0)[0]
    judges = judges[:: -(-len(judges) // MOST_JUDGES) or 1]
    if len(judges) < 3:
        return USUAL
    labels = targets[judges]
    count = max(1, round(share * len(labels) / len(labels.unique())))

    def purity(weight: float) -> Tensor:
        near = nearest_neighbours(joined(features[judges], weight * words[judges]), count)
        return (labels[near] == labels[:, None]).float().mean(1)

    usual = purity(USUAL)
    best, most = USUAL, 0.0
    for weight in OTHERS:
        gain = purity(weight) - usual
        sure = float(gain.mean() - gain.std() / math.sqrt(len(gain)))
        if sure > most:
            best, most = weight, sure
    return best


def weigh_words(tokens: Ragged, features: Tensor, targets: Tensor, share: float) -> Tensor:
    """The words of texts with these features [N, d] and labels [N], weighted by `choose_weight`."""
    words = word_vectors(tokens).to(features.device)
    return choose_weight(features, words, targets, share) * words


def joined(features: Tensor, words: Tensor) -> Tensor:
    """Features [N, d], of length one, and weighted words [N, w] side by side."""
    return torch.cat([F.normalize(features.float(), dim=1), words], dim=1)
