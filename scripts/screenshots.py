"""Take screenshots of the report for the README, from a run folder.

    python scripts/screenshots.py RUN [--out docs/images]

writes report-light.png and report-dark.png. It needs chromium (on Debian: apt-get install
chromium).
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
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


def find_chromium() -> str:
    """Return the path of an installed chromium."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path:
            return path
    raise InputError("chromium is not installed: on Debian or Ubuntu, apt-get install chromium")


def take(chromium: str, page: Path, out: Path, scheme: str, width: int, height: int) -> None:
    """Write a screenshot of the top of `page` to `out`."""
    with tempfile.TemporaryDirectory() as profile:
        command = [
            chromium,
            *FLAGS,
            f"--user-data-dir={profile}",
            f"--window-size={width},{height}",
            f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}",
            f"--screenshot={out}",
            page.as_uri(),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0 or not out.exists():
        raise InputError(f"chromium took no screenshot of {page}: {done.stderr.strip()[-500:]}")


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
                take(chromium, page, picture, scheme, options.width, options.height)
                print(picture)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
