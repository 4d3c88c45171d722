"""Remove credentials from addresses before they are stored or shown."""

import re

HIDDEN = "***"
# Without quotes and punctuation at the end, which belong to the sentence.
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+?(?=[\"'`)\]>,.;:]*(?:\s|$))")
_PARAMETER = re.compile(r"(^|[?&;])([^=&;?#]*=)?([^&;#]+)")


def redacted(text: str) -> str:
    """Return a text in which the addresses carry no credentials.

    Parameters
    ----------
    text : str
        An address, or a text with addresses in it, such as a command or an error message.

    Returns
    -------
    str
        User names and passwords, the values of all query parameters, and fragments are replaced by
        ``***``.

    Examples
    --------
    >>> redacted("https://user:secret@host/v1?api_key=abc&v=2")
    'https://***@host/v1?api_key=***&v=***'
    >>> redacted("no address")
    'no address'
    """
    return _ADDRESS.sub(lambda found: _redacted(found[0]), text)


def _redacted(address: str) -> str:
    """Return one address without credentials."""
    scheme, slashes, rest = address.partition("://")
    host = re.split(r"[/?#]", rest, maxsplit=1)[0]
    # A password with a slash, or the like, makes what seems to be the host end too early; then
    # everything up to the last @ is taken for credentials.
    if "@" not in host and "@" in rest and not re.fullmatch(r"(\[[^\]]*\]|[^:]*)(:\d*)?", host):
        host = rest.rpartition("@")[0] + "@"
    if "@" in host:
        cut = host.rindex("@")
        rest = HIDDEN + rest[cut:]
    place, mark, fragment = rest.partition("#")
    path, question, query = place.partition("?")
    if question:
        query = _PARAMETER.sub(lambda found: f"{found[1]}{found[2] or ''}{HIDDEN}", query)
    return f"{scheme}{slashes}{path}{question}{query}{mark}{HIDDEN if fragment else ''}"
