"""Cells of CSV files that a spreadsheet would run as a formula.

A spreadsheet computes a cell that begins with =, +, - or @, and such a formula can read files and
send data away. So an apostrophe is written before such a cell, which makes it a text, and is
removed again when newfound reads the cell. Cells that have apostrophes before a formula get one
more, so that every text comes back as it was. The names of columns are treated as cells are.
"""

import re

# Spreadsheets skip white space, and some treat the full-width forms of the characters alike.
_FORMULA = re.compile("'*(?:\\s*[=+\\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n])")


def protected(cell: str) -> str:
    """Return a cell that no spreadsheet runs as a formula.

    Parameters
    ----------
    cell : str

    Returns
    -------
    str
        The cell, after an apostrophe if it begins as a formula does.

    Examples
    --------
    >>> protected("=1+1"), protected("1+1"), protected("'=1+1")
    ("'=1+1", '1+1', "''=1+1")
    """
    return "'" + cell if _FORMULA.match(cell) else cell


def unprotected(cell: str) -> str:
    """Return the cell that `protected` was called with.

    Examples
    --------
    >>> unprotected("'=1+1"), unprotected("'quoted'")
    ('=1+1', "'quoted'")
    """
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
