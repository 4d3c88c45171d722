"""Which column of a table holds the texts, which the labels, which the ids."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from newfound.errors import InputError
from newfound.wording import suggestion

# The first name of each wins over the others; two of the others are an ambiguity.
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
    """The columns of one table that count, and which of them were guessed."""

    text: str
    label: str | None = None
    id: str | None = None
    guessed: tuple[str, ...] = ()  # of "text", "label", "id"

    def note(self, path: Path) -> str | None:
        """Say what was guessed, and how to choose otherwise."""
        if not self.guessed:
            return None
        names = ", ".join(f"{role} column {getattr(self, role)!r}" for role in self.guessed)
        flags = ", ".join(f"--{role}-column" for role in self.guessed)
        note = f"{path}: guessed the {names} (choose with {flags})"
        if "text" in self.guessed and _normal(self.text) not in _TEXT_NAMES:
            note += "; if that is a text and not a header, put a header line above it"
        return note


def looks_like_header(names: Sequence[str]) -> bool:
    """Say whether any of the names is one that a column of texts, labels or ids often has."""
    return any(_normal(name) in {*_TEXT_NAMES, *_LABEL_NAMES, *_ID_NAMES} for name in names)


def text_candidates(columns: Sequence[str]) -> list[str]:
    """Return the columns that may hold the texts, going by their names."""
    return _candidates(columns, _TEXT_NAMES)


def find_columns(
    path: Path | str,
    columns: Sequence[str],
    *,
    text: str | None = None,
    label: str | None = None,
    id: str | None = None,
    with_label: bool = True,
) -> Columns:
    """Take the named columns and guess the others where that is safe.

    A named label column that this table lacks leaves its texts unlabelled; whether any other table
    has it is for the caller to check. `with_label=False` looks for no label column at all.
    """
    named = [name for name in (text, label, id) if name is not None]
    for name in named:
        if named.count(name) > 1:
            raise InputError(
                f"{path}: column {name!r} is named for two purposes: name a different column "
                "for each of --text-column, --label-column and --id-column"
            )
        if columns.count(name) > 1:
            raise InputError(f"{path}: two columns are called {name!r}: rename one of them")
    for required, flag in ((text, "--text-column"), (id, "--id-column")):
        if required is not None and required not in columns:
            raise InputError(missing_column(path, required, flag, columns))
    free = [name for name in columns if name not in named and not _is_index(name)]
    guessed = []
    if text is None:
        text = _guess_text(path, free)
        guessed.append("text")
    if label is None and with_label:
        label = _guess(path, free, "label", _LABEL_NAMES)
        guessed += ["label"] if label is not None else []
    elif label not in columns:
        label = None
    if id is None:
        candidates = _candidates(free, _ID_NAMES)
        # Row numbers do as well as ids, so doubt is no reason to stop.
        id = candidates[0] if len(candidates) == 1 else None
        guessed += ["id"] if id is not None else []
    return Columns(text=text, label=label, id=id, guessed=tuple(guessed))


def missing_column(path: Path | str, name: str, flag: str, columns: Sequence[str]) -> str:
    """Return the message on a named column that the table lacks."""
    advice = suggestion(name, columns, f"name one of {_listed(columns)} with {flag}")
    return f"{path}: there is no column {name!r}: {advice}"


def _guess_text(path: Path | str, free: list[str]) -> str:
    guess = _guess(path, free, "text", _TEXT_NAMES)
    if guess is not None:
        return guess
    # The only column is a column of texts, unless its name says that it is something else.
    if len(free) == 1 and not looks_like_header(free):
        return free[0]
    raise InputError(
        f"{path}: cannot tell which column holds the texts: name one of {_listed(free)} "
        "with --text-column, or add a header line if there is none"
    )


def _guess(path: Path | str, free: list[str], role: str, names: tuple[str, ...]) -> str | None:
    candidates = _candidates(free, names)
    if len(candidates) > 1:
        raise InputError(
            f"{path}: the {role} column may be {' or '.join(map(repr, candidates))}: "
            + (
                "rename one of them"
                if len(set(candidates)) == 1
                else f"choose with --{role}-column"
            )
        )
    return candidates[0] if candidates else None


def _candidates(free: Sequence[str], names: tuple[str, ...]) -> list[str]:
    best = [name for name in free if _normal(name) == names[0]]
    return best or [name for name in free if _normal(name) in names]


def _normal(name: str) -> str:
    return name.strip().casefold()


def _is_index(name: str) -> bool:
    """Say whether a column is the row index that pandas writes unasked."""
    return _normal(name) in ("", "unnamed: 0") or name.startswith("__index_level_")


def _listed(columns: Sequence[str], limit: int = 20) -> str:
    shown = ", ".join(repr(name) for name in columns[:limit])
    return (shown or "none") + (" ..." if len(columns) > limit else "")
