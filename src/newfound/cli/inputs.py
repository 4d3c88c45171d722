"""From parsed options to what a command works on: configuration, settings, texts, endpoint."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from newfound.config import RunConfig, flag_of, override
from newfound.errors import InputError

if TYPE_CHECKING:
    from newfound.data.corpus import Corpus
    from newfound.describing.llm_names import Endpoint

# Environment variables with the key of a naming endpoint; the first that is set counts.
KEYS = ("NEWFOUND_API_KEY", "OPENAI_API_KEY")


def run_config(options: argparse.Namespace) -> RunConfig:
    """Return the configuration that the flags ask for; a flag that is absent keeps its default."""
    names = [f.name for f in fields(RunConfig) if hasattr(options, f.name)]
    given = {name: getattr(options, name) for name in names}
    return override(RunConfig(), given, "the command", spelt=flag_of)


def marking_options(options: argparse.Namespace) -> tuple[float | None, float | None]:
    """Return --outside and --false-alarms, None for what is not given."""
    names = [name for name in ("outside", "false_alarms") if hasattr(options, name)]
    given = {name: getattr(options, name) for name in names}
    config = override(RunConfig(), given, "the command", spelt=flag_of)
    return config.outside, config.false_alarms


def method_settings(options: argparse.Namespace) -> dict[str, str]:
    """Return the names and values of every --set."""
    chosen = {}
    for pair in getattr(options, "settings", []):
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise InputError(f"--set takes NAME=VALUE (such as epochs=3), not {pair!r}")
        chosen[name.strip()] = value.strip()
    return chosen


def naming_endpoint(options: argparse.Namespace) -> "Endpoint | None":
    """Return the endpoint of --name-with and --name-model, None where neither is given."""
    url, model = getattr(options, "name_with", None), getattr(options, "name_model", None)
    if url is None and model is None:
        return None
    if not url or not model:
        missing = "--name-model MODEL" if url else "--name-with URL"
        raise InputError(f"names from an endpoint need both its address and a model: add {missing}")
    from newfound.describing.llm_names import Endpoint, check_endpoint

    check_endpoint(url)
    key = next((os.environ[name] for name in KEYS if os.environ.get(name)), None)
    return Endpoint(url, model, key)


def encoder_notes(name: str) -> list[str]:
    """Return the note on a folder that a short name is not taken for, if there is one."""
    from newfound.encoding.loading import folder_note

    note = folder_note(name)
    return [] if note is None else [note]


def read_corpus(options: argparse.Namespace) -> tuple["Corpus", list[str]]:
    """Read the tables of a command as one corpus, with notes on how they were read."""
    return _read(options, options.tables, getattr(options, "id_column", None))


def read_validation(
    options: argparse.Namespace, corpus: "Corpus"
) -> tuple["Corpus", list[str]] | None:
    """Read the table of --validation, None where none is given; it must hold known categories."""
    path: Path | None = getattr(options, "validation", None)
    if path is None:
        return None
    held, notes = _read(options, [path])
    if not set(held.known) & set(corpus.known):
        raise InputError(
            f"{path}: no text has a label that also occurs in the tables to discover in: give "
            "labelled texts of known categories, or leave --validation out"
        )
    return held, notes


def _read(
    options: argparse.Namespace, paths: Sequence[Path], id_column: str | None = None
) -> tuple["Corpus", list[str]]:
    from newfound.data.tables import read_tables

    read = read_tables(
        paths,
        text_column=getattr(options, "text_column", None),
        label_column=getattr(options, "label_column", None),
        id_column=id_column,
    )
    return read.corpus, list(read.notes)
