"""Trained weights in the cache: a safetensors file, and a JSON file with its sha256."""

import hashlib
from pathlib import Path
from typing import Any

from safetensors.torch import save
from torch import nn

from newfound.encoding.weights import load_weights, parse_tensors
from newfound.errors import DamagedFileError, InputError
from newfound.files import (
    check_fields,
    check_items,
    read_json,
    read_regular,
    write_atomically,
    write_json,
)
from newfound.progress import Stages


def read_cached_weights(
    kept: Path, module: nn.Module, stages: Stages
) -> list[dict[str, Any]] | None:
    """Load cached weights into a module and return their history; None if there are none.

    Damaged files are reported in a note of the run.
    """
    if not kept.with_suffix(".json").is_file():
        return None
    try:
        about = read_json(kept.with_suffix(".json"), dict)
        check_fields(about, {"sha256": str, "history": list}, "it")
        check_items(about["history"], dict, "its history")
        content = read_regular(kept.with_suffix(".safetensors"))
        if hashlib.sha256(content).hexdigest() != about["sha256"]:
            raise DamagedFileError("its checksum does not match")
        load_weights(module, parse_tensors(content, "it"), "it")
    except (DamagedFileError, FileNotFoundError) as error:
        why = error if isinstance(error, DamagedFileError) else "it is missing"
        stages.note(
            f"{kept.with_suffix('.safetensors')} is damaged ({why}), so it is trained again"
        )
        return None
    history: list[dict[str, Any]] = about["history"]
    return history


def write_cached_weights(kept: Path, module: nn.Module, history: list[dict[str, Any]]) -> None:
    """Write the weights of a module and their history to the cache."""
    content = save({k: v.cpu().contiguous() for k, v in module.state_dict().items()})
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot create the cache folder {kept.parent}: {error.strerror or error}"
        ) from error
    with write_atomically(kept.with_suffix(".safetensors")) as temporary:
        temporary.write_bytes(content)
    # Written last: without it, the weights are not found.
    about = {"sha256": hashlib.sha256(content).hexdigest(), "history": history}
    write_json(kept.with_suffix(".json"), about)
