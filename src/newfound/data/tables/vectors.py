"""Read vectors beside a table: a .npy file, or a column of lists in a Parquet file."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from newfound.data.tables.columns import missing_column
from newfound.data.vectors import check_vectors
from newfound.errors import DamagedFileError, InputError, reason
from newfound.files import open_regular
from newfound.wording import plural

BLOCK = 8192  # rows that are read together


def table_vectors(
    paths: Sequence[Path],
    sizes: Sequence[int],
    numbers: Sequence[int],
    *,
    file: Path | None = None,
    column: str | None = None,
) -> np.ndarray:
    """Return the vectors of the texts of tables, from a .npy file or from a column.

    Parameters
    ----------
    paths : sequence of Path
        The tables.
    sizes : sequence of int
        Rows of each table.
    numbers : sequence of int
        Row number of each text over all tables, from 1.
    file : Path, optional
        A .npy file with one vector per row of the tables.
    column : str, optional
        Without a file: the column of the tables, which are then Parquet files.

    Returns
    -------
    ndarray of shape (N, d)
    """
    if file is not None:
        found, what = open_npy(file, sum(sizes)), str(file)
    else:
        assert column is not None
        parts = [np.concatenate(list(stream_vector_column(path, column))) for path in paths]
        for path, part in zip(paths, parts, strict=True):
            if part.shape[1] != parts[0].shape[1]:
                raise InputError(
                    f"{path}, column {column!r}: the vectors have {part.shape[1]:,} dimensions, "
                    f"but those of {paths[0]} have {parts[0].shape[1]:,}: all need the same number"
                )
        found = parts[0] if len(parts) == 1 else np.concatenate(parts)
        what = f"{', '.join(map(str, paths))}, column {column!r}"
    rows = np.array(numbers, np.int64) - 1
    return check_vectors(found[rows], len(rows), what, numbers)


def stream_vectors(
    path: Path,
    rows: int,
    size: int,
    *,
    file: Path | None,
    column: str | None,
    bad_rows: dict[int, str] | None = None,
) -> Iterator[np.ndarray]:
    """Return an iterator over the vectors of one table, `size` rows at a time.

    Parameters
    ----------
    path : Path
        The table.
    rows : int
        Its number of rows.
    size : int
        Rows per array; the last array may have fewer.
    file, column
        As in `table_vectors`.
    bad_rows : dict of int to str, optional
        As in `stream_vector_column`.

    Returns
    -------
    iterator of ndarray of shape (size, d)
    """
    if file is not None:
        found = open_npy(file, rows)
        return (found[start : start + size] for start in range(0, rows, size))
    assert column is not None
    return stream_vector_column(path, column, size, bad_rows)


def open_npy(path: Path, rows: int) -> np.ndarray:
    """Return the array of so many rows in a .npy file, memory-mapped; nothing is unpickled."""
    try:
        open_regular(path).close()  # reading a pipe or a device might never end
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file: give a .npy file") from None
    except DamagedFileError as error:
        raise InputError(f"{path}: {error}: give a .npy file") from error
    # OverflowError: a shape with negative or huge numbers
    except (OSError, ValueError, EOFError, OverflowError) as error:
        raise InputError(
            f"{path}: this is not a .npy file of numbers, or it is damaged ({reason(error)}): "
            "write it with numpy.save"
        ) from error
    if not isinstance(found, np.ndarray):  # an archive of several arrays
        raise InputError(f"{path}: this is an archive of arrays: write one with numpy.save")
    if found.ndim != 2:
        dimensions = plural(found.ndim, "dimension")
        raise InputError(f"{path}: the array has {dimensions}: give one row per text")
    if len(found) != rows:
        raise InputError(
            f"{path} has {plural(len(found), 'row')} but the table has {rows:,}: give one vector "
            "per row of the table, in its order; rows without text count"
        )
    return found


def stream_vector_column(
    path: Path, column: str, size: int = BLOCK, bad_rows: dict[int, str] | None = None
) -> Iterator[np.ndarray]:
    """Yield the vectors in a list column of a Parquet file, `size` rows at a time.

    Parameters
    ----------
    path : Path
    column : str
        A column of lists of numbers, all of one length.
    size : int
        Rows per array; the last array may have fewer.
    bad_rows : dict of int to str, optional
        Receives the number of each row whose vector has another length than most of the first
        ones, with the reason, before the row is yielded; it is a row of NaN. Without it, the first
        one raises InputError.

    Yields
    ------
    ndarray of shape (size, d)
        A missing vector is a row of NaN.
    """
    if path.suffix.lower() not in (".parquet", ".pq"):
        raise InputError(
            f"{path}: only Parquet files have columns of vectors (--vector-column): write the "
            "vectors into a .npy file and name it with --vectors"
        )
    from newfound.data.tables.parquet import open_parquet, read_lists

    source = open_parquet(path)
    if column not in source.columns:
        raise InputError(missing_column(path, column, "--vector-column", source.columns))
    width, before = None, 0
    waiting = np.empty((0, 0), np.float32)
    for values, lengths in read_lists(source, column):
        present = lengths[lengths >= 0]
        if width is None and len(present):
            width = int(present[0] if bad_rows is None else np.bincount(present).argmax())
            waiting = np.full((before, width), np.nan, np.float32)  # all missing so far
        other = np.flatnonzero((lengths >= 0) & (lengths != width))
        for place in other:
            wrong = (
                f"{path}, column {column!r}, row {before + int(place) + 1}: the vector has "
                f"{plural(int(lengths[place]), 'dimension')}, but others have {width:,}"
            )
            if bad_rows is None:
                raise InputError(wrong)
            bad_rows[before + int(place) + 1] = wrong
        before += len(lengths)
        if width is None:
            continue
        part = np.full((len(lengths), width), np.nan, np.float32)
        if len(other):
            values = values[np.repeat(present == width, present)]
        part[lengths == width] = values.reshape(-1, width)
        waiting = np.concatenate([waiting, part])
        while len(waiting) >= size:
            yield waiting[:size]
            waiting = waiting[size:]
    if width is None:
        raise InputError(f"{path}, column {column!r}: every vector is missing")
    if len(waiting):
        yield waiting
