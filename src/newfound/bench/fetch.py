"""Download the data sets of the paper from the repository of its authors."""

import hashlib
import http.client
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path

from newfound.errors import InputError

HOME = "https://raw.githubusercontent.com/Lackel/DPN/HEAD/data"
# sha256 of the files that the results in `benchmarks` were measured on.
FILES: dict[str, str] = {
    "banking/train.tsv": "ed07418e59a34b76baad3dc697f3ede12139cd8f56e7a746fb38ab78d2b4d196",
    "banking/dev.tsv": "b808b9f0b01574ca30d233fa690f43b8c44899a0ce1a737be66b06e1132802a7",
    "banking/test.tsv": "684f0b9df082f50ae78243fd56b99d5c8f7debbbfb7086d6df9c5d08ced7d574",
    "stackoverflow/train.tsv": "9b5eeaf8ffa9f16b692684419695d7b8f2d093e9da9528658fe631ac026fc28d",
    "stackoverflow/dev.tsv": "4c02e8d422e3db998b95e8af49fbae59443e6c2617b3d4c9279aaa7705434921",
    "stackoverflow/test.tsv": "08a8bd2e82cef0a5b61715687953302abaa9fb43a17f847e260b15ae5fdadc8c",
    "clinc/train.tsv": "927bbeacbe134c524d1967196c3209d7e7fcd76e8de9ff24e43dc76ed5400dad",
    "clinc/dev.tsv": "f5ec4e85abfb84b377bd0fcecafd60de8e1ff111f48b3680226c0dad1511f2d5",
    "clinc/test.tsv": "a056d1e4981d36c783cbee0dd6d055b48537a5eaca94b2cf44b34b1df83a1684",
}
CHUNK = 64 * 1024
TRIES = 4  # connections per file before giving up
TIMEOUT = 30.0  # seconds without a response

Tell = Callable[[str], None]


def fetch(
    folder: Path,
    *,
    home: str = HOME,
    files: Mapping[str, str] = FILES,
    tell: Tell | None = None,
) -> dict[str, str]:
    """Download every file that is missing or damaged.

    Parameters
    ----------
    folder : Path
        Where the files go.
    home : str
        Base URL of the files.
    files : mapping of str to str
        The sha256 of every file, by its path below `home` and below `folder`.
    tell : callable, optional
        Called with progress messages; by default they are printed to standard error.

    Returns
    -------
    dict
        For every file "kept" or "fetched".
    """
    tell = tell or _tell
    done = {}
    for number, (name, expected) in enumerate(files.items(), 1):
        path = folder / name
        title = f"[{number}/{len(files)}] {name}"
        if path.is_file() and sha256(path) == expected:
            tell(f"{title}: present\n")
            done[name] = "kept"
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            size = _fetch_file(f"{home.rstrip('/')}/{name}", path, expected, title, tell)
        except OSError as error:  # of the disk; errors of the network are caught below
            raise InputError(
                f"cannot write {path}: {error.strerror or error}; free space or choose another "
                "folder"
            ) from error
        tell(f"{title}: {size:,} bytes\n")
        done[name] = "fetched"
    return done


def sha256(path: Path) -> str:
    """Return the checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fetch_file(url: str, path: Path, expected: str, title: str, tell: Tell) -> int:
    """Download to a .part file, resume an earlier try, and rename the file if it is complete."""
    part = path.with_name(path.name + ".part")
    resumed = part.is_file()
    _download(url, part, title, tell)
    found = sha256(part)
    if found != expected and resumed:
        # The earlier part may belong to another file, so start again.
        part.unlink()
        _download(url, part, title, tell)
        found = sha256(part)
    if found != expected:
        part.unlink()
        raise InputError(
            f"{url} is damaged or another version (sha256 {found[:12]}..., not "
            f"{expected[:12]}...); try again later or give another base URL with --from"
        )
    os.replace(part, path)
    return path.stat().st_size


def _download(url: str, part: Path, title: str, tell: Tell) -> None:
    """Download all bytes of `url` to `part`; resume if the connection breaks."""
    reason = "the connection ended too early"
    for _ in range(TRIES):
        try:
            if _one_connection(url, part, title, tell):
                return
        except urllib.error.HTTPError as error:
            raise InputError(
                f"cannot download {url} (the server answers {error.code} {error.reason}); give "
                "another base URL with --from"
            ) from error
        except _Unreachable as error:
            reason = str(error)
            if not part.is_file():
                break  # nothing was received, so another try will not help
    raise InputError(
        f"cannot download {url} ({reason}); check the network and run the command again: it "
        "resumes where it stopped"
    )


class _Unreachable(Exception):
    """The network failed, not the disk."""


def _one_connection(url: str, part: Path, title: str, tell: Tell) -> bool:
    """Append what one connection delivers to `part`; return True if the file is complete."""
    have = part.stat().st_size if part.is_file() else 0
    request = urllib.request.Request(url)
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code != 416 or not have:
            raise
        error.close()
        # The server has no more bytes: the file is complete, or it is another file.
        return True
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _Unreachable(getattr(error, "reason", None) or error) from error
    with response:
        if have and not _continues(response, have):
            have = 0  # the server sends the whole file
        length = response.headers.get("Content-Length")
        total = have + int(length) if length else None
        with part.open("ab" if have else "wb") as file:
            while chunk := _read(response):
                file.write(chunk)
                have += len(chunk)
                of = f" of {total:,}" if total else ""
                tell(f"\r{title}: {have:,}{of} bytes")
    tell("\r\x1b[K")
    return total is None or have >= total


def _continues(response: http.client.HTTPResponse, have: int) -> bool:
    """Return True if the response starts right after the first `have` bytes."""
    return response.status == 206 and response.headers.get("Content-Range", "").startswith(
        f"bytes {have}-"
    )


def _read(response: http.client.HTTPResponse) -> bytes:
    """Return the next chunk of a response; an error of the network raises _Unreachable."""
    try:
        return response.read(CHUNK)
    except (OSError, http.client.HTTPException) as error:
        raise _Unreachable(error) from error


def _tell(text: str) -> None:
    """Print progress to standard error; counts of bytes only on a terminal."""
    if not text.startswith("\r") or sys.stderr.isatty():
        print(text, end="", file=sys.stderr, flush=True)
