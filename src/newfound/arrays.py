"""Arrays of immutable values: read-only views, and rounding as in a run folder."""

from dataclasses import fields
from typing import Any

import numpy as np

DIGITS = 4  # decimals of the numbers in a Result and in a run folder


def as_recorded(values: np.ndarray) -> np.ndarray:
    """Return values as stored in a run folder: float64, rounded to four decimals."""
    # Rounded twice, because 0.1235 in float32 is 0.12349999696 in float64.
    return values.round(DIGITS).astype(np.float64).round(DIGITS)


def objects(values: list[str]) -> np.ndarray:
    """Return names as a read-only array of objects."""
    return read_only(np.array(values, object))


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a read-only view of an array."""
    view = array.view()
    view.flags.writeable = False
    return view


def make_arrays_read_only(value: Any) -> None:
    """Replace every array of a frozen dataclass by a read-only view."""
    for each in fields(value):
        found = getattr(value, each.name)
        if isinstance(found, np.ndarray):
            object.__setattr__(value, each.name, read_only(found))
