"""Errors that users can cause, and errors of damaged files."""

import textwrap


class InputError(ValueError):
    """The user's input cannot be used.

    The message is one sentence: what is wrong, where, and what to do.
    """


class EmptyTableError(InputError):
    """A table has no rows."""


class PlaceTakenError(InputError):
    """The result is complete, but its place was taken meanwhile, so it has another name."""


class DamagedFileError(Exception):
    """A file that newfound wrote is damaged.

    The caller, who knows what the file is for, turns this into an `InputError` with advice.
    """


def reason(error: Exception) -> str:
    """Return the message of a library's error, shortened to fit into a sentence."""
    return textwrap.shorten(f"{type(error).__name__}: {error}", 200, placeholder=" ...")
