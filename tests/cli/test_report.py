"""`newfound report`: the report of a run again, or elsewhere."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.commands import Command, Refuse

from newfound import report
from newfound.cli.main import main


def test_report_replaces_its_own_file_but_no_other(
    command: Command, refuse: Refuse, small_run: Path, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(small_run, tmp_path / "run"))
    assert command("report", run).code == 0
    first = (run / "report.html").read_text()
    (run / "report.html").unlink()
    assert command("report", run).out == f"Open {run / 'report.html'}\n"
    assert (run / "report.html").read_text() == first
    other = tmp_path / "other.html"
    assert command("report", run, "-o", other).code == 0
    assert other.read_text() == first
    other.write_text("mine")
    assert "--force" in refuse("report", run, "-o", other)
    assert command("report", run, "-o", other, "--force").code == 0
    assert other.read_text() == first
    assert str(tmp_path / "nothing") in refuse("report", tmp_path / "nothing")


def test_report_prints_json(command: Command, small_run: Path, tmp_path: Path) -> None:
    done = command("report", small_run, "-o", tmp_path / "r.html", "--json")
    assert json.loads(done.out) == {"run": str(small_run), "report": str(tmp_path / "r.html")}
    assert done.err == ""


def test_report_is_not_put_into_another_run(
    small_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Path(shutil.copytree(small_run, tmp_path / "run"))
    other = Path(shutil.copytree(small_run, tmp_path / "other"))
    manifest = other / "manifest.json"
    manifest.write_text(manifest.read_text() + "\n")
    (other / "report.html").write_text("of the other run")
    original = report.page

    def replaced_meanwhile(data: Any) -> str:
        run.rename(tmp_path / "old")
        other.rename(run)
        (tmp_path / "old").rename(other)
        return original(data)

    monkeypatch.setattr(report, "page", replaced_meanwhile)
    assert main(["report", str(run)]) == 2
    assert (run / "report.html").read_text() == "of the other run"
