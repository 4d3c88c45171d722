"""Predict batches of texts with the model of a run: one function for every way to call it.

The command, Ray and Spark call `predicted` or a `Predictor`, so that the same text gets the same
answer everywhere.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from newfound.config import check_marking
from newfound.data.corpus import clean_text
from newfound.data.tables.columns import find_columns, free_names, join_cells
from newfound.data.tables.streaming import TableChunk
from newfound.errors import InputError, reason
from newfound.files import read_steadily
from newfound.files.manifest import read_manifest, sha256_of
from newfound.storage.formats import damage_reported

if TYPE_CHECKING:
    from newfound.model import Model

COLUMNS: dict[str, type] = {
    "id": str,
    "text": str,
    "category": str,
    "category_id": str,
    "kind": str,
    "status": str,
    "probability": float,
    "best_known": str,
    "best_known_probability": float,
    "fit": float,
    "fits_nowhere": str,
}
Rows = dict[str, list[Any]]
MOST_TEXTS = 100_000  # of a run that are read to convert its model with


@dataclass(frozen=True)
class ModelOptions:
    """How the model of a run is loaded; see the parameters of `Predictor`."""

    device: str | None = None
    outside: float | None = None
    false_alarms: float | None = None
    int8: bool | None = None  # None: if the run holds an int8 model that agrees and is faster
    trust_remote_code: bool = False
    static: bool = False


class Predictor:
    """Predicts the categories of batches of texts with the model of a run.

    A predictor can be pickled and sent to other processes and machines: it holds the path of the
    model, not the model. Each process loads the model once, when its first batch arrives.

    Parameters
    ----------
    folder : str or Path
        Run folder or saved model. Processes on other machines need it under the same path.
    text_column : str or sequence of str, optional
        Column of the texts, several of which are joined; found by its name by default.
    id_column : str, optional
        Column of the ids; found by its name by default. Without one, ids are missing.
    device : str, optional
        cpu, cuda or cuda:N; by default a GPU if available.
    outside : float, optional
        Mark texts as fitting nowhere; see `newfound.model.Model.marking`. As in the run by default.
    false_alarms : float, optional
        Instead of `outside`.
    int8 : bool, default False
        Whether to encode in int8 on a CPU; needs a run folder and the extra ``openvino``.
    trust_remote_code : bool, default False
        Whether code that comes with the encoder of the run may run.
    static : bool, default False
        Whether static vectors stand for the encoder, on a CPU: no layer runs; less exact. Needs a
        run folder.

    Attributes
    ----------
    digest : str
        sha256 of the model and of the decisions on its run that are in force. A process that finds
        another model or other decisions in the folder refuses them.
    columns : dict of str to type
        The columns of the predictions, with their types.

    Examples
    --------
    >>> import pickle, tempfile
    >>> from newfound import CategoryDiscoverer, Predictor
    >>> texts = ["my card was lost", "the card is gone", "rain and cold", "a cold rainy day"]
    >>> discoverer = CategoryDiscoverer(n_categories=2, method="bert", device="cpu").fit(texts)
    >>> folder = tempfile.mkdtemp()
    >>> discoverer.save(folder)
    >>> predictor = pickle.loads(pickle.dumps(Predictor(folder)))
    >>> found = predictor({"id": ["a", "b"], "text": ["a lost card", ""]})
    >>> list(found)[:4], found["id"], found["kind"]
    (['id', 'text', 'category', 'category_id'], ['a', 'b'], ['novel', None])
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        text_column: str | Sequence[str] | None = None,
        id_column: str | None = None,
        device: str | None = None,
        outside: float | None = None,
        false_alarms: float | None = None,
        int8: bool = False,
        trust_remote_code: bool = False,
        static: bool = False,
    ) -> None:
        self.folder = Path(folder).absolute()
        self.text_column, self.id_column = text_column, id_column
        check_marking(outside, false_alarms, labelled=True)  # the model checks that again
        self.options = ModelOptions(device, outside, false_alarms, int8, trust_remote_code, static)
        self.digest = model_digest(self.folder)

    @property
    def columns(self) -> dict[str, type]:
        """The columns of the predictions, with their types."""
        return prediction_columns(self.text_column)

    @property
    def spark_schema(self) -> str:
        """The columns of the predictions as a schema of Spark, for `DataFrame.mapInPandas`."""
        names = {str: "string", float: "double"}
        quoted = {name.replace("`", "``"): kind for name, kind in self.columns.items()}
        return ", ".join(f"`{name}` {names[kind]}" for name, kind in quoted.items())

    @property
    def model(self) -> "Model":
        """The model, which is loaded once per process."""
        return self._loaded[0]

    @property
    def notes(self) -> list[str]:
        """What the user should know about the model, such as the agreement of int8."""
        return list(self._loaded[1])

    @cached_property
    def _loaded(self) -> tuple["Model", tuple[str, ...]]:
        """The model and its notes."""
        return _load_once(self.folder, self.digest, self.options)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: everything but the model."""
        return {name: value for name, value in vars(self).items() if name != "_loaded"}

    def __call__(self, batch: Any) -> Any:
        """Predict a batch.

        Parameters
        ----------
        batch : dict of str to sequence, pandas.DataFrame, pyarrow.Table or pyarrow.RecordBatch
            Columns, one of which holds texts.

        Returns
        -------
        dict of str to list, pandas.DataFrame, pyarrow.Table or pyarrow.RecordBatch
            The predictions in the type of `batch`, with the columns that `newfound predict`
            writes. A text that is missing or empty gets no category.
        """
        names = list(batch.column_names if hasattr(batch, "column_names") else batch)
        found = find_columns(
            "the batch", names, text=self.text_column, id=self.id_column, with_label=False
        )
        cells = {name: _cells(batch[name], name) for name in found.wanted}
        texts = [cells[name] for name in found.texts]
        ids: list[Any] = [None] * len(texts[0]) if found.id is None else cells[found.id]
        parts = {name: [cell or "" for cell in cells[name]] for name in found.texts}
        joined = [clean_text(join_cells(row)) for row in zip(*texts, strict=True)]
        chunk = TableChunk(ids, joined, parts if len(parts) > 1 else {})
        (rows,) = predicted(self.model, [chunk])
        return self._like(batch, rows)

    def _like(self, batch: Any, rows: Rows) -> Any:
        """Return predictions in the type of a batch."""
        if isinstance(batch, dict):
            return rows
        if not hasattr(batch, "column_names"):
            import pandas as pd

            columns = {
                name: pd.Series(values, batch.index, dtype=float if kind is float else object)
                for (name, kind), values in zip(self.columns.items(), rows.values(), strict=True)
            }
            return pd.DataFrame(columns, batch.index)
        import pyarrow as pa

        kinds = {str: pa.string(), float: pa.float64()}
        schema = pa.schema([(name, kinds[kind]) for name, kind in self.columns.items()])
        return type(batch).from_pydict(rows, schema=schema)


def prediction_columns(
    text_column: str | Sequence[str] | None = None, kept: Sequence[str] | None = None
) -> dict[str, type]:
    """Return the columns of predictions with their types.

    Parameters
    ----------
    text_column : str or sequence of str, optional
        The text columns named by the user. Several are written beside the joined text.
    kept : sequence of str, optional
        All columns of the user's tables that are written, if there are tables.

    Returns
    -------
    dict of str to type
    """
    if kept is None:
        names = [] if text_column is None or isinstance(text_column, str) else list(text_column)
        kept = names if len(names) > 1 else []
    return {**COLUMNS, **dict.fromkeys(free_names(kept, COLUMNS), str)}


def predicted(
    model: "Model",
    chunks: Iterable[TableChunk],
    vectors: Iterator[np.ndarray] | None = None,
) -> Iterator[Rows]:
    """Yield the columns of the predictions, chunk by chunk; an empty text gets no category.

    `vectors` yields the vectors of each chunk, if the user computed them.
    """
    before = 0
    for chunk in chunks:
        if vectors is None:
            found = model.predict(chunk.texts)
        else:
            found = model.predict(chunk.texts, vectors=next(vectors), first_row=before + 1)
        before += len(chunk.texts)
        marked: list[str | None] = [None] * len(found)
        if found.fits_nowhere is not None:
            marked = [
                None if index < 0 else "yes" if outside else "no"
                for index, outside in zip(found.index, found.fits_nowhere, strict=True)
            ]
        yield {
            "id": chunk.ids,
            "text": chunk.texts,
            "category": found.names.tolist(),
            "category_id": found.ids.tolist(),
            "kind": found.kinds.tolist(),
            "status": found.statuses.tolist(),
            "probability": _rounded(found.probability),
            "best_known": found.best_known.tolist(),
            "best_known_probability": _rounded(found.best_known_probability),
            "fit": _rounded(found.fit),
            "fits_nowhere": marked,
            **dict(
                zip(free_names(list(chunk.columns), COLUMNS), chunk.columns.values(), strict=True)
            ),
        }


def load_for_prediction(folder: Path, options: ModelOptions) -> tuple["Model", list[str]]:
    """Return the model of a run, marking texts and in int8 as the options require, and notes."""
    from newfound.decisions import model_after_decisions
    from newfound.storage.model_files import load_model  # imports torch

    if options.int8 and options.static:
        raise InputError("int8 and static exclude each other; give one of them")
    # Both run only on a CPU, which is then the default device; cuda is an error.
    model = load_model(
        folder,
        options.device or ("cpu" if options.int8 or options.static else None),
        trust_remote_code=options.trust_remote_code,
    )
    if options.outside is not None or options.false_alarms is not None:
        model = model.marking(options.outside, options.false_alarms)
    model, notes = model_after_decisions(model, folder)
    if options.static:
        from newfound.pipeline import to_static

        texts = _texts_of_run(folder, "static")
        converted, found = to_static(model, texts, folder / "model" / "static")
        return converted, [*notes, f"{found}, on texts that it was not fitted to"]
    if options.int8 is None:
        model, more = _fastest(model, folder)
        return model, [*notes, *more]
    if not options.int8:
        return model, notes
    converted, agreement = _to_int8(model, folder)
    return converted, [*notes, agreement]


def _fastest(model: "Model", folder: Path) -> tuple["Model", list[str]]:
    """Return the model in int8 if the run holds such a model that agrees and is faster, and notes.

    A model is converted only if the user asks for it, so that the same command gives the same
    answers until then.
    """
    from newfound.encoding.int8 import kept_int8

    inside = folder / "model" if (folder / "model").is_dir() else folder
    try:
        kept = kept_int8(model.features, inside / "int8")
    except InputError as error:
        return model, [f"full precision is used, because {error}"]
    if kept is None:
        return model, []
    features, agreement = kept
    if not agreement.suffices:
        return model, [f"full precision is used; the run also holds an int8 model ({agreement})"]
    return replace(model, features=features), [f"{agreement}; --fp32 encodes in full precision"]


def model_digest(folder: Path) -> str:
    """Return the sha256 of what answers: a model, and the decisions on its run that are in force.

    It is that of a list with the sha256 of each file of the model, which the model's manifest has.
    Decisions that change no answer (notes, and those that are undone) do not change it.
    """
    inside = folder / "model" if (folder / "model" / "model.json").is_file() else folder
    if not (inside / "model.json").is_file():
        raise InputError(
            f"{folder} is not a model of newfound (no model.json); give a run folder or a saved "
            "model"
        )
    with damage_reported(inside):
        digests = read_manifest(inside)
    if digests is None:  # a model of an earlier version has none
        digests = sha256_of(inside, [path.name for path in inside.iterdir() if path.is_file()])
    decisions = _decisions_in_force(folder)
    answers: Any = {"files": digests, "decisions": decisions} if decisions else digests
    return hashlib.sha256(json.dumps(answers, sort_keys=True).encode()).hexdigest()


def _decisions_in_force(folder: Path) -> list[dict[str, Any]]:
    """Return the decisions on a run that may change what its model answers, in their order."""
    if not (folder / "run.json").is_file() or not (folder / "decisions.jsonl").is_file():
        return []
    from newfound.decisions import Decision, read_log  # imports torch

    log = read_log(folder)
    return [
        entry.to_dict()
        for number, entry in enumerate(log.entries, start=1)
        if isinstance(entry, Decision)
        and entry.action not in ("note", "undo", "refit")
        and number not in log.undone
    ]


# Spark unpickles a predictor for every task of a process. One model is kept, not more, so that a
# process that changes its model can free the one before.
@lru_cache(maxsize=1)
def _load_once(folder: Path, digest: str, options: ModelOptions) -> tuple["Model", tuple[str, ...]]:
    """Return the model with this digest, and notes; another model is refused."""

    def load() -> tuple["Model", tuple[str, ...]]:
        if not folder.exists():
            raise InputError(
                f"the model {folder} does not exist on this machine; put it where every machine "
                "has it under the same path"
            )
        if model_digest(folder) != digest:
            raise InputError(
                f"{folder} holds another model or other decisions than at the beginning; put the "
                "first ones back, or begin again with the new ones"
            )
        model, notes = load_for_prediction(folder, options)
        return model, tuple(notes)

    return read_steadily(folder, load, unchanged=True)


def _to_int8(model: "Model", folder: Path) -> tuple["Model", str]:
    """Convert a model to int8, calibrated on texts of the run, and store it in the run folder."""
    from newfound.pipeline import to_int8

    texts = _texts_of_run(folder, "int8")
    converted, agreement = to_int8(model, texts, folder / "model" / "int8")
    return converted, str(agreement)


def _texts_of_run(folder: Path, name: str) -> list[str]:
    """Return texts of a run, to convert its model with."""
    from newfound.data.tables import stream_table

    tables = [path for path in sorted(folder.glob("assignments.*")) if path.is_file()]
    if not (folder / "model").is_dir() or not tables:
        raise InputError(
            f"{folder} is not a complete run folder, and --{name} is calibrated on the texts of "
            "the run; give a run folder"
        )
    texts: list[str] = []
    for chunk in stream_table(tables[0], text_column="text"):
        texts += chunk.texts
        if len(texts) >= MOST_TEXTS:
            break
    return texts


def _rounded(values: np.ndarray) -> list[float | None]:
    """Return numbers with four decimals, None for NaN."""
    return [None if value != value else round(float(value), 4) for value in values]


def _cells(values: Any, name: str) -> list[str | None]:
    """Return a column of a batch as clean strings, as the reader of Parquet files does."""
    cells = values if hasattr(values, "to_pylist") else list(values)
    if not isinstance(cells, list) or not all(c is None or isinstance(c, str) for c in cells):
        import pyarrow as pa

        from newfound.data.tables.arrow import as_strings

        try:
            array = pa.array(cells, from_pandas=True) if isinstance(cells, list) else cells
            cells = as_strings(array).to_pylist()
        except (pa.ArrowException, UnicodeError) as error:
            raise InputError(
                f"column {name!r} of the batch cannot be read as texts ({reason(error)}); give "
                "strings"
            ) from error
    return [None if cell is None else clean_text(cell) for cell in cells]
