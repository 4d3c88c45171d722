"""Read a folder of .txt files, one text per file."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from newfound.data.tables.delimited import LONGEST_FIELD
from newfound.data.tables.textfile import TextFile, find_encoding, reading
from newfound.errors import InputError
from newfound.wording import plural

COLUMNS = ["id", "folder", "text"]


@dataclass(frozen=True)
class TextFolder:
    """A folder whose .txt files have been checked.

    The column `id` holds the name of the file, relative to the folder; `folder` the folder that it
    is in, empty at the top.
    """

    path: Path
    columns: list[str]
    rows: int
    notes: list[str]
    files: list[TextFile | Path]  # an empty file has no encoding

    def read(self, wanted: Sequence[str]) -> Iterator[tuple[str | None, ...]]:
        """Yield the wanted columns of every file."""
        for file in self.files:
            path = file if isinstance(file, Path) else file.path
            name = path.relative_to(self.path)
            above = name.parent.as_posix()
            cells = {"id": name.as_posix(), "folder": "" if above == "." else above}
            if "text" in wanted and isinstance(file, TextFile):
                with file.open() as handle:
                    cells["text"] = handle.read().strip()
            yield tuple([cells.get(column) for column in wanted])


def open_text_folder(folder: Path, bad_rows: dict[int, str] | None = None) -> TextFolder:
    """Check the .txt files in a folder and its sub-folders.

    Parameters
    ----------
    folder : Path
        Hidden files and files with other extensions are not read.
    bad_rows : dict of int to str, optional
        Receives the number of each file that is not text, with the reason; it is read as empty.
        Without it, the first one raises InputError.

    Returns
    -------
    TextFolder

    Raises
    ------
    InputError
        If there is no .txt file, or one of them is not text.
    """
    with reading(folder):
        found = sorted(path for path in folder.rglob("*") if not _is_hidden(path, folder))
        files = [path for path in found if path.is_file()]
        texts = [path for path in files if path.suffix.lower() == ".txt"]
    if not texts:
        raise InputError(
            f"{folder}: this is a folder without .txt files: give the tables in it, such as "
            f"'{folder / '*.csv'}'"
        )
    opened: list[TextFile | Path] = []
    for row, path in enumerate(texts, start=1):
        try:
            opened.append(_open(path, tolerant=bad_rows is not None))
        except InputError as error:
            if bad_rows is None:
                raise
            bad_rows[row] = str(error)
            opened.append(path)
    notes = [
        f"{folder}: {plural(len(texts), '.txt file', '.txt files')}, one text each; "
        "the id of a text is the name of its file"
    ]
    if any(path.parent != folder for path in texts):
        notes.append(
            f"{folder}: the files are in sub-folders: if those are categories, add "
            "--label-column folder"
        )
    if others := len(files) - len(texts):
        notes.append(f"{folder}: {plural(others, 'other file is', 'other files are')} not read")
    changed = [file for file in opened if isinstance(file, TextFile) and file.notes]
    if changed:
        first = changed[0].notes[0]
        more = f" (and {plural(len(changed) - 1, 'more such file')})" if len(changed) > 1 else ""
        notes.append(first + more)
    return TextFolder(folder, list(COLUMNS), len(opened), notes, opened)


def _open(path: Path, tolerant: bool) -> TextFile | Path:
    """Return a file with its encoding, or its path if it is empty."""
    with reading(path):
        size = path.stat().st_size
    if size > LONGEST_FIELD:
        raise InputError(
            f"{path}: the text has {size:,} bytes: split files of more than {LONGEST_FIELD:,}"
        )
    return find_encoding(path, tolerant=tolerant) if size else path


def _is_hidden(path: Path, folder: Path) -> bool:
    """Return whether a file, or a folder that it is in, has a name with a dot at the start."""
    return any(part.startswith(".") for part in path.relative_to(folder).parts)
