"""The command `python -m benchmarks.rendering`, run in the root of the repository."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from newfound.errors import InputError

BENCHMARKS = Path("benchmarks")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.rendering",
        description="Render tables and figures from the result lines in benchmarks/.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument(
        "what",
        choices=("tables", "figures"),
        help="tables: write the Markdown pages of tables and update other pages that show one; "
        "figures: write PNG and SVG files (needs matplotlib)",
    )
    parser.add_argument(
        "--benchmarks",
        metavar="FOLDER",
        type=Path,
        default=BENCHMARKS,
        help="folder with results, ablations, search and artefacts; the output goes there as well",
    )
    options = parser.parse_args(arguments)
    try:
        return {"tables": tables, "figures": figures}[options.what](options.benchmarks)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def tables(benchmarks: Path) -> int:
    """Write all tables and print the paths of the pages."""
    from benchmarks.rendering.pages import write_pages

    for path in write_pages(benchmarks):
        print(path)
    return 0


def figures(benchmarks: Path) -> int:
    """Draw all figures and print their paths."""
    from benchmarks.rendering.figures import draw_all

    written, missing = draw_all(
        benchmarks / "results", benchmarks / "artefacts", benchmarks / "figures"
    )
    for path in written:
        print(path)
    for name in missing:
        print(f"{name}: skipped, because there are no runs for it", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
