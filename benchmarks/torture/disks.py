"""A disk that is full from the beginning, or fills up at a random moment."""

import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.torture.ground import Ground, contents, left_in, problem_of
from benchmarks.torture.processes import Arguments, Outcome, Running, run
from benchmarks.torture.tallies import Tally

ROOMY = 64 * 2**20  # bytes of a disk that nothing fills
PAGE = 4096


def full_disk(ground: Ground, trials: int, seed: int) -> Tally:
    """Run out of space under the run folder or the cache, at a different place in each trial."""
    tally, draw = Tally(), random.Random(f"{seed} disk")
    folder = ground.family(f"disk-{seed}")
    if not can_mount():
        tally.notes.append("no disk could be mounted, so the size of files was limited instead")
    for trial in range(trials):
        share = (trial + draw.random()) / trials
        if not can_mount():
            _limited_files(ground, folder / str(trial), share, tally)
        elif trial % 2:
            with small_disk(folder / str(trial), ROOMY) as disk:
                _filled_meanwhile(ground, disk, share, trial % 4 == 3, tally, draw)
        else:
            with small_disk(folder / str(trial), ROOMY) as disk:
                _full_at_start(ground, disk, share, trial % 4 == 2, tally)
    return tally


def can_mount() -> bool:
    """Return whether this process may mount a small disk."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            with small_disk(Path(folder) / "disk", ROOMY):
                return True
        except (OSError, subprocess.CalledProcessError):
            return False


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Path]:
    """Mount a disk in memory of so many bytes."""
    folder.mkdir(parents=True)
    _mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder))
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False, capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)


def remount(folder: Path, options: str) -> None:
    """Change the size of a mounted disk, or make it read-only."""
    _mount("-o", f"remount,{options}", str(folder))


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, capture_output=True)


def size_of(folder: Path) -> int:
    """Return the bytes of all files in a folder, in whole pages."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return sum(-(-path.stat().st_size // PAGE) * PAGE for path in files)


def _full_at_start(ground: Ground, disk: Path, share: float, in_cache: bool, tally: Tally) -> None:
    """Leave only a share of the space that the run, or its cache, needs."""
    out, command = _on(ground, disk, in_cache)
    free = int(1.3 * share * size_of(ground.new))
    used = shutil.disk_usage(disk).used
    remount(disk, f"size={max(used + free, PAGE)}")
    _check(ground, run(command), out, f"{free} bytes free, cache={in_cache}", tally)
    remount(disk, f"size={ROOMY}")
    _again(ground, command, disk, out, tally)


def _filled_meanwhile(
    ground: Ground, disk: Path, share: float, in_cache: bool, tally: Tally, draw: random.Random
) -> None:
    """Fill the disk at a random moment, but for a random rest."""
    out, command = _on(ground, disk, in_cache)
    running = Running(command)
    time.sleep(share * 1.1 * ground.seconds)
    rest = draw.choice((0, PAGE, 20 * PAGE))
    ballast = disk / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        for _ in range(max(0, shutil.disk_usage(disk).free - rest) // PAGE):
            file.write(bytes(PAGE))
    what = f"filled after {share:.2f} of the time, {rest} bytes free, cache={in_cache}"
    _check(ground, running.wait(), out, what, tally)
    ballast.unlink()
    _again(ground, command, disk, out, tally)


def _limited_files(ground: Ground, place: Path, share: float, tally: Tally) -> None:
    """Limit the size of each file, where no disk can be mounted."""
    place.mkdir()
    shutil.copytree(ground.old, place / "run")
    largest = max(path.stat().st_size for path in ground.new.rglob("*") if path.is_file())
    command = ground.discover(place / "run", "--force")
    limit = int(1.1 * share * largest)
    _check(ground, run(command, file_size=limit), place / "run", f"{limit} bytes", tally)
    _again(ground, command, place, place / "run", tally)
    shutil.rmtree(place)


def _on(ground: Ground, disk: Path, in_cache: bool) -> tuple[Path, Arguments]:
    """Return a run folder with an old run, and the command; the run or its cache on the disk."""
    place = disk.with_name(f"{disk.name}-beside") if in_cache else disk
    shutil.copytree(ground.old, place / "run")
    more: Arguments = ["--cache", disk / "cache"] if in_cache else []
    return place / "run", ground.discover(place / "run", "--force", *more)


def _check(ground: Ground, done: Outcome, out: Path, what: str, tally: Tally) -> None:
    """Check how the command ended, and that the old or the new run is whole."""
    tally.trials += 1
    if done.hung:
        tally.fail("hangs", what)
    elif done.crashed or not (done.code == 0 or done.refused):
        tally.fail("tracebacks", f"{what}: exit code {done.code}: {done.err[-400:]}")
    if not out.exists():
        tally.fail("lost", what)
    elif problem := problem_of(out):
        tally.fail("broken", f"{what}: {problem}")
    elif done.code and contents(out) != contents(ground.old):
        tally.fail("broken", f"{what}: the old run has changed")


def _again(ground: Ground, command: Arguments, place: Path, out: Path, tally: Tally) -> None:
    """Repeat the command with enough space, and look for left-overs."""
    done = run(command)
    if done.code or problem_of(out):
        tally.fail("broken", f"again, with space: exit code {done.code}: {done.err[-400:]}")
    left = left_in(out.parent, ["run", "cache"]) + left_in(place, ["run", "cache"])
    if left:
        tally.fail("leftovers", f"after a full disk: {left}")
