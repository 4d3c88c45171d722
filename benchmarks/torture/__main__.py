"""The command `python -m benchmarks.torture`, run in the root of the repository.

It tries every family of faults, prints a table, and appends a line to
``benchmarks/results/torture.jsonl``, from which `make tables` renders the table of the
documentation. The exit code is 1 if anything broke.
"""

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.torture.tallies import COUNTS, Tally

if TYPE_CHECKING:  # it imports torch, which reads the number of threads
    from benchmarks.torture.families import Family

RESULTS = Path("benchmarks/results/torture.jsonl")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.torture", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="seed of all draws (default: 0)")
    parser.add_argument("--only", metavar="TEXT", default="", help="families with this in the name")
    parser.add_argument("--share", type=float, default=1.0, help="share of the trials (default: 1)")
    parser.add_argument("--short", action="store_true", help="the short form: a few trials each")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument(
        "-o", "--out", type=Path, default=RESULTS, help="file that gets the result line"
    )
    parser.add_argument("--no-line", action="store_true", help="append no result line")
    options = parser.parse_args(arguments)
    begun = time.perf_counter()
    tallies = torture(
        options.seed, options.only, options.share, short=options.short, jobs=options.jobs
    )
    if not tallies:
        parser.error(f"no family of faults has {options.only!r} in its name")
    seconds = time.perf_counter() - begun
    print("\n" + shown(tallies))
    for name, tally in tallies.items():
        for sentence in (*tally.notes, *tally.failures):
            print(f"{name}: {sentence}")
    print(f"{seconds:.0f} s")
    if not options.no_line:
        _append(options.out, tallies, seconds, options.seed)
    return int(any(tally.faults for tally in tallies.values()))


def torture(
    seed: int, only: str = "", share: float = 1.0, *, short: bool = False, jobs: int = 1
) -> dict[str, Tally]:
    """Try the families of faults, several parts at a time, and return what they broke."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch
    from benchmarks.torture.families import FAMILIES
    from benchmarks.torture.ground import Ground, make_ground
    from benchmarks.torture.processes import import_everything

    import_everything()
    chosen = [f for f in FAMILIES if only in f.name and (f.short or not short)]
    tallies = {family.name: Tally() for family in chosen}
    with tempfile.TemporaryDirectory(prefix="torture-") as folder:
        ground: Ground = make_ground(Path(folder))
        parts = [
            (index, trials, 1000 * seed + part, ground)
            for index, family in enumerate(FAMILIES)
            if family in chosen
            for part, trials in enumerate(_trials(family, share, short))
        ]
        with _pool(jobs) as run_all:
            for index, tally in run_all(_part, parts):
                name = FAMILIES[index].name
                tallies[name].add(tally)
                told = "; ".join([f"{tally.trials} trials, {tally.faults} faults", *tally.failures])
                print(f"{name}: {told}", file=sys.stderr, flush=True)
    return tallies


def _trials(family: "Family", share: float, short: bool) -> list[int]:
    """Return the number of trials in each part of a family."""
    if short:
        return [family.short]
    return [max(1, round(share * family.trials / family.parts))] * family.parts


@contextmanager
def _pool(jobs: int) -> Iterator[Callable[..., Iterable[tuple[int, Tally]]]]:
    """Yield a `map` over so many processes, or in this one."""
    if jobs == 1:
        yield map
        return
    with multiprocessing.get_context("fork").Pool(jobs, maxtasksperchild=1) as pool:
        yield pool.imap_unordered


def _part(part: tuple[int, int, int, object]) -> tuple[int, Tally]:
    """Try a part of a family in this process."""
    from benchmarks.torture.families import FAMILIES

    index, trials, seed, ground = part
    begun = time.perf_counter()
    tally = FAMILIES[index].run(ground, trials, seed)  # type: ignore[arg-type]
    tally.seconds = time.perf_counter() - begun
    return index, tally


def shown(tallies: dict[str, Tally]) -> str:
    """Return the counts as a table of text."""
    width = max(len(name) for name in tallies)
    lines = [f"{'fault':<{width}}  trials  " + "  ".join(f"{name:>10}" for name in COUNTS)]
    total = Tally()
    for name, tally in [*tallies.items(), ("all", total)]:
        cells = "  ".join(f"{getattr(tally, count):>10}" for count in COUNTS)
        lines.append(f"{name:<{width}}  {tally.trials:>6}  {cells}")
        total.add(tally)
    return "\n".join(lines)


def _append(path: Path, tallies: dict[str, Tally], seconds: float, seed: int) -> None:
    """Append the result line."""
    from newfound.bench.lines import append_line, commit
    from newfound.versions import versions

    line = {
        "kind": "torture",
        "seed": seed,
        "seconds": {"total": round(seconds)},
        "families": {name: tally.to_dict() for name, tally in tallies.items()},
        "device": f"cpu, {os.cpu_count()} cores",
        "versions": versions(),
        "commit": commit(),
    }
    append_line(path, line)


if __name__ == "__main__":
    sys.exit(main())
