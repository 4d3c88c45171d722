"""The one error that a user can cause."""

import textwrap


class InputError(ValueError):
    """Something the user gave cannot be used; the message says what, where, and what to do."""


def reason(error: Exception) -> str:
    """What a library said, short enough to stand in a sentence of ours."""
    return textwrap.shorten(f"{type(error).__name__}: {error}", 200, placeholder=" ...")
