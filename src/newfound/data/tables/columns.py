"""Find the columns of a table that hold texts, labels and ids."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from newfound.errors import InputError
from newfound.wording import suggestion

# The first name takes precedence; two columns with other names of one kind are ambiguous.
_TEXT_NAMES = (
    "text",
    "abstract",
    "body",
    "comment",
    "content",
    "description",
    "doc",
    "document",
    "feedback",
    "headline",
    "message",
    "post",
    "prompt",
    "query",
    "question",
    "review",
    "sentence",
    "snippet",
    "subject",
    "summary",
    "texts",
    "title",
    "tweet",
    "utt",
    "utterance",
)
_LABEL_NAMES = (
    "label",
    "categories",
    "category",
    "class",
    "intent",
    "labels",
    "tag",
    "target",
    "topic",
)
_ID_NAMES = ("id", "_id", "guid", "identifier", "key", "uid", "uuid")


@dataclass(frozen=True)
class Columns:
    """The columns of one table that are read.

    Attributes
    ----------
    texts : tuple of str
        One column, or several that are joined.
    label, id : str, optional
    guessed : tuple of str
        Those of "text", "label" and "id" that the user did not name.
    others : tuple of str
        Columns without a role, which outputs keep.
    """

    texts: tuple[str, ...]
    label: str | None = None
    id: str | None = None
    guessed: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    def note(self, path: Path) -> str | None:
        """Return a note on the guessed columns, None if there are none."""
        if not self.guessed:
            return None
        found = {"text": self.texts[0], "label": self.label, "id": self.id}
        names = ", ".join(f"{role} column {found[role]!r}" for role in self.guessed)
        flags = ", ".join(f"--{role}-column" for role in self.guessed)
        note = f"{path}: guessed the {names} (choose with {flags})"
        if "text" in self.guessed and _normal(self.texts[0]) not in _TEXT_NAMES:
            note += "; if that is a text, not a header, add a header line"
        return note

    @property
    def wanted(self) -> list[str]:
        """Columns to read: those of the text, the label and the id where there are any, others."""
        roles = (name for name in (self.label, self.id) if name is not None)
        return [*self.texts, *roles, *self.others]

    @property
    def kept(self) -> list[str]:
        """Columns that outputs keep beside text, label and id."""
        return [*(self.texts if len(self.texts) > 1 else ()), *self.others]

    def kept_cells(self, cells: Sequence[str | None]) -> list[str | None]:
        """Return the cells of the kept columns from those of the wanted ones."""
        others = cells[len(cells) - len(self.others) :]
        return [*(cells[: len(self.texts)] if len(self.texts) > 1 else ()), *others]

    @property
    def described(self) -> str:
        """The text columns in a message: column 'text', or columns 'subject', 'body'."""
        names = ", ".join(map(repr, self.texts))
        return f"column {names}" if len(self.texts) == 1 else f"columns {names}"


def join_cells(cells: Sequence[str | None]) -> str:
    """Return the text of a row: its cell, or the cells of several columns on lines of their own.

    A new line ends a phrase, so that no keyword reaches from one column into the next. Blank cells
    are left out.

    Examples
    --------
    >>> join_cells(["Refund", None, "I want my money back."])
    'Refund\\nI want my money back.'
    """
    if len(cells) == 1:
        return cells[0] or ""
    return "\n".join(cell for cell in cells if cell and not cell.isspace())


def free_names(names: Sequence[str], taken: Collection[str]) -> list[str]:
    """Return the names of columns, with an underscore after each that is taken.

    Examples
    --------
    >>> free_names(["title", "text"], {"id", "text"})
    ['title', 'text_']
    """
    free: list[str] = []
    for name in names:
        while name in taken or name in free:
            name += "_"
        free.append(name)
    return free


def looks_like_header(names: Sequence[str]) -> bool:
    """Return True if any name is common for a column of texts, labels or ids."""
    return any(_normal(name) in {*_TEXT_NAMES, *_LABEL_NAMES, *_ID_NAMES} for name in names)


def text_candidates(columns: Sequence[str]) -> list[str]:
    """Return the columns that may hold the texts, judging by their names."""
    return _candidates(columns, _TEXT_NAMES)


def find_columns(
    path: Path | str,
    columns: Sequence[str],
    *,
    text: str | Sequence[str] | None = None,
    label: str | None = None,
    id: str | None = None,
    with_label: bool = True,
) -> Columns:
    """Return the columns to read: those named by the user, and guesses where they are safe.

    Parameters
    ----------
    path : Path or str
        Name of the table in messages.
    columns : sequence of str
        Columns of the table.
    text : str or sequence of str, optional
        Text columns named by the user; several are joined.
    label, id : str, optional
        Columns named by the user. If the table lacks the label column, its texts are unlabelled;
        the caller checks whether any other table has it.
    with_label : bool
        Whether to look for a label column.

    Returns
    -------
    Columns

    Raises
    ------
    InputError
        If a named column is missing or named twice, or the text column cannot be guessed.
    """
    texts = (text,) if isinstance(text, str) else tuple(text or ())
    named = [*texts, *(name for name in (label, id) if name is not None)]
    for name in named:
        if named.count(name) > 1:
            raise InputError(
                f"{path}: column {name!r} is named twice: name different columns with "
                "--text-column, --label-column and --id-column"
            )
        if columns.count(name) > 1:
            raise InputError(f"{path}: two columns have the name {name!r}: rename one of them")
    for name in named:
        if name not in columns and name != label:
            flag = "--text-column" if name in texts else "--id-column"
            raise InputError(missing_column(path, name, flag, columns))
    free = [name for name in columns if name not in named and not is_index(name)]
    guessed = []
    if not texts:
        texts = (_guess_text(path, free),)
        guessed.append("text")
    if label is None and with_label:
        label = _guess(path, free, "label", _LABEL_NAMES)
        guessed += ["label"] if label is not None else []
    elif label not in columns:
        label = None
    if id is None:
        candidates = _candidates(free, _ID_NAMES)
        # Row numbers serve as ids, so an ambiguity is not an error.
        id = candidates[0] if len(candidates) == 1 else None
        guessed += ["id"] if id is not None else []
    return Columns(texts=texts, label=label, id=id, guessed=tuple(guessed))


def missing_column(path: Path | str, name: str, flag: str, columns: Sequence[str]) -> str:
    """Return the message on a column that the table does not have."""
    advice = suggestion(name, columns, f"name one of {_listed(columns)} with {flag}")
    return f"{path}: there is no column {name!r}: {advice}"


def _guess_text(path: Path | str, free: list[str]) -> str:
    """Return the column of texts, or raise InputError."""
    guess = _guess(path, free, "text", _TEXT_NAMES)
    if guess is not None:
        return guess
    # A single column holds the texts, unless its name is that of labels or ids.
    if len(free) == 1 and not looks_like_header(free):
        return free[0]
    raise InputError(
        f"{path}: the text column is not clear: name one of {_listed(free)} "
        "with --text-column, or add a header line if there is none"
    )


def _guess(path: Path | str, free: list[str], role: str, names: tuple[str, ...]) -> str | None:
    """Return the only column with one of the names, None if there is none."""
    candidates = _candidates(free, names)
    if len(candidates) > 1:
        raise InputError(
            f"{path}: the {role} column may be {' or '.join(map(repr, candidates))}: "
            + (
                "rename one of them"
                if len(set(candidates)) == 1
                else f"choose with --{role}-column"
                + (", once for each column to join several" if role == "text" else "")
            )
        )
    return candidates[0] if candidates else None


def _candidates(free: Sequence[str], names: tuple[str, ...]) -> list[str]:
    """Return the columns with the first name, or else those with any of the names."""
    best = [name for name in free if _normal(name) == names[0]]
    return best or [name for name in free if _normal(name) in names]


def _normal(name: str) -> str:
    """Return a column name without surrounding space and case."""
    return name.strip().casefold()


def is_index(name: str) -> bool:
    """Return True for the row index that pandas writes by default."""
    return _normal(name) in ("", "unnamed: 0") or name.startswith("__index_level_")


def _listed(columns: Sequence[str], limit: int = 20) -> str:
    """Return the first columns as a list for a message."""
    shown = ", ".join(repr(name) for name in columns[:limit])
    return (shown or "none") + (" ..." if len(columns) > limit else "")
