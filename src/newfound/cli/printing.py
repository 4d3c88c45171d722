"""Make texts harmless for a terminal: every command prints through these functions.

A label, a file name or an argument may contain escape sequences, which a terminal would carry out,
or characters that reorder or hide other ones. They are shown as Python escapes such as ``\\x1b``.
JSON escapes are used inside JSON, so that its values stay the same.
"""

import unicodedata

# Joiners have no effect of their own, and emoji and several scripts need them.
_JOINERS = "\u200c\u200d"


def printable(text: str) -> str:
    r"""Return a text with visible escapes in place of control and invisible characters.

    Parameters
    ----------
    text : str
        Line feeds are escaped as well, so that the result is one line.

    Returns
    -------
    str
        Escaped are control characters (C0, DEL and C1), format characters such as bidirectional
        overrides and zero-width spaces, line and paragraph separators, and surrogates.

    Examples
    --------
    >>> printable("\x1b[31mred")
    '\\x1b[31mred'
    >>> printable("naïve 日本")
    'naïve 日本'
    """
    if text.isprintable():
        return text
    return "".join(_escaped(c) if _is_unsafe(c) else c for c in text)


def printable_lines(text: str) -> str:
    """Return a text of several lines, each made printable."""
    return "\n".join(map(printable, text.split("\n")))


def printable_json(text: str) -> str:
    """Return JSON with JSON escapes in place of control and invisible characters."""
    if text.isprintable():
        return text
    return "".join(_json_escaped(c) if _is_unsafe(c) else c for c in text)


def _is_unsafe(character: str) -> bool:
    """Return whether a character is escaped."""
    if character.isprintable() or character in _JOINERS:
        return False
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _escaped(character: str) -> str:
    """Return the Python escape of a character."""
    code = ord(character)
    if code < 0x100:
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(character, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escaped(character: str) -> str:
    """Return the JSON escape of a character, two for one beyond the basic plane."""
    data = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{data[i : i + 2].hex()}" for i in range(0, len(data), 2))
