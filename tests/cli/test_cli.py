"""The commands end to end, on small tables with a tiny encoder."""

import csv
import io
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support.small_texts import KNOWN, QUICK_FLAGS, SmallTask, everything_under, small_task

import newfound
from newfound.cli import predict as prediction
from newfound.cli.main import build_parser, main
from newfound.config import RunConfig, flag_of, settings_of
from newfound.discovery import Discovery

COMMANDS = ("discover", "predict", "estimate", "demo", "info", "report", "export", "methods")


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


Command = Callable[..., Result]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run the command in this process; standard input holds `stdin`."""

    def run(*arguments: str | Path, stdin: str = "") -> Result:
        stream = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
        monkeypatch.setattr(sys, "stdin", stream)
        capsys.readouterr()
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as exit:
            code = int(exit.code or 0)
        return Result(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="module")
def task() -> SmallTask:
    return small_task()


@pytest.fixture
def flags(tiny_encoder: str) -> list[str]:
    return ["--encoder", tiny_encoder, *QUICK_FLAGS]


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def put(path: Path, task: SmallTask) -> Path:
    """Write a task in the format that the name says, the columns named oddly."""
    rows = [
        {"utterance": text, "intent": label}
        for text, label in zip(task.texts, task.labels, strict=True)
    ]
    if path.suffix == ".parquet":
        pd.DataFrame(rows).to_parquet(path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        pd.DataFrame(rows).to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    return path


# discover


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_discover_reads_every_format(
    command: Command,
    task: SmallTask,
    flags: list[str],
    tmp_path: Path,
    ending: str,
    small_run: Path,
) -> None:
    table = put(tmp_path / f"t.{ending}", task)
    done = command("discover", table, "-o", tmp_path / "run", "--categories", "4", *flags)
    assert done.code == 0, done.err
    assert "guessed the text column 'utterance', label column 'intent'" in done.err
    assert everything_under(tmp_path / "run") == everything_under(small_run)
    for name in ("assignments.csv", "categories.csv", "history.jsonl"):  # the same result, too
        assert (tmp_path / "run" / name).read_text() == (small_run / name).read_text()


def test_what_discover_prints(
    command: Command, task: SmallTask, flags: list[str], tmp_path: Path
) -> None:
    table = put(tmp_path / "t.csv", task)
    done = command("discover", table, "-o", tmp_path / "run", "--categories", "4", *flags)
    lines = done.out.splitlines()
    assert lines[0].split() == ["kind", "size", "name", "keywords"]
    assert [line.split()[0] for line in lines[1:5]] == ["known", "known", "novel", "novel"]
    assert {line.split()[2] for line in lines[1:3]} == set(KNOWN)
    assert re.match(r"4 categories: 2 known, 2 novel; \d+ s$", lines[5])
    assert str(tmp_path / "run" / "report.html") in lines[6]
    assert all(line.startswith("note: ") for line in done.err.splitlines())  # no progress bars


def test_every_output_file_is_there(small_run: Path) -> None:
    assert {path.name for path in small_run.iterdir()} == {
        "assignments.csv",
        "categories.csv",
        "categories.json",
        "history.jsonl",
        "model",
        "report.html",
        "run.json",
    }
    page = (small_run / "report.html").read_text(encoding="utf-8")
    assert page.lower().startswith("<!doctype html")
    assert "newfound report" not in page or f".{small_run.name}." not in page  # no temporary name


def test_labelled_and_unlabelled_in_two_tables(
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
    assert f"{rest}: no column has the name of a label column" in done.err
    rows = rows_of(tmp_path / "run" / "assignments.csv")
    assert sorted(row["text"] for row in rows) == sorted(task.texts)
    for row in rows:
        place = int(row["id"].removeprefix("n"))
        assert row["text"] == task.texts[place]
        assert row["label"] == (task.labels[place] or "")
        assert row["category"] == (task.labels[place] or row["predicted"])


def test_named_columns_win(
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
    done = command("discover", put(tmp_path / "t.csv", task), "-o", tmp_path / "run", *flags)
    assert re.search(r"^\d+ categories \(estimated\): 2 known, ", done.out, re.MULTILINE)
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    assert run["estimate"]["estimate"] == run["categories"]["total"]


def test_without_labels_discovery_is_unsupervised(
    command: Command, task: SmallTask, flags: list[str], tmp_path: Path
) -> None:
    table = tmp_path / "t.csv"
    table.write_text("text\n" + "\n".join(task.texts) + "\n")
    done = command("discover", table, "-o", tmp_path / "run", "--categories", "4", *flags)
    assert done.code == 0
    assert "no text is labelled: discovery is purely unsupervised" in done.err
    assert "4 categories: 0 known, 4 novel" in done.out


def test_assignments_as_parquet(
    command: Command, task: SmallTask, flags: list[str], tmp_path: Path, small_run: Path
) -> None:
    table = put(tmp_path / "t.csv", task)
    out = tmp_path / "run"
    done = command("discover", table, "-o", out, "--categories", "4", "--format", "parquet", *flags)
    assert done.code == 0
    found = pd.read_parquet(out / "assignments.parquet")
    wanted = rows_of(small_run / "assignments.csv")
    assert found["category"].tolist() == [row["category"] for row in wanted]
    assert command("report", out).code == 0


def test_flags_reach_the_run(
    command: Command, task: SmallTask, tiny_encoder: str, tmp_path: Path
) -> None:
    chosen = ["--seed", "5", "--pooling", "mean", "--max-tokens", "9", "--validation-share", "0.3"]
    chosen += ["--set", "epochs=2", "--set", "pretrain_epochs=1", "--set", "masked_words=False"]
    chosen += ["--effort", "best", "--method", "dpn", "--categories", "7"]
    table = put(tmp_path / "t.csv", task)
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
    loaded = Discovery.load(out)
    assert (loaded.seed, loaded.n_categories, loaded.effort) == (5, 7, "best")


def test_a_validation_table(
    command: Command, task: SmallTask, flags: list[str], tmp_path: Path
) -> None:
    held = tmp_path / "held.csv"
    held.write_text("text,label\nlost bank card,bank\nbook hotel trip,travel\nrain,weather\n")
    table = put(tmp_path / "t.csv", task)
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
    assert f"{held}: no text has a label that also stands in the tables" in done.err


def test_force_replaces_a_run_and_only_then(
    command: Command, task: SmallTask, flags: list[str], tmp_path: Path
) -> None:
    table = put(tmp_path / "t.csv", task)
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


def test_a_cache_is_filled_and_found_again(
    command: Command, task: SmallTask, flags: list[str], tmp_path: Path
) -> None:
    table = put(tmp_path / "t.csv", task)
    for name in ("one", "two"):
        chosen = ["--cache", tmp_path / "cache", "--categories", "4"]
        assert command("discover", table, "-o", tmp_path / name, *chosen, *flags).code == 0
    kept = everything_under(tmp_path / "cache")
    assert kept
    one, two = (rows_of(tmp_path / name / "assignments.csv") for name in ("one", "two"))
    assert [row["category"] for row in one] == [row["category"] for row in two]


# predict


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_predict_writes_every_format(
    command: Command, task: SmallTask, tmp_path: Path, small_run: Path, ending: str
) -> None:
    table = tmp_path / "new.csv"
    table.write_text("id,text\n" + "".join(f"n{i},{t}\n" for i, t in enumerate(task.texts)))
    out = tmp_path / f"out.{ending}"
    done = command("predict", small_run, table, "-o", out)
    assert done.code == 0, done.err
    assert done.out == f"{len(task.texts)} texts: {out}\n"
    if ending == "parquet":
        found = pd.read_parquet(out)
    elif ending == "jsonl":
        found = pd.read_json(out, lines=True)
    else:
        found = pd.read_csv(out, sep="\t" if ending == "tsv" else ",")
    assert list(found.columns) == ["id", "text", "category", "kind", "probability"]
    assert found["id"].tolist() == [f"n{i}" for i in range(len(task.texts))]
    wanted = rows_of(small_run / "assignments.csv")
    assert found["category"].tolist() == [row["predicted"] for row in wanted]
    sure = [float(row["probability"]) for row in wanted]
    assert found["probability"].tolist() == pytest.approx(sure, abs=2e-4)
    assert set(found["kind"]) == {"known", "novel"}


def test_predict_gives_an_empty_text_no_category(
    command: Command, tmp_path: Path, small_run: Path
) -> None:
    table = tmp_path / "new.csv"
    table.write_text('text,note\nlost card,1\n"",2\n"  ",3\nrain,4\n')
    done = command("predict", small_run, table, "-o", tmp_path / "out.csv")
    assert done.code == 0
    rows = rows_of(tmp_path / "out.csv")
    assert [row["id"] for row in rows] == ["1", "2", "3", "4"]
    assert [bool(row["category"]) for row in rows] == [True, False, False, True]
    assert [bool(row["probability"]) for row in rows] == [True, False, False, True]
    assert "2 rows have no text in column 'text' (first: row 2)" in done.err


def test_predict_in_a_pipe(command: Command, task: SmallTask, small_run: Path) -> None:
    lines = [*task.texts[:3], "", '{"id": "x", "text": "rain"}', "caf\u00e9 \u4f60\u597d"]
    done = command("predict", small_run, "-", stdin="\n".join(lines) + "\n")
    assert done.code == 0
    assert done.err == ""
    found = [json.loads(line) for line in done.out.splitlines()]
    assert [row["id"] for row in found] == ["1", "2", "3", "4", "x", "6"]
    assert [row["text"] for row in found] == [*task.texts[:3], "", "rain", lines[-1]]
    assert found[3]["category"] is None
    assert found[3]["probability"] is None
    model = Discovery.load(small_run)
    assert [row["category"] for row in found[:3]] == model.predict(task.texts[:3]).tolist()
    assert all(0 < row["probability"] <= 1 for row in found if row["text"])


def test_predict_from_a_pipe_to_a_file(command: Command, tmp_path: Path, small_run: Path) -> None:
    out = tmp_path / "out.jsonl"
    assert command("predict", small_run, "-", "-o", out, stdin="rain\ncash\n").code == 0
    assert len(out.read_text().splitlines()) == 2
    assert command("predict", small_run, "-", stdin="").out == ""


def test_predict_answers_before_it_has_read_everything(
    small_run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(prediction, "LINES", 10)
    answered: list[int] = []

    def lines() -> Iterator[str]:
        for i in range(35):
            if i % 10 == 0:
                answered.append(len(capsys.readouterr().out.splitlines()))
            yield f"rain {i}\n"

    monkeypatch.setattr(sys, "stdin", lines())
    assert main(["predict", str(small_run), "-"]) == 0
    assert answered == [0, 10, 10, 10]


def test_predict_reads_a_table_in_chunks(
    command: Command, small_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "new.csv"
    table.write_text("text\n" + "".join(f"rain {i}\n" for i in range(100)) + "\n" * 20 + "sun\n")
    real = prediction.stream_table
    monkeypatch.setattr(
        prediction, "stream_table", lambda path, **options: real(path, chunk=7, **options)
    )
    sizes: list[int] = []
    plain = Discovery.predict_index

    def watched(self: Discovery, texts: list[str]) -> Any:
        sizes.append(len(texts))
        return plain(self, texts)

    monkeypatch.setattr(Discovery, "predict_index", watched)
    assert command("predict", small_run, table, "-o", tmp_path / "out.csv").code == 0
    assert len(rows_of(tmp_path / "out.csv")) == 121
    assert max(sizes) <= 7
    assert 0 in sizes  # a chunk of nothing but empty texts


def test_predict_replaces_a_table_only_by_force(
    command: Command, tmp_path: Path, small_run: Path
) -> None:
    out = tmp_path / "out.csv"
    out.write_text("mine")
    done = command("predict", small_run, "-", "-o", out, stdin="rain\n")
    assert done.code == 2
    assert "exists; replace it with --force" in done.err
    assert out.read_text() == "mine"
    assert command("predict", small_run, "-", "-o", out, "--force", stdin="rain\n").code == 0
    assert rows_of(out)[0]["text"] == "rain"


def test_predict_with_named_columns(command: Command, tmp_path: Path, small_run: Path) -> None:
    table = tmp_path / "new.csv"
    table.write_text("text,words,key\nwrong,rain,k1\nwrong,cash,k2\n")
    names = ["--text-column", "words", "--id-column", "key"]
    assert command("predict", small_run, table, "-o", tmp_path / "out.csv", *names).code == 0
    rows = rows_of(tmp_path / "out.csv")
    assert [(row["id"], row["text"]) for row in rows] == [("k1", "rain"), ("k2", "cash")]
    piped = ["predict", small_run, "-", "--text-column", "words"]
    done = command(*piped, stdin='{"words": "rain", "text": "wrong"}\n')
    assert json.loads(done.out)["text"] == "rain"


def test_predict_takes_a_saved_model_too(command: Command, tmp_path: Path, small_run: Path) -> None:
    whole = command("predict", small_run, "-", stdin="rain\n")
    assert command("predict", small_run / "model", "-", stdin="rain\n").out == whole.out


# estimate, info, methods, demo


def test_estimate(command: Command, task: SmallTask, tiny_encoder: str, tmp_path: Path) -> None:
    chosen = ["--encoder", tiny_encoder]
    table = put(tmp_path / "t.csv", task)
    done = command("estimate", table, *chosen)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    number = re.match(r"About (\d+) categories \((\d+) to (\d+)\), 2 of them known\.", lines[0])
    assert number is not None
    best, low, high = map(int, number.groups())
    assert low <= best <= high
    curve = [line for line in lines[2:] if re.match(r" *\d+ +\d\.\d+ +#+( <)?$", line)]
    assert len(curve) == len(lines) - 2
    assert sum(line.endswith(" <") for line in curve) == 1
    found = json.loads(command("estimate", table, *chosen, "--json").out)
    assert found["estimate"] == best
    assert len(found["candidates"]) == len(found["scores"]) == len(curve)


@pytest.mark.parametrize("labels", ["none", "all"])
def test_estimate_at_the_edges(
    command: Command, task: SmallTask, tiny_encoder: str, tmp_path: Path, labels: str
) -> None:
    given: list[str | None] = list(task.truth) if labels == "all" else [None] * len(task.texts)
    table = put(tmp_path / "t.csv", SmallTask(task.texts, given, task.truth))
    done = command("estimate", table, "--encoder", tiny_encoder)
    assert done.code == 0, done.err
    assert done.out.startswith("About 4 " if labels == "all" else "About ")
    assert "no text is labelled" in done.err if labels == "none" else "every text is" in done.err


def test_info(command: Command, small_run: Path) -> None:
    done = command("info", small_run)
    assert done.code == 0
    assert "texts       64, 12 labelled" in done.out
    assert "categories  4 (given): 2 known, 2 novel" in done.out
    assert f"newfound {newfound.__version__} on cpu, seed 0" in done.out
    assert "method=dpn" in done.out
    assert "pretrain_epochs=2" in done.out
    assert "command     newfound discover " in done.out
    assert re.search(r"seconds     total \d+\.\d, ", done.out)
    assert "note        " in done.out


def test_methods(command: Command) -> None:
    from newfound.methods import METHODS

    done = command("methods")
    assert done.code == 0
    for name, method in METHODS.items():
        assert name in done.out
        assert method.summary in done.out
        one = command("methods", name).out
        for setting, _, default, help in settings_of(method.config):
            assert f"{setting}={default}" in one
            assert help in one
        for effort in method.efforts:
            assert f"effort {effort}:" in one


def test_demo(command: Command, flags: list[str], tmp_path: Path) -> None:
    done = command("demo", "-o", tmp_path / "demo", *flags)
    assert done.code == 0, done.err
    assert re.match(r"Demo: \d+ help-desk messages, \d+ of them labelled with \d+", done.out)
    assert re.search(r"all \d+\.\d%, known \d+\.\d%, novel \d+\.\d%", done.out)
    run = json.loads((tmp_path / "demo" / "run.json").read_text())
    assert set(run["scores"]) == {"all", "known", "novel", "nmi", "ari"}
    assert command("demo", "-o", tmp_path / "demo", *flags).code == 0  # again, without --force


def test_a_demo_replaces_no_other_run(
    command: Command, small_run: Path, flags: list[str], tmp_path: Path
) -> None:
    mine = Path(shutil.copytree(small_run, tmp_path / "mine"))
    before = {path: path.stat().st_mtime_ns for path in mine.rglob("*")}
    done = command("demo", "-o", mine, *flags)
    assert done.code == 2
    assert (
        done.err == f"newfound: {mine} holds a run that is no demo; choose another name with -o\n"
    )
    assert {path: path.stat().st_mtime_ns for path in mine.rglob("*")} == before


# help


def test_version(command: Command) -> None:
    assert command("--version") == Result(0, f"newfound {newfound.__version__}\n", "")


def test_without_a_command_help_is_shown(command: Command) -> None:
    done = command()
    assert done.code == 2
    assert "discover" in done.out


def test_every_field_of_the_configuration_is_a_flag_of_discover(command: Command) -> None:
    shown = " ".join(command("discover", "--help").out.split())
    for name, _, default, help in settings_of(RunConfig):
        place = shown.index(flag_of(name) + " ", shown.index("options:"))
        text = shown[place : place + 600]
        assert " ".join(help.split()) in text
        assert f"(default: {default})" in text if default is not None else "default: " in help


@pytest.mark.parametrize("name", COMMANDS)
def test_every_flag_is_explained_with_its_default(name: str) -> None:
    parser = next(a.choices for a in build_parser()._actions if a.dest != "help" and a.choices)
    assert isinstance(parser, dict)
    formatter = parser[name]._get_formatter()
    for action in parser[name]._actions:
        if not action.option_strings or action.dest == "help":
            assert action.help
            continue
        text = formatter._expand_help(action)
        assert len(text) > 5, action.option_strings
        said = re.search(r"default[: ]|needed with", text)
        assert action.required or said, action.option_strings


# as another process


def run_process(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "newfound", *map(str, arguments)],
        capture_output="stdout" not in options,
        check=False,
        **options,
    )


def test_a_pipe_in_another_process(small_run: Path, tmp_path: Path) -> None:
    environment = {"PYTHONIOENCODING": "latin-1", "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = run_process(
        "predict", small_run, "-", input="rain \u4f60 \xe9\n".encode(), env=environment
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    assert json.loads(done.stdout)["text"] == "rain \u4f60 \xe9"


def test_a_reader_that_goes_away_is_no_error(small_run: Path) -> None:
    program = f"'{sys.executable}' -m newfound predict '{small_run}' - | head -n 1"
    done = subprocess.run(
        ["bash", "-c", program], input=b"rain\n" * 5000, capture_output=True, check=False
    )
    assert done.stdout.count(b"\n") == 1
    assert done.stderr == b""


def test_an_interrupt_says_so_and_leaves_nothing(
    command: Command,
    task: SmallTask,
    flags: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    table = put(tmp_path / "t.csv", task)
    monkeypatch.setattr(Discovery, "fit", interrupted)
    done = command("discover", table, "-o", tmp_path / "run", *flags)
    assert done.code == 130
    assert done.err.splitlines()[-1] == "newfound: interrupted; nothing was written"
    assert everything_under(tmp_path) == {"t.csv"}


def test_being_terminated_leaves_nothing(task: SmallTask, flags: list[str], tmp_path: Path) -> None:
    table = put(tmp_path / "t.csv", task)
    program = (
        "import time; from newfound.discovery import Discovery; "
        "from newfound.cli.main import command; "
        "Discovery.fit = lambda *_, **__: time.sleep(60); command()"
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


def test_notes_call_texts_by_their_ids(
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
