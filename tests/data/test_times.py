"""Dates of texts and the periods that they are divided into."""

from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from newfound.data.corpus import Corpus
from newfound.data.times import MOST_PERIODS, UNITS, check_times, periods, read_dates
from newfound.errors import InputError


def corpus(cells: list[str]) -> Corpus:
    texts = [f"text {i}" for i in range(len(cells))]
    ids = [str(i) for i in range(len(cells))]
    return Corpus(texts, [None] * len(cells), ids, {"when": cells}, time_column="when")


def days(cells: list[str]) -> list[str]:
    return read_dates(cells).astype(str).tolist()


@pytest.mark.parametrize(
    ("cell", "day"),
    [
        ("2024-05-31", "2024-05-31"),
        (" 2024-05-31T23:59:59+02:00", "2024-05-31"),
        ("20240531", "2024-05-31"),
        ("2024-05", "2024-05-01"),
        ("2024", "2024-01-01"),
        ("31.5.2024 10:00", "2024-05-31"),
        ("31.05.24", "2024-05-31"),
        ("1717113600", "2024-05-31"),
        ("1717113600000", "2024-05-31"),
        ("1717113600.25", "2024-05-31"),
        ("31 May 2024", "2024-05-31"),
        ("Fri, 31 May 2024 08:00:00 GMT", "2024-05-31"),
        ("2024-02-30", "NaT"),
        ("9999-12-31", "NaT"),
        ("0001-01-01", "NaT"),
        ("soon", "NaT"),
        ("now", "NaT"),
        ("17", "NaT"),
        ("", "NaT"),
    ],
)
def test_dates_are_read_in_many_forms(cell: str, day: str) -> None:
    assert days([cell]) == [day]


def test_day_or_month_comes_first_in_the_whole_column() -> None:
    assert days(["05/04/2024", "05/31/2024"]) == ["2024-05-04", "2024-05-31"]
    assert days(["05/04/2024", "31/05/2024"]) == ["2024-04-05", "2024-05-31"]


@given(st.lists(st.dates(date(1950, 1, 1), date(2049, 12, 31)), min_size=1, max_size=30))
def test_periods_agree_with_a_loop_and_have_no_gaps(dates: list[date]) -> None:
    found = periods(corpus([str(day) for day in dates] + [""]))
    assert found is not None
    assert found.of[-1] == -1
    assert len(found.names) <= MOST_PERIODS or found.unit == "year"
    assert list(found.names) == sorted(set(found.names))
    assert {0, len(found.names) - 1} <= set(found.of.tolist())
    for day, at in zip(dates, found.of, strict=False):
        wanted = {
            "day": str(day),
            "week": str(day - timedelta(days=day.weekday())),
            "month": f"{day:%Y-%m}",
            "quarter": f"{day.year}-Q{(day.month + 2) // 3}",
            "year": str(day.year),
        }
        assert found.names[at] == wanted[found.unit]


def test_the_smallest_unit_that_fits_is_used() -> None:
    spans = {"day": 59, "week": 300, "month": 1500, "quarter": 4000, "year": 20000}
    for unit in UNITS:
        last = date(2020, 1, 1) + timedelta(days=spans[unit])
        found = periods(corpus(["2020-01-01", str(last)]))
        assert found is not None
        assert found.unit == unit


def test_counts_agree_with_a_loop() -> None:
    found = periods(corpus(["2024-05-01", "2024-05-02", "", "2024-05-02", "2024-05-04"]))
    assert found is not None
    groups = np.array([0, 1, 1, 1, 0])
    assert found.counts(groups, 3).tolist() == [[1, 0, 0, 1], [0, 2, 0, 0], [0, 0, 0, 0]]


def test_column_that_is_not_dates_is_refused_and_single_cells_are_noted() -> None:
    with pytest.raises(InputError, match=r"2 of 3 cells are not dates \(first: 'x', of the text"):
        check_times(corpus(["x", "y", "2024-05-31"]), "t.csv")
    with pytest.raises(InputError, match=r"t\.csv, column 'when' is empty"):
        check_times(corpus(["", " "]), "t.csv")
    notes = check_times(corpus(["2024-05-31", "2024-06-01", "x", ""]), "t.csv")
    assert [note.split(": ")[1] for note in notes] == [
        "1 cell is not a date (first", "1 text has no date",
    ]  # fmt: skip
    assert check_times(Corpus(["a"], [None], ["1"]), "t.csv") == []


def test_no_time_column_gives_no_periods() -> None:
    assert periods(Corpus(["a"], [None], ["1"])) is None
    assert periods(corpus(["x"])) is None
