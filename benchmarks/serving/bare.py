"""The bare encoder, for comparison: `python -m benchmarks.serving.bare RUN TEXTS`.

Prints the texts per second of the feature map of a run, in one process with all threads.
"""

import json
import sys
import time
from pathlib import Path

from newfound.storage.model_files import load_model

run, path = map(Path, sys.argv[1:])
encode = load_model(run, "cpu").features
texts: list[str] = json.loads(path.read_text())
encode(texts[:200])  # the first call takes longer
begun = time.perf_counter()
encode(texts)
print(len(texts) / (time.perf_counter() - begun))
