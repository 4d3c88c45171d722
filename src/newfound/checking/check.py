"""The result of a check, as plain values: the scores of every draw, by method."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from newfound.checking.forecast import Forecast, Whole, forecast
from newfound.checking.scores import DrawScores
from newfound.files import check_fields, check_items

# Measures of a draw in percent: name, heading of the column, and meaning.
MEASURES = {
    "all": ("All", "unlabelled texts in the right category"),
    "known": ("Known", "the same for texts of known categories"),
    "novel": ("Novel", "the same for texts of novel categories"),
    "exact_known": ("Exact known", "texts of known categories that get their own category by name"),
    "recovered": ("Recovered", "hidden categories that were found as one separate category"),
    "k_error": ("Error of K", "how many more or fewer novel categories than hidden ones"),
    "calibration_error": ("Calibration", "mean difference between probability and accuracy"),
}
NUMBER = (int, float, type(None))  # types of a number in a file; null stands for NaN
GAPS = ("known_gap", "novel_gap")
COUNTS = ("n_categories", "n_hidden", "known_texts", "novel_texts")


@dataclass(frozen=True)
class MethodCheck:
    """The scores of one method in a check.

    Attributes
    ----------
    method : str
        Name of the method.
    draws : tuple of DrawScores
        One entry per draw.
    seconds : float
        Seconds of all discoveries together.
    whole : Whole or None
        What the discovery with all labels believes; None in files of older versions.
    """

    method: str
    draws: tuple[DrawScores, ...]
    seconds: float
    whole: Whole | None = None

    @property
    def forecast(self) -> Forecast | None:
        """The accuracy to expect on the whole table; None in files of older versions."""
        return None if self.whole is None else forecast(self.whole, self.draws)

    def mean(self, measure: str) -> float:
        """Return the mean of a measure over draws, without NaN; NaN if no draw has a value.

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
        """Return the standard deviation of a measure over draws; NaN for fewer than two values.

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

    def expected(self) -> str:
        """Return the forecast of All as tables show it: in percent, such as "81"; "-" without."""
        found = self.forecast
        return "-" if found is None or math.isnan(found.all) else f"{found.all:.0f}"

    def shown(self, measure: str) -> str:
        """Return the mean and the standard deviation of a measure as a table shows them.

        Parameters
        ----------
        measure : str
            Name of a field of `DrawScores`.

        Returns
        -------
        str
            In percent, such as "81.2 \u00b1 1.5"; "-" without a value.
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
    """The accuracy to expect of a discovery on a table.

    Attributes
    ----------
    methods : tuple of MethodCheck
        One entry per method, in the given order.
    texts, labelled, n_known : int
        Numbers of texts, labelled texts and known categories of the table.
    share : float
        Share of the known categories that each draw hides.
    config : Mapping
        Configuration of the discoveries.
    """

    methods: tuple[MethodCheck, ...]
    texts: int
    labelled: int
    n_known: int
    share: float
    config: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a JSON file, with mean and standard deviation of each measure."""
        methods = [
            {
                "method": each.method,
                "forecast": None if each.forecast is None else asdict(each.forecast),
                "whole": None if each.whole is None else asdict(each.whole),
                "mean": {name: each.mean(name) for name in (*MEASURES, *COUNTS, *GAPS)},
                "spread": {name: each.spread(name) for name in (*MEASURES, *COUNTS, *GAPS)},
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
        """Return the check from `to_dict`, or raise DamagedFileError about file `where`."""
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
    """Return the scores of one method from a JSON object."""
    check_fields(value, {"method": str, "draws": list, "seconds": (int, float)}, where)
    draws = tuple(_draw(each, f"{where}, draws") for each in value["draws"])
    whole = value.get("whole")
    return MethodCheck(
        value["method"],
        draws,
        float(value["seconds"]),
        None if whole is None else _whole(whole, f"{where}, whole"),
    )


def _draw(value: Any, where: str) -> DrawScores:
    """Return the scores of one draw from a JSON object; older ones have no gaps."""
    check_fields(value, {**dict.fromkeys(MEASURES, NUMBER), **dict.fromkeys(COUNTS, (int,))}, where)
    given = {**dict.fromkeys(GAPS), **value}
    check_fields(given, dict.fromkeys(GAPS, NUMBER), where)
    found: dict[str, Any] = {name: _number(given[name]) for name in (*MEASURES, *GAPS)}
    return DrawScores(**found, **{name: value[name] for name in COUNTS})


def _whole(value: Any, where: str) -> Whole:
    """Return what the discovery with all labels believes from a JSON object."""
    names = ("known", "novel", "novel_share")
    check_fields(value, {**dict.fromkeys(names, NUMBER), "n_categories": (int,)}, where)
    numbers = {name: _number(value[name]) for name in names}
    return Whole(**numbers, n_categories=value["n_categories"])


def _number(value: float | None) -> float:
    """Return a number of a JSON file, in which null stands for NaN."""
    return math.nan if value is None else float(value)
