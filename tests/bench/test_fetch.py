"""Downloads, against a server on this machine that can misbehave."""

import hashlib
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from newfound.bench.fetch import FILES, fetch, sha256
from newfound.cli.main import main
from newfound.errors import InputError

CONTENT = bytes(range(256)) * 2000  # several chunks
NAME = "banking/train.tsv"


class Handler(BaseHTTPRequestHandler):
    server: "Server"

    def do_GET(self) -> None:
        server = self.server
        content = server.files.get(self.path.removeprefix("/data/"))
        asked = self.headers.get("Range")
        server.asked.append((self.path, asked))
        if content is None:
            self.send_error(404)
            return
        start = 0
        if asked and server.ranges:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            if start >= len(content):
                self.send_error(416)
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        end = len(content)
        if server.breaks:
            end = start + server.breaks.pop(0)
        self.wfile.write(content[start:end])  # the connection closes here, complete or not

    def log_message(self, *arguments: Any) -> None:
        pass


class Server(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {NAME: CONTENT}
        self.asked: list[tuple[str, str | None]] = []
        self.ranges = True
        self.breaks: list[int] = []  # bytes that each of the next connections sends

    @property
    def home(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/data/"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "*")
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield running
        running.shutdown()


def checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def get(server: Server, folder: Path, content: bytes = CONTENT) -> dict[str, str]:
    return fetch(folder, home=server.home, files={NAME: checksum(content)}, tell=lambda _: None)


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


def test_files_are_downloaded_once(server: Server, tmp_path: Path) -> None:
    assert get(server, tmp_path) == {NAME: "fetched"}
    assert (tmp_path / NAME).read_bytes() == CONTENT
    assert get(server, tmp_path) == {NAME: "kept"}
    assert server.asked == [(f"/data/{NAME}", None)]
    assert left(tmp_path) == {"train.tsv"}


def test_damaged_copy_is_downloaded_again(server: Server, tmp_path: Path) -> None:
    (tmp_path / "banking").mkdir()
    (tmp_path / NAME).write_bytes(CONTENT[:-1] + b"x")
    assert get(server, tmp_path) == {NAME: "fetched"}
    assert (tmp_path / NAME).read_bytes() == CONTENT


@pytest.mark.parametrize("ranges", [True, False])
def test_partial_download_is_resumed(server: Server, tmp_path: Path, ranges: bool) -> None:
    server.ranges = ranges
    (tmp_path / "banking").mkdir()
    (tmp_path / f"{NAME}.part").write_bytes(CONTENT[:1000])
    get(server, tmp_path)
    assert (tmp_path / NAME).read_bytes() == CONTENT
    assert server.asked == [(f"/data/{NAME}", "bytes=1000-")]
    assert left(tmp_path) == {"train.tsv"}


def test_partial_download_of_another_file_is_discarded(server: Server, tmp_path: Path) -> None:
    (tmp_path / "banking").mkdir()
    for wrong in (b"x" * 1000, b"x" * 2 * len(CONTENT)):
        (tmp_path / f"{NAME}.part").write_bytes(wrong)
        (tmp_path / NAME).unlink(missing_ok=True)
        get(server, tmp_path)
        assert (tmp_path / NAME).read_bytes() == CONTENT


def test_complete_part_is_not_downloaded_again(server: Server, tmp_path: Path) -> None:
    (tmp_path / "banking").mkdir()
    (tmp_path / f"{NAME}.part").write_bytes(CONTENT)
    get(server, tmp_path)
    assert (tmp_path / NAME).read_bytes() == CONTENT
    assert server.asked == [(f"/data/{NAME}", f"bytes={len(CONTENT)}-")]


@pytest.mark.parametrize("ranges", [True, False])
def test_broken_connection_is_resumed(server: Server, tmp_path: Path, ranges: bool) -> None:
    server.ranges, server.breaks = ranges, [100_000, 50_000]
    get(server, tmp_path)
    assert (tmp_path / NAME).read_bytes() == CONTENT
    starts = [asked for _, asked in server.asked]
    second = "bytes=150000-" if ranges else "bytes=50000-"
    assert starts == [None, "bytes=100000-", second]


def test_partial_download_is_kept_when_the_network_fails(server: Server, tmp_path: Path) -> None:
    server.breaks = [1000] * 4
    with pytest.raises(InputError, match="resumes where it stopped"):
        get(server, tmp_path)
    assert not (tmp_path / NAME).exists()
    assert (tmp_path / f"{NAME}.part").read_bytes() == CONTENT[:4000]
    get(server, tmp_path)
    assert (tmp_path / NAME).read_bytes() == CONTENT


def test_wrong_checksum_is_an_error(server: Server, tmp_path: Path) -> None:
    (tmp_path / "banking").mkdir()
    (tmp_path / NAME).write_bytes(b"older")
    with pytest.raises(InputError, match="damaged or another version"):
        get(server, tmp_path, content=CONTENT[::-1])
    assert left(tmp_path) == {"train.tsv"}
    assert (tmp_path / NAME).read_bytes() == b"older"


def test_missing_file_is_an_error(server: Server, tmp_path: Path) -> None:
    server.files.clear()
    with pytest.raises(InputError, match="404"):
        get(server, tmp_path)


def test_command_without_network_prints_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with socket.socket() as closed:  # bound, but nobody listens
        closed.bind(("127.0.0.1", 0))
        home = f"http://127.0.0.1:{closed.getsockname()[1]}"
        code = main(["bench", "fetch", "--data", str(tmp_path), "--from", home])
    assert code == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert "cannot download" in lines[0]
    assert "check the network" in lines[0]
    assert left(tmp_path) == set()


def test_unwritable_folder_is_an_error(server: Server, tmp_path: Path) -> None:
    (tmp_path / "banking").write_text("a file where a folder must be")
    with pytest.raises(InputError, match="cannot write"):
        get(server, tmp_path)


def test_checksums_match_the_papers_files(paper_data: Path) -> None:
    assert len(FILES) == 9
    assert {name: sha256(paper_data / name) for name in FILES} == FILES
