"""Predict one shard: read it, predict its rows, write them and the receipt."""

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from newfound.data.tables import TableChunk, TableStream, TableWriter, stream_table
from newfound.errors import EmptyTableError, InputError, reason
from newfound.files import write_atomically, write_text
from newfound.prediction import Predictor, Rows, predicted, prediction_columns
from newfound.sharding.folder import ASIDE, Receipt, source_stamp, write_receipt
from newfound.sharding.shards import Shard

if TYPE_CHECKING:
    from newfound.model import Model

PROBE = "a text"  # every model that works can predict it


class ShardError(Exception):
    """A shard as a whole cannot be read or predicted; the others may be."""


@dataclass(frozen=True)
class ShardOptions:
    """How shards are read and written; see `newfound.data.tables.stream_table`."""

    raw_cells: bool = False
    sheet: str | None = None
    query: str | None = None
    vector_column: str | None = None


@dataclass(frozen=True)
class ShardWork:
    """Predicts shards with one model into one folder; it can be sent to other processes."""

    predictor: Predictor
    folder: Path
    options: ShardOptions

    def load(self) -> None:
        """Load the model, before the first shard."""
        _ = self.predictor.model

    def __call__(self, shard: Shard) -> Receipt | str:
        """Predict a shard; return its receipt, or the reason why the shard cannot be predicted.

        Errors of the model and of writing are raised, because all shards would have them.
        """
        begun = time.perf_counter()
        bad: dict[int, str] = {}  # rows that cannot be read, by number
        try:
            with _reading(shard):
                stamp = source_stamp(shard.source)
                table = self._open(shard, bad)
            with write_atomically(self.folder / shard.output) as temporary:
                counts, aside = self._write(shard, table, bad, temporary)
                lines = [json.dumps(line, ensure_ascii=False) + "\n" for line in aside]
                if lines:
                    write_text(self.folder / ASIDE / shard.aside, "".join(lines))
                with temporary.open("rb") as file:
                    sha256 = hashlib.file_digest(file, "sha256").hexdigest()
                receipt = Receipt(
                    str(shard.source),
                    *stamp,
                    **counts,
                    bytes=temporary.stat().st_size,
                    sha256=sha256,
                    seconds=round(time.perf_counter() - begun, 3),
                    notes=[*table.notes, *self._notes(shard, counts)],
                )
                write_receipt(self.folder, shard, receipt)
        except ShardError as error:
            return str(error)
        return receipt

    def _notes(self, shard: Shard, counts: Mapping[str, Any]) -> list[str]:
        """Return notes on a shard that was predicted."""
        notes = [] if counts["rows"] else [f"{shard.source}: there are no rows"]
        return [*notes, *self.predictor.model.notes()]

    def _open(self, shard: Shard, bad: dict[int, str]) -> TableStream:
        """Open a table; one without rows has no columns, if it has no header."""
        try:
            return stream_table(
                shard.source,
                text_column=self.predictor.text_column,
                id_column=self.predictor.id_column,
                raw_cells=self.options.raw_cells,
                sheet=self.options.sheet,
                query=self.options.query,
                bad_rows=bad,
            )
        except EmptyTableError:
            return TableStream([], chunk=1)

    def _write(
        self, shard: Shard, table: TableStream, bad: dict[int, str], path: Path
    ) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Write the predictions; return the counts and the rows that were set aside."""
        columns = prediction_columns(self.predictor.text_column, table.kept)
        aside: list[dict[str, Any]] = []
        rows = empty = 0
        marked = None if self.predictor.model.fit_threshold is None else 0
        with TableWriter(path, columns, raw_cells=self.options.raw_cells) as writer:
            for chunk, vectors in self._chunks(shard, table, bad):
                first, rows = rows + 1, rows + len(chunk.texts)
                found, failed = predict_rows(
                    self.predictor.model,
                    chunk,
                    vectors,
                    {row - first: bad[row] for row in range(first, rows + 1) if row in bad},
                )
                for position, why in sorted(failed.items()):
                    row = {"row": first + position, "id": chunk.ids[position]}
                    aside.append({**row, "text": chunk.texts[position], "reason": why})
                if not found:
                    continue
                writer.write({name: found[name] for name in columns})
                empty += sum(category is None for category in found["category"])
                if marked is not None:
                    marked += found["fits_nowhere"].count("yes")
            if rows and len(aside) == rows:
                raise ShardError(f"no row can be predicted; the first: {aside[0]['reason']}")
        counts = {"rows": rows, "written": rows - len(aside), "empty": empty}
        return {**counts, "set_aside": len(aside), "fits_nowhere": marked}, aside

    def _chunks(
        self, shard: Shard, table: TableStream, bad: dict[int, str]
    ) -> Iterator[tuple[TableChunk, np.ndarray | None]]:
        """Yield the rows of a table, with their vectors if the user computed them."""
        chunks, vectors = iter(table), None
        if self.options.vector_column is not None:
            from newfound.data.tables.vectors import stream_vectors

            column = self.options.vector_column
            vectors = stream_vectors(
                shard.source, table.rows, table.chunk, file=None, column=column, bad_rows=bad
            )
        while True:
            with _reading(shard):
                chunk = next(chunks, None)
                given = None if chunk is None or vectors is None else next(vectors)
            if chunk is None:
                return
            yield chunk, given


def predict_rows(
    model: "Model",
    chunk: TableChunk,
    vectors: np.ndarray | None = None,
    bad: Mapping[int, str] | None = None,
) -> tuple[Rows, dict[int, str]]:
    """Predict the rows of a chunk, and find those that cannot be predicted.

    If the chunk cannot be predicted as a whole, its halves are tried, and so on.

    Parameters
    ----------
    model : Model
    chunk : TableChunk
    vectors : ndarray of shape (N, d), optional
    bad : mapping of int to str, optional
        Positions of rows that could not be read, each with its reason.

    Returns
    -------
    rows : dict of str to list
        Columns of the predictions of the other rows; empty if there are none.
    failed : dict of int to str
        The reason of each row that cannot be predicted, by position, with those of `bad`.

    Raises
    ------
    ShardError
        If the model cannot predict any text.
    """
    failed = dict(bad or {})
    found: Rows = {}
    waiting = [[at for at in range(len(chunk.texts)) if at not in failed]]
    checked = vectors is not None  # a model of vectors cannot predict a text
    while waiting:
        places = waiting.pop()
        if not places:
            continue
        part = chunk if len(places) == len(chunk.texts) else _part(chunk, places)
        given = None if vectors is None else iter([vectors[places]])
        try:
            (rows,) = predicted(model, [part], given)
        except Exception as error:  # whatever a text does to an encoder, others are predicted
            why = str(error) if isinstance(error, InputError) else reason(error)
            if not checked:
                checked = True
                _probe(model, why)
            if len(places) == 1:
                failed[places[0]] = why
            else:
                half = len(places) // 2
                waiting += [places[half:], places[:half]]  # the first half is tried next
            continue
        for name, values in rows.items():
            found.setdefault(name, []).extend(values)
    return found, failed


def _part(chunk: TableChunk, places: Sequence[int]) -> TableChunk:
    """Return some rows of a chunk."""
    return TableChunk(
        [chunk.ids[at] for at in places],
        [chunk.texts[at] for at in places],
        {name: [column[at] for at in places] for name, column in chunk.columns.items()},
    )


def _probe(model: "Model", why: str) -> None:
    """Raise ShardError if it is the model that fails, and not a row."""
    try:
        model.predict([PROBE])
    except Exception as error:
        raise ShardError(f"the model cannot predict: {why}") from error


@contextmanager
def _reading(shard: Shard) -> Iterator[None]:
    """Turn errors of reading a table into ShardErrors."""
    try:
        yield
    except InputError as error:
        raise ShardError(str(error)) from error
    except OSError as error:
        raise ShardError(f"{shard.source}: {error.strerror or error}") from error
