"""The short form of `make torture`: a few trials of every family."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.rendering.tables.torture import torture_table
from benchmarks.torture.tallies import COUNTS, Tally

# In a process of its own: a fork of one with the threads of other tests could hang.
PROGRAM = """
import tempfile
from pathlib import Path
from benchmarks.torture.processes import import_everything
import_everything()
from benchmarks.torture.families import FAMILIES
from benchmarks.torture.ground import make_ground

with tempfile.TemporaryDirectory() as folder:
    ground = make_ground(Path(folder))
    for family in FAMILIES:
        if family.short:
            tally = family.run(ground, family.short, 0)
            print(family.name, tally.trials, tally.faults, tally.failures, sep="\\t")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_few_faults_of_every_family_break_nothing() -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=root,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert len(rows) > 10
    for name, trials, faults, failures in rows:
        assert int(trials) > 0, name
        assert faults == "0", (name, failures)


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
