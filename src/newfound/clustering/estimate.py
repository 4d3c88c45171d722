"""The estimated number of categories as a value, apart from how it is found (`n_categories`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from newfound.files import check_fields, check_items


@dataclass(frozen=True)
class Estimate:
    """The number of categories with the curve and the range behind it.

    Attributes
    ----------
    n_categories : int
        The estimate, known categories included.
    candidates : list of int
        Numbers of categories that were tried.
    scores : list of float
        Score per candidate: support by labels, or separation of held-out texts.
    low, high : int
        The plausible range.
    how : str
        One sentence for the user on how the number was found.
    """

    n_categories: int
    candidates: list[int]
    scores: list[float]
    low: int
    high: int
    how: str

    def to_dict(self) -> dict[str, object]:
        """Give plain values for a JSON file."""
        return {
            "estimate": self.n_categories,
            "candidates": self.candidates,
            "scores": self.scores,
            "low": self.low,
            "high": self.high,
            "how": self.how,
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any], where: str) -> "Estimate":
        """Read what `to_dict` gave; DamagedFileError names the file `where` it is not so."""
        kinds = {"estimate": int, "candidates": list, "scores": list, "low": int, "high": int}
        check_fields(value, {**kinds, "how": str}, where)
        check_items(value["candidates"], int, f"{where}, candidates")
        check_items(value["scores"], (int, float, type(None)), f"{where}, scores")
        scores = [float("nan") if score is None else float(score) for score in value["scores"]]
        return cls(
            n_categories=value["estimate"],
            candidates=list(value["candidates"]),
            scores=scores,
            low=value["low"],
            high=value["high"],
            how=value["how"],
        )
