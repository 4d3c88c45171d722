"""`newfound discover` end to end, on small tables with a tiny encoder."""

import csv
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from support.commands import Command, put_task, rows_of
from support.small_texts import KNOWN, QUICK_FLAGS, SmallTask, everything_under

from newfound import CategoryDiscoverer, pipeline


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_discover_reads_every_format(
    command: Command,
    task: SmallTask,
    flags: list[str],
    tmp_path: Path,
    ending: str,
    small_run: Path,
) -> None:
    table = put_task(tmp_path / f"t.{ending}", task)
    done = command("discover", table, "-o", tmp_path / "run", "--categories", "4", *flags)
    assert done.code == 0, done.err
    assert "guessed the text column 'utterance', label column 'intent'" in done.err
    assert everything_under(tmp_path / "run") == everything_under(small_run)
    for name in ("assignments.csv", "categories.csv", "history.jsonl"):  # the same result, too
        assert (tmp_path / "run" / name).read_text() == (small_run / name).read_text()


def test_discover_prints_notes_and_categories(
    command: Command, task: SmallTask, flags: list[str], tmp_path: Path
) -> None:
    table = put_task(tmp_path / "t.csv", task)
    done = command("discover", table, "-o", tmp_path / "run", "--categories", "4", *flags)
    lines = done.out.splitlines()
    assert lines[0].split() == ["id", "kind", "size", "name", "keywords"]
    assert [line.split()[1] for line in lines[1:5]] == ["known", "known", "novel", "novel"]
    assert {line.split()[3] for line in lines[1:3]} == set(KNOWN)
    assert re.match(r"4 categories: 2 known, 2 novel; \d+ s$", lines[5])
    assert str(tmp_path / "run" / "report.html") in lines[6]
    assert all(line.startswith("note: ") for line in done.err.splitlines())  # no progress bars


def test_note_on_the_encoder_comes_before_the_work_and_once(
    command: Command,
    task: SmallTask,
    tiny_encoder: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoder = shutil.copytree(tiny_encoder, tmp_path / "encoder")
    shutil.rmtree(encoder / "1_Pooling")
    table, out = put_task(tmp_path / "t.csv", task), tmp_path / "run"
    flags = ["--encoder", encoder, *QUICK_FLAGS]
    done = command("discover", table, "-o", out, "--categories", "4", *flags)
    assert done.code == 0, done.err
    assert done.err.count("--pooling mean") == 1
    assert any(
        "--pooling mean" in note for note in json.loads((out / "run.json").read_text())["notes"]
    )

    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pipeline, "find_method", lambda name: SimpleNamespace(fit=stopped))
    done = command("discover", table, "-o", tmp_path / "other", "--categories", "4", *flags)
    assert done.code == 130
    assert done.err.count("--pooling mean") == 1


def test_discover_writes_all_files(small_run: Path) -> None:
    assert {path.name for path in small_run.iterdir()} == {
        "assignments.csv",
        "categories.csv",
        "categories.json",
        "history.jsonl",
        "manifest.json",
        "model",
        "report.html",
        "run.json",
    }
    page = (small_run / "report.html").read_text(encoding="utf-8")
    assert page.lower().startswith("<!doctype html")
    assert "newfound report" not in page or f".{small_run.name}." not in page  # no temporary name


def test_discover_reads_labelled_and_unlabelled_tables_together(
    command: Command, task: SmallTask, flags: list[str], tmp_path: Path
) -> None:
    labelled, rest = tmp_path / "labelled.csv", tmp_path / "rest.jsonl"
    with labelled.open("w") as one, rest.open("w") as two:
        one.write("id,text,label\n")
        for i, (text, label) in enumerate(zip(task.texts, task.labels, strict=True)):
            if label:
                one.write(f"n{i},{text},{label}\n")
            else:
                two.write(json.dumps({"id": f"n{i}", "text": text}) + "\n")
    done = command("discover", labelled, rest, "-o", tmp_path / "run", "--categories", 4, *flags)
    assert done.code == 0, done.err
    assert f"{rest}: no label column was found" in done.err
    rows = rows_of(tmp_path / "run" / "assignments.csv")
    assert sorted(row["text"] for row in rows) == sorted(task.texts)
    for row in rows:
        place = int(row["id"].removeprefix("n"))
        assert row["text"] == task.texts[place]
        assert row["label"] == (task.labels[place] or "")
        assert row["category"] == (task.labels[place] or row["predicted"])


def test_named_columns_take_precedence(
    command: Command, task: SmallTask, flags: list[str], tmp_path: Path
) -> None:
    table = tmp_path / "t.csv"
    rows = {
        "text": ["wrong"] * len(task.texts),
        "words": task.texts,
        "label": ["wrong"] * len(task.texts),
        "is": task.labels,
        "key": [f"k{i}" for i in range(len(task.texts))],
    }
    pd.DataFrame(rows).to_csv(table, index=False)
    names = ["--text-column", "words", "--label-column", "is", "--id-column", "key"]
    done = command("discover", table, "-o", tmp_path / "run", "--categories", "4", *names, *flags)
    assert done.code == 0
    assert "guessed" not in done.err
    found = rows_of(tmp_path / "run" / "assignments.csv")
    assert [row["text"] for row in found] == task.texts
    assert found[0]["id"] == "k0"
    assert {row["label"] for row in found} == {*KNOWN, ""}


def test_discover_estimates_the_number_by_default(
    command: Command, task: SmallTask, flags: list[str], tmp_path: Path
) -> None:
    done = command("discover", put_task(tmp_path / "t.csv", task), "-o", tmp_path / "run", *flags)
    assert re.search(r"^\d+ categories \(estimated\): 2 known, ", done.out, re.MULTILINE)
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    assert run["estimate"]["estimate"] == run["categories"]["total"]


def test_without_labels_all_categories_are_novel(
    command: Command, task: SmallTask, flags: list[str], tmp_path: Path
) -> None:
    table = tmp_path / "t.csv"
    table.write_text("text\n" + "\n".join(task.texts) + "\n")
    done = command("discover", table, "-o", tmp_path / "run", "--categories", "4", *flags)
    assert done.code == 0
    assert "no text is labelled: discovery is unsupervised" in done.err
    assert "4 categories: 0 known, 4 novel" in done.out


def test_discover_writes_assignments_as_parquet(
    command: Command, task: SmallTask, flags: list[str], tmp_path: Path, small_run: Path
) -> None:
    table = put_task(tmp_path / "t.csv", task)
    out = tmp_path / "run"
    done = command("discover", table, "-o", out, "--categories", "4", "--format", "parquet", *flags)
    assert done.code == 0
    found = pd.read_parquet(out / "assignments.parquet")
    wanted = rows_of(small_run / "assignments.csv")
    assert found["category"].tolist() == [row["category"] for row in wanted]
    assert command("report", out).code == 0


def test_flags_are_recorded_in_the_run(
    command: Command, task: SmallTask, tiny_encoder: str, tmp_path: Path
) -> None:
    chosen = ["--seed", "5", "--pooling", "mean", "--max-tokens", "9", "--validation-share", "0.3"]
    chosen += ["--set", "epochs=2", "--set", "pretrain_epochs=1", "--set", "masked_words=False"]
    chosen += ["--effort", "best", "--method", "dpn", "--categories", "7"]
    table = put_task(tmp_path / "t.csv", task)
    out = tmp_path / "run"
    done = command("discover", table, "-o", out, "--encoder", tiny_encoder, *chosen)
    assert done.code == 0, done.err
    run = json.loads((out / "run.json").read_text())
    settings = run["settings"]
    assert run["seed"] == settings["seed"] == 5
    assert settings["pooling"] == "mean"
    assert settings["max_tokens"] == 9
    assert settings["validation_share"] == 0.3
    assert settings["n_categories"] == 7
    assert settings["settings"]["epochs"] == 2
    assert settings["settings"]["masked_words"] is False
    assert run["command"].startswith("newfound discover ")
    assert "--set epochs=2" in run["command"]
    loaded = CategoryDiscoverer.load(out)
    assert (loaded.seed, loaded.n_categories, loaded.effort) == (5, 7, "best")


def test_discover_uses_a_validation_table(
    command: Command, task: SmallTask, flags: list[str], tmp_path: Path
) -> None:
    held = tmp_path / "held.csv"
    held.write_text("text,label\nlost bank card,bank\nbook hotel trip,travel\nrain,weather\n")
    table = put_task(tmp_path / "t.csv", task)
    shared = ["discover", table, "-o", tmp_path / "run", "--categories", "4", *flags]
    done = command(*shared, "--text-column", "utterance", "--validation", held)
    assert done.code == 2  # the named columns hold for all tables
    assert str(held) in done.err
    table.write_text(table.read_text().replace("utterance,intent", "text,label"))
    done = command(*shared, "--validation", held)
    assert done.code == 0, done.err
    first = json.loads((tmp_path / "run" / "history.jsonl").read_text().splitlines()[0])
    assert first["validation_accuracy"] in (0, 0.5, 1)
    held.write_text("text,label\nrain,weather\n")
    done = command(*shared, "--validation", held, "--force")
    assert done.code == 2
    assert f"{held}: no label of this table is a known category" in done.err


def test_run_is_replaced_only_with_force(
    command: Command, task: SmallTask, flags: list[str], tmp_path: Path
) -> None:
    table = put_task(tmp_path / "t.csv", task)
    shared = ["discover", table, "-o", tmp_path / "run", *flags]
    assert command(*shared, "--categories", "4").code == 0
    before = (tmp_path / "run" / "run.json").read_text()
    done = command(*shared, "--categories", "5")
    assert done.code == 2
    assert "exists; replace it with --force" in done.err
    assert (tmp_path / "run" / "run.json").read_text() == before
    assert command(*shared, "--categories", "5", "--force").code == 0
    assert len(rows_of(tmp_path / "run" / "categories.csv")) == 5
    assert {path.name for path in tmp_path.iterdir()} == {"t.csv", "run"}


def test_cache_is_written_and_reused(
    command: Command, task: SmallTask, flags: list[str], tmp_path: Path
) -> None:
    table = put_task(tmp_path / "t.csv", task)
    for name in ("one", "two"):
        chosen = ["--cache", tmp_path / "cache", "--categories", "4"]
        assert command("discover", table, "-o", tmp_path / name, *chosen, *flags).code == 0
    kept = everything_under(tmp_path / "cache")
    assert kept
    one, two = (rows_of(tmp_path / name / "assignments.csv") for name in ("one", "two"))
    assert [row["category"] for row in one] == [row["category"] for row in two]


def test_notes_refer_to_texts_by_id(
    command: Command, task: SmallTask, flags: list[str], tmp_path: Path
) -> None:
    rows = [
        {"id": f"T-{number}", "text": text, "label": label or ""}
        for number, (text, label) in enumerate(zip(task.texts, task.labels, strict=True))
    ]
    rows += [{"id": f"X-{label}", "text": "twice told", "label": label} for label in KNOWN[:2]]
    table = tmp_path / "t.csv"
    with table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["id", "text", "label"])
        writer.writeheader()
        writer.writerows(rows)
    done = command("discover", table, "-o", tmp_path / "run", *flags)
    assert done.code == 0, done.err
    one, other = KNOWN[:2]
    assert f"'twice told': '{one}' (id X-{one}) and '{other}' (id X-{other})" in done.err


def test_interrupt_is_reported_and_leaves_no_files(
    command: Command,
    task: SmallTask,
    flags: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    table = put_task(tmp_path / "t.csv", task)
    monkeypatch.setattr(pipeline, "discover", interrupted)
    done = command("discover", table, "-o", tmp_path / "run", *flags)
    assert done.code == 130
    assert done.err.splitlines()[-1] == "newfound: interrupted; nothing was written"
    assert everything_under(tmp_path) == {"t.csv"}


def test_termination_leaves_no_files(task: SmallTask, flags: list[str], tmp_path: Path) -> None:
    table = put_task(tmp_path / "t.csv", task)
    program = (
        "import time; from newfound import pipeline; "
        "from newfound.cli.main import command; "
        "pipeline.discover = lambda *_, **__: time.sleep(60); command()"
    )
    arguments = ["discover", str(table), "-o", str(tmp_path / "run"), *flags]
    with subprocess.Popen([sys.executable, "-c", program, *arguments]) as process:
        until = time.monotonic() + 60
        while not list(tmp_path.glob(".run.*")):  # the place that the run is written to
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.05)
        process.terminate()
        assert process.wait(30) == 128 + signal.SIGTERM
    assert everything_under(tmp_path) == {"t.csv"}


def test_folder_with_the_short_name_of_an_encoder_gets_a_note(
    command: Command,
    task: SmallTask,
    tiny_encoder: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The short name wins, and the note is kept with the run."""
    short = {"tiny": {"package": "tiny_encoder_package"}}
    monkeypatch.setattr("newfound.encoding.loading.SHORT_NAMES", short)
    package = tmp_path / "packages" / "tiny_encoder_package"
    shutil.copytree(tiny_encoder, package / "model")
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(package.parent)
    (tmp_path / "tiny").mkdir()  # no encoder: it would be refused
    monkeypatch.chdir(tmp_path)
    table = put_task(tmp_path / "t.csv", task)
    shared = ["discover", table, "-o", "run", "--categories", "4", *QUICK_FLAGS, "--force"]
    done = command(*shared, "--encoder", "tiny")
    assert done.code == 0, done.err
    note = "not the folder tiny in the working directory: name the folder with --encoder ./tiny"
    assert note in done.err
    assert any(note in line for line in json.loads(Path("run/run.json").read_text())["notes"])
    done = command(*shared, "--encoder", "./tiny")
    assert done.code == 2
    assert "tiny is not the folder of an encoder" in done.err
