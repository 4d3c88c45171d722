"""TF-IDF/LSA features: the words of a text, to use beside the features of an encoder.

A sentence encoder places texts about similar things close together: two content management systems,
two kinds of transfer. Where categories follow a name (one system, not the other), words separate
them better.

1. Weight the words of each text by TF-IDF, and scale each text to length one.
2. Reduce them to their main directions by latent semantic analysis (a randomised truncated SVD).
3. Choose the weight of these features beside the encoder's by the labels: the one under which the
   neighbours of labelled texts most often share their label (`choose_weight`).
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
DEFAULT_WEIGHT = 0.5
OTHER_WEIGHTS = (0.0, 0.25, 0.75, 1.0, 1.5, 2.0)  # used if the labels show them to be better
MAX_LABELLED = 4_000  # labelled texts compared, so that time does not grow with their square


def lsa_features(tokens: Ragged, width: int = WIDTH, seed: int = 0) -> Tensor:
    """Return LSA features [N, width]: TF-IDF rows of length one along their main directions.

    Words are the encoder's own tokens, so texts are tokenised once and in any language.
    """
    rows, words, values = weighted_words(tokens)
    n, vocabulary = tokens.n_texts, int(words.max()) + 1 if len(words) else 0
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
    n, ids = tokens.n_texts, tokens.values.cpu().numpy().astype(np.int64)
    most = int(ids.max()) + 1 if len(ids) else 1
    pairs, counts = np.unique(
        np.repeat(tokens.texts, tokens.lengths) * most + ids, return_counts=True
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
def choose_weight(features: Tensor, lsa: Tensor, targets: Tensor, share: float) -> float:
    """Choose the weight of LSA features beside an encoder's features by the labels.

    It is the weight whose neighbourhoods of labelled texts are purest. A weight other than
    `DEFAULT_WEIGHT` has to be better by more than a standard error of the difference.

    Parameters
    ----------
    features : Tensor of shape [N, d]
    lsa : Tensor of shape [N, w]
    targets : Tensor of shape [N]
        Known category of each text, -1 where unlabelled.
    share : float
        Size of a neighbourhood, as a share of the mean number of labelled texts per category.

    Returns
    -------
    float
    """
    labelled = torch.where(targets >= 0)[0]
    labelled = labelled[:: -(-len(labelled) // MAX_LABELLED) or 1]
    if len(labelled) < 3:
        return DEFAULT_WEIGHT
    labels = targets[labelled]
    count = max(1, round(share * len(labels) / len(labels.unique())))

    def purity(weight: float) -> Tensor:
        points = join_features(features[labelled], weight * lsa[labelled])
        return (labels[nearest_neighbours(points, count)] == labels[:, None]).float().mean(1)

    default = purity(DEFAULT_WEIGHT)
    best, largest = DEFAULT_WEIGHT, 0.0
    for weight in OTHER_WEIGHTS:
        gain = purity(weight) - default
        certain = float(gain.mean() - gain.std() / math.sqrt(len(gain)))
        if certain > largest:
            best, largest = weight, certain
    return best


def weighted_lsa_features(
    tokens: Ragged, features: Tensor, targets: Tensor, share: float
) -> Tensor:
    """Return LSA features [N, w] times the weight of `choose_weight` beside features [N, d]."""
    lsa = lsa_features(tokens).to(features.device)
    return choose_weight(features, lsa, targets, share) * lsa


def join_features(features: Tensor, lsa: Tensor) -> Tensor:
    """Return features scaled to length one and weighted LSA features side by side [N, d + w]."""
    return torch.cat([F.normalize(features.float(), dim=1), lsa], dim=1)
