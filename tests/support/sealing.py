"""Change the files of runs and models as a careful vandal would: the manifest fits again."""

import json
from pathlib import Path

from newfound.files.manifest import MANIFEST, write_manifest


def reseal(folder: Path) -> None:
    """Write the manifest of a changed run or model again, for the same names that are there."""
    for place in (folder / "model", folder):
        if (place / MANIFEST).is_file():
            listed = json.loads((place / MANIFEST).read_text())["sha256"]
            write_manifest(place, [name for name in listed if (place / name).is_file()])


def unseal(folder: Path) -> None:
    """Turn a run or a model into one of the first format, which had no manifest."""
    for path in (folder / "run.json", folder / "model.json", folder / "model" / "model.json"):
        if path.is_file():
            path.write_text(json.dumps({**json.loads(path.read_text()), "format": 1}))
            (path.parent / MANIFEST).unlink()
