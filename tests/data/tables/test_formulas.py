"""Cells that a spreadsheet would run as a formula."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.commands import Command, rows_of
from support.small_texts import SmallTask

from newfound.data.tables import read_tables, stream_table
from newfound.data.tables.delimited import open_delimited
from newfound.data.tables.formulas import protected, unprotected
from newfound.storage.run_folder import read_run

FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "\uff1d1")
HARMLESS = ("1+1", "a=b", "'quoted'", "", " ", "user@example", "'", "''")


@pytest.mark.parametrize("cell", FORMULAS)
def test_formulas_begin_with_an_apostrophe(cell: str) -> None:
    assert protected(cell) == "'" + cell


@pytest.mark.parametrize("cell", HARMLESS)
def test_other_cells_are_not_changed(cell: str) -> None:
    assert protected(cell) == unprotected(cell) == cell


@given(st.text() | st.text(st.sampled_from("'=+-@ \t\ra")))
@example("''=")
def test_a_protected_cell_is_read_back_as_it_was(cell: str) -> None:
    assert unprotected(protected(cell)) == cell
    assert protected(cell).lstrip()[:1] not in ("=", "+", "-", "@")


@pytest.mark.parametrize("name", ["t.csv", "t.tsv"])
def test_apostrophes_are_removed_with_a_note(put: Any, name: str) -> None:
    tab = "," if name.endswith("csv") else "\t"
    path = put(name, f"text{tab}label\nplain{tab}x\n'=1+1{tab}'-5\n'said' he{tab}\n")
    read = read_tables([path])
    assert read.corpus.texts == ["plain", "=1+1", "'said' he"]
    assert read.corpus.labels == ["x", "-5", None]
    (note,) = [note for note in read.notes if "apostrophe before" in note]
    assert note.startswith(f"{path}: 2 cells have an apostrophe before a formula (first: row 2)")
    assert [t for chunk in stream_table(path) for t in chunk.texts] == read.corpus.texts
    raw = read_tables([path], raw_cells=True)
    assert raw.corpus.texts == ["plain", "'=1+1", "'said' he"]
    assert not any("apostrophe before" in note for note in raw.notes)


@pytest.mark.parametrize("more", [[], ["--raw-cells"]])
def test_commands_protect_formulas_and_give_the_original_back(
    command: Command, task: SmallTask, flags: list[str], tmp_path: Path, more: list[str]
) -> None:
    table, run, out = tmp_path / "t.csv", tmp_path / "run", tmp_path / "out.csv"
    labels = [f"@{label}" if label else "" for label in task.labels]
    rows = [f"={text},{label},1,2" for text, label in zip(task.texts, labels, strict=True)]
    table.write_text("\n".join(["text,label,=x,@y", *rows]) + "\n")
    for arguments in (
        ["discover", table, "-o", run, *flags, "--categories", "4"],
        ["predict", run, table, "-o", out],
        ["export", run, "--to", "csv", "--all", "-o", tmp_path / "export.csv"],
    ):
        done = command(*arguments, *more)
        assert done.code == 0, done.err
    start = "=" if more else "'="
    for path in (run / "assignments.csv", out, tmp_path / "export.csv"):
        assert all(row["text"].startswith(start) for row in rows_of(path))
        options: dict[str, Any] = {"raw_cells": bool(more), "text_column": "text"}
        read = [t for chunk in stream_table(path, **options) for t in chunk.texts]
        assert sorted(read) == sorted(f"={text}" for text in task.texts)
    for path in (run / "assignments.csv", out):
        assert {f"{start[:-1]}=x", f"{start[:-1]}@y"} <= set(rows_of(path)[0])
        assert {"=x", "@y"} <= set(open_delimited(path, ",", raw_cells=bool(more)).columns)
    assert {"=x", "@y"} <= set(read_run(run).corpus.columns)
    written = (run / "categories.csv").read_text()
    assert (",@bank" in written) == bool(more)
    assert '"name": "@bank"' in (run / "categories.json").read_text()
    assert command("info", run).out.count("@bank") == 1
