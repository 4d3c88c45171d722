"""Shards: the tables that are predicted one by one, and the name of the output of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from newfound.data.tables.sources import expanded_paths
from newfound.errors import InputError

# Formats that tables are written in; shards of other formats are written as Parquet.
WRITTEN = (".csv", ".tsv", ".jsonl", ".parquet")
SAME_AS = {".tab": ".tsv", ".ndjson": ".jsonl", ".json": ".jsonl", ".pq": ".parquet"}
COMPRESSED = (".gz", ".zst")


@dataclass(frozen=True)
class Shard:
    """A table, and the name of the file with its predictions."""

    source: Path
    output: str

    @property
    def aside(self) -> str:
        """Name of the file with the rows that were set aside."""
        return self.output + ".jsonl"


def find_shards(names: Sequence[Path]) -> list[Shard]:
    """Return the shards that files, folders and patterns name.

    Parameters
    ----------
    names : sequence of Path
        As in `newfound.data.tables.sources.open_sources`.

    Returns
    -------
    list of Shard
        With absolute paths, because workers have other working directories.

    Raises
    ------
    InputError
        If a table does not exist, is given twice, or two would have outputs of one name.
    """
    shards: dict[str, Shard] = {}
    for path in expanded_paths(names):
        if not path.exists():
            raise InputError(f"{path}: there is no such file: check the path")
        shard = Shard(path.absolute(), output_name(path))
        before = shards.setdefault(shard.output.casefold(), shard)
        if before is not shard:
            raise InputError(
                f"{before.source} and {shard.source} would both be written as {shard.output}: "
                "rename one of them, or write them into two folders"
            )
    return list(shards.values())


def output_name(path: Path) -> str:
    """Return the name of the predictions of a table: its own, as far as the format can be written.

    Examples
    --------
    >>> [output_name(Path(name)) for name in ("a/part-1.parquet", "b.csv.gz", "c.xlsx", "texts")]
    ['part-1.parquet', 'b.csv', 'c.xlsx.parquet', 'texts.parquet']
    """
    name = path.with_suffix("") if path.suffix.lower() in COMPRESSED else path
    suffix = name.suffix.lower()
    if suffix in WRITTEN:
        return name.name
    if suffix in SAME_AS:
        return name.stem + SAME_AS[suffix]
    return name.name + ".parquet"
