"""Propose how to split a category: 2-means on the features of its texts.

The model runs in a process of its own (`newfound.review.encoding`), so that reading it and encoding
texts do not delay the page.
"""

import json
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np

from newfound.errors import InputError
from newfound.result import Result

LEAST = 4  # texts of a category that can be split
MOST_ENCODED = 2_000  # texts of a category; a larger one is split by the map
STARTS = 4  # of k-means


class Splitter:
    """Proposes splits; `close` ends the process with the model.

    Parameters
    ----------
    folder : Path
        Run folder. Without a model, or with vectors of the user, positions on the map stand for
        features.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start to read the model, so that it is there when a person asks for a split."""
        if not (self.folder / "model").is_dir():
            return
        # It ends by itself when this process does, because its input then ends.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "newfound.review.encoding", str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is for the server
        )

    def close(self) -> None:
        """End the process with the model."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()

    def propose(self, result: Result, at: int) -> list[list[str]]:
        """Return the ids of the texts of two parts of a category, the larger part first."""
        rows = np.flatnonzero(result.assigned == at)
        if len(rows) < LEAST:
            raise InputError(f"a category with fewer than {LEAST} texts cannot be split")
        features = self._features([result.corpus.texts[row] for row in rows.tolist()])
        part = two_parts(result.map_positions[rows] if features is None else features)
        ids = np.array(result.corpus.ids, dtype=object)[rows]
        return sorted([ids[~part].tolist(), ids[part].tolist()], key=len, reverse=True)

    def _features(self, texts: list[str]) -> np.ndarray | None:
        """Return the features of texts [n, d]; None if there is no model that computes them."""
        if len(texts) > MOST_ENCODED:
            return None
        with self._lock:
            process = self._process
            if process is None or process.stdin is None or process.stdout is None:
                return None
            try:
                process.stdin.write(json.dumps(texts) + "\n")
                process.stdin.flush()
                found = json.loads(process.stdout.readline() or "null")
            except (OSError, ValueError):  # the process has ended
                return None
        return None if found is None else np.array(found, np.float32)


def two_parts(features: np.ndarray) -> np.ndarray:
    """Return which of the points [n, d] are in the second of two clusters, by k-means."""
    from sklearn.cluster import KMeans

    found = np.where(np.isfinite(features), features, 0.0)
    if len(np.unique(found, axis=0)) < 2:
        raise InputError("all texts of the category are the same, so it cannot be split")
    labels = KMeans(2, n_init=STARTS, random_state=0).fit_predict(found)
    return np.asarray(labels == 1)
