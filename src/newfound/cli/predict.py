"""`newfound predict`: stream a table, or standard input, through a run's model."""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from newfound.cli.commands import tell
from newfound.data.tables import TableChunk, TableWriter, stream_lines, stream_table
from newfound.errors import InputError
from newfound.progress import Stages

if TYPE_CHECKING:
    from newfound.result import Model

COLUMNS = {"id": str, "text": str, "category": str, "kind": str, "probability": float}
LINES = 256  # lines of standard input that are answered together
Rows = dict[str, list[Any]]


def predict(options: argparse.Namespace) -> None:
    """Give each new text its category, whether that is known or novel, and a probability."""
    from newfound.storage.model_files import load_model

    out: Path | None = getattr(options, "out", None)
    writer = None if out is None else TableWriter(out, COLUMNS)  # refuses a name without a format
    if out is not None and out.exists() and not options.force:
        raise InputError(f"{out} exists; replace it with --force or choose another name")
    columns: dict[str, Any] = {
        "text_column": getattr(options, "text_column", None),
        "id_column": getattr(options, "id_column", None),
    }
    piped = options.table == "-"
    if writer is None and not piped:
        raise InputError("name the table to write with -o OUT (.csv, .tsv, .jsonl or .parquet)")
    table = None if piped else stream_table(Path(options.table), **columns)
    # int8 is a CPU's: it is the default device then, and a GPU that is asked for is refused.
    device = getattr(options, "device", "cpu" if options.int8 else None)
    model = load_model(options.folder, device)
    if options.int8:
        model, told_of_int8 = _to_int8(model, options.folder)
        tell([told_of_int8])
    if table is not None:
        tell(table.notes)
    told = len(table.notes) if table is not None else 0
    chunks: Iterable[TableChunk] = (
        stream_lines(sys.stdin, LINES, **columns) if table is None else table
    )
    rows = predicted(model, chunks)
    if writer is None:
        _print(rows)
        return
    count = _write(rows, writer, None if table is None else table.rows)
    if table is not None:
        tell(table.notes[told:])  # some come only at the end of the table
    print(f"{count} texts: {out}")


def _to_int8(model: "Model", folder: Path) -> tuple["Model", str]:
    """The model in int8, calibrated on the run's own texts; it is kept beside the model."""
    from newfound import pipeline

    inside = folder / "model"
    tables = [path for path in sorted(folder.glob("assignments.*")) if path.is_file()]
    if not inside.is_dir() or not tables:
        raise InputError(
            f"{folder} is not a whole run: --int8 is calibrated on the texts in its assignments; "
            "name a run folder"
        )
    # The first chunk is enough to draw from, however long the table is.
    texts = next((chunk.texts for chunk in stream_table(tables[0], text_column="text")), [])
    converted, agreement = pipeline.to_int8(model, texts, inside / "int8")
    return converted, str(agreement)


def predicted(model: "Model", chunks: Iterable[TableChunk]) -> Iterator[Rows]:
    """The columns of the answer, chunk by chunk; an empty text gets no category."""
    for chunk in chunks:
        found = model.predict(chunk.texts)
        probability = [
            None if index < 0 else round(float(chance), 4)
            for index, chance in zip(found.index, found.probability, strict=True)
        ]
        values = (chunk.ids, chunk.texts, found.names.tolist(), found.kinds.tolist(), probability)
        yield dict(zip(COLUMNS, values, strict=True))


def _print(chunks: Iterable[Rows]) -> None:
    """JSON lines to standard output."""
    # What the terminal's or pipe's encoding lacks is escaped, which JSON can.
    plain = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    for rows in chunks:
        for values in zip(*rows.values(), strict=True):
            print(json.dumps(dict(zip(rows, values, strict=True)), ensure_ascii=plain))
        sys.stdout.flush()


def _write(chunks: Iterable[Rows], writer: TableWriter, total: int | None) -> int:
    """Rows to a table; returns how many."""
    count = 0
    with writer, Stages().stage("predicting", total) as advance:
        for rows in chunks:
            writer.write(rows)
            size = len(rows["id"])
            advance(size)
            count += size
    return count
