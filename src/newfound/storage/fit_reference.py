"""The reference texts for fit scores on disk: one safetensors file in the model folder."""

from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from newfound.clustering.fit_scores import FitReference, Profiles
from newfound.encoding.weights import check_finite_array, parse_arrays
from newfound.errors import DamagedFileError
from newfound.files import write_atomically

FIT_REFERENCE = "fit_reference.safetensors"
ARRAYS = {
    "vectors": np.float16,
    "categories": np.int64,
    "given": np.uint8,
    "frozen": np.uint8,
    "labelled": np.float32,
    "unlabelled": np.float32,
    "label_cosines": np.float32,
}
# Of the profiles; missing in models of earlier versions.
CENTRE, DIRECTIONS = "centre", "directions"


def save_reference(reference: FitReference, path: Path) -> None:
    """Write the vectors of the reference texts, their categories and the training scores."""
    arrays = {
        name: np.ascontiguousarray(getattr(reference, name), kind) for name, kind in ARRAYS.items()
    }
    if reference.profiles is not None:
        arrays[CENTRE] = np.ascontiguousarray(reference.profiles.centre, np.float32)
        arrays[DIRECTIONS] = np.ascontiguousarray(reference.profiles.directions, np.float32)
    with write_atomically(path) as temporary:
        save_file(arrays, temporary)


def parse_reference(content: bytes, n_categories: int) -> FitReference | None:
    """Read and check a file written by `save_reference`; None if an earlier version wrote it.

    The fit scores in such a file are on another scale.
    """
    arrays = parse_arrays(content, FIT_REFERENCE)
    if "vectors" in arrays and "label_cosines" not in arrays:
        return None
    for name, kind in ARRAYS.items():
        if name not in arrays or arrays[name].dtype != kind:
            raise DamagedFileError(f"{FIT_REFERENCE} holds no {name} of the type {np.dtype(kind)}")
    vectors, categories, given = (arrays[name] for name in ("vectors", "categories", "given"))
    one_each = categories.shape == given.shape == vectors.shape[:1]
    if vectors.ndim != 2 or not one_each or arrays["frozen"].size != 1:
        raise DamagedFileError(f"{FIT_REFERENCE}: its arrays do not fit each other")
    for name in ("vectors", "labelled", "unlabelled", "label_cosines"):
        check_finite_array(arrays[name], f"{FIT_REFERENCE}: {name}")
        if arrays[name].ndim != (2 if name == "vectors" else 1):
            raise DamagedFileError(f"{FIT_REFERENCE}: its arrays do not fit each other")
    if len(categories) and not 0 <= categories.min() <= categories.max() < n_categories:
        raise DamagedFileError(f"{FIT_REFERENCE} has categories that are not in model.json")
    if (np.diff(categories) < 0).any():
        raise DamagedFileError(f"{FIT_REFERENCE}: its categories are not in order")
    return FitReference(
        vectors=vectors,
        categories=categories,
        given=given.astype(bool),
        frozen=bool(arrays["frozen"].item()),
        labelled=arrays["labelled"],
        unlabelled=arrays["unlabelled"],
        label_cosines=arrays["label_cosines"],
        profiles=_parse_profiles(arrays, vectors.shape[1]),
    )


def _parse_profiles(arrays: dict[str, np.ndarray], width: int) -> Profiles | None:
    """Return the profiles of vectors of this width; None if the file has none."""
    if CENTRE not in arrays and DIRECTIONS not in arrays:
        return None
    for name, dimensions in ((CENTRE, 1), (DIRECTIONS, 2)):
        array = arrays.get(name)
        if array is None or array.dtype != np.float32 or array.ndim != dimensions:
            raise DamagedFileError(f"{FIT_REFERENCE} holds no {name} of {dimensions} dimensions")
        if len(array) != width:
            raise DamagedFileError(f"{FIT_REFERENCE}: its arrays do not fit each other")
        check_finite_array(array, f"{FIT_REFERENCE}: {name}")
    return Profiles(arrays[CENTRE], arrays[DIRECTIONS])
