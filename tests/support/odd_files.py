"""Odd things in place of files: what readers must refuse in one sentence."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Change = Callable[[Path], Any]


@pytest.fixture(autouse=True)
def no_hang() -> Iterator[None]:
    """Fail a test that waits for somebody to write into a pipe."""

    def late(*_: Any) -> None:
        raise TimeoutError("the encoder was not refused in time")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


# What is at the place of a file.


def as_folder(path: Path) -> None:
    path.mkdir()


def as_loop(path: Path) -> None:
    path.symlink_to(path.name)


def as_dangling_link(path: Path) -> None:
    path.symlink_to("nowhere")


def as_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def as_terminal(path: Path) -> None:
    path.symlink_to("/dev/null")


def as_text(content: bytes) -> Change:
    return lambda path: path.write_bytes(content)


PLACES: dict[str, Change] = {
    "pipe": os.mkfifo,
    "folder": as_folder,
    "link to itself": as_loop,
    "link to nowhere": as_dangling_link,
    "endless device": as_device,
    "empty device": as_terminal,
    "empty file": as_text(b""),
    "NUL characters": as_text(bytes(1000)),
    "not UTF-8": as_text(b"\xff\xfe\xfa{}"),
    "a list": as_text(b"[1, 2]"),
    "a number": as_text(b"7"),
    "deep nesting": as_text(b"[" * 100_000),
    "a huge number": as_text(b'{"model_type": ' + b"9" * 10_000 + b"}"),
    "a web page": as_text(b"<!doctype html><title>404</title>"),
    "a Git LFS pointer": as_text(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n"),
}


def raw(header: Any, data: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def tensor(start: int, stop: int, shape: list[int], kind: str = "F32") -> dict[str, Any]:
    return {"dtype": kind, "shape": shape, "data_offsets": [start, stop]}


LYING: dict[str, bytes] = {
    "length beyond the file": raw({}, length=2**62),
    "length of zero": raw({}, length=0),
    "negative length": b"\xff" * 8 + b"{}",
    "seven bytes": b"\1" * 7,
    "no tensors": raw({}),
    "list": raw([]),
    "text": raw(b'"x"'),
    "not JSON": raw(b"{no}"),
    "offsets beyond the file": raw({"a": tensor(0, 400, [100])}, b"\0" * 4),
    "offsets backwards": raw({"a": tensor(4, 0, [1])}, b"\0" * 4),
    "overlap": raw({"a": tensor(0, 4, [1]), "b": tensor(0, 4, [1])}, b"\0" * 4),
    "hole": raw({"a": tensor(4, 8, [1])}, b"\0" * 8),
    "shape of another size": raw({"a": tensor(0, 4, [7])}, b"\0" * 4),
    "negative shape": raw({"a": tensor(0, 4, [-1])}, b"\0" * 4),
    "huge shape": raw({"a": tensor(0, 4, [2**62, 2**62])}, b"\0" * 4),
    "unknown type": raw({"a": tensor(0, 4, [1], "F31")}, b"\0" * 4),
    "type without arithmetic": raw({"a": tensor(0, 4, [4], "F8_E4M3")}, b"\0" * 4),
    "complex": raw({"a": tensor(0, 8, [1], "C64")}, b"\0" * 8),
    "type that is a list": raw({"a": {**tensor(0, 4, [1]), "dtype": ["F32"]}}, b"\0" * 4),
    "entry that is a number": raw({"a": 3}),
    "metadata that is a number": raw({"__metadata__": 3}),
    "deep header": raw(b"[" * 50_000),
}
