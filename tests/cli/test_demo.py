"""`newfound demo`: a discovery on the built-in data."""

import json
import re
import shutil
from pathlib import Path

from support.commands import Command


def test_demo_prints_categories_and_accuracy(
    command: Command, flags: list[str], tmp_path: Path
) -> None:
    done = command("demo", "-o", tmp_path / "demo", *flags)
    assert done.code == 0, done.err
    assert re.match(r"Demo: 1,095 help-desk messages, \d+ of them labelled with \d+", done.out)
    assert re.search(r"all \d+\.\d%, known \d+\.\d%, novel \d+\.\d%", done.out)
    run = json.loads((tmp_path / "demo" / "run.json").read_text())
    assert set(run["scores"]) == {"all", "known", "novel", "nmi", "ari"}
    assert command("demo", "-o", tmp_path / "demo", *flags).code == 0  # again, without --force


def test_demo_does_not_replace_another_run(
    command: Command, small_run: Path, flags: list[str], tmp_path: Path
) -> None:
    mine = Path(shutil.copytree(small_run, tmp_path / "mine"))
    before = {path: path.stat().st_mtime_ns for path in mine.rglob("*")}
    done = command("demo", "-o", mine, *flags)
    assert done.code == 2
    assert (
        done.err
        == f"newfound: {mine} holds a run that is not a demo; choose another folder with -o\n"
    )
    assert {path: path.stat().st_mtime_ns for path in mine.rglob("*")} == before
