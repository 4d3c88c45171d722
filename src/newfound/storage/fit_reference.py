"""The reference texts for fit scores on disk: one safetensors file in the model folder."""

from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from newfound.clustering.fit_scores import FitReference
from newfound.errors import DamagedFileError
from newfound.files import write_atomically

FIT_REFERENCE = "fit_reference.safetensors"
ARRAYS = {
    "vectors": np.float16,
    "categories": np.int64,
    "frozen": np.uint8,
    "labelled": np.float32,
    "unlabelled": np.float32,
}


def save_reference(reference: FitReference, path: Path) -> None:
    """Write the vectors of the reference texts, their categories and the training scores."""
    arrays = {
        name: np.ascontiguousarray(getattr(reference, name), kind) for name, kind in ARRAYS.items()
    }
    with write_atomically(path) as temporary:
        save_file(arrays, temporary)


def load_reference(path: Path, n_categories: int) -> FitReference:
    """Read and check a file written by `save_reference`."""
    arrays = load_file(path)
    for name, kind in ARRAYS.items():
        if name not in arrays or arrays[name].dtype != kind:
            raise DamagedFileError(f"{path.name} has no {name} of type {np.dtype(kind)}")
    vectors, categories = arrays["vectors"], arrays["categories"]
    if vectors.ndim != 2 or categories.shape != (len(vectors),) or arrays["frozen"].size != 1:
        raise DamagedFileError(f"{path.name}: the shapes of its arrays do not agree")
    if len(categories) and not 0 <= categories.min() <= categories.max() < n_categories:
        raise DamagedFileError(f"{path.name} has categories that are not in model.json")
    return FitReference(
        vectors=vectors,
        categories=categories,
        frozen=bool(arrays["frozen"].item()),
        labelled=arrays["labelled"],
        unlabelled=arrays["unlabelled"],
    )
