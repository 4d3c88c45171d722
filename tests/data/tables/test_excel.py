"""Excel workbooks: sheets, values, formulas, and what is refused."""

import datetime
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.table_files import refused

from newfound import InputError
from newfound.data.tables import excel, read_tables, stream_table

openpyxl = pytest.importorskip("openpyxl")


def workbook(path: Path, *sheets: tuple[str, list[list[Any]]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets:
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def computed(path: Path, values: dict[str, str]) -> Path:
    """Add computed values to the formulas of a workbook, as a spreadsheet program does."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    xml = parts["xl/worksheets/sheet1.xml"].decode()
    for cell, value in values.items():
        kind = "e" if value.startswith("#") else "str"
        head, tail = xml.split(f'<c r="{cell}"', 1)
        formula, rest = tail.split("</f>", 1)
        rest = rest.removeprefix("<v />").removeprefix("<v></v>").removeprefix("<v/>")
        xml = f'{head}<c r="{cell}" t="{kind}"{formula}</f><v>{value}</v>{rest}'
    parts["xl/worksheets/sheet1.xml"] = xml.encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


def test_sheet_is_read_like_a_csv_file(tmp_path: Path) -> None:
    rows = [
        [],
        ["text", None, "label", "id"],
        ["where is my card", "ignored", "card", 7],
        [None, None, None, None],
        ["two\nlines", None, None, 8.0],
        [12.5, None, True, 9],
        [datetime.date(2024, 5, 1), None, 3.0, "x"],
        [None, None, "card", 11],
    ]
    path = workbook(tmp_path / "t.xlsx", ("tickets", rows))
    read = read_tables([path])
    assert read.corpus.texts == ["where is my card", "two\nlines", "12.5", "2024-05-01 00:00:00"]
    assert read.corpus.labels == ["card", None, "true", "3"]
    assert read.corpus.ids == ["7", "8", "9", "x"]
    assert any("1 row has no text in column 'text' (first: row 5)" in note for note in read.notes)
    assert not any("--sheet" in note for note in read.notes)
    chunks = list(stream_table(path, chunk=2))
    assert [text for chunk in chunks for text in chunk.texts] == [*read.corpus.texts, ""]


def test_sheet_is_chosen_by_name(tmp_path: Path) -> None:
    path = workbook(
        tmp_path / "t.xlsx", ("May", [["text"], ["a"], ["b"]]), ("June", [["text"], ["c"]])
    )
    first = read_tables([path])
    assert first.corpus.texts == ["a", "b"]
    assert f"{path}: read the first sheet, 'May', and not 'June' (choose with --sheet)" in (
        first.notes
    )
    chosen = read_tables([path], sheet="June")
    assert chosen.corpus.texts == ["c"]
    assert not any("--sheet" in note for note in chosen.notes)
    assert "there is no sheet 'Jun': did you mean 'June'?" in refused(path, sheet="Jun")


def test_sheet_without_a_workbook_is_refused(put: Any) -> None:
    assert "--sheet is for Excel workbooks" in refused(put("t.csv", "text\na\n"), sheet="May")


def test_line_ends_as_excel_stores_them_are_decoded(tmp_path: Path) -> None:
    path = workbook(tmp_path / "t.xlsx", ("s", [["text"], ["one_x000D_\ntwo"], ["snake_x"]]))
    assert read_tables([path]).corpus.texts == ["one\r\ntwo", "snake_x"]


def test_error_cells_are_refused_in_columns_that_are_read(tmp_path: Path) -> None:
    path = workbook(tmp_path / "t.xlsx", ("s", [["text", "x"], ["a", "#REF!"], ["#N/A", 1]]))
    message = refused(path)
    assert "row 2 (cell A3), column 'text': the cell holds the error #N/A" in message
    assert "row 1 (cell B2), column 'x': the cell holds the error #REF!" in refused(
        path, text_column="x"
    )


def test_formulas_are_read_as_their_values(tmp_path: Path) -> None:
    rows = [["text", "label"], ["a", '=IF(1,"x","")'], ["b", '=IF(0,"x","")'], ["c", "y"]]
    path = workbook(tmp_path / "t.xlsx", ("s", rows))
    # Nothing has computed the first sheet yet, but a value that is no formula is there.
    assert read_tables([path]).corpus.labels == [None, None, "y"]
    assert read_tables([computed(path, {"B2": "x"})]).corpus.labels == ["x", None, "y"]


def test_formulas_without_values_are_refused(tmp_path: Path) -> None:
    path = workbook(tmp_path / "t.xlsx", ("s", [["text", "n"], ["=B2", "a"], ["=B3", "b"]]))
    message = refused(path)
    assert "cell A2, column 'text': no formula has a computed value" in message
    computed(path, {"A2": "first", "A3": "#DIV/0!"})
    assert "row 2 (cell A3), column 'text': the cell holds the error #DIV/0!" in refused(path)


@pytest.mark.parametrize("rows", [[], [["text", "label"]], [[None, None]]])
def test_sheet_without_rows_is_refused(tmp_path: Path, rows: list[list[Any]]) -> None:
    assert "has no row below a header" in refused(workbook(tmp_path / "t.xlsx", ("s", rows)))


def test_damaged_and_foreign_files_are_refused(put: Any, tmp_path: Path) -> None:
    good = workbook(tmp_path / "good.xlsx", ("s", [["text"], ["a"]])).read_bytes()
    for number, content in enumerate([b"text\na\n", good[: len(good) // 2], b"PK\x03\x04"]):
        message = refused(put(f"{number}.xlsx", content))
        assert "this is not an Excel workbook, or it is damaged" in message
    with zipfile.ZipFile(tmp_path / "other.xlsx", "w") as archive:
        archive.writestr("a.txt", "a")
    assert "damaged" in refused(tmp_path / "other.xlsx")
    assert "has a password or the old format" in refused(put("old.xlsx", b"\xd0\xcf\x11\xe0rest"))


def test_workbook_that_unpacks_to_a_huge_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = workbook(tmp_path / "t.xlsx", ("s", [["text"], ["a"]]))
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/media/big.bin", bytes(1_000_000))
    assert path.stat().st_size < 20_000
    monkeypatch.setattr(excel, "MOST_BYTES", 1_000_000)
    assert "save the sheet as CSV" in refused(path)


def test_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = workbook(tmp_path / "t.xlsx", ("s", [["text"], ["a"]]))
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    with pytest.raises(InputError, match=r"install newfound\[excel\]"):
        read_tables([path])


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**9), st.binary(min_size=1, max_size=40))
def test_any_change_of_a_workbook_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, place: int, change: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "changed.xlsx"
    workbook(path, ("s", [["text", "label"], ["a", "x"], ["b", None]]))
    content = path.read_bytes()
    at = place % len(content)
    path.write_bytes(content[:at] + change + content[at + len(change) :])
    with suppress(InputError):
        read_tables([path])
