"""Values of cells as texts, for formats whose cells have types: workbooks and databases."""

from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID


def cell_text(value: Any) -> str | None:
    """Return the value of a cell as a text, None if it is missing.

    Parameters
    ----------
    value : object
        A string, a number, a truth value, a date or a time.

    Returns
    -------
    str or None
        Whole numbers have no decimals; NaN is missing.

    Raises
    ------
    TypeError
        For any other value, such as bytes or a list.

    Examples
    --------
    >>> cell_text(3.0), cell_text(2.5), cell_text(True), cell_text(float("nan"))
    ('3', '2.5', 'true', None)
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if value != value:
            return None
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else str(value)
    if isinstance(value, int | Decimal | date | time | timedelta | UUID):
        return str(value)
    raise TypeError(f"a value of type {type(value).__name__} is not a text")
