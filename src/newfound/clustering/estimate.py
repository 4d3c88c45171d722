"""The estimated number of categories, however it was found."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from newfound.files import check_fields, check_items


@dataclass(frozen=True)
class Estimate:
    """An estimate of the number of categories.

    Attributes
    ----------
    n_categories : int
        The estimate, known categories included.
    candidates : list of int
        Numbers of categories that were compared.
    scores : list of float
        Score of each candidate, higher is more likely: support by the labels, balanced accuracy of
        the merge threshold, or held-out silhouette.
    low, high : int
        Plausible range.
    how : str
        How the number was found, as one sentence for the user.
    at_limit : bool, default False
        Whether the estimate is the largest number that was tried, so that there may be more
        categories.
    """

    n_categories: int
    candidates: list[int]
    scores: list[float]
    low: int
    high: int
    how: str
    at_limit: bool = False

    def to_dict(self) -> dict[str, object]:
        """Return the fields as a dict for a JSON file."""
        return {
            "estimate": self.n_categories,
            "candidates": self.candidates,
            "scores": self.scores,
            "low": self.low,
            "high": self.high,
            "how": self.how,
            "at_limit": self.at_limit,
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any], where: str) -> "Estimate":
        """Return the estimate from `to_dict`, or raise DamagedFileError about file `where`."""
        kinds = {"estimate": int, "candidates": list, "scores": list, "low": int, "high": int}
        check_fields(value, {**kinds, "how": str}, where)
        at_limit = value.get("at_limit", False)  # missing in files of earlier versions
        check_fields({"at_limit": at_limit}, {"at_limit": bool}, where)
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
            at_limit=at_limit,
        )
