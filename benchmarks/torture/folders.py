"""Folders that are read-only, removed, taken by others or written by two at once."""

import os
import random
import shutil
import time
from pathlib import Path

from benchmarks.torture.disks import ROOMY, can_mount, remount, small_disk
from benchmarks.torture.ground import Ground, contents, left_in, problem_of
from benchmarks.torture.processes import Arguments, Outcome, Running, run
from benchmarks.torture.tallies import Tally


def odd_places(ground: Ground, trials: int, seed: int) -> Tally:
    """Write a run where something else is already, or where nothing can be written."""
    tally = Tally()
    folder = ground.family(f"places-{seed}")
    for name, make in (("file", _file), ("pipe", _pipe), ("link to nowhere", _nowhere),
                       ("loop of links", _loop), ("folder of others", _others)):  # fmt: skip
        place = folder / name
        place.mkdir()
        make(place / "run")
        done = run(ground.discover(place / "run", "--force"))
        _ended(done, f"{name} in place of the run", tally)
        if name == "folder of others" and not (place / "run" / "mine").is_file():
            tally.fail("lost", f"{name}: the file is gone")
        if name in ("file", "pipe") and not (place / "run").exists():
            tally.fail("lost", f"{name}: it is gone")
    if not can_mount():
        tally.notes.append("read-only folders were skipped: no disk can be mounted")
        return tally
    with small_disk(folder / "disk", ROOMY) as disk:
        shutil.copytree(ground.old, disk / "run")
        remount(disk, "ro")
        commands: list[Arguments] = [
            ground.discover(disk / "run", "--force"),
            ground.discover(disk / "other"),
            ground.discover(folder / "beside", "--cache", disk / "cache"),
            ["predict", ground.new, ground.table, "-o", disk / "out.csv"],
            ["report", disk / "run"],
            ["export", ground.new, "--to", "csv", "-o", disk / "out.csv"],
        ]
        for command in commands:
            _ended(run(command), f"read-only: {command[0]}", tally)
        # A run on a read-only disk can be used.
        done = run(["predict", disk / "run", ground.table, "-o", folder / "out.csv"])
        if done.code:
            tally.fail("broken", f"predict from a read-only disk: {done.err[-300:]}")
        if contents(disk / "run") != contents(ground.old):
            tally.fail("broken", "a run on a read-only disk has changed")
    return tally


def removed(ground: Ground, trials: int, seed: int) -> Tally:
    """Remove a folder that the command uses at a random moment, or create its output."""
    tally, draw = Tally(), random.Random(f"{seed} removed")
    folder = ground.family(f"removed-{seed}")
    for trial in range(trials):
        place = folder / str(trial)
        work = place / "work"
        work.mkdir(parents=True)
        shutil.copytree(ground.encoder, place / "encoder")
        shutil.copy(ground.table, place / "table.csv")
        more: Arguments = ["--encoder", place / "encoder", "--cache", place / "cache"]
        command: Arguments = [
            "discover",
            place / "table.csv",
            "-o",
            work / "run",
            *ground.flags(),
            *more,
        ]
        victim = ("work", "encoder", "cache", "table.csv", "hidden", "created")[trial % 6]
        moment = draw.random() * 1.1 * ground.seconds
        running = Running([*command, "--categories", "4"])
        time.sleep(moment)
        _strike(place, work, victim)
        what = f"{victim} after {moment:.3f} s"
        done = running.wait()
        _ended(done, what, tally)
        if victim == "created":
            mine = list(work.rglob("mine"))
            if not mine or mine[0].read_text() != "mine":
                tally.fail("lost", f"{what}: a file of somebody else is gone")
        elif done.code == 0 and victim not in ("work", "hidden") and problem_of(work / "run"):
            tally.fail("broken", f"{what}: {problem_of(work / 'run')}")
        if left := left_in(work, ["run", "run-2"]) if work.exists() and done.code == 0 else []:
            tally.fail("leftovers", f"{what}: {left}")
        shutil.rmtree(place)
    return tally


def _strike(place: Path, work: Path, victim: str) -> None:
    """Remove something, or create the output."""
    if victim == "created":
        (work / "run").mkdir(exist_ok=True)
        (work / "run" / "mine").write_text("mine")
    elif victim == "hidden":
        for path in work.glob(".*"):
            shutil.rmtree(path, ignore_errors=True)
    elif victim == "table.csv":
        (place / victim).unlink()
    else:
        shutil.rmtree(place / victim, ignore_errors=True)


def two_writers(ground: Ground, trials: int, seed: int) -> Tally:
    """Start two commands that write the same run folder, the second a moment later."""
    tally, draw = Tally(), random.Random(f"{seed} writers")
    folder = ground.family(f"writers-{seed}")
    expected = (contents(ground.old), contents(ground.new))
    for trial in range(trials):
        place = folder / str(trial)
        place.mkdir()
        out = place / "run"
        force = ["--force"] if draw.random() < 0.7 else []
        one = Running(ground.discover(out, *force))
        time.sleep(draw.random() * ground.seconds * draw.random())
        two = Running(ground.discover(out, *force, "--seed", "1"))
        ended = (one.wait(), two.wait())
        what = f"trial {trial}, force={bool(force)}"
        for done in ended:
            _ended(done, what, tally)
        tally.trials -= 1
        if all(done.code for done in ended):
            tally.fail("lost", f"{what}: no run was written: {ended[0].err[-200:]}")
        elif not force and not any(done.code for done in ended):
            tally.fail("lost", f"{what}: one run replaced the other without --force")
        elif contents(out) not in expected or problem_of(out):
            tally.fail("broken", f"{what}: {problem_of(out)}")
        if left := left_in(place, ["run"]):
            _ended(run(ground.discover(out, "--force")), f"{what}, again", tally)
            if left_in(place, ["run"]):
                tally.fail("leftovers", f"{what}: {left}")
        shutil.rmtree(place)
    return tally


def readers(ground: Ground, swaps: int, seed: int) -> Tally:
    """Read a run again and again while another process replaces it."""
    from newfound.errors import InputError
    from newfound.storage.model_files import load_model
    from newfound.storage.run_folder import read_run

    tally = Tally()
    place = ground.family(f"readers-{seed}")
    out = place / "run"
    shutil.copytree(ground.old, out)
    answers = {_answer(load_model(path), read_run(path)) for path in (ground.old, ground.new)}
    models = {answer[0] for answer in answers}
    tables = {answer[1] for answer in answers}
    pid = os.fork()
    if pid == 0:
        _swap(ground, out, swaps)
    reads = 0
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        reads += 1
        try:
            model, table = _answer(load_model(out), read_run(out))
            if model not in models or table not in tables:
                tally.fail("broken", "a mixture of both runs was read")
        except InputError as error:
            tally.fail("lost" if "exist" in str(error) else "broken", str(error))
        except Exception as error:
            tally.fail("tracebacks", f"{type(error).__name__}: {error}")
    tally.trials += swaps
    tally.notes.append(f"{reads:,} reads during {swaps:,} swaps")
    if left := left_in(place, ["run"]):
        tally.fail("leftovers", f"after swaps: {left}")
    return tally


def _swap(ground: Ground, out: Path, swaps: int) -> None:
    """Replace a run by the other one again and again, and end this process."""
    from newfound.storage.run_folder import new_run

    code = 1
    try:
        for swap in range(swaps):
            with new_run(out, True) as folder:
                source = ground.new if swap % 2 == 0 else ground.old
                shutil.copytree(source, folder, dirs_exist_ok=True)
        code = 0
    finally:
        os._exit(code)


def _answer(model: object, result: object) -> tuple[bytes, bytes]:
    """Return digests of what was loaded: all weights and prototypes, and all assignments."""
    import hashlib

    weights = hashlib.sha256(model.prototypes.tobytes())  # type: ignore[attr-defined]
    for tensor in model.features.state_dict().values():  # type: ignore[attr-defined]
        weights.update(tensor.cpu().numpy().tobytes())
    assigned = result.assigned.tobytes() + result.probability.tobytes()  # type: ignore[attr-defined]
    return weights.digest(), hashlib.sha256(assigned).digest()


def _ended(done: Outcome, what: str, tally: Tally) -> None:
    """Check that a command ended well: with a result, or one sentence."""
    tally.trials += 1
    if done.hung:
        tally.fail("hangs", what)
    elif done.crashed or not (done.code == 0 or done.refused):
        tally.fail("tracebacks", f"{what}: exit code {done.code}: {done.err[-400:]}")


def _file(path: Path) -> None:
    path.write_text("mine")


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _nowhere(path: Path) -> None:
    path.symlink_to(path.parent / "nowhere" / "at" / "all")


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


def _others(path: Path) -> None:
    path.mkdir()
    (path / "mine").write_text("mine")
