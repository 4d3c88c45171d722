"""Tables that tests write, and what reading a bad one must say."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from newfound import InputError
from newfound.data.tables import read_tables, stream_table

ROWS = [("where is my card", "card"), ("send money", "transfer"), ("hello", None)]


def put_parquet(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def refused(path: Path, **options: Any) -> str:
    """Return the message of the error, after checking that it is one sentence with the file."""
    with pytest.raises(InputError) as caught:
        read_tables([path], **options)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    # predict must refuse what discover refuses, unless it is about labels or ids
    if not {"label_column", "id_column", "time_column"} & set(options) and "label" not in message:
        with pytest.raises(InputError) as caught:
            list(stream_table(path, **options))
        assert str(caught.value) == message
    return message


def write_as(path: Path) -> Path:
    """Write ROWS in the format that the name says."""
    name = path.name.lower().removesuffix(".gz").removesuffix(".zst")
    if name.endswith((".parquet", ".pq")):
        texts, labels = zip(*ROWS, strict=True)
        return put_parquet(path, text=texts, label=labels)
    if name.endswith((".jsonl", ".ndjson")):
        lines = [json.dumps({"text": text, "label": label}) for text, label in ROWS]
    elif name.endswith(".json"):
        lines = [json.dumps([{"text": text, "label": label} for text, label in ROWS], indent=1)]
    else:
        tab = "," if ".csv" in name else "\t"
        lines = [f"text{tab}label", *(f"{text}{tab}{label or ''}" for text, label in ROWS)]
    data = ("\n".join(lines) + "\n").encode()
    compress = {".gz": gzip.compress, ".zst": lambda data: pa.compress(data, "zstd", asbytes=True)}
    path.write_bytes(compress.get(path.suffix.lower(), bytes)(data))
    return path
