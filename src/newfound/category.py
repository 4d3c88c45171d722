"""Category: one known or novel category of a result."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Category:
    """A category: known (a label of the user) or novel (discovered).

    Attributes
    ----------
    id : int
        Index of the category; known categories come first.
    name : str
        The label of a known category, or the generated name of a novel one.
    kind : {"known", "novel"}
        Whether the category has labelled texts.
    size : int
        Number of texts in the category.
    share : float
        Share of all texts.
    labelled : int
        Number of its texts that have a label.
    keywords : tuple of str
        Words that distinguish the category from others, best first.
    examples : tuple of str
        Typical texts, closest to the prototype.
    border : tuple of str
        Border texts, which have the lowest probability.
    confidence : float
        Mean probability of its texts.
    nearest : int
        Id of the category with the closest prototype, -1 if there is only one category.
    nearest_distance : float
        Distance to that prototype, NaN if there is only one category.
    distance : float or None
        Known categories: distance of the prototype to the mean of the labelled texts.
    fit : float or None
        Mean fit score of its texts; None if it has no texts, or in a file of an earlier version.
    fits_nowhere : int or None
        Number of its texts that are marked as fitting nowhere; None without `outside` and
        `false_alarms`.
    volume : tuple of (str, int)
        Periods in order, each with the number of its texts; empty without a time column.
    """

    id: int
    name: str
    kind: str
    size: int
    share: float
    labelled: int
    keywords: tuple[str, ...]
    examples: tuple[str, ...]
    border: tuple[str, ...]
    confidence: float
    nearest: int
    nearest_distance: float
    distance: float | None
    fit: float | None = None
    fits_nowhere: int | None = None
    volume: tuple[tuple[str, int], ...] = ()
