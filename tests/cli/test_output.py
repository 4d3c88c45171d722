"""--quiet, --verbose and --json: what goes to standard output and what to standard error."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.bench_fakes import save_tiny_data_set
from support.commands import Command, Refuse, put_task
from support.small_texts import KNOWN, SmallTask

from newfound.cli.output import json_line
from newfound.errors import InputError

pytestmark = pytest.mark.usefixtures("quick_newfound")


@pytest.fixture
def table(task: SmallTask, tmp_path: Path) -> Path:
    return put_task(tmp_path / "t.csv", task)  # its columns are guessed, which gives a note


def test_quiet_prints_only_the_result(
    command: Command, table: Path, flags: list[str], small_run: Path, tiny_encoder: str
) -> None:
    out = table.parent
    for arguments in (
        ["discover", table, "-o", out / "run", "--categories", "4", *flags],
        ["estimate", table, "--encoder", tiny_encoder],
        ["predict", small_run, table, "-o", out / "p.csv"],
        ["report", small_run, "-o", out / "r.html"],
        ["export", small_run, "--to", "csv", "-o", out / "e.csv"],
    ):
        done = command(*arguments, "--quiet")
        assert done.code == 0, done.err
        assert done.out
        assert done.err == ""


def test_quiet_still_prints_errors(refuse: Refuse, tmp_path: Path) -> None:
    assert str(tmp_path / "gone") in refuse("report", tmp_path / "gone", "--quiet")
    said = refuse("discover", tmp_path / "gone.csv", "-o", tmp_path / "run", "-q")
    assert "there is no such file" in said


def test_verbose_adds_settings_and_seconds_per_stage(
    command: Command, table: Path, flags: list[str], small_run: Path, tiny_encoder: str
) -> None:
    done = command("discover", table, "-o", table.parent / "run", "--categories", "4", *flags, "-v")
    assert done.code == 0, done.err
    assert "settings: method=dpn, " in done.err
    assert re.search(r"^settings: .*pretrain_epochs=2", done.err, re.MULTILINE)
    for stage in ("pretraining", "describing"):
        assert re.search(rf"^{stage}: \d+\.\d s$", done.err, re.MULTILINE), done.err
    plain = command(
        "discover", table, "-o", table.parent / "run", "--categories", "4", *flags, "--force"
    )
    assert "settings: " not in plain.err
    done = command("estimate", table, "--encoder", tiny_encoder, "-v")
    assert re.search(r"^encoding: \d+\.\d s$", done.err, re.MULTILINE)
    assert "settings: method=newfound, encoder=" in done.err
    done = command("predict", small_run, table, "-o", table.parent / "p.csv", "--verbose")
    assert re.search(r"^loading the model: \d+\.\d s$", done.err, re.MULTILINE)
    assert re.search(r"^predicting: \d+\.\d s$", done.err, re.MULTILINE)


def one_object(text: str) -> dict[str, Any]:
    """Return the one JSON object that a command printed."""
    assert text.count("\n") == 1
    value = json.loads(text)
    assert isinstance(value, dict)
    return value


def test_discover_and_info_print_the_same_json(
    command: Command, table: Path, flags: list[str]
) -> None:
    run = table.parent / "run"
    done = command("discover", table, "-o", run, "--categories", "4", *flags, "--json")
    value = one_object(done.out)
    assert value["run"] == str(run)
    assert value["report"] == str(run / "report.html")
    assert (value["texts"], value["labelled"]) == (64, 12)
    assert (value["n_categories"], value["n_known"], value["n_novel"]) == (4, 2, 2)
    assert [c["name"] for c in value["categories"] if c["kind"] == "known"] == list(KNOWN)
    assert sum(c["size"] for c in value["categories"]) == 64
    assert value["settings"]["method"] == "dpn"
    assert value["estimate"] is None
    assert value["scores"] is None
    assert value["seconds"]["total"] > 0
    assert any("guessed the text column" in note for note in value["notes"])
    assert "guessed the text column" in done.err  # notes are printed as well
    info = one_object(command("info", run, "--json").out)
    assert (info.pop("decisions"), info.pop("problems")) == (0, [])
    assert info == value


def test_demo_prints_scores_as_json(command: Command, flags: list[str], tmp_path: Path) -> None:
    done = command("demo", "-o", tmp_path / "demo", *flags, "--json")
    value = one_object(done.out)
    assert set(value["scores"]) == {"all", "known", "novel", "nmi", "ari"}
    assert value["texts"] == 1095
    assert "Demo: 1,095 help-desk messages" in done.err
    done = command("demo", "-o", tmp_path / "demo", *flags, "--quiet")
    assert "Demo: " not in done.out + done.err
    assert "Accuracy on the unlabelled messages" in done.out


def test_estimate_prints_json(command: Command, table: Path, tiny_encoder: str) -> None:
    value = one_object(command("estimate", table, "--encoder", tiny_encoder, "--json").out)
    assert (value["texts"], value["n_known"]) == (64, 2)
    assert value["low"] <= value["estimate"] <= value["high"]
    assert value["notes"]


def test_predict_prints_its_summary_as_json(
    command: Command, refuse: Refuse, small_run: Path, tmp_path: Path
) -> None:
    table = tmp_path / "new.csv"
    table.write_text('text,note\nlost card,1\n"",2\n')
    done = command("predict", small_run, table, "-o", tmp_path / "out.csv", "--json")
    value = one_object(done.out)
    assert (value["out"], value["texts"]) == (str(tmp_path / "out.csv"), 2)
    assert any("1 row has no text in column 'text' (first: row 2)" in n for n in value["notes"])
    assert len(set(value["notes"])) == len(value["notes"])
    assert "are JSON Lines already" in refuse("predict", small_run, "-", "--json")


def test_export_prints_json(command: Command, small_run: Path, tmp_path: Path) -> None:
    arguments = ["export", small_run, "--to", "csv", "-o", tmp_path / "e.csv", "--kind", "known"]
    value = one_object(command(*arguments, "--json").out)
    assert value["files"] == [str(tmp_path / "e.csv")]
    assert value["categories"] == list(KNOWN)
    assert value["texts"] > 12


def test_methods_print_json(command: Command) -> None:
    from newfound.methods import METHODS

    value = one_object(command("methods", "--json").out)
    assert [method["name"] for method in value["methods"]] == list(METHODS)
    one = one_object(command("methods", "dpn", "--json").out)
    assert one == next(method for method in value["methods"] if method["name"] == "dpn")
    assert ("epochs", "int") in [(setting["name"], setting["type"]) for setting in one["settings"]]
    assert set(one["efforts"]) == {"fast", "balanced", "best"}


@pytest.fixture
def bench_commands(tiny_encoder: str, tmp_path: Path) -> dict[str, list[str]]:
    """The arguments of quick `newfound bench` commands, by the command's name."""
    data = str(save_tiny_data_set(tmp_path / "data"))
    fixed = ["--data", data, "--data-set", "banking", "--seeds", "0"]
    model = ["--encoder", tiny_encoder, "--device", "cpu", "--effort", "fast"]
    speed = ["--texts", "20", "--repeats", "1", "--only", "kmeans", "--encoder", tiny_encoder]
    commands = {
        "run": [*fixed, *model, "--method", "bert"],
        "count": [*fixed, *model],
        "splits": fixed,
        "wild": [*fixed, *model, "--methods", "bert", "--designs", "ten"],
        "speed": ["--data", data, *speed],
    }
    return {
        name: ["bench", name, *flags, "-o", str(tmp_path / f"{name}.jsonl")]
        for name, flags in commands.items()
    }


@pytest.mark.parametrize("name", ["run", "count", "splits", "wild", "speed"])
def test_bench_commands_print_their_lines_as_json(
    name: str, command: Command, bench_commands: dict[str, list[str]], tmp_path: Path
) -> None:
    done = command(*bench_commands[name], "--json", "--quiet")
    assert done.code == 0, done.err
    assert done.err == ""
    value = one_object(done.out)
    written = (tmp_path / f"{name}.jsonl").read_text().splitlines()
    assert value["lines"] == [json.loads(line) for line in written]
    assert len(value["lines"]) == 1
    if name == "run":
        table = one_object(command("bench", "table", tmp_path / "run.jsonl", "--json").out)
        assert table["lines"] == value["lines"]


def test_verbose_benchmark_prints_seconds_per_stage(
    command: Command, bench_commands: dict[str, list[str]]
) -> None:
    for name in ("run", "wild"):
        done = command(*bench_commands[name], "-v")
        assert re.search(r"^encoding: \d+\.\d s$", done.err, re.MULTILINE), done.err
        assert "[1/1] banking, " in done.err
        assert re.search(r"^settings: .*given_k=True", done.err, re.MULTILINE)
        assert "1 new result line in " in done.out


def test_quiet_benchmark_still_prints_failures(
    command: Command, bench_commands: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: Any, **more: Any) -> None:
        raise InputError("no such weights")

    monkeypatch.setattr("newfound.bench.runner.fit", fail)
    done = command(*bench_commands["run"], "--quiet")
    assert done.code == 1
    assert "failed: no such weights" in done.err
    assert "have their lines" not in done.err


def test_json_has_no_nan_and_only_what_the_encoding_can_print(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Latin:
        encoding = "latin-1"

    assert json_line({"x": float("nan"), "name": "\u4f60"}) == '{"x": null, "name": "\u4f60"}'
    monkeypatch.setattr("sys.stdout", Latin())
    assert json_line({"name": "\u4f60"}) == '{"name": "\\u4f60"}'
