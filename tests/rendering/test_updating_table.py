"""The table of updates, and the stream of texts that they are measured on."""

import numpy as np

from benchmarks.rendering.tables.updating import updating_table
from benchmarks.updating import BATCHES, LABELS, make_stream
from newfound.bench.lines import Line
from newfound.bench.wild.sources import Source


def test_table_has_a_row_per_batch_with_means_over_seeds() -> None:
    first: Line = {
        "kind": "updating",
        "data_set": "banking",
        "table": {"limit": 3000, "batch": 1},
        "config": {"effort": "fast"},
        "texts": 659,
        "update": {"all": 77.26},
        "scratch": {"all": 77.26},
        "proposed": {"wanted": 2, "found": 2},
    }
    second = {
        **first,
        "table": {"limit": 3000, "batch": 2},
        "texts": 1_100,
        "kept": 99.1,
        "scratch": {"all": 80.0},
        "proposed_by_scratch": {"wanted": 2, "found": 1},
        "proposed_in_time": {"wanted": 1, "found": 1},
    }
    again = {**second, "update": {"all": 79.26}, "kept": 98.1}
    rows = updating_table([first, second, again, {"kind": "wild"}]).splitlines()[2:]
    assert rows == [
        "| BANKING | 1 | 659 | 77.3 | 77.3 | - | 2 of 2 | - | - | 1 |",
        "| BANKING | 2 | 1,100 | 78.3 | 80.0 | 98.6% | 4 of 4 | 2 of 4 | 2 of 2 | 2 |",
    ]
    assert updating_table([]) == "No measurements yet.\n"


def test_novel_categories_appear_over_time_and_labels_in_the_first_batch() -> None:
    names = [f"c{i:02d}" for i in range(20) for _ in range(40)]
    source = Source("made", [f"text {i}" for i in range(len(names))], names)
    stream = make_stream(source, 700, seed=0)
    assert len(stream.known) == 10
    assert (np.diff(stream.batch) >= 0).all()
    labelled = np.array([label is not None for label in stream.corpus.labels])
    assert (stream.batch[labelled] == 0).all()
    assert labelled.sum() == LABELS * len(stream.known)
    first = {name: stream.batch[stream.truth == name].min() for name in set(stream.truth)}
    assert all(first[name] == 0 for name in stream.known)
    novel = [at for name, at in first.items() if name not in stream.known]
    assert np.bincount(novel, minlength=BATCHES).tolist() == [2] * BATCHES
    for name, at in first.items():
        assert set(stream.batch[stream.truth == name]) == set(range(at, BATCHES))
