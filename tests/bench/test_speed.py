"""`newfound bench speed`: what it draws, measures, writes and renders."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.bench_fakes import save_tiny_data_set

from newfound import devices
from newfound.bench import growth, speed, steps
from newfound.bench.datasets import DataSet, read_data_set
from newfound.bench.layouts import in_turns, measure_encoding, measure_kmeans, measure_training
from newfound.bench.lines import read_lines
from newfound.bench.processes import Finished, newfound_command, run_process
from newfound.bench.runner import Plan
from newfound.bench.speed_table import GOALS, speed_table
from newfound.cli.main import main
from newfound.data.task import make_task
from newfound.encoding.batching import Ragged
from newfound.encoding.feature_maps import EncoderFeatures
from newfound.encoding.loading import load_encoder
from newfound.errors import InputError
from newfound.methods.dpn import DPNConfig


@pytest.fixture
def tiny_data(tmp_path: Path) -> Path:
    return save_tiny_data_set(tmp_path / "data")


def in_this_process(command: list[str]) -> Finished:
    """Run a command of ours without a new interpreter, which takes seconds to start."""
    start = len(newfound_command())
    assert command[:start] == newfound_command()
    assert main(command[start:]) == 0
    return Finished(4.0, 300, "")


def many(count: int, categories: int = 8) -> DataSet:
    texts = [f"text {i}" for i in range(count)]
    labels = [f"c{i % categories}" for i in range(count)]
    return DataSet("banking", {"train": texts}, {"train": labels})


def test_a_draw_labels_some_texts_of_some_categories() -> None:
    drawn = speed.draw(many(800), 400)
    assert len(drawn.texts) == len(set(drawn.texts)) == 400
    assert len(drawn.known) == 6
    for category in {*drawn.truth}:
        own = [i for i, truth in enumerate(drawn.truth) if truth == category]
        given = [drawn.labels[i] for i in own if drawn.labels[i]]
        assert set(given) <= {category}
        assert len(given) == (round(0.1 * len(own)) if category in drawn.known else 0)
    assert drawn == speed.draw(many(800), 400)
    assert drawn != speed.draw(many(800), 400, seed=1)
    assert len(speed.draw(many(50), 400).texts) == 50


def test_accuracy_looks_at_unlabelled_texts_only() -> None:
    drawn = speed.Drawn(list("abcd"), ["x", "", "", ""], ["x", "x", "y", "y"], ["x"])
    assert drawn.accuracy(["9", "1", "2", "2"]) == 100
    assert drawn.accuracy([0, 1, 2, 1]) == pytest.approx(66.67)


def test_a_process_is_timed_with_its_own_memory() -> None:
    python = [sys.executable, "-c"]
    large = run_process([*python, "x = bytearray(150 * 2**20); print(len(x))"])
    small = run_process([*python, "import time; time.sleep(0.3)"])
    assert large.output.strip() == str(150 * 2**20)
    assert large.peak_mb - small.peak_mb == pytest.approx(150, abs=30)
    assert small.seconds > 0.3
    with pytest.raises(InputError, match=r"failed .*no such thing"):
        run_process([*python, "raise SystemExit('no such thing')"])


def test_work_takes_turns_and_gives_medians() -> None:
    order: list[str] = []
    found = in_turns({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 3)
    assert order == ["a", "b"] * 3
    assert all(sorted(m["runs"])[1] == round(m["seconds"], 4) for m in found.values())


def test_encoding_is_compared_with_what_is_there(tiny_encoder: str) -> None:
    plain = EncoderFeatures(load_encoder(tiny_encoder), frozen_layers=3)
    texts = ["lost my card", "play a song", "rain"] * 4
    found = measure_encoding(plain, texts, 2, lambda t: 3 * plain(t), None)
    assert set(found) == {"fp32", "sentence-transformers"}
    assert found["sentence-transformers"]["cosine"] == pytest.approx(1)
    assert found["fp32"]["texts_per_second"] > 0


def test_every_training_layout_runs_and_leaves_the_encoder_alone(tiny_encoder: str) -> None:
    encoder = load_encoder(tiny_encoder)
    before = {name: value.clone() for name, value in encoder.backbone.state_dict().items()}
    found = measure_training(encoder, ["lost my card please", "play a song now", "rain"] * 4, 1)
    assert len(found) == 8
    assert all(measure["texts_per_second"] > 0 for measure in found.values())
    for name, value in encoder.backbone.state_dict().items():
        np.testing.assert_array_equal(value, before[name])


def test_kmeans_is_measured_at_its_inertia() -> None:
    features = np.random.default_rng(0).normal(size=(300, 4)).astype(np.float32)
    found = measure_kmeans(features, 5, 1, starts=5)
    assert found["ours"]["inertia"] == pytest.approx(found["scikit-learn"]["inertia"], rel=0.05)


def test_the_command_appends_lines_and_prints_tables(
    tiny_data: Path, tiny_encoder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "speed.jsonl"
    arguments = ["--data", str(tiny_data), "--encoder", tiny_encoder, "--repeats", "1"]
    arguments += ["--only", "training,kmeans", "--texts", "40", "-o", str(out)]
    assert main(["bench", "speed", *arguments]) == 0
    lines = read_lines(out)
    assert [line["method"] for line in lines] == ["training", "kmeans"]
    assert all(line["kind"] == "speed" and line["versions"] for line in lines)
    shown = capsys.readouterr().out
    assert "k-means, 10 starts, against scikit-learn" in shown
    assert "head on pooled vectors" in shown


def test_discover_is_compared_with_peers(
    tiny_data: Path, tiny_encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speed, "_installed", lambda package: package != "bertopic")
    ran: list[list[str]] = []

    def fake(command: list[str]) -> Finished:
        ran.append(command)
        if "newfound.bench.peers" in command:
            return Finished(9.0, 500, json.dumps({"seconds": {"work": 2.0}, "topics": None}))
        return in_this_process(command)

    monkeypatch.setattr(speed, "run_process", fake)
    asked = speed.Asked(
        read_data_set(tiny_data, "banking"),
        texts=60,
        repeats=1,
        encoder=tiny_encoder,
        efforts=("fast",),
    )
    measures, notes = speed.MEASURE["discover"](asked)
    assert set(measures) == {"encoding", "fast"}
    assert measures["encoding"]["seconds"] == 2.0
    assert 20 < measures["fast"]["accuracy"] <= 100
    assert measures["fast"]["seconds"] == 4.0
    assert len(notes) == 2
    assert len(ran) == 2


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--only", "magic"], "--only takes some of encoding"),
        (["--only", ","], "--only takes"),
        (["--efforts", "great"], "--efforts takes some of fast"),
        (["--repeats", "0"], "--repeats must be at least 1"),
        (["--growth-texts", "2"], "--growth-texts must be at least 8"),
    ],
)
def test_wrong_options_are_told_in_one_line(
    flags: list[str], told: str, tiny_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "speed", "--data", str(tiny_data), *flags]) == 2
    assert told in capsys.readouterr().err


def test_growth_on_a_small_scale(
    tiny_encoder: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(growth, "run_process", in_this_process)
    monkeypatch.setattr(growth, "CATEGORIES", 5)
    found = growth.measure_predict(tmp_path, tiny_encoder, 80)
    assert [measure["texts"] for measure in found.values()] == [20, 40, 80]
    assert not list(tmp_path.glob("*.out.csv"))
    capsys.readouterr()
    growth.main("3000", "8", "5")
    assert json.loads(capsys.readouterr().out)["iterations"] >= 1


def line(section: str, measures: dict[str, Any]) -> dict[str, Any]:
    return {
        "kind": "speed",
        "method": section,
        "data_set": "banking",
        "encoder": "minilm",
        "config": {"texts": 4000, "repeats": 3},
        "measures": measures,
        "notes": [],
        "device": "cpu, 2 threads",
    }


def goals(text: str) -> dict[str, str]:
    rows = [row.strip("| ").split(" | ") for row in text.splitlines() if row.startswith("|")]
    return {row[0]: row[-1] for row in rows[2 : 2 + len(GOALS)]}


def test_the_table_says_which_goals_hold() -> None:
    lines = [
        line("encoding", {"fp32": {"seconds": 100.0}}),  # an older measurement
        line(
            "encoding",
            {
                "fp32": {"seconds": 10.0},
                "int8": {"seconds": 6.0, "cosine": 0.9985},
                "sentence-transformers": {"seconds": 15.0},
            },
        ),
        line(
            "kmeans",
            {
                "ours": {"seconds": 5.0, "inertia": 100.2},
                "scikit-learn": {"seconds": 10.0, "inertia": 100.0},
            },
        ),
        line(
            "discover",
            {
                "encoding": {"seconds": 10.0},
                "bertopic": {"seconds": 30.0, "accuracy": 40.0},
                "bertopic-kmeans": {"seconds": 30.0, "accuracy": 67.0},
                "fast": {"seconds": 13.0, "accuracy": 73.0},
                "balanced": {"seconds": 26.0, "accuracy": 72.0},
            },
        ),
        line(
            "growth",
            {
                "predict 10 texts": {"texts": 10, "seconds": 5.0, "peak_mb": 500},
                "predict 110 texts": {"texts": 110, "seconds": 6.0, "peak_mb": 600},
                "predict 210 texts": {"texts": 210, "seconds": 9.0, "peak_mb": 900},
            },
        ),
        line("runs", {"banking": {"seconds": 40.0}, "clinc": {"seconds": 120.0}}),
    ]
    table = speed_table(lines)
    holds = list(goals(table).values())
    assert holds == [
        *("yes", "no", "yes"),  # fp32, int8, its cosine
        "yes",  # k-means
        *("yes", "yes", "no", "no", "yes"),  # fast, its accuracy, balanced, accuracy, BERTopic
        *("no", "no"),  # memory, time per text
        *("yes", "no"),  # whole runs
    ]
    assert "| int8 | 6.00 | 0.9985 | 2.50 |" in table
    assert "| `newfound discover --effort fast` | 13.00 | 73.0 | 1.30 |" in table


def test_what_was_not_measured_is_left_open() -> None:
    assert speed_table([{"kind": "speed", "seconds": 1}]) == "Nothing was measured yet.\n"
    table = speed_table([line("discover", {"fast": {"seconds": 13.0, "accuracy": 71.0}})])
    assert set(goals(table).values()) == {"no", "–"}  # noqa: RUF001


def test_epochs_beside_the_plain_way(
    tiny_data: Path, tiny_encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "SHORT_RUN", 1)
    monkeypatch.setattr(steps, "LONG_RUN", 2)
    monkeypatch.setattr(steps, "PLAIN_STEPS", 1)
    data = read_data_set(tiny_data, "banking")
    found = steps.measure_epochs(data, tiny_encoder, torch.device("cpu"), 1)
    names = ["pretraining", "training", "pretraining, plain", "training, plain"]
    assert list(found) == names
    assert found["pretraining, plain"]["seconds"] > 0
    # 80 texts in batches of 128; 74 without a label in batches of 256
    assert (found["pretraining"]["steps"], found["training"]["steps"]) == (1, 1)
    assert found["pretraining"]["flop"] > 0
    assert "floor_seconds" not in found["training"]  # this device's peak is not known


def test_whole_runs_and_one_the_plain_way(
    tiny_data: Path, tiny_encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain: list[bool] = []
    real = steps.run

    def watched(plan: Plan, data: DataSet) -> Any:
        plain.append(devices.plain())
        assert (plan.method, plan.seed) == ("dpn", 3)
        return real(replace(plan, settings={"pretrain_epochs": 1, "epochs": 1}), data)

    monkeypatch.setattr(steps, "run", watched)
    found = steps.measure_runs(tiny_data, tiny_encoder, 3)
    assert list(found) == ["banking", "banking, plain"]  # the other data sets are not there
    assert plain == [False, True]
    assert not devices.plain()
    assert found["banking"]["seconds"] >= found["banking"]["pretraining_seconds"] > 0
    assert 0 < found["banking"]["accuracy"] <= 100


def test_the_least_cost_of_an_epoch_by_hand(tiny_encoder: str) -> None:
    encoder = load_encoder(tiny_encoder)  # 3 layers of width 32, inner width 64
    lengths = np.full(300, 10)
    tokens = Ragged.from_lengths(torch.zeros(3000, dtype=torch.int64), lengths)
    targets = np.where(np.arange(300) < 44, 0, -1)
    task = make_task(["a"] * 300, targets, ["x"], 2, validation=([], np.empty(0, np.int64)))
    config = DPNConfig(batch=64, labelled_batch=16)
    cpu = torch.device("cpu")
    least = steps.least_cost(task, tokens, encoder, config, 2, cpu)
    layer = 4 * 32 * 32 + 2 * 32 * 64
    assert least["steps"] == 4  # 256 unlabelled texts
    assert least["flop"] == 6 * layer * 2 * 10 * (256 + 4 * 16)
    assert least["bytes"] == steps.ADAM_BYTES * layer * 2 * 4
