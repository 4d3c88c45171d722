"""The table of answers with other threads and other orders of the rows."""

from benchmarks.rendering.tables.stability import stability_table
from benchmarks.stability import WAYS, shuffled
from newfound.bench.lines import Line
from newfound.bench.speed.sample import Sample


def line(seed: int, same: float) -> Line:
    rows = [
        {"threads": threads, "shuffled": mixed, "same": same if mixed else 100.0, "categories": 9}
        for threads, mixed in WAYS
    ]
    config = {"given_k": False}
    name = {"kind": "stability", "data_set": "banking", "seed": seed, "config": config}
    return {**name, "texts": 300, "rows": rows}


def test_table_has_the_least_share_over_seeds() -> None:
    rows = stability_table([line(0, 99.5), line(1, 98.25), {"kind": "wild"}]).splitlines()
    assert rows[0].startswith("| data set | texts | K | seeds | 2 threads | 4 threads |")
    assert rows[2] == ("| BANKING | 300 | estimated | 0, 1 | 100.0% | 100.0% | 98.2% | 98.2% |")
    assert stability_table([]) == "No measurements yet.\n"


def test_shuffled_rows_are_traced_back() -> None:
    sample = Sample(list("abcdef"), ["x", "", "", "", "y", ""], list("xxyyyx"), ["x", "y"])
    mixed, rows = shuffled(sample, seed=0)
    assert rows != list(range(6))
    assert [sample.texts[row] for row in rows] == mixed.texts
    assert [sample.labels[row] for row in rows] == mixed.labels
    assert [sample.truth[row] for row in rows] == mixed.truth
