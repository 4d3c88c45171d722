"""A draw: a corpus in which some known categories, and some labels of the others, are hidden."""

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np

from newfound.data.corpus import Corpus
from newfound.errors import InputError
from newfound.wording import plural

SHARE = 0.25  # of the known categories, and of the labels of the others
MIN_CATEGORIES = 4  # known categories, so that some stay known
MIN_LABELS = 3  # labels of a category that can be hidden; with fewer, a score means little


@dataclass(frozen=True)
class Draw:
    """A corpus without the hidden labels, and the hidden labels.

    Attributes
    ----------
    corpus : Corpus
        The same texts in the same order; hidden labels are None.
    truth : list of str or None
        The hidden label of each text, None if it has none.
    hidden : tuple of str
        The hidden categories, sorted; all their labels are hidden.
    """

    corpus: Corpus
    truth: list[str | None]
    hidden: tuple[str, ...]


def hide_categories(corpus: Corpus, share: float = SHARE, seed: int = 0, draw: int = 0) -> Draw:
    """Hide a share of the known categories, and the same share of the labels of each other one.

    Categories with fewer than three labelled texts keep their labels. Successive draws with the
    same seed hide different categories until each category has been hidden once.

    Parameters
    ----------
    corpus : Corpus
        Texts with labels of at least four categories.
    share : float, default 0.25
        Share of the categories, and of the labels of each category that stays known.
    seed : int, default 0
        Random seed.
    draw : int, default 0
        Number of the draw with this seed, from 0.

    Returns
    -------
    Draw

    Examples
    --------
    >>> from newfound.checking.draws import hide_categories
    >>> from newfound.data.corpus import Corpus
    >>> labels = [name for name in ("bill", "card", "loan", "rate") for _ in range(4)]
    >>> corpus = Corpus.from_lists([f"text {i}" for i in range(16)], labels)
    >>> draw = hide_categories(corpus)
    >>> len(draw.hidden), len(draw.corpus.known), sum(label is not None for label in draw.truth)
    (1, 3, 7)
    """
    if not 0 < share <= 0.5:
        raise InputError(
            f"the share of hidden categories must be above 0 and at most 0.5, not {share}"
        )
    rows = _rows_of_labels(corpus)
    enough = [label for label, own in rows.items() if len(own) >= MIN_LABELS]
    _check_labels(len(rows), len(enough))
    order = np.random.default_rng([seed, 0]).permutation(len(enough))
    count = min(max(1, round(share * len(rows))), len(enough))
    chosen = {enough[order[(draw * count + i) % len(enough)]] for i in range(count)}
    rng = np.random.default_rng([seed, 1, draw])
    taken: list[int] = []
    for label in enough:
        own = rows[label]
        few = max(1, round(share * len(own)))
        taken += own if label in chosen else rng.permutation(own)[:few].tolist()
    labels = list(corpus.labels)
    truth: list[str | None] = [None] * len(corpus)
    for row in taken:
        truth[row], labels[row] = labels[row], None
    return Draw(replace(corpus, labels=labels), truth, tuple(sorted(chosen)))


def _rows_of_labels(corpus: Corpus) -> dict[str, list[int]]:
    """Return the rows of each label, sorted by label."""
    rows: dict[str, list[int]] = defaultdict(list)
    for row, label in enumerate(corpus.labels):
        if label is not None:
            rows[label].append(row)
    return dict(sorted(rows.items()))


def _check_labels(known: int, enough: int) -> None:
    """Raise InputError if there are too few labels to hide some."""
    if known < MIN_CATEGORIES:
        raise InputError(
            f"{plural(known, 'category is', 'categories are')} known, but a check hides some and "
            f"needs at least {MIN_CATEGORIES}; label texts of more categories"
        )
    if not enough:
        raise InputError(
            f"no category has {MIN_LABELS} labelled texts, so none can be hidden; label more texts "
            "of some categories"
        )
