"""A piece of work on disk: JSON and tensors with checksums, and the random state of torch."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from newfound.errors import DamagedFileError, reason

if TYPE_CHECKING:  # torch is slow to import, and `newfound info` does without
    from torch import Tensor

RANDOM = "random state "  # start of the names of the tensors that hold random states
SHORT = 16  # characters of a checksum in the name of a file


@dataclass(frozen=True, eq=False)
class Kept:
    """A piece of work: a value for JSON, and tensors by name."""

    value: Any = None
    tensors: "Mapping[str, Tensor]" = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Bytes of the tensors."""
        return sum(tensor.numel() * tensor.element_size() for tensor in self.tensors.values())


def write_piece(folder: Path, key: str, kept: Kept, fingerprint: str) -> None:
    """Write a piece of work, in place of an earlier one.

    KEY.checkpoint names the file with the tensors and is replaced last, so that there is always
    one complete piece. Raises OSError if the folder cannot be written.
    """
    tensors: dict[str, Any] = {}
    if kept.tensors:
        from safetensors import SafetensorError
        from safetensors.torch import save_file

        # In a folder of its own: safetensors writes under a name that only it knows.
        part = folder / f"{key}.{os.getpid()}.part"
        part.mkdir(exist_ok=True)
        written = part / "tensors"
        try:
            save_file({n: t.detach().cpu().contiguous() for n, t in kept.tensors.items()}, written)
        except SafetensorError as error:  # for example a full disk
            raise OSError(reason(error)) from error
        checksum = _file_digest(written)
        tensors = {"file": f"{key}-{checksum[:SHORT]}.safetensors", "sha256": checksum}
        tensors["names"] = list(kept.tensors)  # in their order, which safetensors does not keep
        os.replace(written, folder / tensors["file"])
        part.rmdir()
    body = {"fingerprint": fingerprint, "value": kept.value, "tensors": tensors}
    text = json.dumps(body).encode()
    content = hashlib.sha256(text).hexdigest().encode() + b"\n" + text
    replace_file(folder / f"{key}.checkpoint", content)
    for old in folder.glob(f"{key}-{'?' * SHORT}.safetensors"):
        if old.name != tensors.get("file"):
            old.unlink(missing_ok=True)


def read_piece(folder: Path, key: str, fingerprint: str) -> Kept | None:
    """Read a piece of work; None if there is none, DamagedFileError if it cannot be used."""
    path = folder / f"{key}.checkpoint"
    if not path.is_file():
        return None
    try:
        checksum, _, text = path.read_bytes().partition(b"\n")
        if hashlib.sha256(text).hexdigest().encode() != checksum:
            raise DamagedFileError(f"{path.name}: the checksum does not match")
        body = json.loads(text)
        if body["fingerprint"] != fingerprint:
            raise DamagedFileError(f"{path.name} belongs to another run")
        if not body["tensors"]:
            return Kept(body["value"])
        from safetensors.torch import load_file

        tensors = folder / body["tensors"]["file"]
        if _file_digest(tensors) != body["tensors"]["sha256"]:
            raise DamagedFileError(f"{tensors.name}: the checksum does not match")
        found = load_file(tensors)
        return Kept(body["value"], {name: found[name] for name in body["tensors"]["names"]})
    except OSError as error:
        raise DamagedFileError(f"{path.name}: {reason(error)}") from error


def replace_file(path: Path, content: bytes) -> None:
    """Write a file under another name and rename it."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_bytes(content)
    os.replace(part, path)


def _file_digest(path: Path) -> str:
    """Return the sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def with_random_state(kept: Kept) -> Kept:
    """Return the work with the random state of torch on the CPU and on each GPU."""
    import torch

    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_initialized():
        states |= {f"cuda:{i}": s for i, s in enumerate(torch.cuda.get_rng_state_all())}
    named = {f"{RANDOM}{device}": state for device, state in states.items()}
    return Kept(kept.value, {**kept.tensors, **named})


def set_random_state(kept: Kept) -> Kept:
    """Set the random state that was kept with the work; return the work without it."""
    import torch

    tensors = {}
    for name, tensor in kept.tensors.items():
        if not name.startswith(RANDOM):
            tensors[name] = tensor
            continue
        device = torch.device(name.removeprefix(RANDOM))
        if device.type == "cpu":
            torch.set_rng_state(tensor)
        else:
            torch.cuda.set_rng_state(tensor, device)
    return Kept(kept.value, tensors)
