"""Detect the encoding of text files, and turn read errors into InputErrors."""

import codecs
import gzip
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO, cast

from newfound.errors import EmptyTableError, InputError
from newfound.wording import plural

_BLOCK = 1 << 20
_BYTE_ORDER_MARKS = (
    # UTF-32 first: its mark begins with the mark of UTF-16.
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_NOT_TEXT = (
    (b"PK\x03\x04", "an Excel workbook or a zip archive", "rename a workbook to end in .xlsx"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook", "save the table as CSV"),
    (b"PAR1", "a Parquet file", "rename it to end in .parquet"),
    (b"\x1f\x8b", "a gzip file", "rename it to end in .gz"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard file", "rename it to end in .zst"),
    (b"%PDF", "a PDF document", "give a table"),
    (b"<!DOCTYPE html", "a web page", "download the table itself"),
    (b"<!doctype html", "a web page", "download the table itself"),
    (b"<html", "a web page", "download the table itself"),
)


@dataclass(frozen=True)
class TextFile:
    """A text file with its encoding."""

    path: Path
    encoding: str
    errors: str
    notes: tuple[str, ...]

    @contextmanager
    def open(self) -> Iterator[TextIOWrapper]:
        """Open the file for reading, with line ends unchanged; read errors become InputErrors."""
        with (
            reading(self.path),
            _open_binary(self.path) as binary,
            TextIOWrapper(binary, self.encoding, self.errors, newline="") as handle,
        ):
            yield handle


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn errors of reading `path` inside the block into InputErrors."""
    try:
        yield
    except PermissionError as error:
        raise InputError(
            f"{path}: there is no permission to read the file: change its permissions"
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: the file begins as {error.encoding} text but is not valid: save it as UTF-8"
        ) from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(_damaged(path, error)) from error
    except OSError as error:
        if error.errno is None and path.suffix.lower() == ".zst":
            raise InputError(_damaged(path, error)) from error  # Arrow has no other class for it
        raise InputError(
            f"{path}: cannot be read ({error.strerror or error}): check the path"
        ) from error


def _damaged(path: Path, error: Exception) -> str:
    """Return the message on a file that cannot be decompressed."""
    return f"{path}: the compressed file is damaged ({error}): compress it again"


def check_file(path: Path) -> None:
    """Raise InputError unless the path is a regular file that is not empty."""
    with reading(path):
        try:
            status = path.stat()
        except (FileNotFoundError, NotADirectoryError) as error:
            raise InputError(f"{path}: there is no such file: check the path") from error
    if stat.S_ISDIR(status.st_mode):
        raise InputError(f"{path}: this is a folder: give a file")
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path}: this is not a regular file: copy the table into one")
    if status.st_size == 0:
        raise EmptyTableError(f"{path}: the file is empty: give a table with a header and rows")


def find_encoding(path: Path, *, tolerant: bool = False) -> TextFile:
    """Detect the encoding of a file: by its byte order mark, then UTF-8, then Windows-1252.

    Parameters
    ----------
    path : Path
    tolerant : bool, default False
        Whether a file in neither of them is read as UTF-8, with a note, where it is not UTF-16 or
        UTF-32.

    Returns
    -------
    TextFile

    Raises
    ------
    InputError
        If the file is not text, or in another encoding.
    """
    with reading(path), _open_binary(path) as binary:
        start = binary.read(4096)
        for prefix, what, advice in _NOT_TEXT:
            if start.startswith(prefix):
                raise InputError(f"{path}: this is {what}, not a text file: {advice}")
        for mark, encoding in _BYTE_ORDER_MARKS:
            if start.startswith(mark):
                note = f"{path}: read as {encoding.upper()}, according to its byte order mark"
                return TextFile(path, encoding, "strict", (note,))
        if start.count(b"\0") * 4 > len(start):
            raise InputError(
                f"{path}: this is not a text file, or UTF-16 without a byte order mark: "
                "save it as UTF-8"
            )
    # The file is opened again for each pass, because not every compressed stream can be rewound.
    with reading(path), _open_binary(path) as binary:
        line = _first_bad_line(binary)
    if line is None:
        return TextFile(path, "utf-8-sig", "strict", ())
    with reading(path), _open_binary(path) as binary:
        good, bad = _count_non_ascii(binary)
    replaced = TextFile(
        path,
        "utf-8-sig",
        "replace",
        (
            f"{path}: {plural(bad, 'character is', 'characters are')} not valid UTF-8 (first: line "
            f"{line}): read as '\ufffd'",
        ),
    )
    if good > bad:  # a damaged UTF-8 file: in another encoding the rest would be wrong
        return replaced
    with reading(path), _open_binary(path) as binary:
        try:
            for block in _blocks(binary):
                block.decode("cp1252")
        except UnicodeDecodeError as error:
            if tolerant:
                return replaced
            raise InputError(
                f"{path}: line {line} is neither UTF-8 nor Windows-1252 text: "
                "save the table as UTF-8"
            ) from error
    note = (
        f"{path}: not UTF-8 (line {line}): read as Windows-1252; "
        "save it as UTF-8 if accents look wrong"
    )
    return TextFile(path, "cp1252", "strict", (note,))


def _open_binary(path: Path) -> BinaryIO:
    """Open a file for reading bytes, decompressed if its name ends in .gz or .zst."""
    suffix = path.suffix.lower()
    if suffix == ".gz":
        return cast(BinaryIO, gzip.open(path, "rb"))
    if suffix == ".zst":
        # Arrow is slow to import, and of the text files only these need it.
        import pyarrow as pa

        return cast(BinaryIO, pa.CompressedInputStream(path.open("rb"), "zstd"))
    return path.open("rb")


def _blocks(binary: BinaryIO) -> Iterator[bytes]:
    """Yield the content block by block."""
    while block := binary.read(_BLOCK):
        yield block


def _first_bad_line(binary: BinaryIO) -> int | None:
    """Return the line of the first bytes that are not UTF-8, None if there are none."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    line = 1
    try:
        for block in _blocks(binary):
            decoder.decode(block)
            line += block.count(b"\n")
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        return line + error.object[: error.start].count(b"\n")
    return None


def _count_non_ascii(binary: BinaryIO) -> tuple[int, int]:
    """Return how many non-ASCII characters are valid UTF-8, and how many are not."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    good = bad = 0
    for block in _blocks(binary):
        text = decoder.decode(block)
        damaged = text.count("\ufffd")
        bad += damaged
        good += len(text) - len(text.encode("ascii", "ignore")) - damaged
    bad += len(decoder.decode(b"", final=True))
    return good, bad
