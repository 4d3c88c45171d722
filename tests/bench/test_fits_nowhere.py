"""The script that measures fit scores and calibration, on the small task and a tiny encoder."""

import pytest
from support.small_texts import small_task

from benchmarks.fits_nowhere import TABLES, Task, make_task, measure, summary
from newfound.bench.wild.sources import Source
from newfound.bench.wild.tables import DESIGNS, SIZES, Cell
from newfound.config import RunConfig

pytestmark = pytest.mark.usefixtures("quick_newfound")

STRANGE = [f"{word} help help {i}" for word in ("the", "a", "my", "please") for i in range(10)]


def drawn(noise: float = 0.0, unseen: float = 0.0) -> Task:
    task = small_task(each=20)
    source = Source("small", task.texts, [str(name) for name in task.truth])
    cell = Cell("small", "tenth", "natural", noise, limit=50)
    return make_task(source, cell, STRANGE, unseen)


def test_tables_of_choosing_and_checking_are_of_different_data_sets() -> None:
    names = {group: {table[0] for table in tables} for group, tables in TABLES.items()}
    assert not names["choosing"] & names["checking"]
    for tables in TABLES.values():
        assert len(set(tables)) == len(tables)
        for _, design, sizes, noise in tables:
            assert design in DESIGNS
            assert sizes in SIZES
            assert 0 <= noise < 1


def test_new_texts_are_not_in_the_table() -> None:
    for task in (drawn(), drawn(noise=0.2), drawn(unseen=0.25)):
        assert not set(task.table.texts) & set(task.new_texts)
        assert len(task.new_texts) == len(task.new_truth)
        assert None in task.new_truth
    strange = drawn(noise=0.2).table.truth.count(None)
    assert strange > 0
    assert drawn(noise=0.2).new_truth.count(None) == len(STRANGE) - strange
    left_out = set(drawn(unseen=0.25).new_truth) - set(drawn(unseen=0.25).table.truth) - {None}
    assert len(left_out) == 1


@pytest.mark.parametrize(("noise", "unseen"), [(0.2, 0.0), (0.0, 0.25)])
def test_a_measurement_has_every_number(tiny_encoder: str, noise: float, unseen: float) -> None:
    task = drawn(noise, unseen)
    config = RunConfig("newfound", tiny_encoder, task.table.n_categories, "fast", device="cpu")
    found = measure(task, config)
    auroc = found["auroc"]
    assert (auroc["unseen"] is None) == (unseen == 0)
    assert (auroc["in_pile"] is None) == (noise == 0)
    assert 0 <= auroc["in_predict"] <= 1
    for errors in (found["calibration_error"], found["calibration_error_of_softmax"]):
        assert all(0 <= errors[name] <= 1 for name in ("all", "known", "novel"))
    rows = list(summary([{"tables": "choosing", **found}, {"tables": "unseen", **found}]))
    assert rows[2].startswith("| choosing | 1 | ")
    assert f"{auroc['in_predict']:.3f} ({auroc['in_predict']:.3f})" in rows[2]
