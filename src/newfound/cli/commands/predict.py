"""`newfound predict`: predict the categories of new texts, from a table or from standard input."""

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from newfound.cli.flags import (
    TABLES,
    Commands,
    add_columns,
    add_force,
    add_model_flags,
    add_output_flags,
    add_parts,
    add_raw_cells,
    add_run_folder,
    add_vectors,
    new_command,
)
from newfound.cli.inputs import model_options
from newfound.cli.output import Output, json_line
from newfound.cli.sharding import ALARM, add_engine, predict_into_folder
from newfound.errors import InputError
from newfound.wording import plural

if TYPE_CHECKING:
    import numpy as np

    from newfound.clustering.misfits import Misfits
    from newfound.data.tables import TableStream, TableWriter
    from newfound.model import Model
    from newfound.prediction import Rows

LINES = 256  # maximum number of lines of standard input per batch


def add_parser(commands: Commands) -> None:
    """Add the command."""
    command = new_command(
        commands,
        "predict",
        run,
        "assign new texts to categories with the model of a run",
        "Predict the category of each new text, its id and its status, with a probability, the "
        "most probable known category and a fit score; print how many texts fit nowhere and "
        "whether that is more than expected. With - as TABLE, one text "
        "or JSON object per line is read from standard input, and predictions are written to "
        "standard output as JSON Lines.",
    )
    add_run_folder(command, "run folder, or a saved model")
    command.add_argument(
        "tables", metavar="TABLE", nargs="+", help=f"{TABLES}; or - for standard input"
    )
    command.add_argument(
        "-o",
        "--out",
        metavar="OUT",
        type=Path,
        default=argparse.SUPPRESS,
        help="table to write: .csv, .tsv, .jsonl or .parquet (default with -: standard output); "
        "with --engine, a folder",
    )
    add_force(command, "an existing table, or the predictions in a folder")
    add_engine(command)
    add_columns(command, ("text", "id"))
    add_vectors(command, several=False)
    add_parts(command)
    add_raw_cells(command)
    add_model_flags(command)
    command.add_argument(
        "--alarm",
        action="store_true",
        help=f"end with the exit code {ALARM} if more texts fit nowhere than expected, for "
        "scheduled jobs; the predictions are written all the same",
    )
    add_output_flags(command)


def run(options: argparse.Namespace) -> int | None:
    """Predict the categories of tables or of standard input."""
    if hasattr(options, "engine"):
        return predict_into_folder(options)
    if hasattr(options, "workers"):
        raise InputError("--workers is for --engine ray; add --engine ray, or omit --workers")
    from newfound.data.tables import TableWriter, stream_lines, stream_table
    from newfound.prediction import load_for_prediction, predicted, prediction_columns

    output = Output(options)
    out: Path | None = getattr(options, "out", None)
    columns: dict[str, Any] = {
        "text_column": getattr(options, "text_column", None),
        "id_column": getattr(options, "id_column", None),
    }
    # Made first, because it rejects an unknown file type.
    ours = prediction_columns()
    writer = None
    if out is not None:
        writer = TableWriter(out, ours, raw_cells=options.raw_cells, replace=options.force)
    if out is not None and out.exists() and not options.force:
        raise InputError(f"{out} exists; replace it with --force or choose another name")
    chosen = model_options(options)
    piped = options.tables == ["-"]
    if "-" in options.tables and not piped:
        raise InputError("- stands for standard input and cannot be combined with tables")
    file, column = getattr(options, "vectors", None), getattr(options, "vector_column", None)
    if piped and (file or column):
        raise InputError(
            "vectors belong to the rows of a table (--vectors, --vector-column); name the table "
            "instead of -"
        )
    if writer is None and not piped:
        raise InputError("name the table to write with -o OUT (.csv, .tsv, .jsonl or .parquet)")
    if writer is None and output.json:
        raise InputError(
            "predictions on standard output are JSON Lines already; omit --json, or name the table "
            "to write with -o OUT"
        )
    table = None
    if not piped:
        table = stream_table(
            *map(Path, options.tables),
            raw_cells=options.raw_cells,
            sheet=getattr(options, "sheet", None),
            query=getattr(options, "query", None),
            **columns,
        )
    if writer is not None:
        kept = None if table is None else table.kept
        writer.columns = prediction_columns(columns["text_column"], kept)
    with output.stages().stage("loading the model"):
        model, notes = load_for_prediction(options.folder, chosen)
    notes += [] if table is None else table.notes
    output.notes(notes)
    if options.alarm and model.fit_reference is None:
        raise InputError(
            "this model has no reference texts, so --alarm cannot tell how many texts fit nowhere; "
            "run `newfound discover` again"
        )
    tally = _Tally(model)
    if writer is None:
        _print(tally.counted(predicted(model, stream_lines(sys.stdin, LINES, **columns))))
        output.notes(model.notes())
        misfits = tally.misfits
        # Of a few lines, the predictions are enough.
        if misfits is not None and (options.alarm or misfits.more_than_expected):
            output.progress(str(misfits))
        return ALARM if options.alarm and misfits and misfits.more_than_expected else None
    chunks = stream_lines(sys.stdin, LINES, **columns) if table is None else table
    vectors = None
    if table is not None and (file or column):
        vectors = _vectors(table, file, column)
    _write(tally.counted(predicted(model, chunks, vectors)), writer, table, output)
    output.written(writer.path)
    # Some notes are known only after the last row.
    late = [note for note in (table.notes if table else []) if note not in notes] + model.notes()
    output.notes(late)
    notes += late
    misfits = tally.misfits
    value = {
        "out": str(out),
        "texts": tally.rows,
        "fits_nowhere": tally.marked,
        "misfits": None if misfits is None else misfits.to_dict(),
        "notes": notes,
        "precision": model.precision,
    }
    lines = [f"{plural(tally.rows, 'text')}: {out}"]
    output.result(value, "\n".join(lines if misfits is None else [*lines, str(misfits)]))
    return ALARM if options.alarm and misfits and misfits.more_than_expected else None


class _Tally:
    """Counts rows, and texts that fit nowhere by the rule of the model or by the usual share."""

    def __init__(self, model: "Model") -> None:
        from newfound.clustering.misfits import usual_threshold

        self.reference, self.threshold = model.fit_reference, model.fit_threshold
        self.rule = self.threshold is not None
        if self.reference is not None and self.threshold is None:
            self.threshold = usual_threshold(self.reference)
        self.rows = self.texts = self.below = 0

    def counted(self, chunks: Iterable["Rows"]) -> Iterator["Rows"]:
        """Yield the rows of predictions, and count them."""
        for rows in chunks:
            yield rows
            self.rows += len(rows["id"])
            fits = [fit for fit in rows["fit"] if fit is not None]
            self.texts += len(fits)
            if self.rule:
                self.below += rows["fits_nowhere"].count("yes")
            elif self.threshold is not None:
                self.below += sum(fit < self.threshold for fit in fits)

    @property
    def marked(self) -> int | None:
        """How many texts are marked; None without a rule."""
        return self.below if self.rule else None

    @property
    def misfits(self) -> "Misfits | None":
        """How many texts fit nowhere; None if the model cannot tell, or there is no text."""
        from newfound.clustering.misfits import judge_misfits

        if self.reference is None or self.threshold is None or not self.texts:
            return None
        return judge_misfits(self.below, self.texts, self.reference, self.threshold)


def _vectors(table: "TableStream", file: Path | None, column: str | None) -> Iterator["np.ndarray"]:
    """Return an iterator over the vectors of a table's rows, chunk by chunk."""
    from newfound.data.tables.vectors import stream_vectors

    if len(table.tables) > 1:
        raise InputError(
            f"vectors belong to the rows of one table, but {len(table.tables):,} tables are given; "
            "predict them one by one"
        )
    path = table.tables[0][0].path
    return stream_vectors(path, table.rows, table.chunk, file=file, column=column)


def _print(chunks: Iterable["Rows"]) -> None:
    """Print predictions to standard output as JSON Lines, chunk by chunk."""
    count = 0
    try:
        for rows in chunks:
            for values in zip(*rows.values(), strict=True):
                print(json_line(dict(zip(rows, values, strict=True))))
                count += 1
            sys.stdout.flush()
    except KeyboardInterrupt:
        # The default message would claim that nothing was written.
        raise KeyboardInterrupt(f"{plural(count, 'line was', 'lines were')} written") from None


def _write(
    chunks: Iterable["Rows"], writer: "TableWriter", table: "TableStream | None", output: Output
) -> None:
    """Write rows to a table."""
    total = None if table is None else table.rows
    with writer, output.stages().stage("predicting", total) as advance:
        for rows in chunks:
            # Lines of standard input may have other fields, which a table cannot know in advance.
            writer.write({name: rows[name] for name in writer.columns})
            advance(len(rows["id"]))
