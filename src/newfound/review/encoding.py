"""A process that computes features with the model of a run, for proposals to split a category.

It reads one line per request from standard input, a JSON list of texts, and writes one line with
their features, or null if the run has no model that encodes texts. It ends when its input ends.
"""

import json
import sys
from pathlib import Path

from newfound.errors import InputError
from newfound.storage.model_files import load_model


def main(folder: Path) -> None:
    """Answer requests until standard input ends."""
    try:
        model = load_model(folder)
        model.transform(["a text"])  # the first call is slow
    except InputError:  # no model, or one that needs vectors of the user
        model = None
    for line in sys.stdin:
        features = None if model is None else model.transform(json.loads(line)).tolist()
        print(json.dumps(features), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
