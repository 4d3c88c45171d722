"""What is known of one category after discovery."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Category:
    """One category: known (named by the user's label) or novel (named by its keywords)."""

    id: int
    name: str
    kind: str  # "known" or "novel"
    size: int  # texts of the corpus that it holds
    share: float  # of all texts
    labelled: int  # texts whose label the user gave
    keywords: tuple[str, ...]
    examples: tuple[str, ...]  # typical texts, nearest to the prototype
    border: tuple[str, ...]  # texts the model is least sure of
    confidence: float  # mean probability of its texts
    nearest: int  # id of the category with the closest prototype, -1 if there is no other
    nearest_distance: float
    distance: float | None  # known only: prototype to the matched labelled prototype
