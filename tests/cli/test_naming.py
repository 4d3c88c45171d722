"""`newfound discover --name-with`: names from an endpoint, end to end, against a local server."""

import csv
import json
from pathlib import Path

import pytest
from support.endpoint import FakeEndpoint, chat, keyword_of

from newfound.cli.main import main
from newfound.describing import llm_names as naming

QUICK = ["--method", "dpn", "--effort", "fast", "--categories", "4"]
QUICK += ["--set", "epochs=1", "--set", "pretrain_epochs=1"]
TEXTS = {
    "card": ("lost my card", "my card now", "the card please", "help my lost card", "card card"),
    "weather": ("rain day", "cold rain", "sun day warm", "the weather", "warm weather day"),
    "": (
        "book a flight", "hotel trip book", "travel flight", "book hotel", "a trip please",
        "play music", "loud song", "stop the music", "play a song", "music please",
        "my lost card now", "cold day rain",
    ),
}  # fmt: skip


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "texts.csv"
    with path.open("w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["text", "label"])
        writer.writerows((text, label) for label, texts in TEXTS.items() for text in texts)
    return path


@pytest.fixture
def server(endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch) -> FakeEndpoint:
    monkeypatch.setattr(naming, "PAUSE", 0.01)
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    monkeypatch.delenv("NEWFOUND_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return endpoint


def discover(table: Path, encoder: str, *more: str) -> tuple[int, Path]:
    run = table.parent / "run"
    code = main(["discover", str(table), "-o", str(run), "--encoder", encoder, *QUICK, *more])
    return code, run


def read(run: Path) -> tuple[list[dict], list[dict], dict]:
    with (run / "assignments.csv").open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    categories = json.loads((run / "categories.json").read_text())
    return rows, categories, json.loads((run / "run.json").read_text())


def test_names_from_the_endpoint_are_in_every_file_of_the_run(
    table: Path,
    tiny_encoder: str,
    server: FakeEndpoint,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "the-other-key")
    monkeypatch.setenv("NEWFOUND_API_KEY", "secret-key")
    server.reply = lambda body: chat(f"Named {keyword_of(body)}")
    code, run = discover(table, tiny_encoder, "--name-with", server.url, "--name-model", "tiny")
    output = capsys.readouterr()
    assert code == 0, output.err
    rows, categories, about = read(run)
    novel = [c["name"] for c in categories if c["kind"] == "novel"]
    assert len(novel) == 2
    assert all(name.startswith("Named ") for name in novel)
    assert [c["name"] for c in categories if c["kind"] == "known"] == ["card", "weather"]
    assert {row["category"] for row in rows if row["kind"] == "novel"} <= set(novel)
    assert {row["category"] for row in rows} <= {c["name"] for c in categories}
    assert about["matching"]["prototypes"] == [c["name"] for c in categories]
    assert any("2 of 2 novel names come from tiny" in note for note in about["notes"])
    assert "2 of 2 novel names come from tiny" in output.err
    assert novel[0] in output.out
    assert about["seconds"]["naming"] >= 0
    model = json.loads((run / "model" / "model.json").read_text())
    assert [c["name"] for c in model["categories"]] == [c["name"] for c in categories]
    assert novel[0] in (run / "report.html").read_text()
    assert {headers["Authorization"] for headers in server.headers} == {"Bearer secret-key"}
    assert not any("secret-key" in p.read_text() for p in run.rglob("*.json*"))


@pytest.mark.parametrize("equals", [False, True])
def test_credentials_in_the_address_are_in_no_file_and_no_output(
    table: Path,
    tiny_encoder: str,
    server: FakeEndpoint,
    capsys: pytest.CaptureFixture[str],
    equals: bool,
) -> None:
    url = server.url.replace("http://", "http://someone:PASSWORD@") + "?api_key=APIKEY"
    flags = [f"--name-with={url}"] if equals else ["--name-with", url]
    code, run = discover(table, tiny_encoder, *flags, "--name-model", "tiny", "--verbose")
    output = capsys.readouterr()
    assert code == 0, output.err
    assert server.paths[0].endswith("?api_key=APIKEY")
    about = json.loads((run / "run.json").read_text())
    assert "***@127.0.0.1" in about["command"]
    assert main(["info", str(run)]) == 0
    printed = output.out + output.err + capsys.readouterr().out
    for secret in ("PASSWORD", "APIKEY", "someone"):
        assert secret not in printed
        for file in run.rglob("*"):
            assert file.is_dir() or secret.encode() not in file.read_bytes(), file


def test_failing_endpoint_keeps_keyword_names_with_a_note(
    table: Path, tiny_encoder: str, server: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "the-other-key")
    server.reply = lambda body: (500, b"")
    code, run = discover(table, tiny_encoder, "--name-with", server.url, "--name-model", "tiny")
    assert code == 0
    _, categories, about = read(run)
    told = [note for note in about["notes"] if "named by its keywords: HTTP error 500" in note]
    assert len(told) == 2
    for category in categories:
        assert category["kind"] == "known" or any(repr(category["name"]) in n for n in told)
    assert {headers["Authorization"] for headers in server.headers} == {"Bearer the-other-key"}


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--name-with", "localhost:8000", "--name-model", "m"], "is not a valid URL"),
        (["--name-with", "http://localhost:8000/v1"], "add --name-model"),
        (["--name-model", "m"], "add --name-with"),
    ],
)
def test_invalid_naming_flags_are_errors_before_discovery(
    flags: list[str], said: str, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, run = discover(table, "no-such-encoder", *flags)  # would fail later, were it reached
    assert code == 2
    assert said in capsys.readouterr().err
    assert not run.exists()


def test_no_request_is_sent_without_the_flag(
    table: Path, tiny_encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the endpoint was asked")

    monkeypatch.setattr("newfound.pipeline.names_from_endpoint", refuse)
    monkeypatch.setenv("NEWFOUND_API_KEY", "secret-key")
    assert discover(table, tiny_encoder)[0] == 0
