"""The report: one HTML file that shows what was found."""

from pathlib import Path

from newfound.files import write_text
from newfound.report.data import prepare
from newfound.report.page import page
from newfound.report.run import read_run

__all__ = ["write_report"]


def write_report(run: Path, out: Path | None = None, name: str | None = None) -> Path:
    """Write the report of the run in folder `run` to `out`, else to report.html in the folder.

    `name` is what the commands on the page call the folder; give it where the folder will be
    moved once it is complete.
    """
    path = run / "report.html" if out is None else out
    write_text(path, page(prepare(read_run(run, name))))
    return path
