"""The error that a user can cause, and the one that a damaged file causes."""

import textwrap


class InputError(ValueError):
    """Something the user gave cannot be used; the message says what, where, and what to do."""


class DamagedFileError(Exception):
    """A file that newfound wrote is not as it was written.

    Whoever knows what the file is for turns this into an `InputError` that also says what to do.
    """


def reason(error: Exception) -> str:
    """What a library said, short enough to stand in a sentence of ours."""
    return textwrap.shorten(f"{type(error).__name__}: {error}", 200, placeholder=" ...")
