"""Cut a table from a data set: which texts it holds, and which of them are labelled.

1. Sizes: cut the categories to an exponential tail, or leave them as they are.
2. Limit: draw so many texts.
3. Known categories: draw a share of the categories.
4. Design: label texts of each known category; in `absent`, remove the unlabelled texts of a third
   of the known categories.
5. Noise: mix out-of-scope texts into the unlabelled ones.

All draws come from one seed. Tables that differ only in their design hold the same texts in the
same order (`absent` aside), so that they share the frozen encoder's pass.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from newfound.bench.wild.sources import Source
from newfound.errors import InputError

KIND = "wild"  # of result lines
# How many of a known category's n texts are labelled, by design.
DESIGNS: Mapping[str, Callable[[int], int]] = {
    "tenth": lambda n: max(1, round(0.1 * n)),
    "ten": lambda n: min(10, max(1, n - 1)),
    "archive": lambda n: max(1, round(0.6 * n)),
    "absent": lambda n: min(10, max(1, n - 1)),
    "none": lambda n: 0,
}
# How many times larger the largest category is than the smallest; None: as the data set has it.
SIZES: Mapping[str, float | None] = {"natural": None, "even": 1, "tail10": 10, "tail100": 100}
SMALLEST = 2  # texts that a category of a tail keeps at least
COUNTED = 5  # categories with fewer texts do not count where K is scored


@dataclass(frozen=True)
class Cell:
    """One cell of the grid: how a table is cut.

    Parameters
    ----------
    data_set : str
        Name of the data set.
    design : str
        One of `DESIGNS`: a tenth of each known category's texts is labelled, ten texts, 60% of
        them (an archive), ten with a third of the known categories absent from the unlabelled
        texts, or none at all.
    sizes : str
        One of `SIZES`.
    noise : float
        Share of the unlabelled texts that is out of scope, below 1.
    seed : int
        Seed of all draws.
    known_ratio : float
        Share of the categories that is known.
    limit : int
        Most texts of a table, out-of-scope texts aside.
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
    """Texts, the labels that a method sees, and the truth that it is scored by."""

    texts: list[str]
    labels: list[str | None]
    truth: list[str | None]  # None: out of scope
    known: list[str]  # sorted, as a corpus orders its labels

    @cached_property
    def unlabelled(self) -> np.ndarray:
        """Which texts carry no label, bool [N]."""
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
        """The true number of categories: the known ones, and the novel ones that occur."""
        return len(self.known) + len(self.novel_sizes)

    @property
    def n_counted(self) -> int:
        """The known categories, and the novel ones with at least `COUNTED` texts."""
        return len(self.known) + sum(size >= COUNTED for size in self.novel_sizes.values())

    def counts(self) -> dict[str, int]:
        """Return how many texts there are of each kind."""
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
        The data set that the cell names.
    cell : Cell
        How it is cut.
    out_of_scope : sequence of str
        Texts that noise is drawn from.

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
    """Return the rows of an exponential tail, whose largest category is of the median size."""
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
    """Return which texts are labelled and which stay in the table, both bool [N]."""
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
    """Return the table with so many out-of-scope texts that they are `share` of the unlabelled."""
    number = round(share / (1 - share) * int(table.unlabelled.sum()))
    if number > len(out_of_scope):
        raise InputError(
            f"a noise of {share:g} needs {number:,} out-of-scope texts, but there are "
            f"{len(out_of_scope):,}: lower --limit or --noise"
        )
    drawn = [out_of_scope[i] for i in rng.permutation(len(out_of_scope))[:number]]
    nothing: list[str | None] = [None] * number
    texts, labels = [*table.texts, *drawn], [*table.labels, *nothing]
    truth = [*table.truth, *nothing]
    order = rng.permutation(len(texts))
    labels, truth = ([column[i] for i in order] for column in (labels, truth))
    return Table([texts[i] for i in order], labels, truth, table.known)
