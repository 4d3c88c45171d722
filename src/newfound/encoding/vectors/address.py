"""The address of an embedding service: `https://host/v1#model`."""

import ipaddress
import os
import re
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from newfound.errors import InputError

KEY = "NEWFOUND_EMBEDDING_KEY"  # environment variable with the key
OPENAI_KEY = "OPENAI_API_KEY"  # sent only to OpenAI itself
OPENAI = "api.openai.com"
# Without the model after #, because messages hide what follows it in an address.
EXAMPLE = "https://api.openai.com/v1 with #text-embedding-3-small at its end"


@dataclass(frozen=True)
class Address:
    """An address that was checked.

    Attributes
    ----------
    url : str
        Where requests go; it ends in "/embeddings".
    model : str
        Name of the model.
    """

    url: str
    model: str

    def __str__(self) -> str:
        return f"{self.url}#{self.model}"

    @property
    def host(self) -> str:
        """Name of the host, with the port if there is one."""
        return urlsplit(self.url).netloc

    def key(self) -> str | None:
        """Return the key from the environment, None without one."""
        return os.environ.get(self.key_name()) or None

    def key_name(self) -> str:
        """Return the environment variable that holds the key for this host."""
        openai = urlsplit(self.url).hostname == OPENAI
        return OPENAI_KEY if openai and not os.environ.get(KEY) else KEY


def is_address(name: str) -> bool:
    """Return whether an encoder is named by an address."""
    return name.lower().startswith(("http://", "https://"))


def parse_address(name: str) -> Address:
    """Return the address of an embedding service, or raise InputError.

    Parameters
    ----------
    name : str
        The base URL of an OpenAI-compatible service ("https://host/v1") or the full one
        (".../embeddings"), then "#" and the name of the model. It has no user name, password or
        query, and is encrypted unless the host is this machine.

    Returns
    -------
    Address

    Examples
    --------
    >>> parse_address("https://api.openai.com/v1#text-embedding-3-small")
    Address(url='https://api.openai.com/v1/embeddings', model='text-embedding-3-small')
    """
    try:
        parts = urlsplit(name)
        valid = bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid or re.search(r"[\s\x00-\x1f\x7f]", name):
        raise InputError(f"the embedding service is not a valid URL; give one such as {EXAMPLE}")
    if "@" in parts.netloc or parts.query:
        raise InputError(
            "the address of an embedding service has no user name, password or query; put the key "
            f"into the environment variable {KEY}"
        )
    if parts.scheme.lower() == "http" and not _is_loopback(parts.hostname or ""):
        raise InputError(
            f"the embedding service at {parts.hostname} would get texts and key unencrypted; give "
            "an address with https"
        )
    if not parts.fragment:
        raise InputError(
            f"the embedding service at {parts.hostname} needs the name of a model after #; give "
            f"an address such as {EXAMPLE}"
        )
    path = parts.path.rstrip("/")
    if not path.endswith("/embeddings"):
        path += "/embeddings"
    url = urlunsplit((parts.scheme.lower(), parts.netloc.lower(), path, "", ""))
    return Address(url, parts.fragment)


def _is_loopback(host: str) -> bool:
    """Return whether a host is this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
