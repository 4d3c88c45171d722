"""The corpus of a run: texts, labels and ids, with checks and notes for the user."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from newfound.data.vectors import check_vectors
from newfound.errors import InputError
from newfound.wording import plural

# Labels that often mean "unlabelled". They are read as categories, with a note.
_LOOKS_UNLABELLED = frozenset(
    {"-1", "?", "n/a", "na", "nan", "none", "null", "unknown", "unlabeled", "unlabelled"}
)


@dataclass(frozen=True)
class Corpus:
    """Texts with their labels and ids.

    Attributes
    ----------
    texts : list of str
    labels : list of str or None
        None where a text is unlabelled.
    ids : list of str
    columns : dict of str to list of str
        The other columns of the table, by name, which outputs keep: those without a role, and those
        that were joined into the texts, if there are several.
    time_column : str, optional
        The one of `columns` that holds the date of each text.
    vectors : ndarray of shape (N, d), optional
        Vectors of the texts that the user computed; by default an encoder computes them.

    Examples
    --------
    >>> from newfound.data.corpus import Corpus
    >>> corpus = Corpus.from_lists(["lost my card", "what is my PIN"], ["card", None])
    >>> corpus.known, corpus.targets.tolist()
    (['card'], [0, -1])
    """

    texts: list[str]
    labels: list[str | None]
    ids: list[str]
    columns: dict[str, list[str]] = field(default_factory=dict)
    vectors: np.ndarray | None = field(default=None, compare=False)
    time_column: str | None = None

    def __post_init__(self) -> None:
        if not len(self.texts) == len(self.labels) == len(self.ids):
            raise ValueError(
                f"{len(self.texts)} texts, {len(self.labels)} labels and {len(self.ids)} ids"
            )
        for name, column in self.columns.items():
            if len(column) != len(self.texts):
                raise ValueError(f"{len(self.texts)} texts, but {len(column)} in {name!r}")
        if self.time_column is not None and self.time_column not in self.columns:
            raise ValueError(f"there is no column {self.time_column!r}")

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def known(self) -> list[str]:
        """Distinct labels, sorted: the names of the known categories."""
        return sorted({label for label in self.labels if label is not None})

    @property
    def targets(self) -> np.ndarray:
        """Label of each text [N] as an index into `known`, -1 where unlabelled."""
        index: dict[str | None, int] = {label: i for i, label in enumerate(self.known)}
        index[None] = -1
        return np.array([index[label] for label in self.labels], dtype=np.int64)  # [N]

    def take(self, rows: np.ndarray) -> "Corpus":
        """Return the corpus of these rows [N], in their order."""
        texts, labels, ids = (
            [column[row] for row in rows.tolist()] for column in (self.texts, self.labels, self.ids)
        )
        columns = {
            name: [column[row] for row in rows.tolist()] for name, column in self.columns.items()
        }
        vectors = None if self.vectors is None else self.vectors[rows]
        return Corpus(texts, labels, ids, columns, vectors, self.time_column)

    @property
    def sorted_rows(self) -> np.ndarray:
        """Rows [N] in the order of their texts and labels, which is the same for any table order.

        Examples
        --------
        >>> from newfound.data.corpus import Corpus
        >>> Corpus.from_lists(["b", "a", "a"], [None, "x", None]).sorted_rows.tolist()
        [2, 1, 0]
        """
        keys = [(text, label or "") for text, label in zip(self.texts, self.labels, strict=True)]
        return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)

    @classmethod
    def from_lists(
        cls,
        texts: Iterable[Any],
        labels: Iterable[Any] | None = None,
        ids: Iterable[Any] | None = None,
        vectors: Any = None,
    ) -> "Corpus":
        """Build a corpus from lists, NumPy arrays or pandas columns.

        Parameters
        ----------
        texts : iterable of str
        labels : iterable, optional
            None, NaN, an empty string or the number -1 means unlabelled; other numbers become
            strings. By default, all texts are unlabelled.
        ids : iterable, optional
            Unique ids; "1", "2", ... by default.
        vectors : array-like of shape (N, d), optional
            Vectors of the texts; by default an encoder computes them.

        Returns
        -------
        Corpus

        Raises
        ------
        InputError
            If a text, a label, an id or a vector is invalid, or the lengths differ.
        """
        checked = check_texts(texts)
        names = range(1, len(checked) + 1) if ids is None else _items(ids, "ids")
        unlabelled = [None] * len(checked)
        given = check_labels(unlabelled if labels is None else labels, len(checked))
        if len(names) != len(checked):
            raise InputError(
                f"{plural(len(checked), 'text')} but {plural(len(names), 'id')}: give one per text"
            )
        if any(_is_missing(name) for name in names):
            raise InputError("an id is missing in ids: give every text one")
        corpus = cls(
            texts=checked,
            labels=given,
            ids=[str(name) for name in names],
            vectors=None if vectors is None else check_vectors(vectors, len(checked)),
        )
        if len(set(corpus.ids)) < len(corpus):
            first = next(name for name, count in Counter(corpus.ids).items() if count > 1)
            raise InputError(f"the id {first!r} occurs more than once in ids: make them unique")
        return corpus


def clean_text(text: str) -> str:
    """Replace invalid characters: NUL by a space, an unpaired surrogate by U+FFFD.

    Tokenisers and files accept neither. Fitting and prediction both clean texts, so that the same
    text gets the same category.
    """
    if "\0" in text:
        text = text.replace("\0", " ")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def check_texts(texts: Iterable[Any], *, keep_empty: bool = False) -> list[str]:
    """Return texts as a list of clean strings.

    Parameters
    ----------
    texts : iterable of str
    keep_empty : bool
        Whether empty texts are allowed.

    Returns
    -------
    list of str

    Raises
    ------
    InputError
        If an item is not a text; the message names its position.
    """
    checked = []
    for position, text in enumerate(_items(texts, "texts")):
        where = f"texts[{position}]"
        if _is_missing(text):
            raise InputError(f"{where} is missing ({text!r}): remove such texts")
        if isinstance(text, int | float | np.number):
            raise InputError(f"{where} is a number ({text!r}): convert the texts with str() first")
        if not isinstance(text, str):
            raise InputError(f"{where} is of type {type(text).__name__}: give each text as a str")
        text = clean_text(str(text))  # NumPy strings are a subclass of str
        if not keep_empty and not text.strip():
            raise InputError(f"{where} is empty or only white space: remove such texts")
        checked.append(text)
    return checked


def check_labels(labels: Iterable[Any], count: int) -> list[str | None]:
    """Return the labels of `count` texts as strings, None where unlabelled."""
    given = _items(labels, "labels")
    if len(given) != count:
        raise InputError(
            f"{plural(count, 'text')} but {plural(len(given), 'label')}: give one per "
            "text, None for an unlabelled one"
        )
    return [_label(label, position) for position, label in enumerate(given)]


def check_corpus(corpus: Corpus, n_categories: int | None) -> list[str]:
    """Check that categories can be discovered in a corpus.

    Parameters
    ----------
    corpus : Corpus
    n_categories : int or None
        Number of categories that the user asks for, if any.

    Returns
    -------
    list of str
        Notes for the user on unusual texts and labels.

    Raises
    ------
    InputError
        If there are too few texts, or the number of categories is impossible.
    """
    distinct = len(set(corpus.texts))
    known = corpus.known
    if distinct == 0:
        raise InputError("there is no text: give a table with at least two different texts")
    if distinct < 2:
        raise InputError(
            f"all {len(corpus):,} texts are the same: give at least two different texts"
            if len(corpus) > 1
            else "there is only one text: give at least two different texts"
        )
    if len(known) > distinct:
        raise InputError(
            f"there are {len(known):,} labels but only {distinct:,} different texts: "
            "check that the text and label columns are not swapped, or give more texts"
        )
    if n_categories is not None:
        _check_number(n_categories, len(known), distinct)
    return [
        *_notes_on_amount(corpus, known, n_categories),
        *_notes_on_labels(corpus),
        *_notes_on_texts(corpus),
    ]


def _check_number(n_categories: int, known: int, distinct: int) -> None:
    """Raise InputError if the number of categories is impossible."""
    number = plural(n_categories, "category is", "categories are")
    asked = f"{number} asked for (--categories, n_categories)"
    if n_categories < 1:
        raise InputError(f'{asked}: give at least 1, or "auto"')
    if n_categories < known:
        raise InputError(
            f'{asked} but {known:,} are known from the labels: give at least {known}, or "auto"'
        )
    if n_categories > distinct:
        raise InputError(
            f"{asked} but there are only {distinct:,} different texts: "
            f'give at most {distinct}, or "auto"'
        )


def _notes_on_amount(corpus: Corpus, known: list[str], n_categories: int | None) -> list[str]:
    """Return notes on how many texts are labelled."""
    labelled = len(corpus) - corpus.labels.count(None)
    if labelled == 0:
        return ["no text is labelled: discovery is unsupervised, and all categories are novel"]
    notes = []
    if labelled == len(corpus):
        notes.append(
            "every text is labelled: there are no texts to discover categories in, "
            "but the model is trained and can predict"
        )
    elif n_categories == len(known):
        notes.append(
            f"{plural(n_categories, 'category is', 'categories are')} asked for and as many are "
            "known: no novel category can be found"
        )
    if len(known) == 1:
        notes.append(f"only one category is known, {known[0]!r}: labels help little")
    counts = Counter(label for label in corpus.labels if label is not None)
    single = [label for label in known if counts[label] == 1]
    if single:
        notes.append(
            f"{plural(len(single), 'category has', 'categories have')} only one labelled text: "
            f"{_some(single)}"
        )
    return notes


def _notes_on_labels(corpus: Corpus) -> list[str]:
    """Return notes on labels that may be mistakes."""
    notes = []
    counts = Counter(label for label in corpus.labels if label is not None)
    for label in sorted(counts):
        if label.strip().casefold() in _LOOKS_UNLABELLED:
            notes.append(
                f"{plural(counts[label], 'text has', 'texts have')} the label {label!r}, which "
                "counts as a category: leave the label empty to mean unlabelled"
            )
    alike: dict[str, list[str]] = {}
    for label in sorted(counts):
        alike.setdefault(" ".join(label.split()).casefold(), []).append(label)
    same = [labels for labels in alike.values() if len(labels) > 1]
    if same:
        notes.append(
            f"{' and '.join(map(repr, same[0]))} differ only in case or white space but count as "
            "different categories"
            + (f" (and {plural(len(same) - 1, 'more such group')})" if len(same) > 1 else "")
        )
    return notes


def _notes_on_texts(corpus: Corpus) -> list[str]:
    """Return notes on texts that may be mistakes."""
    notes = []
    if all(_is_number(text) for text in corpus.texts):
        notes.append("every text is a number: check the text column")
    first: dict[str, int] = {}  # by text: position of its first labelled occurrence
    pair: tuple[int, int] | None = None
    texts: set[str] = set()
    for position, (text, label) in enumerate(zip(corpus.texts, corpus.labels, strict=True)):
        if label is None:
            continue
        earlier = first.setdefault(text, position)
        if corpus.labels[earlier] != label:
            pair = pair or (earlier, position)
            texts.add(text)
    if pair is not None:
        one, other = pair
        notes.append(
            f"{plural(len(texts), 'text occurs', 'texts occur')} with different labels, which "
            f"stay as given; the first is {_short(corpus.texts[one])}: {corpus.labels[one]!r} "
            f"(id {corpus.ids[one]}) and {corpus.labels[other]!r} (id {corpus.ids[other]})"
        )
    return notes


def _items(values: Iterable[Any], what: str) -> list[Any]:
    """Return the values as a list, or raise InputError if they are not a sequence."""
    if isinstance(values, str | bytes):
        raise InputError(f"{what} is a single string: give a list of strings")
    if getattr(values, "ndim", 1) != 1:
        raise InputError(f"{what} has {values.ndim} dimensions: give one column")  # type: ignore[attr-defined]
    if isinstance(values, dict | set | frozenset) or not isinstance(values, Iterable):
        raise InputError(f"{what} is a {type(values).__name__}: give a list, array or column")
    return list(values)


def _is_missing(value: Any) -> bool:
    """Return True for None, NaN, and pandas' NA and NaT."""
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    # By name, so that pandas need not be imported.
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _label(label: Any, position: int) -> str | None:
    """Return a label as a string, None if it means unlabelled."""
    if isinstance(label, str):
        name = clean_text(str(label))
        return name if name.strip() else None
    if _is_missing(label):
        return None
    if isinstance(label, bool | np.bool_):
        return str(label)
    if isinstance(label, float | np.floating) and float(label).is_integer():
        label = int(label)  # pandas reads integers with missing values as floats
    if isinstance(label, int | float | np.integer | np.floating):
        return None if label == -1 else str(label)  # -1 means unlabelled in scikit-learn
    raise InputError(
        f"labels[{position}] is of type {type(label).__name__}: give each label as a str, or None"
    )


def _is_number(text: str) -> bool:
    """Return True if the text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _some(names: Sequence[str], limit: int = 5) -> str:
    """Return the first names and how many more there are."""
    shown = ", ".join(_short(name) for name in names[:limit])
    return shown + (f" and {len(names) - limit:,} more" if len(names) > limit else "")


def _short(text: str, limit: int = 60) -> str:
    """Return a text quoted, and truncated to `limit` characters."""
    return repr(text if len(text) <= limit else text[: limit - 3] + "...")
