"""Damaged files of the feature cache are computed anew, and a full disk is an error."""

import errno
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.commands import Command, put_task
from support.small_texts import SmallTask, everything_under

from newfound.encoding.array_files import HEADER, new_array, read_array, release, scratch_array
from newfound.encoding.batching import tokenize
from newfound.encoding.feature_cache import Inputs, run_frozen
from newfound.encoding.feature_maps import EncoderFeatures
from newfound.encoding.loading import load_encoder
from newfound.errors import InputError

TEXTS = ["lost my card", "pay the bill please", "play a loud song", "rain"]


def flip(content: bytes) -> bytes:
    return content[:-3] + bytes([content[-3] ^ 1]) + content[-2:]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "header only": lambda content: content[:HEADER],
    "truncated": lambda content: content[:-10],
    "longer": lambda content: content + b"\0",
    "one bit": flip,
    "zeros": lambda content: content[:HEADER] + bytes(len(content) - HEADER),
    "another file": lambda content: b"x" * len(content),
}


def frozen(model: EncoderFeatures, folder: Path, notes: list[str], **options: Any) -> Inputs:
    tokens = tokenize(model.encoder.tokenizer, TEXTS, 16)
    return run_frozen(model, tokens, folder=folder, note=notes.append, **options)


@pytest.mark.parametrize("damage", [*DAMAGES, "pipe", "folder"])
@pytest.mark.parametrize("memory_limit", [2**30, 0])
def test_damaged_cache_is_noted_and_computed_again(
    tiny_encoder: str, tmp_path: Path, damage: str, memory_limit: int
) -> None:
    model = EncoderFeatures(load_encoder(tiny_encoder), frozen_layers=3)
    notes: list[str] = []
    wanted = frozen(model, tmp_path, notes).states
    (kept,) = tmp_path.iterdir()
    content = kept.read_bytes()
    if damage in DAMAGES:
        kept.write_bytes(DAMAGES[damage](content))
    else:
        kept.unlink()
        kept.mkdir() if damage == "folder" else os.mkfifo(kept)
    assert not notes
    if damage == "folder":  # it is not ours to remove
        with pytest.raises(InputError, match="cannot write"):
            frozen(model, tmp_path, notes, memory_limit=memory_limit)
        return
    found = frozen(model, tmp_path, notes, memory_limit=memory_limit).states
    assert isinstance(found, torch.Tensor)
    assert isinstance(wanted, torch.Tensor)
    assert torch.equal(found, wanted)
    assert len(notes) == 1
    assert f"{kept} is damaged" in notes[0]
    assert kept.read_bytes() == content
    frozen(model, tmp_path, notes, memory_limit=memory_limit)
    assert len(notes) == 1


@pytest.mark.parametrize("in_memory", [True, False])
def test_full_disk_is_found_before_the_values_are_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_memory: bool
) -> None:
    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with (
        pytest.raises(InputError, match=r"cannot write .*No space left on device"),
        new_array(tmp_path / "a.features", (3, 4), in_memory=in_memory),
    ):
        raise AssertionError("the space was not reserved first")
    assert everything_under(tmp_path) == set()
    with pytest.raises(InputError, match=r"cannot write a temporary file of .* GB in .*TMPDIR"):
        scratch_array((3, 4))


def test_space_is_reserved_without_fallocate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "posix_fallocate")
    values = np.arange(12, dtype=np.float16).reshape(3, 4)
    for in_memory in (True, False):
        with new_array(tmp_path / "a", (3, 4), in_memory=in_memory) as new:
            new[:] = values
        for again in (True, False):
            found = read_array(tmp_path / "a", (3, 4), in_memory=again)
            assert found is not None
            assert (found == values).all()
    assert read_array(tmp_path / "a", (4, 4), in_memory=True) is None
    assert read_array(tmp_path / "b", (3, 4), in_memory=True) is None


FILL = """
import sys
from pathlib import Path
from newfound.encoding.array_files import new_array
from newfound.errors import InputError
try:
    with new_array(Path(sys.argv[1]), (4096, 256), in_memory=False) as values:
        values[:] = 1
except InputError as error:
    sys.exit(str(error))
"""


def test_full_disk_under_a_memory_map_does_not_kill_the_process(tmp_path: Path) -> None:
    """A limit on file sizes stands in for a full disk."""
    done = subprocess.run(
        [sys.executable, "-c", FILL, str(tmp_path / "a.features")],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20)),
    )
    assert done.returncode not in (-signal.SIGBUS, 128 + signal.SIGBUS)
    assert done.stderr.startswith("cannot write")
    assert everything_under(tmp_path) == set()


def test_damaged_cache_is_noted_in_the_run(
    command: Command, task: SmallTask, flags: list[str], tmp_path: Path
) -> None:
    """Both the features and the pretrained weights."""
    table = put_task(tmp_path / "t.csv", task)
    shared = ["--categories", "4", "--cache", tmp_path / "cache", *flags, "--force"]
    assert command("discover", table, "-o", tmp_path / "run", *shared).code == 0
    wanted = (tmp_path / "run" / "assignments.csv").read_bytes()
    kept = [path for path in (tmp_path / "cache").iterdir() if path.suffix != ".json"]
    assert {path.suffix for path in kept} == {".features", ".safetensors"}
    for path in kept:
        path.write_bytes(path.read_bytes()[:-7])
    done = command("discover", table, "-o", tmp_path / "run", *shared)
    assert done.code == 0, done.err
    for path in kept:
        assert f"note: {path} is damaged" in done.err
    assert (tmp_path / "run" / "assignments.csv").read_bytes() == wanted
    done = command("discover", table, "-o", tmp_path / "run", *shared)
    assert "is damaged" not in done.err
    beside = [path for path in (tmp_path / "cache").iterdir() if path.suffix == ".json"]
    assert beside
    for content in (b"", b"[1, 2", b"null", b'{"history": 3}'):
        for path in beside:
            path.write_bytes(content)
        done = command("discover", table, "-o", tmp_path / "run", *shared)
        assert done.code == 0, done.err
        for path in beside:
            weights = path.with_suffix(".safetensors")
            assert f"note: {weights} is damaged" in done.err, content
        assert (tmp_path / "run" / "assignments.csv").read_bytes() == wanted
    (tmp_path / "cache" / kept[0].name).write_bytes(b"")
    done = command("estimate", table, "--cache", tmp_path / "cache", *flags)
    assert done.code == 0


def resident() -> int:
    """Return the resident memory of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
def test_the_memory_of_a_memory_map_can_be_freed_without_losing_a_value() -> None:
    values = scratch_array((64_000, 512))  # 64 MB
    before = resident()
    values[:] = 3
    assert resident() - before > 60e6
    release(values[:10])  # a view is enough
    assert resident() - before < 5e6
    assert (values == 3).all()
    held = np.full(3, 2.0)
    release(held)
    assert held.tolist() == [2, 2, 2]
