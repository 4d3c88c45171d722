"""Mutated tables through `newfound discover`: a complete run, or one sentence and nothing else."""

import gzip
import io
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

from benchmarks.torture.ground import Ground, left_in, problem_of
from benchmarks.torture.processes import Arguments, run, run_installed
from benchmarks.torture.tallies import Tally

INSTALLED = 25  # one in so many trials uses the installed command
FORMATS = ("csv", "tsv", "jsonl", "json", "parquet", "csv.gz")
# Bytes that readers stumble over.
PIECES = (
    b'"', b"'", b",", b"\t", b"\n", b"\r", b"\r\n", b"\0", b"\xff", b"\xfe\xff", b"\xef\xbb\xbf",
    b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"{", b"}", b"[", b"]", b":", b"\\", b"\\u0000", b"null",
    b"NaN", b"1e999", b"-0", b"\x1b[31m", b"\xe2\x80\xae", b"=cmd|'/c calc'!A1", b"text", b"label",
    b"id", b'""', b'"\n"', b";", b"|", b"\x1a", b"PK\x03\x04", b"\x1f\x8b", b"PAR1", b" " * 5000,
)  # fmt: skip


def tables(ground: Ground, trials: int, seed: int) -> Tally:
    """Mutate a table at random and discover its categories."""
    tally, draw = Tally(), random.Random(f"{seed} tables")
    folder = ground.family(f"tables-{seed}")
    originals = {form: _written(ground.table, form) for form in FORMATS}
    for trial in range(trials):
        place = folder / str(trial)
        place.mkdir()
        form = draw.choice(FORMATS)
        data = _mutated(originals[form], draw)
        if form == "csv.gz" and draw.random() < 0.5:  # the content, not the archive
            data = gzip.compress(_mutated(originals["csv"], draw))
        table = place / f"table.{form}"
        table.write_bytes(data)
        out = place / "run"
        command: Arguments = ["discover", table, "-o", out, *ground.flags()]
        done = (run_installed if trial % INSTALLED == 1 else run)(command)
        what = f"{form}, seed {seed}, trial {trial}: {data[:80]!r}"
        tally.trials += 1
        if done.hung:
            tally.fail("hangs", what)
        elif done.crashed or not (done.code == 0 or done.refused):
            tally.fail("tracebacks", f"{what}: exit code {done.code}: {done.err[-400:]}")
        elif done.code == 0 and (problem := problem_of(out)):
            tally.fail("broken", f"{what}: {problem}")
        if left := left_in(place, [table.name, *(["run"] if done.code == 0 else [])]):
            tally.fail("leftovers", f"{what}: {left}")
        shutil.rmtree(place)
    return tally


def _written(table: Path, form: str) -> bytes:
    """Return the table in another format."""
    import pandas as pd

    frame = pd.read_csv(table)
    if form == "parquet":
        buffer = io.BytesIO()
        frame.to_parquet(buffer)
        return buffer.getvalue()
    if form == "csv.gz":
        return gzip.compress(frame.to_csv(index=False).encode())
    if form in ("csv", "tsv"):
        return frame.to_csv(index=False, sep="," if form == "csv" else "\t").encode()
    rows = json.loads(frame.to_json(orient="records"))
    if form == "json":
        return json.dumps(rows).encode()
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _mutated(data: bytes, draw: random.Random) -> bytes:
    """Return data after one to four mutations."""
    for _ in range(draw.randint(1, 4)):
        data = draw.choice(MUTATIONS)(data, draw)
    return data


def _insert(data: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(data) + 1)
    return data[:at] + draw.choice(PIECES) * draw.choice((1, 1, 1, 50)) + data[at:]


def _delete(data: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(data) + 1)
    return data[:at] + data[at + draw.choice((1, 2, 10, 500)) :]


def _flip(data: bytes, draw: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(min(len(changed), draw.choice((1, 3, 30)))):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _truncate(data: bytes, draw: random.Random) -> bytes:
    return data[: draw.randrange(len(data) + 1)]


def _double(data: bytes, draw: random.Random) -> bytes:
    return data + data if draw.random() < 0.5 else data[: len(data) // 2] + data


def _shuffle(data: bytes, draw: random.Random) -> bytes:
    lines = data.split(b"\n")
    draw.shuffle(lines)
    return b"\n".join(lines)


def _encode(data: bytes, draw: random.Random) -> bytes:
    text = data.decode("latin-1")
    return text.encode(draw.choice(("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "cp037")))


def _replace(data: bytes, draw: random.Random) -> bytes:
    return data.replace(
        draw.choice((b"\n", b",", b'"', b"a", b"label", b"text")), draw.choice(PIECES)
    )


MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _insert,
    _insert,
    _delete,
    _flip,
    _truncate,
    _double,
    _shuffle,
    _encode,
    _replace,
)
