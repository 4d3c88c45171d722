"""What all families start from: a tiny encoder, a table, and the runs that commands should give."""

import importlib
import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.torture.processes import Arguments, run

TESTS = Path(__file__).parents[2] / "tests"
SETTINGS = ("pretrain_epochs=3", "epochs=4", "starts=2")
OTHER_SEED = "1"


@dataclass(frozen=True)
class Ground:
    """Files that trials copy or read, and never change.

    Attributes
    ----------
    folder : Path
        Working folder; each family has a folder of its own in it.
    encoder : Path
        A tiny encoder.
    table : Path
        A table of texts, some of them labelled.
    old, new : Path
        Unbroken runs with different seeds; trials replace a copy of the old one by a new one.
    seconds : float
        Duration of the command that gives `new`.
    """

    folder: Path
    encoder: Path
    table: Path
    old: Path
    new: Path
    seconds: float

    def flags(self) -> list[str]:
        """Return flags with which `newfound discover` takes a fraction of a second."""
        return flags(self.encoder)

    def discover(self, out: Path, *more: str | Path) -> Arguments:
        """Return the command that gives the contents of `new`."""
        return ["discover", self.table, "-o", out, *self.flags(), "--categories", "4", *more]

    def family(self, name: str) -> Path:
        """Return a new folder for a family of faults."""
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder


def flags(encoder: Path) -> list[str]:
    """Return flags with which `newfound discover` takes a fraction of a second."""
    chosen = ["--encoder", str(encoder), "--method", "dpn", "--effort", "fast", "--device", "cpu"]
    return chosen + [part for setting in SETTINGS for part in ("--set", setting)]


def from_tests(module: str) -> Any:
    """Return a module of the tests' support, which users do not have."""
    if str(TESTS) not in sys.path:
        sys.path.insert(0, str(TESTS))
    return importlib.import_module(module)


def make_ground(folder: Path) -> Ground:
    """Build the encoder, the table and both runs."""
    encoder, table = folder / "encoder", folder / "table.csv"
    small_texts = from_tests("support.small_texts")
    table.write_text(small_texts.small_task().csv(), encoding="utf-8")
    from_tests("conftest").save_tiny_encoder(encoder, word_head=True)
    base: Arguments = ["discover", table, *flags(encoder), "--categories", "4"]
    made = {}
    for name, more in (("old", ["--seed", OTHER_SEED]), ("new", [])):
        done = run([*base, "-o", folder / name, *more])
        if done.code:
            raise RuntimeError(f"the command without a fault failed: {done.err}")
        made[name] = done
    again = run([*base, "-o", folder / "again"])  # the first runs fill caches of the system
    if contents(folder / "again") != contents(folder / "new"):
        raise RuntimeError("the same command gave another run; nothing can be compared")
    seconds = min(made["new"].seconds, again.seconds)
    return Ground(folder, encoder, table, folder / "old", folder / "new", seconds)


def contents(folder: Path) -> dict[str, Any]:
    """Return what a run folder holds, without what differs between repetitions."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_dir() or path.name in ("report.html", "manifest.json"):
            continue
        found[name] = path.read_bytes()
        if name == "run.json":
            records = json.loads(found[name])
            different = ("seconds", "command", "settings")
            found[name] = {key: value for key, value in records.items() if key not in different}
    return found


def problem_of(folder: Path) -> str | None:
    """Return why a run folder cannot be read and used, None if it can."""
    from newfound.storage.model_files import load_model
    from newfound.storage.run_folder import read_run

    try:
        read_run(folder)
        load_model(folder).predict(["lost my card"])
        if not (folder / "report.html").read_text(encoding="utf-8").endswith("</html>\n"):
            return "report.html is not complete"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def left_in(folder: Path, expected: Sequence[str]) -> list[str]:
    """Return the names in a folder that should not be there."""
    return sorted({path.name for path in folder.iterdir()} - set(expected))
