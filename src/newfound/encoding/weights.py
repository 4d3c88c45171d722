"""Read safetensors, and load weights into a module after checking names, shapes and values."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from newfound.errors import DamagedFileError, reason
from newfound.files import open_regular

# Types that torch and numpy both have; the library raises a KeyError for others.
ARRAY_TYPES = {"F64", "F32", "F16", "I64", "I32", "I16", "I8", "U8", "BOOL"}
TENSOR_TYPES = ARRAY_TYPES | {"BF16"}


def parse_tensors(content: bytes, where: str) -> dict[str, Tensor]:
    """Return the tensors in the content of a safetensors file, or raise DamagedFileError."""
    try:
        _check_types(content, where, TENSOR_TYPES)
        return safetensors.torch.load(content)
    except SafetensorError as error:
        raise DamagedFileError(f"{where}: {reason(error)}") from error


def parse_arrays(content: bytes, where: str) -> dict[str, np.ndarray]:
    """Return the arrays in the content of a safetensors file, or raise DamagedFileError."""
    try:
        _check_types(content, where, ARRAY_TYPES)
        return safetensors.numpy.load(content)
    except SafetensorError as error:
        raise DamagedFileError(f"{where}: {reason(error)}") from error


def stored_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Return the shapes in the header of a safetensors file; none if it cannot be read."""
    try:
        with open_regular(path) as file:
            start = file.read(8)
            header = _header(start + file.read(min(int.from_bytes(start, "little"), 2**26)), "")
    except (OSError, DamagedFileError):  # reported when the file is read
        return {}
    shapes = {name: entry.get("shape") for name, entry in header.items() if isinstance(entry, dict)}
    return {
        name: tuple(shape)
        for name, shape in shapes.items()
        if isinstance(shape, list) and all(type(length) is int for length in shape)
    }


def _header(content: bytes, where: str) -> dict[str, Any]:
    """Return the header of a safetensors file, or raise DamagedFileError."""
    length = int.from_bytes(content[:8], "little")
    try:
        header = json.loads(content[8 : 8 + length])
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(f"{where} has no valid header") from error
    if not isinstance(header, dict):
        raise DamagedFileError(f"{where} has no valid header")
    return header


def _check_types(content: bytes, where: str, types: set[str]) -> None:
    """Raise DamagedFileError for a type of tensors that cannot be read."""
    for name, entry in _header(content, where).items():
        kind = entry.get("dtype") if isinstance(entry, dict) else None
        if name != "__metadata__" and (not isinstance(kind, str) or kind not in types):
            raise DamagedFileError(f"{where}: {name[:80]} has the type {str(kind)[:20]!r}")


def check_finite(weights: Mapping[str, Tensor], where: str) -> None:
    """Raise DamagedFileError if a weight is NaN or infinite."""
    for name, weight in weights.items():
        # The sum is quick and not finite if one of its terms is not; but it may also overflow.
        if not weight.is_floating_point() or torch.isfinite(weight.sum()):
            continue
        if not torch.isfinite(weight).all():
            raise DamagedFileError(f"{where}: {name} has values that are not finite")


def check_finite_array(values: np.ndarray, where: str) -> None:
    """Raise DamagedFileError if a value of the array is not a finite floating-point number."""
    if values.dtype.kind != "f" or not np.isfinite(values).all():
        raise DamagedFileError(f"{where} has values that are not finite numbers")


def load_weights(module: nn.Module, weights: Mapping[str, Tensor], where: str) -> None:
    """Load weights, or raise DamagedFileError if names, shapes or values are not valid.

    torch raises a RuntimeError instead, which cannot be distinguished from a bug of this package.
    """
    expected = module.state_dict()
    missing, more = sorted(expected.keys() - weights.keys()), sorted(weights.keys() - expected)
    if missing or more:
        what = f"has no {missing[0]!r}" if missing else f"has {more[0]!r}, which is not expected"
        raise DamagedFileError(f"{where} {what}")
    for name, value in expected.items():
        check_shape(weights[name], tuple(value.shape), f"{where}: {name}")
    check_finite(weights, where)
    module.load_state_dict(weights)


def check_shape(weight: Tensor, shape: tuple[int, ...], where: str) -> None:
    """Raise DamagedFileError unless a weight is of floating point and has this shape."""
    if tuple(weight.shape) != shape:
        raise DamagedFileError(f"{where} has shape {tuple(weight.shape)}, not {shape}")
    if not weight.is_floating_point():
        raise DamagedFileError(f"{where} has the type {weight.dtype}")
