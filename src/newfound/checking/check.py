"""What a check found, as plain values: the scores of every draw, by method."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from newfound.checking.scores import DrawScores
from newfound.files import check_fields, check_items

# Measures of a draw by name, with the heading of their column and what they mean; in percent.
MEASURES = {
    "all": ("All", "texts without a label that are in the right category"),
    "known": ("Known", "the same for those of known categories"),
    "novel": ("Novel", "the same for those of categories without labels"),
    "exact_known": ("Exact known", "texts of known categories that get their own by name"),
    "recovered": ("Recovered", "hidden categories that came back as one of their own"),
    "k_error": ("Error of K", "more (or fewer) categories than were hidden"),
    "calibration_error": ("Calibration", "mean difference of probability and accuracy"),
}
COUNTS = ("n_categories", "n_hidden", "known_texts", "novel_texts")


@dataclass(frozen=True)
class MethodCheck:
    """The scores of one method.

    Attributes
    ----------
    method : str
        Name of the method.
    draws : tuple of DrawScores
        One entry per draw.
    seconds : float
        All draws together.
    """

    method: str
    draws: tuple[DrawScores, ...]
    seconds: float

    def mean(self, measure: str) -> float:
        """Return the mean of a measure over the draws that have it; NaN if none has.

        Parameters
        ----------
        measure : str
            Name of a field of `DrawScores`.

        Returns
        -------
        float
        """
        values = self._values(measure)
        return float(np.mean(values)) if values else math.nan

    def spread(self, measure: str) -> float:
        """Return the standard deviation of a measure over draws; NaN for fewer than two.

        Parameters
        ----------
        measure : str
            Name of a field of `DrawScores`.

        Returns
        -------
        float
        """
        values = self._values(measure)
        return float(np.std(values, ddof=1)) if len(values) > 1 else math.nan

    def shown(self, measure: str) -> str:
        """Return mean and spread of a measure in percent, as tables show them.

        Parameters
        ----------
        measure : str
            Name of a field of `DrawScores`.

        Returns
        -------
        str
            Such as "81.2 \u00b1 1.5"; "-" without a value.
        """
        mean, spread = self.mean(measure), self.spread(measure)
        if math.isnan(mean):
            return "-"
        number = f"{mean:+.1f}" if measure == "k_error" else f"{mean:.1f}"
        return number if math.isnan(spread) else f"{number} \u00b1 {spread:.1f}"

    def _values(self, measure: str) -> list[float]:
        values = [float(getattr(draw, measure)) for draw in self.draws]
        return [value for value in values if not math.isnan(value)]


@dataclass(frozen=True)
class Check:
    """What to expect of a discovery on a table.

    Attributes
    ----------
    methods : tuple of MethodCheck
        One entry per method, in the order asked for.
    texts, labelled, n_known : int
        Of the table: texts, those with a label, and known categories.
    share : float
        Share of the known categories that each draw hid.
    config : Mapping
        What the user chose for the discoveries.
    """

    methods: tuple[MethodCheck, ...]
    texts: int
    labelled: int
    n_known: int
    share: float
    config: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a JSON file, with mean and spread of every measure."""
        methods = [
            {
                "method": each.method,
                "mean": {name: each.mean(name) for name in (*MEASURES, *COUNTS)},
                "spread": {name: each.spread(name) for name in (*MEASURES, *COUNTS)},
                "draws": [asdict(draw) for draw in each.draws],
                "seconds": each.seconds,
            }
            for each in self.methods
        ]
        return {
            "methods": methods,
            "texts": self.texts,
            "labelled": self.labelled,
            "n_known": self.n_known,
            "share": self.share,
            "settings": dict(self.config),
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any], where: str) -> "Check":
        """Read what `to_dict` gave; DamagedFileError names the file `where` it is not so."""
        kinds = {"texts": int, "labelled": int, "n_known": int, "methods": list, "settings": dict}
        check_fields(value, {**kinds, "share": (int, float)}, where)
        check_items(value["methods"], dict, f"{where}, methods")
        return cls(
            methods=tuple(_method(each, where) for each in value["methods"]),
            texts=value["texts"],
            labelled=value["labelled"],
            n_known=value["n_known"],
            share=float(value["share"]),
            config=value["settings"],
        )


def _method(value: Mapping[str, Any], where: str) -> MethodCheck:
    """Read the scores of one method."""
    check_fields(value, {"method": str, "draws": list, "seconds": (int, float)}, where)
    draws = tuple(_draw(each, f"{where}, draws") for each in value["draws"])
    return MethodCheck(value["method"], draws, float(value["seconds"]))


def _draw(value: Any, where: str) -> DrawScores:
    """Read the scores of one draw; JSON holds null where there is no score."""
    measures = dict.fromkeys(MEASURES, (int, float, type(None)))
    check_fields(value, {**measures, **dict.fromkeys(COUNTS, (int,))}, where)
    found: dict[str, Any] = {name: value[name] for name in COUNTS}
    for name in MEASURES:
        found[name] = math.nan if value[name] is None else float(value[name])
    return DrawScores(**found)
