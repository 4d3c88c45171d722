"""A discovery with an embedding service, from the table to new texts."""

import json
from pathlib import Path

import numpy as np
import pytest
from support.commands import Command, Refuse
from support.embedding_service import EmbeddingService, Reply, good
from support.small_texts import SmallTask

from newfound import CategoryDiscoverer
from newfound.encoding.vectors import service

KEY = "sk-very-secret-0123456789"
FLAGS = ["--categories", "4", "--method", "dpn", "--device", "cpu"]
FLAGS += ["--set", "epochs=1", "--set", "pretrain_epochs=1"]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "PAUSE", 0.01)
    monkeypatch.setattr(service, "BATCH", 16)
    monkeypatch.setenv("NEWFOUND_EMBEDDING_KEY", KEY)


def test_discover_and_predict_with_a_service(
    command: Command,
    put: object,
    task: SmallTask,
    embedding_service: EmbeddingService,
    tmp_path: Path,
) -> None:
    table = tmp_path / "table.csv"
    table.write_text(task.csv())
    run = tmp_path / "run"
    encoder = ["--encoder", embedding_service.address]
    done = command("discover", table, "-o", run, *encoder, *FLAGS)
    assert done.code == 0, done.err
    tokens = sum(len(text.split()) for text in task.texts)
    assert f"64 texts were sent to tiny at 127.0.0.1:{embedding_service.server_port}" in done.err
    assert f"({tokens} tokens)" in done.err
    assert sorted(embedding_service.texts) == sorted(task.texts)
    records = json.loads((run / "run.json").read_text())
    assert embedding_service.address in records["command"]  # the model is part of it
    assert records["settings"]["effort"] == "fast"
    for file in run.rglob("*"):
        assert file.is_dir() or KEY.encode() not in file.read_bytes(), file
    assert KEY not in done.out + done.err
    # New texts are sent; those of the run are stored.
    (tmp_path / "new.csv").write_text("text\nlost my card\nthe rain\n" + task.texts[0] + "\n")
    done = command("predict", run, tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    assert done.code == 0, done.err
    assert sorted(embedding_service.texts[64:]) == ["lost my card", "the rain"]
    assert "2 texts were sent" in done.err
    loaded = CategoryDiscoverer.load(run, device="cpu")
    assert np.array_equal(loaded.predict(task.texts), loaded.classes_[loaded.predicted_])
    assert len(embedding_service.texts) == 66


def test_command_goes_on_after_a_fault_and_pays_nothing_twice(
    command: Command, task: SmallTask, embedding_service: EmbeddingService, tmp_path: Path
) -> None:
    table = tmp_path / "table.csv"
    table.write_text(task.csv())
    flags = ["-o", tmp_path / "run", "--encoder", embedding_service.address, *FLAGS]
    embedding_service.faults = [good, good, *[lambda body: Reply(500)] * 100]
    done = command("discover", table, *flags)
    assert done.code == 2
    assert "HTTP error 500" in done.err
    assert "the same command goes on from there" in done.err
    assert not (tmp_path / "run").exists()
    embedding_service.faults.clear()
    paid = {text for body in embedding_service.asked[:2] for text in body["input"]}
    embedding_service.asked.clear()
    assert command("discover", table, *flags).code == 0
    assert not paid & set(embedding_service.texts)
    assert paid | set(embedding_service.texts) == set(task.texts)


def test_wrong_addresses_get_one_sentence(refuse: Refuse, task: SmallTask, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text(task.csv())
    run = ["discover", table, "-o", tmp_path / "run", "--encoder"]
    assert "needs the name of a model after #" in refuse(*run, "https://host/v1")
    assert "unencrypted" in refuse(*run, "http://example.com/v1#m")
    message = refuse(*run, f"https://user:{KEY}@host/v1#m")
    assert "put the key into the environment variable NEWFOUND_EMBEDDING_KEY" in message
    assert KEY not in message
    assert "only vectors; use effort fast" in refuse(
        *run, "https://host/v1#m", "--method", "dpn", "--effort", "best"
    )
