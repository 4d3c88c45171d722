"""Labelled texts from which tables are cut, and out-of-scope texts to add to them."""

from dataclasses import dataclass
from pathlib import Path

from newfound.bench.datasets import DATA_SETS
from newfound.data.tables import read_tables
from newfound.errors import InputError
from newfound.wording import suggestion

# A data set in one file with a column `part`; its training part is used.
HWU64 = "hwu64"
HWU64_FILE = Path("published") / "hwu64.tsv"
FOLDER = "wild"
OUT_OF_SCOPE = "out_of_scope"


@dataclass(frozen=True)
class Source:
    """Labelled texts of a data set."""

    name: str
    texts: list[str]
    labels: list[str]


def source_names(folder: Path) -> list[str]:
    """Return the names of the data sets in a folder: the paper's, HWU64, and ``wild/NAME.tsv``."""
    names = [name for name in DATA_SETS if (folder / name / "train.tsv").is_file()]
    names += [HWU64] if (folder / HWU64_FILE).is_file() else []
    files = sorted((folder / FOLDER).glob("*.tsv"))
    return names + [path.stem for path in files if path.stem not in (*names, OUT_OF_SCOPE)]


def check_sources(folder: Path, names: list[str]) -> None:
    """Raise InputError for a name that is not a data set in the folder."""
    there = source_names(folder)
    for name in names:
        if name not in there:
            listed = f"{folder} has {', '.join(there) or 'no data set'}"
            advice = suggestion(name, there, f"{listed}; add it as {FOLDER}/{name}.tsv")
            raise InputError(f"the data set {name!r} is not in the data folder; {advice}")


def read_source(folder: Path, name: str) -> Source:
    """Read a data set.

    Parameters
    ----------
    folder : Path
        The folder of the data sets.
    name : str
        One of `source_names`. Files are tab-separated with the columns text and label.

    Returns
    -------
    Source
        The training part, if the data set has parts.
    """
    check_sources(folder, [name])
    if name in DATA_SETS:
        path = folder / name / "train.tsv"
    else:
        path = folder / (HWU64_FILE if name == HWU64 else f"{FOLDER}/{name}.tsv")
    texts, labels = _read(path, "label")
    if name == HWU64:
        kept = [i for i, part in enumerate(_read(path, "part")[1]) if part == "train"]
        texts, labels = [texts[i] for i in kept], [labels[i] for i in kept]
    return Source(name, texts, labels)


def read_out_of_scope(folder: Path) -> list[str]:
    """Read the texts that belong to no category."""
    path = folder / FOLDER / f"{OUT_OF_SCOPE}.tsv"
    if not path.is_file():
        raise InputError(
            f"{path} does not exist, and --noise above 0 draws from it; add the file with "
            "out-of-scope texts in a column named text"
        )
    return read_tables([path], text_column="text").corpus.texts


def _read(path: Path, column: str) -> tuple[list[str], list[str]]:
    """Return the texts of a file and the values of a column; raise InputError if one is empty."""
    corpus = read_tables([path], text_column="text", label_column=column).corpus
    if None in corpus.labels:
        raise InputError(f"{path} has a row with an empty {column}; fill it or remove the row")
    return corpus.texts, [str(value) for value in corpus.labels]
