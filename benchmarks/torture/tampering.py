"""Tampered runs, models, caches and encoders: refused in one sentence, or the right answer."""

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

from benchmarks.torture.ground import Ground, contents, left_in
from benchmarks.torture.processes import Arguments, Outcome, run
from benchmarks.torture.tallies import Tally

LIMIT = 60.0  # seconds
TARGETS = ("model", "run", "cache", "encoder")


def tampering(ground: Ground, target: str, trials: int, seed: int) -> Tally:
    """Change, cut, remove or replace a file at random, and use what it belongs to."""
    tally, draw = Tally(), random.Random(f"{seed} {target}")
    folder = ground.family(f"tampering-{target}-{seed}")
    use = {"model": _predict, "run": _inspect, "cache": _with_cache, "encoder": _with_encoder}
    source = _source(ground, target, folder)
    expected = _answer(use[target](ground, source, folder / "expected"), folder / "expected")
    for trial in range(trials):
        place = folder / str(trial)
        shutil.copytree(source, place / source.name)
        what = f"{target}, seed {seed}, trial {trial}: " + _tamper(
            place / source.name, draw, target
        )
        tally.trials += 1
        done = use[target](ground, place / source.name, place / "out")
        if done.hung:
            tally.fail("hangs", what)
        elif done.crashed or not (done.code == 0 or done.refused):
            tally.fail("tracebacks", f"{what}: exit code {done.code}: {done.err[-400:]}")
        elif done.code == 0 and target != "encoder" and expected != _answer(done, place / "out"):
            tally.fail("broken", f"{what}: another answer")
        if done.code and (left := left_in(place, [source.name])):
            tally.fail("leftovers", f"{what}: {left}")
        shutil.rmtree(place)
    return tally


def _source(ground: Ground, target: str, folder: Path) -> Path:
    """Return what is copied and tampered with."""
    if target == "encoder":
        return ground.encoder
    if target != "cache":
        return ground.new
    cache = folder / "cache"
    run(ground.discover(folder / "filling", "--cache", cache))
    shutil.rmtree(folder / "filling", ignore_errors=True)
    return cache


def _predict(ground: Ground, tampered: Path, out: Path) -> Outcome:
    return run(["predict", tampered, ground.table, "-o", out.with_suffix(".csv")], limit=LIMIT)


def _inspect(ground: Ground, tampered: Path, out: Path) -> Outcome:
    """Run the three commands that read a run folder, and return the first that failed."""
    done = Outcome(0, "", "", 0, False)
    commands: list[Arguments] = [
        ["info", tampered],
        ["report", tampered, "-o", out.with_suffix(".html")],
        ["export", tampered, "--to", "csv", "-o", out.with_suffix(".csv")],
    ]
    for command in commands:
        done = run([*command, "--json"], limit=LIMIT)
        if done.code:
            break
    return done


def _with_cache(ground: Ground, tampered: Path, out: Path) -> Outcome:
    return run(ground.discover(out, "--cache", tampered), limit=LIMIT)


def _with_encoder(ground: Ground, tampered: Path, out: Path) -> Outcome:
    return run(ground.discover(out, "--encoder", tampered), limit=LIMIT)


def _answer(done: Outcome, out: Path) -> object:
    """Return what a command answered: its tables, or its run."""
    if out.is_dir():  # without what names the cache
        found = contents(out)
        return {
            name: data
            for name, data in found.items()
            if not name.endswith(("run.json", "model.json"))
        }
    table = out.with_suffix(".csv")
    return table.read_bytes() if table.is_file() else done.code


def _tamper(folder: Path, draw: random.Random, target: str) -> str:
    """Tamper with one file; return what was done."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    if target == "model":
        files = [path for path in files if "model" in path.relative_to(folder).parts]
    # Commands do not read these back.
    files = [p for p in files if p.name not in ("report.html", "categories.csv")] or files
    path, way = draw.choice(files), draw.choice(WAYS)
    way(path, draw)
    return f"{way.__name__.strip('_')} {path.relative_to(folder)}"


def _flip(path: Path, draw: random.Random) -> None:
    data = bytearray(path.read_bytes()) or bytearray(b"x")
    data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    path.write_bytes(data)


def _truncate(path: Path, draw: random.Random) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: draw.randrange(len(data) + 1)])


def _empty(path: Path, draw: random.Random) -> None:
    path.write_bytes(b"")


def _remove(path: Path, draw: random.Random) -> None:
    path.unlink()


def _append(path: Path, draw: random.Random) -> None:
    path.write_bytes(path.read_bytes() + draw.randbytes(draw.choice((1, 100, 5000))))


def _zeros(path: Path, draw: random.Random) -> None:
    path.write_bytes(bytes(len(path.read_bytes())))


def _noise(path: Path, draw: random.Random) -> None:
    path.write_bytes(draw.randbytes(path.stat().st_size))


def _not_a_number(path: Path, draw: random.Random) -> None:
    """Overwrite the end, where tensors lie, with the bytes of NaN."""
    data = path.read_bytes()
    size = min(len(data), 4 * draw.choice((1, 16)))
    path.write_bytes(data[: len(data) - size] + b"\x00\x00\xc0\x7f" * (size // 4))


def _folder(path: Path, draw: random.Random) -> None:
    path.unlink()
    path.mkdir()


def _pipe(path: Path, draw: random.Random) -> None:
    path.unlink()
    os.mkfifo(path)


def _link(path: Path, draw: random.Random) -> None:
    path.unlink()
    path.symlink_to(draw.choice((path.name, "/dev/zero", "/nowhere", "..")))


def _deep(path: Path, draw: random.Random) -> None:
    path.write_text("[" * 100_000)


WAYS: tuple[Callable[[Path, random.Random], None], ...] = (
    _flip,
    _flip,
    _truncate,
    _empty,
    _remove,
    _append,
    _zeros,
    _noise,
    _not_a_number,
    _folder,
    _pipe,
    _link,
    _deep,
)
