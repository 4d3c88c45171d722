"""Cut a table from a data set: choose its texts, and which of them are labelled.

1. Sizes: cut the categories to equal sizes or to an exponential tail, or keep their sizes.
2. Limit: draw at most this many texts.
3. Known categories: draw a share of the categories.
4. Design: label texts of each known category; in `absent`, remove the unlabelled texts of a third
   of the known categories.
5. Noise: mix out-of-scope texts into the unlabelled ones.

All draws use one random seed. Tables that differ only in their design (except `absent`) hold the
same texts in the same order, so that they share the cached vectors of the frozen encoder.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from newfound.bench.wild.sources import Source
from newfound.errors import InputError
from newfound.wording import plural

KIND = "wild"  # of result lines
# Number of labelled texts of a known category with n texts, by design.
DESIGNS: Mapping[str, Callable[[int], int]] = {
    "tenth": lambda n: max(1, round(0.1 * n)),
    "ten": lambda n: min(10, max(1, n - 1)),
    "archive": lambda n: max(1, round(0.6 * n)),
    "absent": lambda n: min(10, max(1, n - 1)),
    "none": lambda n: 0,
}
# Size of the largest category relative to the smallest; None keeps the sizes of the data set.
SIZES: Mapping[str, float | None] = {"natural": None, "even": 1, "tail10": 10, "tail100": 100}
SMALLEST = 2  # minimum number of texts of a category in a tail
COUNTED = 5  # minimum number of texts of a novel category in `n_counted`


@dataclass(frozen=True)
class Cell:
    """One cell of the grid: how a table is cut.

    Parameters
    ----------
    data_set : str
        Name of the data set.
    design : str
        One of `DESIGNS`. Labelled are a tenth of each known category's texts ("tenth"), ten texts
        ("ten"), 60% ("archive"), ten texts while a third of the known categories is absent from the
        unlabelled texts ("absent"), or none ("none").
    sizes : str
        One of `SIZES`.
    noise : float
        Share of the unlabelled texts that is out of scope, below 1.
    seed : int
        Random seed.
    known_ratio : float
        Share of the categories that is known.
    limit : int
        Maximum number of texts, without out-of-scope texts.
    """

    data_set: str
    design: str = "tenth"
    sizes: str = "natural"
    noise: float = 0.0
    seed: int = 0
    known_ratio: float = 0.75
    limit: int = 2000


@dataclass(frozen=True)
class Table:
    """Texts, the labels that a method gets, and the true categories for scoring."""

    texts: list[str]
    labels: list[str | None]
    truth: list[str | None]  # None: out of scope
    known: list[str]  # sorted, as in a corpus

    @cached_property
    def unlabelled(self) -> np.ndarray:
        """Which texts have no label, bool [N]."""
        return np.array([label is None for label in self.labels], bool)

    @cached_property
    def in_scope(self) -> np.ndarray:
        """Which texts belong to a category, bool [N]."""
        return np.array([category is not None for category in self.truth], bool)

    @cached_property
    def novel_sizes(self) -> Counter[str]:
        """Number of texts of each novel category."""
        known = set(self.known)
        return Counter(name for name in self.truth if name is not None and name not in known)

    @property
    def n_categories(self) -> int:
        """The true number of categories: known ones, and novel ones that occur."""
        return len(self.known) + len(self.novel_sizes)

    @property
    def n_counted(self) -> int:
        """The number of known categories, and of novel ones with at least `COUNTED` texts."""
        return len(self.known) + sum(size >= COUNTED for size in self.novel_sizes.values())

    def counts(self) -> dict[str, int]:
        """Return the number of texts of each kind."""
        return {
            "texts": len(self.texts),
            "labelled": int((~self.unlabelled).sum()),
            "novel": sum(self.novel_sizes.values()),
            "out_of_scope": int((~self.in_scope).sum()),
        }


def cut_table(source: Source, cell: Cell, out_of_scope: Sequence[str] = ()) -> Table:
    """Cut a table from a data set.

    Parameters
    ----------
    source : Source
        The data set of the cell.
    cell : Cell
        How the table is cut.
    out_of_scope : sequence of str
        Texts from which noise is drawn.

    Returns
    -------
    Table
    """
    rng = np.random.default_rng(cell.seed)
    truth = np.array(source.labels, object)
    rows = _cut_sizes(truth, SIZES[cell.sizes], rng)
    if len(rows) > cell.limit:
        rows = np.sort(rng.permutation(rows)[: cell.limit])
    truth = truth[rows]
    known = [] if cell.design == "none" else _draw_known(truth, cell.known_ratio, rng)
    labelled, kept = _draw_labels(truth, known, cell.design, rng)
    texts = [source.texts[row] for row in rows[kept]]
    names: list[str | None] = truth[kept].tolist()
    labels = [name if given else None for name, given in zip(names, labelled[kept], strict=True)]
    table = Table(texts, labels, names, known)
    return _add_noise(table, cell.noise, out_of_scope, rng) if cell.noise else table


def _cut_sizes(truth: np.ndarray, ratio: float | None, rng: np.random.Generator) -> np.ndarray:
    """Return the rows of an exponential tail whose largest category has the median size."""
    if ratio is None:
        return np.arange(len(truth))
    categories, sizes = np.unique(truth.astype(str), return_counts=True)
    last = max(1, len(categories) - 1)
    kept = []
    for place, category in enumerate(rng.permutation(categories)):
        size = max(SMALLEST, round(float(np.median(sizes)) * ratio ** (-place / last)))
        kept.append(rng.permutation(np.flatnonzero(truth == category))[:size])
    return np.sort(np.concatenate(kept))


def _draw_known(truth: np.ndarray, ratio: float, rng: np.random.Generator) -> list[str]:
    """Return the known categories, at least one, sorted."""
    categories = sorted(set(truth))
    number = max(1, round(ratio * len(categories)))
    return sorted(rng.choice(categories, number, replace=False).tolist())


def _draw_labels(
    truth: np.ndarray, known: Sequence[str], design: str, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return which texts are labelled and which are kept in the table, both bool [N]."""
    labelled, kept = np.zeros(len(truth), bool), np.ones(len(truth), bool)
    absent: set[str] = set()
    if design == "absent":
        absent = set(rng.choice(known, len(known) // 3, replace=False).tolist())
    for category in known:
        rows = rng.permutation(np.flatnonzero(truth == category))
        number = DESIGNS[design](len(rows))
        labelled[rows[:number]] = True
        kept[rows[number:]] = category not in absent
    return labelled, kept


def _add_noise(
    table: Table, share: float, out_of_scope: Sequence[str], rng: np.random.Generator
) -> Table:
    """Return the table with out-of-scope texts added, as a share of the unlabelled texts."""
    number = round(share / (1 - share) * int(table.unlabelled.sum()))
    if number > len(out_of_scope):
        raise InputError(
            f"a noise of {share:g} needs {plural(number, 'out-of-scope text')}, but only "
            f"{len(out_of_scope):,} are available; lower --limit or --noise"
        )
    drawn = [out_of_scope[i] for i in rng.permutation(len(out_of_scope))[:number]]
    nothing: list[str | None] = [None] * number
    texts, labels = [*table.texts, *drawn], [*table.labels, *nothing]
    truth = [*table.truth, *nothing]
    order = rng.permutation(len(texts))
    labels, truth = ([column[i] for i in order] for column in (labels, truth))
    return Table([texts[i] for i in order], labels, truth, table.known)
