"""A small result to decide on: two known and three novel categories of six texts each."""

import numpy as np

from newfound.category import Category, Event
from newfound.data.corpus import Corpus
from newfound.lineage import Lineage
from newfound.result import Result

NAMES = ("bank", "travel", "Stop song", "Cold rain", "Lost parcel")
WORDS = ("card", "hotel", "song", "rain", "parcel")
EACH = 6


def small_result() -> Result:
    """Return the result; texts are "0" to "29", and two of each known category are labelled."""
    count = len(NAMES) * EACH
    assigned = np.repeat(np.arange(len(NAMES)), EACH)
    texts = [f"{WORDS[c]} number {i} {WORDS[c]}" for i, c in enumerate(assigned)]
    labels = [NAMES[c] if c < 2 and i % EACH < 2 else None for i, c in enumerate(assigned.tolist())]
    probability = 0.5 + 0.4 * (np.arange(count) % EACH) / EACH
    categories = []
    for at, name in enumerate(NAMES):
        own = [texts[row] for row in np.flatnonzero(assigned == at)]
        known = at < 2
        categories.append(
            Category(
                id=f"c{at + 1}",
                name=name,
                kind="known" if known else "novel",
                status="known" if known else "proposed",
                size=EACH,
                share=EACH / count,
                labelled=2 if known else 0,
                keywords=(WORDS[at], "number"),
                examples=tuple(own[-2:]),
                border=tuple(own[:1]),
                confidence=float(probability[:EACH].mean()),
                nearest=f"c{(at + 1) % len(NAMES) + 1}",
                nearest_distance=0.5,
                distance=0.1 if known else None,
                fit=0.6,
                history=(Event("found", 1, "labels" if known else "newfound"),),
            )
        )
    return Result(
        corpus=Corpus.from_lists(texts, labels, [str(i) for i in range(count)]),
        categories=tuple(categories),
        assigned=assigned,
        predicted=assigned,
        probability=probability,
        best_known=assigned % 2,
        best_known_probability=np.full(count, 0.3),
        fit=np.full(count, 0.6),
        positions=np.zeros((count, 2)),
        matching=np.arange(10.0).reshape(2, 5),
        config={"seed": 0, "n_categories": "auto", "method": "newfound"},
        device="cpu",
        lineage=Lineage.begin(len(NAMES)),
    )
