"""Dates of texts: read a column of dates, and divide their range into periods.

A date is written as 2024-05-31 (a time of day may follow, and is not used), as 31.05.2024, as
05/31/2024 or 31/05/2024, as a Unix time in seconds or milliseconds, or in any form that pandas
reads. Which of day and month comes first is decided for the whole column.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from newfound.data.corpus import Corpus
from newfound.errors import InputError
from newfound.wording import plural

MOST_PERIODS = 60
EARLIEST, LATEST = np.datetime64("1900-01-01"), np.datetime64("2099-12-31")  # others are mistakes
UNITS = ("day", "week", "month", "quarter", "year")
_ISO = re.compile(r"\s*(\d{4})-?(\d\d)-?(\d\d)(?!\d)")
_MONTH = re.compile(r"\s*(\d{4})(?:-(\d\d))?\s*$")
_NUMBERS = re.compile(r"\s*(\d{1,2})([./-])(\d{1,2})\2(\d{4}|\d\d)(?!\d)")
_UNIX = re.compile(r"\s*(\d{9,10}|\d{12,13})(?:\.\d+)?\s*$")
_DAY = 24 * 60 * 60


@dataclass(frozen=True)
class Periods:
    """The range of dates, divided into periods of one unit.

    Attributes
    ----------
    unit : {"day", "week", "month", "quarter", "year"}
    names : tuple of str
        Names of the P periods in order, without gaps; a week is named by its Monday.
    of : ndarray of int64, shape (N,)
        Period of each text, -1 without a date.
    """

    unit: str
    names: tuple[str, ...]
    of: np.ndarray

    def counts(self, groups: np.ndarray, total: int) -> np.ndarray:
        """Return how many texts of each of `total` groups are in each period, [total, P]."""
        dated = self.of >= 0
        places = groups[dated] * len(self.names) + self.of[dated]
        size = total * len(self.names)
        return np.bincount(places, minlength=size).reshape(total, len(self.names))


def read_dates(cells: Sequence[str]) -> np.ndarray:
    """Return the dates in cells as datetime64[D], NaT where there is none.

    Examples
    --------
    >>> read_dates(["2024-05-31 10:00", "31.05.2024", "1717113600", "soon"]).astype(str).tolist()
    ['2024-05-31', '2024-05-31', '2024-05-31', 'NaT']
    """
    place = {cell: at for at, cell in enumerate(dict.fromkeys(cells))}  # many texts share a date
    month_first = _is_month_first(list(place))
    known: dict[str, np.datetime64] = {}
    left: list[str] = []
    for cell in place:
        date = _date(cell, month_first)
        if date is not None:
            known[cell] = date
        elif cell.strip():
            left.append(cell)
    known |= _by_pandas(left)
    missing = np.datetime64("NaT", "D")
    dates = np.array([known.get(cell, missing) for cell in place], dtype="datetime64[D]")
    dates[(dates < EARLIEST) | (dates > LATEST)] = missing
    return dates[np.fromiter(map(place.__getitem__, cells), np.int64, len(cells))]


def _is_month_first(cells: Sequence[str]) -> bool:
    """Return whether 05/04/2024 is the fourth of May, judging by all cells with slashes."""
    found = [match for cell in cells if (match := _NUMBERS.match(cell)) and match[2] == "/"]
    return not any(int(match[1]) > 12 for match in found)


def _date(cell: str, month_first: bool) -> np.datetime64 | None:
    """Return the date in a cell of one of the usual forms."""
    if match := _ISO.match(cell):
        year, month, day = match.groups()
    elif match := _NUMBERS.match(cell):
        first, sign, second, year = match.groups()
        day, month = (second, first) if sign == "/" and month_first else (first, second)
        year = year if len(year) == 4 else f"20{year}"
    elif match := _MONTH.match(cell):
        year, month, day = match[1], match[2] or "01", "01"
    elif match := _UNIX.match(cell):
        seconds = int(match[1]) // (1000 if len(match[1]) > 10 else 1)
        return np.datetime64(seconds // _DAY, "D")
    else:
        return None
    try:
        return np.datetime64(f"{year}-{int(month):02}-{int(day):02}", "D")
    except ValueError:
        return None


def _by_pandas(cells: list[str]) -> dict[str, np.datetime64]:
    """Return the dates in cells of other forms, such as 31 May 2024."""
    # A number is no date, and neither is a word such as "now" or "May".
    cells = [cell for cell in cells if re.search(r"\d\D", cell) and re.search(r"[^\W\d]", cell)]
    if not cells:
        return {}
    import pandas as pd

    read = pd.to_datetime(pd.Series(cells), errors="coerce", format="mixed", utc=True)
    days = read.dt.tz_localize(None).to_numpy().astype("datetime64[D]")
    return {cell: day for cell, day in zip(cells, days, strict=True) if not np.isnat(day)}


def check_times(corpus: Corpus, where: str) -> list[str]:
    """Return notes on texts without a date in the time column; none without such a column.

    `where` is the name of the table in messages.

    Raises
    ------
    InputError
        If most cells of the column are not dates.
    """
    if corpus.time_column is None:
        return []
    cells = corpus.columns[corpus.time_column]
    column = f"{where}, column {corpus.time_column!r}"
    dates = read_dates(cells)
    filled = [row for row, cell in enumerate(cells) if cell.strip()]
    wrong = [row for row in filled if np.isnat(dates[row])]
    if not filled:
        raise InputError(f"{column} is empty: name another --time-column")
    first = ""
    if wrong:
        first = f"first: {cells[wrong[0]][:40]!r}, of the text with id {corpus.ids[wrong[0]]}"
    if 2 * len(wrong) > len(filled):
        raise InputError(
            f"{column}: {len(wrong):,} of {plural(len(filled), 'cell')} are "
            f"not dates ({first}): write them as 2024-05-31, or name another --time-column"
        )
    notes = []
    if wrong:
        notes.append(
            f"{column}: {plural(len(wrong), 'cell is', 'cells are')} not a "
            f"date ({first}): these texts have no date"
        )
    if len(filled) < len(cells):
        empty = plural(len(cells) - len(filled), "text has", "texts have")
        notes.append(f"{column}: {empty} no date")
    return notes


def periods(corpus: Corpus) -> Periods | None:
    """Divide the range of the dates into at most MOST_PERIODS periods of the smallest unit.

    Parameters
    ----------
    corpus : Corpus

    Returns
    -------
    Periods or None
        None without a time column, and without any date in it.
    """
    if corpus.time_column is None:
        return None
    dates = read_dates(corpus.columns[corpus.time_column])
    dated = ~np.isnat(dates)
    if not dated.any():
        return None
    of = np.full(len(dates), -1, np.int64)
    for unit in UNITS:
        numbers = _numbers(dates[dated], unit)
        low, high = int(numbers.min()), int(numbers.max())
        if high - low < MOST_PERIODS or unit == UNITS[-1]:
            break
    of[dated] = numbers - low
    return Periods(unit, tuple(_name(number, unit) for number in range(low, high + 1)), of)


def _numbers(dates: np.ndarray, unit: str) -> np.ndarray:
    """Return the number of the period of each date, counted from 1970."""
    if unit in ("day", "week"):
        days = dates.astype(np.int64)
        return days if unit == "day" else (days + 3) // 7  # 1970 began on a Thursday
    months = dates.astype("datetime64[M]").astype(np.int64)
    return months // {"month": 1, "quarter": 3, "year": 12}[unit]


def _name(number: int, unit: str) -> str:
    """Return the name of a period: its first day, 2024-05, 2024-Q2 or 2024."""
    if unit in ("day", "week"):
        return str(np.datetime64(number if unit == "day" else 7 * number - 3, "D"))
    if unit == "month":
        return str(np.datetime64(number, "M"))
    if unit == "quarter":
        return f"{1970 + number // 4}-Q{number % 4 + 1}"
    return str(1970 + number)
