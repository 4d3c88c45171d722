"""The HTML report of a result."""

from pathlib import Path

from newfound.checking.check import Check
from newfound.files import write_text
from newfound.report.data import prepare
from newfound.report.page import page
from newfound.result import Result

__all__ = ["write_report"]


def write_report(
    result: Result, path: Path, *, name: str = "RUN", check: Check | None = None
) -> Path:
    """Write the report of a result: one HTML file that opens without a network.

    Parameters
    ----------
    result : Result
        The result of a discovery, or one from `newfound.storage.run_folder.read_run`; both give
        the same page.
    path : Path
        File to write.
    name : str, default "RUN"
        Name of the run folder in the commands on the page.
    check : Check, optional
        Result of `newfound.checking.runner.check` on the same table, to show on the page.

    Returns
    -------
    Path
        `path`.
    """
    write_text(path, page(prepare(result, name, check)))
    return path
