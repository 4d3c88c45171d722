"""Decision: what a person decided on categories and texts, as one line of decisions.jsonl."""

import json
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from newfound.errors import InputError

LONGEST_NAME = 200  # characters
# The keys of each action: True for those that a line must have.
KEYS: dict[str, dict[str, bool]] = {
    "accept": {"category": True, "texts": False},
    "reject": {"category": True},
    "rename": {"category": True, "name": True},
    "merge": {"categories": True, "into": True},
    "split": {"category": True, "parts": True},
    "move": {"texts": True, "into": True},
    "nowhere": {"texts": True},
    "note": {"text": True, "category": False},
    "undo": {"line": True},
    "refit": {"run": True},
}
ACTIONS = tuple(KEYS)


@dataclass(frozen=True)
class Part:
    """A part of a category that is split.

    Attributes
    ----------
    texts : tuple of str
        Ids of its texts.
    name : str or None
        Name of the new category; None generates one from its keywords.
    """

    texts: tuple[str, ...]
    name: str | None = None


@dataclass(frozen=True)
class Decision:
    """What a person decided. Which attributes are used depends on the action.

    Attributes
    ----------
    action : str
        accept, reject, rename, merge, split, move, nowhere, note, undo or refit.
    category : str or None
        Id of the category: accept, reject, rename, split; note, optional.
    categories : tuple of str
        Ids of the categories to merge into `into`: merge.
    into : str or None
        Id of the category that gets the texts: merge, move.
    name : str or None
        The new name: rename.
    texts : tuple of str
        Ids of texts: move, nowhere; accept: those that the person saw and found right, by default
        the typical and border texts of the category.
    parts : tuple of Part
        The new categories: split.
    text : str or None
        What to remember: note.
    line : int or None
        Number of the line to undo, from 1: undo.
    run : str or None
        Folder of the run that was refitted from the decisions so far: refit.
    time : str or None
        When the person decided, in ISO 8601.
    author : str or None
        Who decided.

    Examples
    --------
    >>> from newfound.decisions import Decision
    >>> Decision("rename", category="c3", name="Refund status", author="Ada").to_dict()
    {'decision': 'rename', 'category': 'c3', 'name': 'Refund status', 'author': 'Ada'}
    """

    action: str
    category: str | None = None
    categories: tuple[str, ...] = ()
    into: str | None = None
    name: str | None = None
    texts: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    text: str | None = None
    line: int | None = None
    run: str | None = None
    time: str | None = None
    author: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of the line."""
        found: dict[str, Any] = {"decision": self.action}
        for key, needed in KEYS[self.action].items():
            value = getattr(self, key)
            if key == "parts":
                value = [
                    {
                        "texts": list(part.texts),
                        **({} if part.name is None else {"name": part.name}),
                    }
                    for part in self.parts
                ]
            elif isinstance(value, tuple):
                value = list(value)
            if needed or value:
                found[key] = value
        found |= {key: getattr(self, key) for key in ("time", "author") if getattr(self, key)}
        return found


def now() -> str:
    """Return the time of a decision made now."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def parse_line(line: str) -> Decision:
    """Return the decision in a line of decisions.jsonl, or raise InputError with the reason."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError("it is not JSON") from error
    return decision_from(value)


def decision_from(value: Any) -> Decision:
    """Return the decision in a JSON object, or raise InputError with the reason.

    Parameters
    ----------
    value : dict
        As in a line of decisions.jsonl.

    Returns
    -------
    Decision
    """
    if not isinstance(value, dict):
        raise InputError("it is not a JSON object")
    action = value.get("decision")
    if not isinstance(action, str) or action not in KEYS:
        raise InputError(f"'decision' must be one of {', '.join(ACTIONS)}, not {_short(action)}")
    keys = KEYS[action]
    for key, needed in keys.items():
        if needed and key not in value:
            raise InputError(f"{action} needs {key!r}")
    for key in value:
        if key not in keys and key not in ("decision", "time", "author"):
            raise InputError(f"{action} does not take {key!r}")
    readers: dict[str, Callable[[Any, str], Any]] = {
        "texts": _texts,
        "categories": _ids,
        "parts": _parts,
        "line": _line,
        "name": _name,
    }
    found: dict[str, Any] = {
        key: readers.get(key, _string)(value[key], key) for key in keys if key in value
    }
    for key in ("time", "author"):
        if value.get(key) is not None:
            found[key] = _string(value[key], key)
    return Decision(action, **found)


def _string(value: Any, key: str) -> str:
    """Return a string that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{key!r} must be a text, not {_short(value)}")
    return value


def _name(value: Any, key: str) -> str:
    """Return the name of a category on one line, without invisible characters."""
    name = "".join(
        " " if unicodedata.category(c) in ("Cc", "Zl", "Zp") else c for c in _string(value, key)
    )
    name = " ".join(name.split())
    if not name or len(name) > LONGEST_NAME:
        raise InputError(f"a name must have 1 to {LONGEST_NAME} characters")
    return name


def _texts(value: Any, key: str) -> tuple[str, ...]:
    """Return ids of texts, at least one."""
    if not isinstance(value, list) or not value:
        raise InputError(f"{key!r} must be a list of ids of texts, at least one")
    for id_ in value:
        if isinstance(id_, bool) or not isinstance(id_, str | int):
            raise InputError(f"{key!r}: the id of a text cannot be {_short(id_)}")
    return tuple(dict.fromkeys(map(str, value)))


def _ids(value: Any, key: str) -> tuple[str, ...]:
    """Return ids of categories, at least one."""
    if not isinstance(value, list) or not value or not all(isinstance(id_, str) for id_ in value):
        raise InputError(f"{key!r} must be a list of ids of categories, at least one")
    return tuple(dict.fromkeys(value))


def _parts(value: Any, key: str) -> tuple[Part, ...]:
    """Return the parts of a split, at least one."""
    if not isinstance(value, list) or not value:
        raise InputError(f"{key!r} must be a list of parts, at least one")
    found = []
    for part in value:
        if not isinstance(part, Mapping) or not set(part) <= {"texts", "name"}:
            raise InputError("a part must be an object with 'texts' and, optionally, 'name'")
        name = part.get("name")
        texts = _texts(part.get("texts"), "texts")
        found.append(Part(texts, None if name is None else _name(name, "name")))
    return tuple(found)


def _line(value: Any, key: str) -> int:
    """Return the number of a line."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"{key!r} must be the number of a line, from 1, not {_short(value)}")
    return value


def _short(value: Any) -> str:
    """Return a value for a message."""
    return repr(value)[:60]
