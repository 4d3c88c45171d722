"""Compare what `newfound check` forecasts on tables of `bench wild` with what a discovery reaches.

Appends a line for each table to ``benchmarks/results/forecasts.jsonl``; `make tables` renders them.
Usage, in the root of the repository, with the data sets in FOLDER::

    python -m benchmarks.check_forecasts FOLDER --data-set banking,clinc --designs tenth,ten
"""

import argparse
import itertools
from dataclasses import asdict
from pathlib import Path
from typing import Any

from newfound.bench.lines import append_line, commit, key_of, read_lines
from newfound.bench.wild.runner import Plan, run
from newfound.bench.wild.sources import read_out_of_scope, read_source
from newfound.bench.wild.tables import Cell, Table, cut_table
from newfound.checking.runner import check
from newfound.config import RunConfig
from newfound.data.corpus import Corpus

RESULTS = Path("benchmarks/results/forecasts.jsonl")
KIND = "forecast"
SCORES = ("all", "known", "novel")


def measure(cell: Cell, table: Table, encoder: str, device: str | None) -> dict[str, Any]:
    """Return the forecast of a check and the scores of a discovery on the same table."""
    config = RunConfig(encoder=encoder, effort="fast", seed=cell.seed, device=device)
    found = check(Corpus.from_lists(table.texts, table.labels), config).methods[0]
    expected = found.forecast
    assert expected is not None
    scores = run(Plan(cell, "newfound", encoder, given_k=False), table, device=device)["scores"]
    return {
        "forecast": {name: round(getattr(expected, name), 2) for name in SCORES},
        "draws": {name: round(found.mean(name), 2) for name in SCORES},
        "truth": {name: scores[name] for name in SCORES},
    }


def main() -> None:
    """Measure every table that has no line yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--data-set", default="banking,clinc,hwu64,stackoverflow,massive,mcid")
    parser.add_argument("--designs", default="tenth,ten,archive")
    parser.add_argument("--sizes", default="natural")
    parser.add_argument("--noise", type=float, default=0.0)
    parser.add_argument("--limit", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--device")
    parser.add_argument("--out", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    done = {key_of(line) for line in read_lines(chosen.out)}
    grid = itertools.product(
        *(given.split(",") for given in (chosen.data_set, chosen.designs, chosen.sizes))
    )
    for data_set, design, sizes in grid:
        cell = Cell(data_set, design, sizes, chosen.noise, chosen.seed, limit=chosen.limit)
        key = {
            "kind": KIND,
            "data_set": data_set,
            "method": "newfound",
            "encoder": Path(chosen.encoder).name,
            "seed": chosen.seed,
            "table": asdict(cell),
        }
        if key_of(key) in done:
            continue
        strange = read_out_of_scope(chosen.data) if chosen.noise else []
        table = cut_table(read_source(chosen.data, data_set), cell, strange)
        line = {**key, **measure(cell, table, chosen.encoder, chosen.device), "commit": commit()}
        append_line(chosen.out, line)
        print(data_set, design, sizes, line["forecast"], line["truth"], flush=True)


if __name__ == "__main__":
    main()
