"""The script that measures fit scores and calibration, on the small task and a tiny encoder."""

from support.small_texts import small_task

from benchmarks.fits_nowhere import make_table, measure
from newfound.bench.datasets import DataSet
from newfound.config import RunConfig

STRANGE = [f"{word} please help me now" for word in ("the", "a", "my", "please", "help", "now")] * 5


def small_data() -> DataSet:
    task = small_task(each=20)
    truth = [str(name) for name in task.truth]
    parts = dict.fromkeys(("train", "dev", "test"), task.texts)
    return DataSet("small", parts, dict.fromkeys(parts, truth))


def test_tables_differ_by_task() -> None:
    data = small_data()
    tables = {
        task: make_table(data, STRANGE, task, texts=60, noise_share=0.2, seed=0)
        for task in ("plain", "noise", "unseen")
    }
    assert [len(table.corpus) for table in tables.values()] == [60, 72, 60]
    assert tables["noise"].truth.count(None) == 12
    assert tables["plain"].truth.count(None) == 0
    assert tables["plain"].new_truth.count(None) == len(STRANGE)
    assert tables["unseen"].n_categories == 3
    assert len(set(tables["unseen"].truth)) == 3
    assert all(0 < len(table.corpus.known) <= 3 for table in tables.values())


def test_a_measurement_has_every_number(tiny_encoder: str) -> None:
    table = make_table(small_data(), STRANGE, "noise", texts=60, noise_share=0.2, seed=0)
    config = RunConfig("newfound", tiny_encoder, 5, "fast", device="cpu")
    found = measure(table, config)
    assert found["auroc"].pop("unseen") is None
    assert all(0 <= value <= 1 for value in found["auroc"].values())
    assert set(found["calibration_error"]) == set(found["accuracy"])
    assert all(0 <= value <= 1 for value in found["accuracy"].values())
