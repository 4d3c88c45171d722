"""Run `newfound`: in this process through the fixtures `command` and `refuse`, or in another."""

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.small_texts import SmallTask


@dataclass(frozen=True)
class Done:
    """What a command left: its exit code and what it printed."""

    code: int
    out: str
    err: str


Command = Callable[..., Done]  # the fixture `command`
Refuse = Callable[..., str]  # the fixture `refuse`


def run_process(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Run the command in another process."""
    return subprocess.run(
        [sys.executable, "-m", "newfound", *map(str, arguments)],
        capture_output="stdout" not in options,
        check=False,
        **options,
    )


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def put_task(path: Path, task: SmallTask) -> Path:
    """Write a task in the format that the name ends in, its columns called utterance and intent."""
    import pandas as pd

    rows = [
        {"utterance": text, "intent": label}
        for text, label in zip(task.texts, task.labels, strict=True)
    ]
    if path.suffix == ".parquet":
        pd.DataFrame(rows).to_parquet(path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        pd.DataFrame(rows).to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    return path
