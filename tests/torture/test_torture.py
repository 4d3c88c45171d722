"""The short form of `make torture`: a few trials of every family."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.rendering.tables.torture import torture_table
from benchmarks.torture.families import FAMILIES
from benchmarks.torture.tallies import COUNTS, Tally
from newfound.bench.lines import read_lines


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_few_faults_of_every_family_break_nothing(tmp_path: Path) -> None:
    # In a process of its own: a fork of one with the threads of other tests could hang.
    out = tmp_path / "torture.jsonl"
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.torture", "--short", "--jobs", "1", "-o", str(out)],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        # It depends on chance, so whoever sees it must see all of it; pytest cuts long messages.
        pytest.fail(f"kept in {out}\n{done.stdout}\n{done.stderr}", pytrace=False)
    families = read_lines(out)[0]["families"]
    assert list(families) == [family.name for family in FAMILIES if family.short]
    assert len(families) > 10
    assert all(family["trials"] > 0 for family in families.values())


def test_failures_are_counted_and_described() -> None:
    one, two = Tally(trials=2), Tally(trials=3, notes=["a note"])
    one.fail("lost", "the run")
    two.add(one)
    assert (two.trials, two.faults, two.lost) == (5, 1, 1)
    assert two.failures == ["lost: the run"]
    line = {"kind": "torture", "seed": 0, "seconds": {"total": 600}, "device": "cpu, 2 cores"}
    table = torture_table([{**line, "families": {"full disk": two.to_dict()}}])
    assert "| full disk | 5 | 0 | 0 | 1 | 0 | 0 |" in table
    assert "| all | 5 |" in table
    assert "10 minutes on cpu, 2 cores, seed 0. a note." in table
    assert len(COUNTS) == 5
