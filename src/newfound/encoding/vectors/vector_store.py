"""The store of an embedding service's vectors on disk: nothing is paid twice.

One SQLite file per service and model. A row has the sha256 of a text, its vector and a checksum;
texts are not stored. Each answer of the service is one transaction, so a fault loses none that was
complete, and several processes can use the file at once.
"""

import hashlib
import os
import re
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from newfound.encoding.vectors.address import Address
from newfound.errors import InputError

FOLDER = "NEWFOUND_EMBEDDING_CACHE"  # environment variable with the folder
AT_ONCE = 500  # texts per query
SECONDS = 60  # to wait for another process


def store_folder() -> Path:
    """Return the folder of all stores: NEWFOUND_EMBEDDING_CACHE, or the user's cache folder."""
    given = os.environ.get(FOLDER)
    if given:
        return Path(given)
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(caches) / "newfound" / "embeddings"


class VectorStore:
    """The stored vectors of one model; a context manager.

    Parameters
    ----------
    address : Address
    folder : Path, optional
        By default `store_folder()`.
    """

    def __init__(self, address: Address, folder: Path | None = None) -> None:
        digest = hashlib.sha256(str(address).encode()).hexdigest()[:16]
        shown = re.sub(r"[^A-Za-z0-9.-]+", "-", address.model)[:60].strip("-.")
        self.path = (folder or store_folder()) / f"{shown}-{digest}.sqlite"
        self._file: sqlite3.Connection | None = None

    def __enter__(self) -> Self:
        with self._faults():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(self.path, timeout=SECONDS, isolation_level=None)
            self._file.execute(
                "CREATE TABLE IF NOT EXISTS vectors "
                "(text BLOB PRIMARY KEY, vector BLOB, checksum INTEGER) WITHOUT ROWID"
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()

    def read(self, texts: Sequence[str]) -> dict[str, np.ndarray]:
        """Return the stored vectors by text; a damaged one counts as missing."""
        assert self._file is not None
        keys = {_key(text): text for text in texts}
        order = list(keys)
        found: dict[str, np.ndarray] = {}
        with self._faults():
            for start in range(0, len(order), AT_ONCE):
                part = order[start : start + AT_ONCE]
                marks = ",".join("?" * len(part))
                query = f"SELECT text, vector, checksum FROM vectors WHERE text IN ({marks})"
                for key, vector, checksum in self._file.execute(query, part):
                    if isinstance(vector, bytes) and _checksum(key, vector) == checksum:
                        found[keys[key]] = np.frombuffer(vector, "<f4")
        return found

    def write(self, texts: Sequence[str], vectors: np.ndarray) -> None:
        """Store the vectors [N, width] of texts, all or none."""
        assert self._file is not None
        rows = []
        for text, vector in zip(texts, vectors, strict=True):
            key, content = _key(text), vector.astype("<f4").tobytes()
            rows.append((key, content, _checksum(key, content)))
        with self._faults():
            self._file.execute("BEGIN IMMEDIATE")
            try:
                self._file.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)
                self._file.execute("COMMIT")
            except BaseException:
                if self._file.in_transaction:
                    self._file.execute("ROLLBACK")
                raise

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """Turn faults of the file into InputErrors."""
        try:
            yield
        except sqlite3.OperationalError as error:  # no space, no permission, locked
            raise InputError(
                f"cannot use {self.path}, which stores the vectors of the embedding service "
                f"({error}); free space, or name another folder in {FOLDER}"
            ) from error
        except sqlite3.DatabaseError as error:
            raise InputError(
                f"{self.path}, which stores the vectors of the embedding service, is damaged "
                f"({error}); delete it, and they are bought again"
            ) from error
        except OSError as error:
            raise InputError(
                f"cannot create {self.path.parent}, which stores the vectors of the embedding "
                f"service ({error.strerror or error}); name another folder in {FOLDER}"
            ) from error


def _key(text: str) -> bytes:
    """Return the sha256 of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _checksum(key: bytes, vector: bytes) -> int:
    """Return a checksum of a row."""
    return zlib.crc32(key + vector)
