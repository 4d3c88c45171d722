"""`newfound predict`: tables and pipes through the model of a run."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support.commands import Command, rows_of, run_process
from support.small_texts import SmallTask, everything_under

from newfound.cli.commands import predict as prediction
from newfound.cli.main import main
from newfound.data import tables
from newfound.model import Model, Predictions
from newfound.storage.model_files import load_model


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_predict_writes_every_format(
    command: Command, task: SmallTask, tmp_path: Path, small_run: Path, ending: str
) -> None:
    table = tmp_path / "new.csv"
    table.write_text("id,text\n" + "".join(f"n{i},{t}\n" for i, t in enumerate(task.texts)))
    out = tmp_path / f"out.{ending}"
    done = command("predict", small_run, table, "-o", out)
    assert done.code == 0, done.err
    first, second = done.out.splitlines()
    assert first == f"{len(task.texts)} texts: {out}"
    assert second.endswith("in the run): no more than expected")  # they are the texts of the run
    if ending == "parquet":
        found = pd.read_parquet(out)
    elif ending == "jsonl":
        found = pd.read_json(out, lines=True)
    else:
        found = pd.read_csv(out, sep="\t" if ending == "tsv" else ",")
    assert list(found.columns) == [
        "id", "text", "category", "category_id", "kind", "status", "probability", "best_known",
        "best_known_probability", "fit", "fits_nowhere",
    ]  # fmt: skip
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


def test_predict_reads_lines_and_writes_json_lines(
    command: Command, task: SmallTask, small_run: Path
) -> None:
    lines = [*task.texts[:3], "", '{"id": "x", "text": "rain"}', "caf\u00e9 \u4f60\u597d"]
    done = command("predict", small_run, "-", stdin="\n".join(lines) + "\n")
    assert done.code == 0
    assert done.err == ""
    found = [json.loads(line) for line in done.out.splitlines()]
    assert [row["id"] for row in found] == ["1", "2", "3", "4", "x", "6"]
    assert [row["text"] for row in found] == [*task.texts[:3], "", "rain", lines[-1]]
    assert found[3]["category"] is None
    assert found[3]["probability"] is None
    model = load_model(small_run)
    assert [row["category"] for row in found[:3]] == model.predict(task.texts[:3]).names.tolist()
    assert all(0 < row["probability"] <= 1 for row in found if row["text"])


def test_predict_reads_lines_and_writes_a_table(
    command: Command, tmp_path: Path, small_run: Path
) -> None:
    out = tmp_path / "out.jsonl"
    assert command("predict", small_run, "-", "-o", out, stdin="rain\ncash\n").code == 0
    assert len(out.read_text().splitlines()) == 2
    assert command("predict", small_run, "-", stdin="").out == ""


def test_predict_writes_before_all_input_is_read(
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
    real = tables.stream_table
    monkeypatch.setattr(
        tables, "stream_table", lambda path, **options: real(path, chunk=7, **options)
    )
    sizes: list[int] = []
    plain = Model.predict

    def watched(self: Model, texts: list[str], **more: Any) -> Predictions:
        sizes.append(len(texts))
        return plain(self, texts, **more)

    monkeypatch.setattr(Model, "predict", watched)
    assert command("predict", small_run, table, "-o", tmp_path / "out.csv").code == 0
    assert len(rows_of(tmp_path / "out.csv")) == 121
    assert max(sizes) <= 7
    answered = [row["category"] != "" for row in rows_of(tmp_path / "out.csv")]
    assert answered == [True] * 100 + [False] * 20 + [True]  # some chunks are all empty


def test_predict_replaces_a_table_only_with_force(
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


def test_predict_uses_named_columns(command: Command, tmp_path: Path, small_run: Path) -> None:
    table = tmp_path / "new.csv"
    table.write_text("text,words,key\nwrong,rain,k1\nwrong,cash,k2\n")
    names = ["--text-column", "words", "--id-column", "key"]
    assert command("predict", small_run, table, "-o", tmp_path / "out.csv", *names).code == 0
    rows = rows_of(tmp_path / "out.csv")
    assert [(row["id"], row["text"]) for row in rows] == [("k1", "rain"), ("k2", "cash")]
    piped = ["predict", small_run, "-", "--text-column", "words"]
    done = command(*piped, stdin='{"words": "rain", "text": "wrong"}\n')
    assert json.loads(done.out)["text"] == "rain"


def test_predict_accepts_a_saved_model(command: Command, tmp_path: Path, small_run: Path) -> None:
    whole = command("predict", small_run, "-", stdin="rain\n")
    assert command("predict", small_run / "model", "-", stdin="rain\n").out == whole.out


def test_predict_in_a_subprocess_reads_a_pipe(small_run: Path, tmp_path: Path) -> None:
    environment = {"PYTHONIOENCODING": "latin-1", "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = run_process(
        "predict", small_run, "-", input="rain \u4f60 \xe9\n".encode(), env=environment
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    assert json.loads(done.stdout)["text"] == "rain \u4f60 \xe9"


def test_predict_uses_the_names_and_statuses_of_decisions(
    small_run: Path, tmp_path: Path, command: Command
) -> None:
    run, table = tmp_path / "run", tmp_path / "new.csv"
    shutil.copytree(small_run, run)
    # A text of each of the two novel categories.
    assigned = pd.read_csv(run / "assignments.csv").set_index("category_id")["text"]
    pd.DataFrame({"text": [assigned[[name]].iloc[0] for name in ("c3", "c4")]}).to_csv(table)
    for words in (["rename", "c3", "Noise"], ["accept", "c4"], ["merge", "c3", "--into", "c4"]):
        assert command("decide", run, *words).code == 0
    done = command("predict", run, table, "-o", tmp_path / "out.csv")
    assert "the model has not learnt 1 decision (merge, split, reject, move)" in done.err
    found = pd.read_csv(tmp_path / "out.csv")
    assert found["category"][0] == "Noise"
    assert found[["category_id", "status"]].values.tolist() == [
        ["c3", "proposed"],
        ["c4", "accepted"],
    ]


def test_closed_output_pipe_is_not_an_error(small_run: Path) -> None:
    program = f"'{sys.executable}' -m newfound predict '{small_run}' - | head -n 1"
    done = subprocess.run(
        ["bash", "-c", program], input=b"rain\n" * 5000, capture_output=True, check=False
    )
    assert done.stdout.count(b"\n") == 1
    assert done.stderr == b""


def test_interrupted_pipe_reports_the_number_of_lines_written(
    small_run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(prediction, "LINES", 10)

    def lines(count: int) -> Iterator[str]:
        yield from (f"rain {i}\n" for i in range(count))
        raise KeyboardInterrupt

    for count, message in (
        (0, "0 lines were written"),
        (25, "20 lines were written"),
    ):
        monkeypatch.setattr(sys, "stdin", lines(count))
        assert main(["predict", str(small_run), "-"]) == 130
        out, err = capsys.readouterr()
        assert err == f"newfound: interrupted; {message}\n"
        assert len(out.splitlines()) == int(message.split()[0])


def test_interrupt_leaves_no_table(
    small_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def lines() -> Iterator[str]:
        yield "rain\n"
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", lines())
    assert main(["predict", str(small_run), "-", "-o", str(tmp_path / "out.csv")]) == 130
    assert capsys.readouterr().err == "newfound: interrupted; nothing was written\n"
    assert everything_under(tmp_path) == set()


def test_alarm_sets_the_exit_code_if_more_texts_fit_nowhere_than_expected(
    command: Command, task: SmallTask, tmp_path: Path, small_run: Path
) -> None:
    usual, strange = tmp_path / "usual.csv", tmp_path / "strange.csv"
    usual.write_text("text\n" + "".join(f"{text}\n" for text in task.texts))
    strange.write_text("text\n" + "please help me now the a my\n" * 30)
    done = command("predict", small_run, usual, "-o", tmp_path / "a.csv", "--alarm")
    assert done.code == 0, done.err
    done = command("predict", small_run, strange, "-o", tmp_path / "b.csv", "--alarm")
    assert done.code == 3
    assert len(rows_of(tmp_path / "b.csv")) == 30  # written all the same
    assert done.out.endswith(": more than expected\n")
    done = command("predict", small_run, strange, "-o", tmp_path / "b.csv", "--force", "--json")
    assert done.code == 0
    found = json.loads(done.out)["misfits"]
    assert found["texts"] == found["count"] == 30
    assert found["more_than_expected"] is True


def test_alarm_works_on_standard_input_and_on_shards(
    command: Command, tmp_path: Path, small_run: Path
) -> None:
    lines = "please help me now the a my\n" * 30
    done = command("predict", small_run, "-", "--alarm", stdin=lines)
    assert done.code == 3
    assert len(done.out.splitlines()) == 30
    assert "30 texts fit nowhere" in done.err
    (tmp_path / "new.csv").write_text("text\n" + lines)
    engine = ("predict", small_run, tmp_path / "new.csv", "-o", tmp_path / "out")
    done = command(*engine, "--engine", "local", "--alarm", "--outside", "0.1")
    assert done.code == 3, done.err
    done = command(*engine, "--engine", "local", "--alarm")
    assert done.code == 2
    assert "add --outside" in done.err


def test_alarm_refuses_a_model_without_reference_texts(
    command: Command, tmp_path: Path, small_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "new.csv").write_text("text\nlost card\n")
    model = replace(load_model(small_run, "cpu"), fit_reference=None)
    monkeypatch.setattr("newfound.prediction.load_for_prediction", lambda *_: (model, []))
    out = tmp_path / "out.csv"
    done = command("predict", small_run, tmp_path / "new.csv", "-o", out, "--alarm")
    assert done.code == 2
    assert "no reference texts" in done.err
    assert not out.exists()
    done = command("predict", small_run, tmp_path / "new.csv", "-o", out)
    assert (done.code, done.out) == (0, f"1 text: {out}\n")
