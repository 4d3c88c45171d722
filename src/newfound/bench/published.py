"""Published splits of HWU64, BANKING and CLINC, on which the table of nine cells is measured.

They are those of TLSA (ACL 2026). In the folder ``published``, ``NAME.tsv`` has the columns text,
label, part (train, dev, test) and labelled (yes for the training texts whose label may be read if
their category is known), and ``NAME-known-R.txt`` lists the known categories at the known ratio R.
"""

from dataclasses import dataclass
from pathlib import Path

from newfound.bench.datasets import PARTS, DataSet, Split, known_part
from newfound.data.tables import read_tables
from newfound.errors import InputError
from newfound.wording import suggestion

FOLDER = Path("published")
NAMES = ("hwu64", "banking", "clinc")
RATIOS = (0.25, 0.5, 0.75)


@dataclass(frozen=True)
class PublishedSet(DataSet):
    """A data set with the labelled training texts and the known categories of published splits."""

    labelled: list[bool]  # of the training texts
    known: dict[float, list[str]]  # sorted, by known ratio


def read_published(folder: Path, name: str) -> PublishedSet:
    """Read a data set and its splits.

    Parameters
    ----------
    folder : Path
        The folder of the data sets, which has a folder ``published``.
    name : str
        One of `NAMES`.

    Returns
    -------
    PublishedSet
    """
    if name not in NAMES:
        advice = suggestion(name, NAMES, f"choose one of {', '.join(NAMES)}")
        raise InputError(f"there is no published split of {name!r}; {advice}")
    path = folder / FOLDER / f"{name}.tsv"
    labels = read_tables([path], text_column="text", label_column="label").corpus
    parts = read_tables([path], text_column="text", label_column="part").corpus.labels
    marks = read_tables([path], text_column="text", label_column="labelled").corpus.labels
    unknown = set(parts) - set(PARTS)
    if unknown or None in labels.labels:
        raise InputError(f"{path} has a row without a label or with another part than train, dev")
    rows = {part: [i for i, found in enumerate(parts) if found == part] for part in PARTS}
    known = {ratio: _known(folder / FOLDER / f"{name}-known-{ratio:g}.txt") for ratio in RATIOS}
    return PublishedSet(
        name=name,
        texts={part: [labels.texts[i] for i in rows[part]] for part in PARTS},
        labels={part: [str(labels.labels[i]) for i in rows[part]] for part in PARTS},
        labelled=[marks[i] == "yes" for i in rows["train"]],
        known=known,
    )


def published_split(data: PublishedSet, known_ratio: float) -> Split:
    """Return the published split at a known ratio; dev texts of known categories only."""
    if known_ratio not in data.known:
        raise InputError(
            f"the published splits have the known ratios {', '.join(map(str, RATIOS))}, not "
            f"{known_ratio:g}"
        )
    known = data.known[known_ratio]
    in_known = set(known)
    rows = zip(data.labels["train"], data.labelled, strict=True)
    labels = [label if marked and label in in_known else None for label, marked in rows]
    return known_part(data, labels, known)


def _known(path: Path) -> list[str]:
    """Return the sorted known categories in a file, one per line."""
    if not path.is_file():
        raise InputError(f"{path} does not exist; add the file with one known category per line")
    return sorted(filter(None, path.read_text(encoding="utf-8").splitlines()))
