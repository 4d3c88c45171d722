"""Read what parsed options refer to: configuration, method settings, tables, naming endpoint."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from newfound.config import RunConfig, flag_of, override
from newfound.errors import InputError

if TYPE_CHECKING:
    from newfound.data.corpus import Corpus
    from newfound.describing.llm_names import Endpoint
    from newfound.prediction import ModelOptions

# Environment variables with the API key of the naming endpoint; the first one that is set is used.
KEYS = ("NEWFOUND_API_KEY", "OPENAI_API_KEY")


def run_config(options: argparse.Namespace) -> RunConfig:
    """Return the configuration given by the flags; absent flags keep their defaults."""
    names = [f.name for f in fields(RunConfig) if hasattr(options, f.name)]
    given = {name: getattr(options, name) for name in names}
    return override(RunConfig(), given, "the command", spelt=flag_of)


def marking_options(options: argparse.Namespace) -> tuple[float | None, float | None]:
    """Return --outside and --false-alarms, None for what is not given."""
    names = [name for name in ("outside", "false_alarms") if hasattr(options, name)]
    given = {name: getattr(options, name) for name in names}
    config = override(RunConfig(), given, "the command", spelt=flag_of)
    return config.outside, config.false_alarms


def model_options(options: argparse.Namespace) -> "ModelOptions":
    """Return how a model is loaded, by the flags of `newfound.cli.flags.add_model_flags`."""
    from newfound.prediction import ModelOptions

    outside, false_alarms = marking_options(options)
    return ModelOptions(
        device=getattr(options, "device", None),
        outside=outside,
        false_alarms=false_alarms,
        int8=options.int8,
        trust_remote_code=options.trust_remote_code,
        static=options.static,
    )


def method_settings(options: argparse.Namespace) -> dict[str, str]:
    """Return the settings given by --set, by name."""
    chosen = {}
    for pair in getattr(options, "settings", []):
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise InputError(f"--set takes NAME=VALUE (such as epochs=3), not {pair!r}")
        chosen[name.strip()] = value.strip()
    return chosen


def naming_endpoint(options: argparse.Namespace) -> "Endpoint | None":
    """Return the endpoint given by --name-with and --name-model, None if neither is given."""
    url, model = getattr(options, "name_with", None), getattr(options, "name_model", None)
    if url is None and model is None:
        return None
    if not url or not model:
        missing = "--name-model MODEL" if url else "--name-with URL"
        raise InputError(f"naming needs both an endpoint and a model; add {missing}")
    from newfound.describing.llm_names import Endpoint, check_endpoint

    check_endpoint(url)
    key = next((os.environ[name] for name in KEYS if os.environ.get(name)), None)
    return Endpoint(url, model, key)


def read_corpus(options: argparse.Namespace) -> tuple["Corpus", list[str]]:
    """Return the tables of a command as one corpus, with notes on how they were read."""
    return _read(
        options,
        options.tables,
        vectors=getattr(options, "vectors", None),
        id_column=getattr(options, "id_column", None),
        time_column=getattr(options, "time_column", None),
        sheet=getattr(options, "sheet", None),
        query=getattr(options, "query", None),
    )


def read_validation(
    options: argparse.Namespace, corpus: "Corpus"
) -> tuple["Corpus", list[str]] | None:
    """Return the texts of --validation with notes, None without that flag."""
    path: Path | None = getattr(options, "validation", None)
    if path is None:
        return None
    if getattr(options, "vectors", None) is not None:
        raise InputError(
            "--vectors holds no vectors of the texts of --validation; write the vectors into a "
            "column of Parquet tables and name it with --vector-column, or omit --validation"
        )
    held, notes = _read(options, [path])
    if not set(held.known) & set(corpus.known):
        raise InputError(
            f"{path}: no label of this table is a known category; give labelled texts of known "
            "categories, or omit --validation"
        )
    return held, notes


def _read(
    options: argparse.Namespace,
    paths: Sequence[Path],
    *,
    vectors: Path | None = None,
    **chosen: str | None,
) -> tuple["Corpus", list[str]]:
    """Return tables as one corpus, with the vectors of a file or of a column, and notes."""
    from newfound.data.tables import read_tables
    from newfound.data.tables.vectors import table_vectors

    read = read_tables(
        paths,
        text_column=getattr(options, "text_column", None),
        label_column=getattr(options, "label_column", None),
        raw_cells=options.raw_cells,
        **chosen,
    )
    column: str | None = getattr(options, "vector_column", None)
    if vectors is None and column is None:
        return read.corpus, list(read.notes)
    found = table_vectors(read.paths, read.sizes, read.numbers, file=vectors, column=column)
    return replace(read.corpus, vectors=found), list(read.notes)
