"""Texts made from real ones, and the tables of large discoveries."""

import random
from pathlib import Path

import numpy as np
import pytest

from benchmarks.millions.measuring import per_category
from benchmarks.millions.texts import LABELLED, edited, make_sample, make_texts
from benchmarks.rendering.tables.millions import fit_sample_table, millions_table
from newfound.errors import InputError

REAL = {f"where is my {thing} number {n}": thing for thing in ("card", "bill") for n in range(30)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "banking").mkdir()
    rows = "".join(f"{text}\t{label}\n" for text, label in REAL.items())
    for part in ("train", "dev", "test"):
        (tmp_path / "banking" / f"{part}.tsv").write_text("text\tlabel\n" + rows)
    return tmp_path


def test_made_texts_are_distinct_and_repeatable(folder: Path) -> None:
    made = make_texts(folder, 2_000, seed=1)
    assert len(made) == 2_000
    assert set(made.values()) == {"banking: card", "banking: bill"}
    assert made == make_texts(folder, 2_000, seed=1)
    assert list(made) != list(make_texts(folder, 2_000, seed=2))


def test_an_edited_text_keeps_its_words_but_for_one_letter() -> None:
    source = "please transfer the remaining money"
    rng = random.Random(0)
    for _ in range(300):
        words = edited(source, rng).lower().split()
        kept = sum(word in words or f"{word}," in words for word in source.split())
        assert kept >= len(source.split()) - 1


def test_as_many_texts_are_labelled_of_each_known_category(folder: Path) -> None:
    sample = make_sample(folder, 500)
    assert len(sample.known) == 2
    assert [sample.labels.count(name) for name in sample.known] == [LABELLED] * 2
    given = [(label, true) for label, true in zip(sample.labels, sample.truth, strict=True)]
    assert all(label in ("", true) for label, true in given)


def test_a_folder_without_data_sets_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none of the data sets"):
        make_texts(tmp_path, 10)


def test_accuracy_per_category_counts_rare_ones_as_much() -> None:
    truth = np.array(["a"] * 98 + ["b"] * 2)
    assert per_category(np.zeros(100), truth) == pytest.approx(50)
    assert per_category((truth == "b").astype(int), truth) == pytest.approx(100)


def test_tables_show_growth_and_differences() -> None:
    def line(texts: int, seconds: float) -> dict[str, object]:
        return {
            "kind": "millions",
            "config": {"texts": texts, "encoder": "tiny"},
            "device": "cpu",
            "n_categories": 5,
            "seconds": seconds,
            "ms_per_text": 1e3 * seconds / texts,
            "peak_mb": 2048,
            "stages": {"encoding": 10.0, "clustering": 5.0, "writing the run": 1.0},
            "accuracy": 90.0,
        }

    table = millions_table([line(1_000_000, 550.0), line(100_000, 50.0)])
    assert "| 1,000,000 | 5 | tiny | cpu | 550 | 2.15 | 0.550 | 1.10 | 535 | 10 | 0 | 5 |" in table
    scores = {"all": {"all": 90.0, "per_category": 80.0}, "60": {"all": 89.5, "per_category": 81.0}}
    config = {"data_set": "clinc", "effort": "fast", "seed": 3}
    kind = {"kind": "fit sample", "config": config, "texts": 180, "n_categories": 15}
    table = fit_sample_table([{**kind, "scores": scores}])
    assert "| clinc | fast | 180 | 60 | 15 | 3 | 90.0 | 89.5 | -0.5 | 80.0 | 81.0 | +1.0 |" in table
    assert "No measurements yet" in millions_table([])
