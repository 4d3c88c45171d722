"""Paths that lead nowhere: one sentence from every command."""

from pathlib import Path

import pytest
from support.commands import Refuse


@pytest.mark.parametrize(
    "arguments",
    [
        ["info", "loop"],
        ["report", "loop"],
        ["export", "loop", "--to", "csv", "-o", "out.csv"],
        ["predict", "loop", "table.csv", "-o", "out.csv"],
        ["predict", "loop", "loop.csv", "-o", "out.csv"],
        ["discover", "loop.csv", "-o", "run"],
        ["discover", "table.csv", "loop.csv", "-o", "run"],
        ["discover", "table.csv", "-o", "loop"],
        ["discover", "table.csv", "-o", "loop", "--force"],
        ["discover", "table.csv", "-o", "loop/run"],
        ["discover", "table.csv", "-o", "run", "--encoder", "./loop"],
        ["discover", "table.csv", "-o", "run", "--cache", "loop"],
        ["estimate", "loop.csv"],
        ["check", "loop.csv"],
    ],
    ids=" ".join,
)
def test_loop_of_links_is_refused(
    refuse: Refuse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    (tmp_path / "table.csv").write_text("text,label\nmy card,a\nrain day,\nsun day,\n")
    assert refuse(*arguments)
