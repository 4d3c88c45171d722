"""Read safetensors, and load weights into a module after checking names, shapes and values."""

import json
import math
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from newfound.errors import DamagedFileError
from newfound.files import check_fields, check_items, open_regular

TYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}


def parse_tensors(content: bytes, where: str) -> dict[str, Tensor]:
    """Return the tensors in the content of a safetensors file, or raise DamagedFileError.

    The tensors share the memory of `content`: they must be copied to be kept or changed. The
    library's own reader of bytes copies every tensor, and its reader of files maps them into memory
    by name, so that what it reads need not be what was checked.
    """
    entries = _entries(content, where)
    start = 8 + int.from_bytes(content[:8], "little")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of memory that cannot be written to
        data = torch.frombuffer(content, dtype=torch.uint8)[start:]
    found = {}
    end = 0
    for name, (kind, shape, first, last) in sorted(entries.items(), key=lambda item: item[1][2:]):
        if first != end or last > len(data) or last - first != math.prod(shape) * kind.itemsize:
            raise DamagedFileError(f"{where}: the size of {name[:80]} does not match its data")
        part, end = data[first:last], last
        aligned = part if (start + first) % kind.itemsize == 0 else part.clone()
        found[name] = aligned.view(kind).view(shape)
    if end != len(data):
        raise DamagedFileError(f"{where} has data that belong to no tensor")
    return found


def _entries(
    content: bytes, where: str
) -> dict[str, tuple[torch.dtype, tuple[int, ...], int, int]]:
    """Return the type, the shape and the place of each tensor from the header of a file."""
    found = {}
    for name, entry in _header(content, where).items():
        if name == "__metadata__":
            check_fields({name: entry}, {name: dict}, where)
            continue
        check_fields(entry, {"dtype": str, "shape": list, "data_offsets": list}, where)
        check_items(entry["shape"] + entry["data_offsets"], int, where)
        if entry["dtype"] not in TYPES:
            raise DamagedFileError(f"{where}: {name[:80]} has the type {entry['dtype'][:20]!r}")
        if len(entry["data_offsets"]) != 2 or min(entry["shape"], default=0) < 0:
            raise DamagedFileError(f"{where} has no valid header")
        found[name] = (TYPES[entry["dtype"]], tuple(entry["shape"]), *entry["data_offsets"])
    return found


def parse_arrays(content: bytes, where: str) -> dict[str, np.ndarray]:
    """Return the arrays in the content of a safetensors file, or raise DamagedFileError."""
    tensors = parse_tensors(content, where)
    if any(tensor.dtype == torch.bfloat16 for tensor in tensors.values()):
        raise DamagedFileError(f"{where} has a type that numpy does not have")
    return {name: tensor.numpy().copy() for name, tensor in tensors.items()}


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
