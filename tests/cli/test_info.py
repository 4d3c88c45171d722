"""`newfound info`: what a run found and how."""

import re
from pathlib import Path

from support.commands import Command

import newfound


def test_info_prints_categories_and_settings(command: Command, small_run: Path) -> None:
    done = command("info", small_run)
    assert done.code == 0
    assert "texts       64, 12 labelled" in done.out
    assert "categories  4 (given): 2 known, 2 novel" in done.out
    assert f"newfound {newfound.__version__} on cpu, seed 0" in done.out
    assert "method=dpn" in done.out
    assert "pretrain_epochs=2" in done.out
    assert "command     newfound discover " in done.out
    assert re.search(r"seconds     total \d+\.\d, ", done.out)
    assert "note        " in done.out
