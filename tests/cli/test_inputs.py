"""Tables of other kinds than one file: several text columns, patterns, workbooks, databases."""

import json
import sqlite3
from pathlib import Path

import pandas as pd
import pytest
from support.commands import Command, Refuse, rows_of
from support.small_texts import SmallTask

from newfound.storage.run_folder import read_run


def two_columns(task: SmallTask) -> pd.DataFrame:
    """The texts of the task, cut into a first word and the rest."""
    cut = [text.partition(" ")[::2] for text in task.texts]
    labels = [label or "" for label in task.labels]
    return pd.DataFrame({"text": [a for a, _ in cut], "body": [b for _, b in cut], "label": labels})


JOIN = ("--text-column", "text", "--text-column", "body")


def test_joined_columns_are_kept_apart_in_the_run_and_in_predictions(
    command: Command, task: SmallTask, flags: list[str], tmp_path: Path
) -> None:
    frame = two_columns(task)
    frame.to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "run"
    done = command("discover", tmp_path / "t.csv", "-o", out, "--categories", "4", *JOIN, *flags)
    assert done.code == 0, done.err
    rows = rows_of(out / "assignments.csv")
    joined = [f"{a}\n{b}" for a, b in zip(frame["text"], frame["body"], strict=True)]
    assert [row["text"] for row in rows] == joined
    assert [row["text_"] for row in rows] == frame["text"].tolist()
    assert [row["body"] for row in rows] == frame["body"].tolist()
    assert read_run(out).corpus.columns["body"] == frame["body"].tolist()
    assert command("report", out).code == 0

    done = command("predict", out, tmp_path / "t.csv", "-o", tmp_path / "p.csv", *JOIN)
    assert done.code == 0, done.err
    predicted = rows_of(tmp_path / "p.csv")
    assert [row["text_"] for row in predicted] == frame["text"].tolist()
    assert list(predicted[0])[:3] == ["id", "text", "category"]

    line = json.dumps({"text": "rain", "body": "please"})
    (found,) = map(json.loads, command("predict", out, "-", *JOIN, stdin=line).out.splitlines())
    assert (found["text"], found["text_"], found["body"]) == ("rain\nplease", "rain", "please")


def test_other_columns_and_volume_over_time_are_in_every_output(
    command: Command, task: SmallTask, flags: list[str], tmp_path: Path
) -> None:
    count = len(task.texts)
    days = [f"2024-05-{1 + i % 3:02}" for i in range(count)]
    kinds = [("mail", "chat")[i % 2] for i in range(count)]
    frame = pd.DataFrame({"day": days, "text": task.texts, "label": task.labels, "kind": kinds})
    frame.to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "run"
    done = command(
        "discover", tmp_path / "t.csv", "-o", out, "--categories", "4", "--time-column", "day",
        *flags,
    )  # fmt: skip
    assert done.code == 0, done.err
    rows = rows_of(out / "assignments.csv")
    assert [row["day"] for row in rows] == days
    assert [row["kind_"] for row in rows] == kinds
    result = read_run(out)
    assert result.corpus.time_column == "day"
    for at, category in enumerate(result.categories):
        mine = [day for day, own in zip(days, result.assigned, strict=True) if own == at]
        wanted = {f"2024-05-{day:02}": mine.count(f"2024-05-{day:02}") for day in (1, 2, 3)}
        assert dict(category.volume) == wanted
    first = rows_of(out / "categories.csv")[0]["volume"]
    assert first == " | ".join(f"{day}: {n}" for day, n in result.categories[0].volume)

    done = command("predict", out, tmp_path / "t.csv", "-o", tmp_path / "p.csv")
    assert done.code == 0, done.err
    predicted = rows_of(tmp_path / "p.csv")
    assert [row["day"] for row in predicted] == days
    assert [row["kind_"] for row in predicted] == kinds

    lines = ['{"text": "rain", "channel": "chat", "tags": ["x"]}', "plain rain"]
    done = command("predict", out, "-", stdin="\n".join(lines))
    one, two = map(json.loads, done.out.splitlines())
    assert (one["channel"], two["channel"]) == ("chat", "")
    assert "tags" not in one
    done = command("predict", out, "-", "-o", tmp_path / "q.csv", stdin="\n".join(lines))
    assert done.code == 0, done.err
    assert "channel" not in rows_of(tmp_path / "q.csv")[0]


def test_workbook_pattern_and_database_give_the_run_of_a_csv_file(
    command: Command, task: SmallTask, flags: list[str], tmp_path: Path, small_run: Path
) -> None:
    pytest.importorskip("openpyxl")
    frame = pd.DataFrame({"text": task.texts, "label": task.labels})
    frame.to_excel(tmp_path / "t.xlsx", sheet_name="May", index=False)
    for part in range(2):
        frame[part * 20 : (part + 1) * 20 if part == 0 else None].to_csv(
            tmp_path / f"part{part}.csv", index=False
        )
    with sqlite3.connect(tmp_path / "t.db") as database:
        frame.to_sql("messages", database, index=False)
    for number, table in enumerate(
        [
            ["t.xlsx", "--sheet", "May"],
            ["part*.csv"],
            ["t.db", "--query", "select * from messages"],
        ]
    ):
        out = tmp_path / f"run{number}"
        inputs = [tmp_path / table[0], *table[1:]]
        done = command("discover", *inputs, "-o", out, "--categories", "4", *flags)
        assert done.code == 0, done.err
        expected = (small_run / "assignments.csv").read_text()
        assert (out / "assignments.csv").read_text() == expected
        answers = tmp_path / f"p{number}.csv"
        done = command("predict", small_run, *inputs, "-o", answers)
        assert done.code == 0, done.err
        assert [row["text"] for row in rows_of(answers)] == list(task.texts)


def test_predict_reads_several_tables(command: Command, tmp_path: Path, small_run: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text(f"text\nrain {name}\n")
    out = tmp_path / "out.csv"
    tables = [tmp_path / "a.csv", tmp_path / "b.csv"]
    assert command("predict", small_run, *tables, "-o", out).code == 0
    assert [(row["id"], row["text"]) for row in rows_of(out)] == [("1", "rain a"), ("2", "rain b")]


def test_standard_input_cannot_be_combined_with_tables(
    refuse: Refuse, tmp_path: Path, small_run: Path
) -> None:
    (tmp_path / "a.csv").write_text("text\nrain\n")
    said = refuse("predict", small_run, "-", tmp_path / "a.csv", "-o", tmp_path / "out.csv")
    assert "standard input" in said
