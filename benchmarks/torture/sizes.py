"""Tables that are far too large in one way, with 2 GB of memory."""

import gzip
import random
from collections.abc import Callable
from pathlib import Path

from benchmarks.torture.ground import Ground, left_in, problem_of
from benchmarks.torture.processes import run
from benchmarks.torture.tallies import Tally

MEMORY = 2 * 2**30  # bytes
LIMIT = 420.0  # seconds
LINE = 20 * 2**20  # bytes of a long line
BOMB = 2 * 2**30  # bytes in the archive
BLOCK = 2**22
WORDS = [
    *("card", "lost", "pay", "bill", "money", "bank", "cash", "trip", "flight", "hotel", "book"),
    *("travel", "music", "play", "song", "loud", "stop", "weather", "rain", "sun", "cold", "warm"),
]


def sizes(ground: Ground, trials: int, seed: int) -> Tally:
    """Discover the categories of the first so many kinds of large tables."""
    tally = Tally()
    folder = ground.family(f"sizes-{seed}")
    for name, write in list(TABLES.items())[:trials]:
        place = folder / name.replace(" ", "-")
        place.mkdir()
        table = write(place)
        done = run(
            ["discover", table, "-o", place / "run", *ground.flags()], memory=MEMORY, limit=LIMIT
        )
        tally.trials += 1
        tally.notes.append(
            f"{name}: {'a run' if done.code == 0 else 'refused'} in {done.seconds:.0f} s"
        )
        if done.hung:
            tally.fail("hangs", f"{name}: {done.seconds:.0f} s")
        elif done.crashed or not (done.code == 0 or done.refused):
            tally.fail("tracebacks", f"{name}: exit code {done.code}: {done.err[-500:]}")
        elif done.code == 0 and (problem := problem_of(place / "run")):
            tally.fail("broken", f"{name}: {problem}")
        if done.code and (left := left_in(place, [table.name])):
            tally.fail("leftovers", f"{name}: {left}")
    return tally


def _long_line_csv(place: Path) -> Path:
    return _written(place / "table.csv", ["text,label", *_rows(40), "rain " * (LINE // 5) + ","])


def _long_line_jsonl(place: Path) -> Path:
    rows = [f'{{"text": "{row.replace(",", " ")}"}}' for row in _rows(40)]
    return _written(place / "table.jsonl", [*rows, f'{{"text": "{"rain " * (LINE // 5)}"}}'])


def _long_label(place: Path) -> Path:
    return _written(place / "table.csv", ["text,label", *_rows(40), "rain," + "x" * (LINE // 2)])


def _open_quote(place: Path) -> Path:
    rows = [f"line {number}" for number in range(2_000_000)]
    return _written(place / "table.csv", ["text,label", *_rows(40), '"never closed', *rows])


def _bomb(place: Path) -> Path:
    table = place / "table.csv.gz"
    with gzip.open(table, "wb", compresslevel=1) as file:
        file.write(b"text,label\n" + "\n".join(_rows(40)).encode())
        for _ in range(BOMB // BLOCK):
            file.write(bytes(BLOCK))
    return table


def _many_labels(place: Path) -> Path:
    rows = _rows(11_000, labels=10_000)
    return _written(place / "table.csv", ["text,label", *rows])


def _many_columns(place: Path) -> Path:
    names = ",".join(f"column{number}" for number in range(20_000))
    return _written(place / "table.csv", [f"text,label,{names}", *_rows(40)])


TABLES: dict[str, Callable[[Path], Path]] = {
    "20 MB line, CSV": _long_line_csv,
    "20 MB line, JSON Lines": _long_line_jsonl,
    "10 MB label": _long_label,
    "open quote over 2,000,000 lines": _open_quote,
    "20,000 columns": _many_columns,
    "gzip bomb of 2 GB": _bomb,
    "10,000 labels": _many_labels,
}


def _rows(count: int, labels: int = 3) -> list[str]:
    """Return rows of a table; the first have a label, each another one in turn."""
    draw = random.Random(count)
    labelled = min(count - 1, max(labels, count // 2))
    return [
        " ".join(draw.choices(WORDS, k=6))
        + (f" {number},label {number % labels}" if number < labelled else f" {number},")
        for number in range(count)
    ]


def _written(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
