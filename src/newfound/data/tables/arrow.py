"""Read Arrow files, and datasets that the Hugging Face library `datasets` has saved to disk.

`Dataset.save_to_disk` writes a folder with `state.json` (the names of its Arrow files),
`dataset_info.json` (the types of its columns) and the Arrow files themselves. A `DatasetDict` is a
folder with `dataset_dict.json` and one such folder per split. Arrow reads all of that, so the
library is not needed.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from newfound.data.tables.textfile import check_file, reading
from newfound.errors import DamagedFileError, EmptyTableError, InputError
from newfound.files import read_json

STATE = "state.json"
SPLITS = "dataset_dict.json"
KIND = "an Arrow file"


@dataclass(frozen=True)
class ArrowTable:
    """An Arrow file, or the Arrow files of a dataset, whose batches have been checked."""

    path: Path
    columns: list[str]
    rows: int
    notes: list[str]
    files: list[Path]
    schema: Any
    class_names: Mapping[str, list[str]]  # by column: names of the categories that it numbers
    bad_rows: dict[int, str] | None = None  # None: the first bad row is an error

    def read(self, wanted: Sequence[str]) -> Iterator[tuple[str | None, ...]]:
        """Yield the wanted columns of every row, as strings."""
        check_types(self.path, self.schema, wanted)
        return self._read(wanted)

    def _read(self, wanted: Sequence[str]) -> Iterator[tuple[str | None, ...]]:
        before = 0
        for file in self.files:
            for batch in _batches(file):
                with reading_arrow(self.path, KIND):
                    lists = [self._strings(name, batch.column(name), before) for name in wanted]
                yield from zip(*lists, strict=True)
                before += batch.num_rows

    def _strings(self, name: str, values: Any, before: int) -> list[str | None]:
        """Return a column as strings, with names in place of the numbers of categories."""
        names = self.class_names.get(name)
        if names is None:
            return column_as_strings(values, self.path, name, before, self.bad_rows)
        # -1 means unlabelled in the library.
        numbers = values.to_pylist()
        return [names[n] if n is not None and 0 <= n < len(names) else None for n in numbers]


def open_arrow(path: Path, bad_rows: dict[int, str] | None = None) -> ArrowTable:
    """Check an Arrow file, in the streaming or the file format (Feather).

    `bad_rows` receives the number of each row with a cell that is not text, while rows are read.
    """
    return _open(path, [path], {}, bad_rows)


def open_dataset(folder: Path, bad_rows: dict[int, str] | None = None) -> ArrowTable:
    """Check a dataset that `Dataset.save_to_disk` wrote.

    Parameters
    ----------
    folder : Path
        A folder with a state.json or a dataset_dict.json.
    bad_rows : dict of int to str, optional
        As in `open_arrow`.

    Returns
    -------
    ArrowTable

    Raises
    ------
    InputError
        If the dataset has splits, or is damaged.
    """
    if (folder / SPLITS).is_file():
        splits = _json(folder / SPLITS).get("splits")
        names = splits if isinstance(splits, list) else []
        listed = ", ".join(str(folder / str(name)) for name in names)
        raise InputError(f"{folder}: the dataset has splits: give one or more of {listed}")
    state = _json(folder / STATE)
    if state.get("_indices_files") or state.get("_indices_data_files"):
        raise InputError(
            f"{folder}: the dataset selects rows of other files: call flatten_indices() before "
            "save_to_disk()"
        )
    listed_files = state.get("_data_files")
    names = [
        entry.get("filename") if isinstance(entry, dict) else None
        for entry in (listed_files if isinstance(listed_files, list) else [])
    ]
    if not names or not all(isinstance(name, str) and Path(name).name == name for name in names):
        raise InputError(
            f"{folder / STATE} does not name the files of the dataset: save the dataset again"
        )
    return _open(folder, [folder / str(name) for name in names], _class_names(folder), bad_rows)


def _open(
    path: Path,
    files: list[Path],
    class_names: Mapping[str, list[str]],
    bad_rows: dict[int, str] | None,
) -> ArrowTable:
    """Read the files once, and check their batches."""
    schema, rows = None, 0
    for file in files:
        check_file(file)
        for batch in _batches(file):
            schema = schema or batch.schema
            if batch.schema.names != schema.names or batch.schema.types != schema.types:
                raise InputError(
                    f"{file}: its columns differ from those of {files[0].name}: save the dataset "
                    "again"
                )
            rows += batch.num_rows
    if schema is None or rows == 0:
        raise EmptyTableError(f"{path}: the table has no rows: give a table with rows")
    numbered = {
        name: names
        for name, names in class_names.items()
        if name in schema.names and pa.types.is_integer(schema.field(name).type)
    }
    return ArrowTable(path, list(schema.names), rows, [], files, schema, numbered, bad_rows)


def _batches(path: Path) -> Iterator[Any]:
    """Yield the record batches of a file."""
    with reading_arrow(path, KIND), path.open("rb") as handle:
        is_file = handle.read(6) == b"ARROW1"
        handle.seek(0)
        if is_file:
            reader = pa.ipc.open_file(handle)
            batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
        else:
            batches = iter(pa.ipc.open_stream(handle))
        for batch in batches:
            batch.validate(full=True)  # invalid offsets would read memory of others
            yield batch


def _class_names(folder: Path) -> dict[str, list[str]]:
    """Return the names of categories by column, for columns of the type ClassLabel."""
    path = folder / "dataset_info.json"
    features = _json(path).get("features") if path.is_file() else None
    found = {}
    for name, feature in (features if isinstance(features, dict) else {}).items():
        if isinstance(feature, dict) and feature.get("_type") == "ClassLabel":
            names = feature.get("names")
            if isinstance(names, list) and all(isinstance(each, str) for each in names):
                found[name] = names
    return found


def _json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file of the dataset."""
    try:
        value: dict[str, Any] = read_json(path, dict)
    except DamagedFileError as error:
        raise InputError(f"{path} is damaged ({error}): save the dataset again") from error
    return value


@contextmanager
def reading_arrow(path: Path, what: str) -> Iterator[None]:
    """Turn errors of reading a file with Arrow inside the block into InputErrors."""
    try:
        with reading(path):
            try:
                yield
            except OSError as error:
                # Arrow raises OSError for invalid content, too, but then without a number.
                if error.errno is None:
                    raise pa.ArrowInvalid(str(error)) from error
                raise
    except pa.ArrowException as error:
        raise InputError(
            f"{path}: this is not {what}, or it is damaged: write the table again"
        ) from error


def check_types(path: Path, schema: Any, wanted: Sequence[str]) -> None:
    """Raise InputError if a wanted column holds values that are not texts or numbers."""
    for name in wanted:
        kind = schema.field(name).type
        try:
            as_strings(pa.nulls(0, kind))
        except pa.ArrowException as error:
            raise InputError(
                f"{path}, column {name!r}: values of type {kind} cannot be read as "
                "texts: give strings, or choose another column"
            ) from error


def column_as_strings(
    values: Any, path: Path, name: str, before: int, bad_rows: dict[int, str] | None
) -> list[str | None]:
    """Return the cells of a column; bad ones are None, and their rows are collected.

    Parameters
    ----------
    values : Arrow array
    path, name
        Of the table and of the column, for messages.
    before : int
        Number of rows before these.
    bad_rows : dict of int to str or None
        Receives the rows; without it, the first bad cell is an error of Arrow.
    """
    try:
        cells: list[str | None] = as_strings(values).to_pylist()
        return cells
    except (pa.ArrowInvalid, UnicodeDecodeError):
        if bad_rows is None:
            raise
    cells = []
    for position in range(len(values)):
        try:
            cells += as_strings(values.slice(position, 1)).to_pylist()
        except (pa.ArrowInvalid, UnicodeDecodeError):
            row = before + position + 1
            bad_rows[row] = f"{path}, row {row}, column {name!r}: the value is not valid UTF-8 text"
            cells.append(None)
    return cells


def as_strings(values: Any) -> Any:
    """Cast an Arrow array to strings; NaN, pandas' missing value, becomes null."""
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), None, values)
    return values.cast(pa.string())
