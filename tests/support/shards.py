"""Shards of small texts, and what is in the folder of their predictions."""

import json
import random
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq

from support.small_texts import WORDS_OF


def put_shards(folder: Path, count: int = 8, rows: int = 40) -> list[Path]:
    """Write Parquet tables of random texts, of different lengths, some rows without text."""
    draw = random.Random(0)
    folder.mkdir(parents=True, exist_ok=True)
    words = " ".join(WORDS_OF.values()).split()
    paths = []
    for number in range(count):
        size = rows + number
        texts = [" ".join(draw.choices(words, k=draw.randint(2, 12))) for _ in range(size)]
        texts[number % size] = ""
        table = pd.DataFrame({"id": [f"{number}-{row}" for row in range(size)], "text": texts})
        paths.append(folder / f"part-{number:03d}.parquet")
        table.to_parquet(paths[-1])
    return paths


def manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of an output folder."""
    value: dict[str, Any] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return value


def contents(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of every Parquet file of a folder, by name."""
    return {path.name: pq.read_table(path).to_pylist() for path in sorted(folder.glob("*.parquet"))}


def check_counts(out: Path, shards: list[Path]) -> None:
    """Check that every row of every shard is in its output, once and in order."""
    found, recorded = contents(out), manifest(out)
    assert sorted(found) == sorted(path.name for path in shards)
    total = 0
    for path in shards:
        ids = pq.read_table(path).column("id").to_pylist()
        assert [row["id"] for row in found[path.name]] == ids
        assert recorded["shards"][path.name]["rows"] == len(ids)
        assert recorded["shards"][path.name]["written"] == len(ids)
        assert recorded["shards"][path.name]["bytes"] == (out / path.name).stat().st_size
        total += len(ids)
    assert recorded["complete"] is True
    assert (recorded["rows"], recorded["written"]) == (total, total)
    assert recorded["empty"] == len(shards)
    assert recorded["set_aside"] == 0
    assert sorted(path.name for path in out.iterdir()) == sorted([*found, "manifest.json"])
