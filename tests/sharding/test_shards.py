"""The tables to predict, and the names of their outputs."""

from pathlib import Path

import pytest

from newfound.errors import InputError
from newfound.sharding.shards import find_shards, output_name


@pytest.mark.parametrize(
    ("source", "output"),
    [
        ("part-1.parquet", "part-1.parquet"),
        ("part-1.pq", "part-1.parquet"),
        ("a.csv", "a.csv"),
        ("a.tab", "a.tsv"),
        ("a.b.csv.gz", "a.b.csv"),
        ("a.ndjson.zst", "a.jsonl"),
        ("a.json", "a.jsonl"),
        ("a.arrow", "a.arrow.parquet"),
        ("a.xlsx", "a.xlsx.parquet"),
        ("texts", "texts.parquet"),
    ],
)
def test_outputs_have_the_names_of_their_tables(source: str, output: str) -> None:
    assert output_name(Path("somewhere") / source) == output


def test_patterns_are_expanded_to_absolute_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("b.csv", "a.csv", "c.txt"):
        (tmp_path / name).write_text("text\nrain\n")
    monkeypatch.chdir(tmp_path)
    assert [shard.source for shard in find_shards([Path("*.csv")])] == [
        tmp_path / "a.csv",
        tmp_path / "b.csv",
    ]


def test_two_shards_with_one_output_are_refused(tmp_path: Path) -> None:
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.csv").write_text("text\nrain\n")
    with pytest.raises(InputError, match=r"would both be written as a\.csv"):
        find_shards([tmp_path / "x" / "a.csv", tmp_path / "y" / "a.csv"])
    with pytest.raises(InputError, match="given twice"):
        find_shards([tmp_path / "x" / "a.csv", tmp_path / "x" / "*.csv"])
    with pytest.raises(InputError, match="there is no such file"):
        find_shards([tmp_path / "z.csv"])
