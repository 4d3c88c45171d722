"""Take screenshots of the report and of the review for the documents, from a run folder.

    python scripts/screenshots.py RUN [--out docs/images]

writes report-light.png, report-dark.png, review-light.png and review-dark.png. It needs chromium
(on Debian: apt-get install chromium).
"""

import argparse
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from newfound.errors import InputError
from newfound.report import write_report
from newfound.storage.run_folder import read_run

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    # Virtual time, so that the page is complete however slow the machine is.
    "--virtual-time-budget=3000",
)
# Blink's numbers of the colour schemes.
SCHEMES = {"light": 1, "dark": 0}
REVIEW_HEIGHT = 1080


def find_chromium() -> str:
    """Return the path of an installed chromium."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path:
            return path
    raise InputError("chromium is not installed: on Debian or Ubuntu, apt-get install chromium")


def take(chromium: str, address: str, out: Path, scheme: str, width: int, height: int) -> None:
    """Write a screenshot of the page at an address to `out`."""
    with tempfile.TemporaryDirectory() as profile:
        command = [
            chromium,
            *FLAGS,
            f"--user-data-dir={profile}",
            f"--window-size={width},{height}",
            f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}",
            f"--screenshot={out}",
            address,
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0 or not out.exists():
        raise InputError(f"chromium took no screenshot of {address}: {done.stderr.strip()[-500:]}")


def take_review(chromium: str, address: str, out: Path, width: int) -> Iterator[Path]:
    """Write screenshots of the first question of a review, which the page has scrolled to."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from support.browser import Browser

    with tempfile.TemporaryDirectory() as profile:
        browser = Browser(chromium, Path(profile))
        browser.size(width, REVIEW_HEIGHT)
        for scheme in SCHEMES:
            browser.prefer(scheme)
            browser.call("Page.navigate", url="about:blank")
            browser.call("Page.navigate", url=address)
            browser.wait("document.documentElement?.dataset.review === 'ready'")
            browser.run("document.documentElement.style.scrollBehavior = 'auto'")
            browser.run("document.getElementById('map').scrollIntoView()")
            browser.run("new Promise(done => setTimeout(done, 300))")
            picture = (out / f"review-{scheme}.png").resolve()
            browser.picture(picture)
            yield picture
        browser.close()


@contextmanager
def review(folder: Path) -> Iterator[str]:
    """Serve the review of a run, and yield the address of its first question."""
    import uvicorn

    from newfound.review.server import make_app
    from newfound.review.session import Session

    session, token = Session(folder, "you"), secrets.token_urlsafe(16)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        config = uvicorn.Config(make_app(session, token, port), log_level="warning")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{port}/?token={token}#question"
        finally:
            server.should_exit = True
            thread.join()


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", type=Path, help="folder that `newfound discover` wrote")
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--height", type=int, default=1920)
    options = parser.parse_args()
    try:
        chromium = find_chromium()
        options.out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            page = write_report(
                read_run(options.run), Path(folder) / "report.html", name=str(options.run)
            ).resolve()
            for scheme in SCHEMES:
                picture = (options.out / f"report-{scheme}.png").resolve()
                picture.unlink(missing_ok=True)
                take(chromium, page.as_uri(), picture, scheme, options.width, options.height)
                print(picture)
            with review(options.run) as address:
                for picture in take_review(chromium, address, options.out, options.width):
                    print(picture)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
