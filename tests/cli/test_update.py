"""`newfound update`: new texts join a run folder."""

import json
from pathlib import Path

import pytest
from support.commands import Command, Refuse, rows_of
from support.small_texts import small_task

NEW = small_task(each=6, labelled=0, seed=7).texts


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """New texts of the subjects of the small run, with dates."""
    path = tmp_path / "new.csv"
    lines = [f"{text},2024-05-{1 + at % 28:02d}" for at, text in enumerate(NEW)]
    path.write_text("\n".join(["text,date", *lines]) + "\n")
    return path


def test_update_writes_a_run_with_old_and_new_texts(
    command: Command, small_run: Path, table: Path, tmp_path: Path
) -> None:
    out = tmp_path / "second"
    done = command("update", small_run, table, "-o", out, "--time-column", "date", "--json")
    assert done.code == 0, done.err
    value = json.loads(done.out)
    old, rows = rows_of(small_run / "assignments.csv"), rows_of(out / "assignments.csv")
    assert [row["text"] for row in rows] == [*(row["text"] for row in old), *NEW]
    assert len({row["id"] for row in rows}) == len(rows)
    same = sum(a["category_id"] == b["category_id"] for a, b in zip(old, rows, strict=False))
    assert len(old) - same == value["changes"]["texts"]
    assert value["changes"]["new_texts"] == len(NEW)
    before = {row["category_id"]: row["category"] for row in old}
    for row in rows:
        assert before.get(row["category_id"], row["category"]) == row["category"]
    categories = json.loads((out / "categories.json").read_text())
    assert sum(count for c in categories for _, count in c["volume"]) > 0
    assert (out / "report.html").is_file()
    done = command("predict", out, table, "-o", tmp_path / "found.csv")
    assert done.code == 0, done.err
    again = command("update", out, table, "-o", tmp_path / "third")
    assert again.code == 0, again.err  # the ids of this table belong to other texts
    assert "new texts;" in again.out


def test_update_refuses_what_it_cannot_do(
    refuse: Refuse, small_run: Path, table: Path, tmp_path: Path
) -> None:
    assert "is the run itself" in refuse("update", small_run, table, "-o", small_run, "--force")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine.txt").write_text("mine")
    assert "is not a run folder" in refuse("update", small_run, table, "-o", tmp_path / "taken")
    assert "missing.csv" in refuse("update", small_run, "missing.csv", "-o", tmp_path / "new")
    same = small_run / "assignments.csv"
    message = refuse("update", small_run, same, "-o", tmp_path / "new")
    assert "there is no new text" in message


def test_update_does_not_record_its_temporary_cache(
    command: Command, small_run: Path, table: Path, tmp_path: Path
) -> None:
    found = []
    for name in ("one", "two"):
        done = command("update", small_run, table, "-o", tmp_path / name)
        assert done.code == 0, done.err
        found.append((tmp_path / name / "model" / "model.json").read_bytes())
        for record in ("run.json", "model/model.json"):
            assert '"cache": null' in (tmp_path / name / record).read_text()
    assert found[0] == found[1]
