"""Write text and JSON atomically; read and check JSON."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from newfound.errors import DamagedFileError, reason
from newfound.files.atomic import write_atomically
from newfound.files.reading import read_regular


def write_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8, atomically."""
    with write_atomically(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON, atomically; NaN and infinity become null."""
    text = json.dumps(without_nan(value), indent=2, ensure_ascii=False, allow_nan=False)
    write_text(path, text + "\n")


def without_nan(value: Any) -> Any:
    """Return the value with NaN and infinity replaced by None, because JSON has neither."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(item) for item in value]
    return value


def read_json(path: Path, kind: type) -> Any:
    """Return the JSON value in `path`, or raise DamagedFileError if it is not a `kind`."""
    try:
        content = read_regular(path)
    except FileNotFoundError as error:
        raise DamagedFileError(f"{path.name} is missing") from error
    return parse_json(content, kind, path.name)


def parse_json(content: bytes, kind: type, name: str) -> Any:
    """Return the JSON value in the content of file `name`, or raise DamagedFileError."""
    try:
        value = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # ValueError: neither UTF-8 nor JSON
        raise DamagedFileError(f"{name}: {reason(error)}") from error
    if not isinstance(value, kind):
        raise DamagedFileError(f"{name} does not hold a JSON {kind.__name__}")
    return value


def check_fields(value: Any, fields: Mapping[str, type | tuple[type, ...]], where: str) -> None:
    """Raise DamagedFileError unless `value` is a dict with all fields, each of its type."""
    if not isinstance(value, dict):
        raise DamagedFileError(f"{where} is not a JSON object")
    for name, kinds in fields.items():
        if name not in value:
            raise DamagedFileError(f"{where} has no {name!r}")
        _check_type(value[name], kinds, f"{where}: {name!r}")


def check_items(values: list[Any], kinds: type | tuple[type, ...], where: str) -> None:
    """Raise DamagedFileError unless every item of the list has the type."""
    for value in values:
        _check_type(value, kinds, f"an item of {where}")


def _check_type(value: Any, kinds: type | tuple[type, ...], where: str) -> None:
    """Raise DamagedFileError unless the value has one of the types."""
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    # True and False are ints in Python, but not numbers in JSON.
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise DamagedFileError(f"{where} cannot be {str(value)[:40]!r}")
