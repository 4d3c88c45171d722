"""The protocol: what a method sees of a data set."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.bench_fakes import SIZES, TOPICS, save_tiny_data_set

from benchmarks.rendering.paper_numbers import TABLE_1
from newfound.bench.datasets import (
    DATA_SETS,
    DataSet,
    Split,
    data_folder,
    make_split,
    read_data_set,
    search_split,
)
from newfound.errors import InputError


@pytest.mark.parametrize("name", DATA_SETS)
def test_split_sizes_match_table_1(paper_data: Path, name: str) -> None:
    known, novel, labelled, unlabelled, test = TABLE_1[name]
    if name == "clinc":  # printed as 113, but 1,344 labelled texts are 112 x 12
        known, novel = 112, 38
    assert make_split(read_data_set(paper_data, name), seed=0).counts() == {
        "known": known,
        "novel": novel,
        "labelled": labelled,
        "unlabelled": unlabelled,
        "test": test,
    }


def toy_data(sizes: list[int]) -> DataSet:
    labels = [f"c{i:02d}" for i, size in enumerate(sizes) for _ in range(size)]
    dev = [f"c{i:02d}" for i in range(len(sizes))]
    return DataSet(
        "banking",
        {"train": [f"text {i}" for i in range(len(labels))], "dev": dev, "test": dev},
        {"train": labels, "dev": dev, "test": dev},
    )


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 40), min_size=2, max_size=12),
    st.just(0.0) | st.floats(0.1, 1),
    st.floats(0.05, 1),
    st.integers(0, 1000),
)
def test_make_split_follows_the_protocol(
    sizes: list[int], known_ratio: float, labelled_ratio: float, seed: int
) -> None:
    data = toy_data(sizes)
    split = make_split(data, known_ratio=known_ratio, labelled_ratio=labelled_ratio, seed=seed)
    assert len(split.known) == round(known_ratio * len(sizes))
    assert split.known == sorted(set(split.known))
    # Every text is there once; a label is the truth and of a known category.
    assert split.texts == data.texts["train"]
    for label, truth in zip(split.labels, split.truth, strict=True):
        assert label is None or (label == truth and label in split.known)
    # Each known category is labelled by the same share, whatever its size.
    for category in split.known:
        size = data.labels["train"].count(category)
        assert split.labels.count(category) == round(labelled_ratio * size)
    # The validation part holds known categories only, the test part all.
    assert set(split.validation_labels) == set(split.known)
    assert split.test_labels == data.labels["test"]
    counts = split.counts()
    assert counts["known"] + counts["novel"] == len(sizes)
    assert counts["labelled"] + counts["unlabelled"] == len(split.texts)


def test_make_split_depends_on_the_seed_alone() -> None:
    def parts(split: Split) -> tuple[list[str], list[str | None]]:
        return split.known, split.labels

    data = toy_data([30] * 12)
    assert parts(make_split(data, seed=3)) == parts(make_split(data, seed=3))
    known, labels = parts(make_split(data, seed=3))
    others = [parts(make_split(data, seed=seed)) for seed in range(4, 8)]
    assert any(other[0] != known for other in others)
    assert all(other[1] != labels for other in others)


def test_read_data_set_reads_all_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEWFOUND_DATA", str(save_tiny_data_set(tmp_path)))
    data = read_data_set(data_folder(None), "banking")
    assert data.categories == sorted(TOPICS)
    assert {part: len(texts) for part, texts in data.texts.items()} == {
        part: size * len(TOPICS) for part, size in SIZES.items()
    }


def test_errors_name_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEWFOUND_DATA", raising=False)
    with pytest.raises(InputError, match="newfound bench fetch"):
        data_folder(None)
    with pytest.raises(InputError, match="does not exist"):
        data_folder(tmp_path / "nowhere")
    with pytest.raises(InputError, match="did you mean 'banking'"):
        read_data_set(tmp_path, "bankink")
    with pytest.raises(InputError, match=r"train\.tsv"):
        read_data_set(tmp_path, "banking")


def test_search_split_uses_labels_of_known_categories_only() -> None:
    data = toy_data([10] * 12)
    split = make_split(data, known_ratio=0.75, labelled_ratio=0.5, seed=1)
    inner = search_split(split, seed=1)
    assert set(inner.known) < set(split.known)
    assert inner.known == sorted(inner.known)
    assert {label for label in inner.labels if label is not None} == set(inner.known)
    for mine, whole in zip(inner.labels, split.labels, strict=True):
        assert mine == (whole if whole in inner.known else None)
    # What is scored are dev texts of known categories: no test text, no truly novel category.
    assert set(inner.test_texts) <= set(data.texts["dev"])
    assert set(inner.test_labels) == set(split.known)
    assert inner.n_categories == split.n_categories
    assert inner.validation_texts == []
    assert search_split(split, seed=1) == inner
