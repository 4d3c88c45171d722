"""Wording of messages: a number with its noun, a suggestion for a misspelt name."""

import difflib
from collections.abc import Iterable


def plural(number: int, one: str, more: str | None = None) -> str:
    """Return a number with its noun in the singular or the plural.

    Parameters
    ----------
    number : int
        Number to print.
    one : str
        The noun, or the noun and its verb, for exactly one.
    more : str, optional
        The same for any other number; by default, `one` with an "s".

    Returns
    -------
    str
        The number with thousands separators, and the noun.

    Examples
    --------
    >>> plural(1, "text"), plural(1095, "text")
    ('1 text', '1,095 texts')
    >>> plural(2, "category has", "categories have")
    '2 categories have'
    """
    return f"{number:,} {one if number == 1 else more or one + 's'}"


def suggestion(name: str, names: Iterable[str], otherwise: str) -> str:
    """Return a question that suggests the closest name for a misspelt one.

    Parameters
    ----------
    name : str
        What the user wrote.
    names : iterable of str
        What the user may have meant.
    otherwise : str
        Advice if no name is close.

    Returns
    -------
    str
        ``did you mean 'minilm'?``, or `otherwise`.

    Examples
    --------
    >>> suggestion("MiniML", ["minilm", "mpnet"], "choose minilm or mpnet")
    "did you mean 'minilm'?"
    >>> suggestion("magic", ["minilm", "mpnet"], "choose minilm or mpnet")
    'choose minilm or mpnet'
    """
    close = closest(name, names)
    return otherwise if close is None else f"did you mean {close!r}?"


def closest(name: str, names: Iterable[str]) -> str | None:
    """Return the closest name, or None if no name is close; case is ignored."""
    spelt = {other.casefold(): other for other in names}
    close = difflib.get_close_matches(name.strip().casefold(), spelt, n=1)
    return spelt[close[0]] if close else None
