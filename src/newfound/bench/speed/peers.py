"""Other packages on the same texts and encoder, each in its own process.

`python -m newfound.bench.speed.peers NAME TABLE ENCODER K` prints one JSON object. The encoder is
loaded before timing starts, which favours the other package: our command is timed with its imports.
"""

import csv
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PACKAGES = {
    "encoding": "sentence_transformers",
    "bertopic": "bertopic",
    "bertopic-kmeans": "bertopic",
}


def encoding(model: Any, texts: list[str], k: int) -> list[int] | None:
    """Run one pass of sentence-transformers' encode()."""
    model.encode(texts)
    return None


def bertopic(model: Any, texts: list[str], k: int) -> list[int] | None:
    """Run BERTopic with its defaults."""
    from bertopic import BERTopic

    topics, _ = BERTopic(embedding_model=model).fit_transform(texts)
    return [int(topic) for topic in topics]


def bertopic_kmeans(model: Any, texts: list[str], k: int) -> list[int] | None:
    """Run BERTopic with KMeans and the true number of categories."""
    from bertopic import BERTopic
    from sklearn.cluster import KMeans

    model_with_k = BERTopic(embedding_model=model, hdbscan_model=KMeans(k, random_state=0))
    topics, _ = model_with_k.fit_transform(texts)
    return [int(topic) for topic in topics]


PEERS: dict[str, Callable[[Any, list[str], int], list[int] | None]] = {
    "encoding": encoding,
    "bertopic": bertopic,
    "bertopic-kmeans": bertopic_kmeans,
}


def main(name: str, table: str, encoder: str, k: str) -> None:
    """Time one peer and print its seconds and topics as JSON."""
    with Path(table).open(encoding="utf-8", newline="") as file:
        texts = [row["text"] for row in csv.DictReader(file)]
    begun = time.perf_counter()
    from sentence_transformers import SentenceTransformer

    if PACKAGES[name] == "bertopic":
        import bertopic as _  # noqa: F401 - the time of imports is not counted
    model = SentenceTransformer(encoder, device="cpu")
    model.encode(texts[:32])
    loaded = time.perf_counter()
    topics = PEERS[name](model, texts, int(k))
    seconds = {"loading": loaded - begun, "work": time.perf_counter() - loaded}
    print(json.dumps({"seconds": seconds, "topics": topics}))


if __name__ == "__main__":
    main(*sys.argv[1:])
