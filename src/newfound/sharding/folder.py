"""The folder that the predictions of many tables are written into, and what it knows of them.

| file | contents |
|---|---|
| part-1.parquet | the predictions of a table of that name |
| set-aside/part-1.parquet.jsonl | rows of it that could not be predicted, each with its reason |
| manifest.json | the model's sha256, the options, and the counts of each shard |
| receipts/part-1.parquet.json | the entry of a finished shard until the manifest has it |

A worker writes the predictions of a shard under a temporary name, then their receipt, and then
renames the predictions. A shard is finished if it has both a receipt (or an entry of the manifest)
and its file, so that a fault at any moment leaves it finished or not, never half.
"""

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from newfound.errors import DamagedFileError, InputError
from newfound.files import check_fields, is_free, read_json, write_json
from newfound.files.atomic import cannot_write
from newfound.files.locks import lock_path, writer_lock
from newfound.sharding.shards import Shard
from newfound.storage.formats import read_with_format
from newfound.versions import __version__

MANIFEST = "manifest.json"
RECEIPTS = "receipts"
ASIDE = "set-aside"
FORMAT = 1
AGAIN = "choose another folder, or begin anew with --force"
# Without its manifest, nobody knows which files of the folder newfound wrote.
REMOVE = "choose another folder, or delete this one if you need nothing in it"
COUNTS = ("rows", "written", "empty", "set_aside", "fits_nowhere")


@dataclass(frozen=True)
class Receipt:
    """The entry of a finished shard.

    Attributes
    ----------
    source : str
        Path of the table.
    source_bytes, source_changed : int
        Its stamp; see `source_stamp`. A table that has changed since is predicted again.
    rows : int
        Rows of the table: `written` and `set_aside`.
    written : int
        Rows of the predictions.
    empty : int
        Rows of the predictions that have no text, and so no category.
    set_aside : int
        Rows that could not be predicted.
    fits_nowhere : int or None
        Texts that are marked as fitting nowhere; None without a rule.
    bytes : int
        Size of the predictions.
    sha256 : str
        Of the predictions.
    seconds : float
        Time of reading, predicting and writing.
    notes : list of str
        What the user should know about the table.
    """

    source: str
    source_bytes: int
    source_changed: int
    rows: int
    written: int
    empty: int
    set_aside: int
    fits_nowhere: int | None
    bytes: int
    sha256: str
    seconds: float
    notes: list[str]


# The types of a receipt's fields in JSON.
KINDS: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys((each.name for each in fields(Receipt)), int),
    **dict.fromkeys(("source", "sha256"), str),
    "fits_nowhere": (int, type(None)),
    "seconds": (int, float),
    "notes": list,
}


def source_stamp(source: Path) -> tuple[int, int]:
    """Return the size of a table in bytes, and the time of its last change in nanoseconds.

    Of a folder, the sum of the sizes of its files, and a number that depends on the names, sizes
    and times of all of them.
    """
    found = source.stat()
    if not source.is_dir():
        return found.st_size, found.st_mtime_ns
    total, digest = 0, hashlib.sha256()
    for path in sorted(path for path in source.rglob("*") if not path.is_dir()):
        each = path.lstat() if path.is_symlink() and not path.exists() else path.stat()
        name = os.fsencode(path.relative_to(source))
        digest.update(b"%d %d %d %b\0" % (each.st_size, each.st_mtime_ns, len(name), name))
        total += each.st_size
    return total, int.from_bytes(digest.digest()[:7])


def write_receipt(folder: Path, shard: Shard, receipt: Receipt) -> None:
    """Write the receipt of a shard, whose predictions are then renamed."""
    write_json(folder / RECEIPTS / f"{shard.output}.json", asdict(receipt))


class ShardFolder:
    """The output folder, held by one command; see `open_shard_folder`."""

    def __init__(self, folder: Path, about: Mapping[str, Any], entries: dict[str, Receipt]) -> None:
        self.folder, self.about, self.entries = folder, about, entries
        for name in (RECEIPTS, ASIDE):
            (folder / name).mkdir(parents=True, exist_ok=True)

    def finished(self, shard: Shard) -> bool:
        """Return whether a shard is predicted and has not changed since."""
        entry = self.entries.get(shard.output)
        if entry is None or not self._is_whole(shard.output, entry):
            return False
        stamp = (entry.source_bytes, entry.source_changed)
        return entry.source == str(shard.source) and stamp == source_stamp(shard.source)

    def _is_whole(self, name: str, entry: Receipt) -> bool:
        """Return whether the file of an entry is there, as it was written.

        Its worker may have ended before that, or a fault of the disk may have changed it.
        """
        output = self.folder / name
        if not output.is_file() or output.stat().st_size != entry.bytes:
            return False
        with output.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == entry.sha256

    def begin(self, shards: Iterable[Shard]) -> list[Shard]:
        """Return the shards that are not finished; nothing is left of earlier predictions."""
        waiting = [shard for shard in shards if not self.finished(shard)]
        for shard in waiting:
            # A file of another time beside a new receipt would count as finished.
            for name in (shard.output, f"{ASIDE}/{shard.aside}", f"{RECEIPTS}/{shard.output}.json"):
                (self.folder / name).unlink(missing_ok=True)
            self.entries.pop(shard.output, None)
        self.write({})
        return waiting

    def counts(self, shards: Iterable[Shard] | None = None) -> dict[str, int | None]:
        """Return the sums of the counts, of all shards or of some."""
        names = self.entries if shards is None else [shard.output for shard in shards]
        chosen = [self.entries[name] for name in names if name in self.entries]
        sums: dict[str, int | None] = {}
        for count in COUNTS:
            numbers = [getattr(entry, count) for entry in chosen]
            given = [number for number in numbers if number is not None]
            # Only this count may be missing, and it is if no shard tells whether there is a rule.
            sums[count] = None if count == "fits_nowhere" and not given else sum(given)
        return sums

    def write(self, failed: Mapping[str, Mapping[str, str]], *, complete: bool = False) -> None:
        """Write the manifest, which then has the entries of all finished shards."""
        write_json(
            self.folder / MANIFEST,
            {
                "format": FORMAT,
                "newfound": __version__,
                **self.about,
                "complete": complete,
                **self.counts(),
                "failed": dict(failed),
                "shards": {name: asdict(self.entries[name]) for name in sorted(self.entries)},
            },
        )

    def finish(self, shards: Iterable[Shard], failed: Mapping[str, Mapping[str, str]]) -> None:
        """Write the manifest at the end of a command; it then has what the receipts have."""
        # A worker may have finished a shard of which this process has not heard.
        for name, entry in _read_receipts(self.folder).items():
            if self.entries.get(name) != entry and self._is_whole(name, entry):
                self.entries[name] = entry
        self.write(failed, complete=all(shard.output in self.entries for shard in shards))
        shutil.rmtree(self.folder / RECEIPTS, ignore_errors=True)
        with suppress(OSError):  # rows were set aside
            (self.folder / ASIDE).rmdir()


@contextmanager
def open_shard_folder(
    folder: Path, about: Mapping[str, Any], shards: Sequence[Shard] = (), *, force: bool = False
) -> Iterator[ShardFolder]:
    """Yield a new or an existing output folder, which no other command writes meanwhile.

    Parameters
    ----------
    folder : Path
    about : mapping
        What all predictions of a folder have in common: "model", with its "sha256", and "options".
    shards : sequence of Shard
        Those that will be written.
    force : bool, default False
        Whether to delete the predictions that the folder holds.

    Yields
    ------
    ShardFolder

    Raises
    ------
    InputError
        If the folder holds other things, or predictions of another model or with other options, or
        another command writes it.
    """
    # Workers on other machines know the folder by its name, the lock by what a link stands for.
    place, real = folder.absolute(), _resolved(folder)
    try:
        real.parent.mkdir(parents=True, exist_ok=True)
        with writer_lock(lock_path(real, inside=False), folder):
            if real.exists() and not real.is_dir():
                raise InputError(f"{folder} is a file; give a folder for the predictions")
            entries: dict[str, Receipt] = {}
            if real.is_dir() and not is_free(real):
                _check_kind(place)
                if not force:
                    _check_same(place, about)
                entries = _read_entries(place)
                _check_own(place, folder, shards, entries)
                if force:
                    _delete(place)
                    entries = {}
            real.mkdir(exist_ok=True)
            yield ShardFolder(place, about, entries)
    except OSError as error:
        raise InputError(cannot_write(folder, error)) from error


def _resolved(folder: Path) -> Path:
    """Return what a path with links stands for."""
    try:
        return folder.resolve()
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of links
        raise InputError(f"cannot write {folder}: {error}; choose another folder") from error


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the content of the manifest of an output folder."""
    value = read_with_format(folder / MANIFEST, FORMAT, REMOVE)
    try:
        check_fields(value, {"model": dict, "options": dict, "shards": dict}, MANIFEST)
        check_fields(value["model"], {"sha256": str}, MANIFEST)
    except DamagedFileError as error:
        raise InputError(f"{folder / MANIFEST} is damaged ({error}); {REMOVE}") from error
    return value


def _check_kind(folder: Path) -> None:
    """Raise InputError if a folder is not one of predictions."""
    if not (folder / MANIFEST).is_file() or (folder / "model.json").is_file():
        raise InputError(
            f"{folder} exists and holds no predictions of newfound; choose another folder"
        )
    read_manifest(folder)  # also a run folder has a manifest.json, but another one


def _check_own(
    place: Path, folder: Path, shards: Sequence[Shard], entries: Mapping[str, Receipt]
) -> None:
    """Raise InputError if the predictions of a shard would replace a file of somebody else."""
    for shard in shards:
        # A receipt is written before its file, so that all files of ours have one, or an entry.
        receipt = place / RECEIPTS / f"{shard.output}.json"
        if shard.output in entries or receipt.exists() or not os.path.lexists(place / shard.output):
            continue
        raise InputError(
            f"{folder / shard.output} is no prediction that newfound recorded, and would be "
            "replaced; move it away, or choose another folder"
        )


def _check_same(folder: Path, about: Mapping[str, Any]) -> None:
    """Raise InputError if the predictions in a folder were made in another way."""
    found = read_manifest(folder)
    before, now = found["model"]["sha256"][:12], about["model"]["sha256"][:12]
    if found["model"]["sha256"] != about["model"]["sha256"]:
        raise InputError(
            f"{folder} holds predictions of another model, or of the model before other decisions "
            f"(sha256 {before}, not {now}); {AGAIN}"
        )
    for name in sorted({*found["options"], *about["options"]}):
        before, now = found["options"].get(name), about["options"].get(name)
        if before != now:
            raise InputError(
                f"{folder} holds predictions with {name}={before}, not {name}={now}; {AGAIN}"
            )


def _read_entries(folder: Path) -> dict[str, Receipt]:
    """Return the entries of finished shards; a receipt is newer than the manifest."""
    return _parsed(read_manifest(folder)["shards"]) | _read_receipts(folder)


def _read_receipts(folder: Path) -> dict[str, Receipt]:
    """Return the receipts of a folder."""
    found = {}
    receipts = folder / RECEIPTS
    for path in sorted(receipts.iterdir()) if receipts.is_dir() else []:
        if path.suffix == ".json":
            with suppress(DamagedFileError):
                found[path.stem] = read_json(path, dict)
    return _parsed(found)


def _parsed(found: Mapping[str, Any]) -> dict[str, Receipt]:
    """Return valid entries; a shard with a damaged one is predicted again."""
    entries = {}
    for name, value in found.items():
        with suppress(DamagedFileError):
            check_fields(value, KINDS, name)
            entries[name] = Receipt(**{each.name: value[each.name] for each in fields(Receipt)})
    return entries


def _delete(folder: Path) -> None:
    """Delete the predictions of a folder, the manifest last; other files stay."""
    for name in _read_entries(folder):
        if Path(name).name == name:  # nothing outside, whatever the manifest names
            (folder / name).unlink(missing_ok=True)
    for name in (RECEIPTS, ASIDE):
        shutil.rmtree(folder / name, ignore_errors=True)
    os.unlink(folder / MANIFEST)
