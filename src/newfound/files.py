"""Write files and folders atomically; read and check JSON."""

import json
import math
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from newfound.errors import DamagedFileError, InputError, reason


@contextmanager
def write_atomically(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; rename it to `path` when the block succeeds.

    Parameters
    ----------
    path : Path
        File to write; an existing one is replaced.

    Yields
    ------
    Path
        Temporary file; it is deleted if the block fails.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    try:
        handle, name = tempfile.mkstemp(
            prefix=f".{path.name}.", suffix=path.suffix, dir=path.parent
        )
    except OSError as error:
        raise InputError(_cannot_write(path, error)) from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())  # mkstemp makes a private file
        os.replace(temporary, path)
    except OSError as error:
        raise InputError(_cannot_write(path, error)) from error
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def write_folder(folder: Path, marker: str) -> Iterator[Path]:
    """Yield an empty folder that replaces `folder` when the block succeeds.

    If the block fails, nothing is left behind.

    Parameters
    ----------
    folder : Path
    marker : str
        Name of the file that marks such a folder as complete. Where the folder cannot be replaced
        as a whole, this file is deleted first and written last.

    Yields
    ------
    Path
        Temporary folder.

    Raises
    ------
    InputError
        If the folder cannot be written.
    """
    place = folder.resolve()
    made = [parent for parent in place.parents if not parent.exists()]
    # A mount point and the working directory cannot be renamed; their content can be replaced.
    inside = place.is_dir() and (os.path.ismount(place) or place == Path.cwd())
    temporary: Path | None = None
    done = False
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(
            tempfile.mkdtemp(prefix=f".{place.name}.", dir=place if inside else place.parent)
        )
        yield temporary
        temporary.chmod(0o777 & ~_umask())  # mkdtemp makes a private folder
        if inside:
            _replace_content(place, temporary, marker)
        else:
            _replace_folder(place, temporary)
        done = True
    except OSError as error:
        raise InputError(_cannot_write(folder, error)) from error
    except InputError as error:
        # The user does not know the name of the temporary folder.
        raise InputError(str(error).replace(str(temporary), str(folder))) from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
        for parent in [] if done else made:
            with suppress(OSError):  # another process may have written there
                parent.rmdir()


def _replace_folder(place: Path, new: Path) -> None:
    """Rename `new` to `place`; put the old folder back if that fails."""
    if not place.exists() or not any(place.iterdir()):
        new.rename(place)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    place.rename(old / place.name)
    try:
        new.rename(place)
    except OSError:
        (old / place.name).rename(place)
        raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


def _replace_content(place: Path, new: Path, marker: str) -> None:
    """Replace the content of `place` by that of `new`."""
    (place / marker).unlink(missing_ok=True)
    for entry in list(place.iterdir()):
        if entry.is_dir() and not entry.is_symlink():
            if entry != new:
                shutil.rmtree(entry)
        else:
            entry.unlink()
    for entry in sorted(new.iterdir(), key=lambda entry: entry.name == marker):
        entry.rename(place / entry.name)


def _umask() -> int:
    """Return the process's umask, which can only be read by setting it."""
    umask = os.umask(0)
    os.umask(umask)
    return umask


def _cannot_write(path: Path, error: OSError) -> str:
    """Return the message on a path that cannot be written."""
    return f"cannot write {path}: {error.strerror or error}; free space or choose another place"


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
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # ValueError: neither UTF-8 nor JSON
        raise DamagedFileError(f"{path.name}: {reason(error)}") from error
    if not isinstance(value, kind):
        raise DamagedFileError(f"{path.name} does not hold a JSON {kind.__name__}")
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
