"""`newfound bench speed`: samples, measurements, result lines and the tables it prints."""

import json
import sys
from argparse import Namespace
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.bench_fakes import save_tiny_data_set

from newfound import devices
from newfound.bench.datasets import DataSet, read_data_set
from newfound.bench.lines import read_lines
from newfound.bench.runner import Plan
from newfound.bench.speed import epochs, growth, prediction, scaling, sections
from newfound.bench.speed.components import measure_encoding, measure_kmeans, measure_training
from newfound.bench.speed.processes import Finished, newfound_command, run_process
from newfound.bench.speed.sample import Sample, draw_distinct_texts, draw_sample, enlarge
from newfound.bench.speed.table import section_tables
from newfound.bench.speed.timing import time_in_turns
from newfound.cli.main import main
from newfound.cli.output import Output
from newfound.data.task import make_task
from newfound.encoding.batching import Ragged
from newfound.encoding.feature_maps import EncoderFeatures
from newfound.encoding.loading import load_encoder
from newfound.errors import InputError
from newfound.methods.dpn import DPNConfig

pytestmark = pytest.mark.usefixtures("quick_newfound")


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


def test_sample_labels_some_texts_of_known_categories() -> None:
    drawn = draw_sample(many(800), 400)
    assert len(drawn.texts) == len(set(drawn.texts)) == 400
    assert len(drawn.known) == 6
    for category in {*drawn.truth}:
        own = [i for i, truth in enumerate(drawn.truth) if truth == category]
        given = [drawn.labels[i] for i in own if drawn.labels[i]]
        assert set(given) <= {category}
        assert len(given) == (round(0.1 * len(own)) if category in drawn.known else 0)
    assert drawn == draw_sample(many(800), 400)
    assert drawn != draw_sample(many(800), 400, seed=1)
    assert len(draw_sample(many(50), 400).texts) == 50


def test_sample_accuracy_counts_unlabelled_texts_only() -> None:
    drawn = Sample(list("abcd"), ["x", "", "", ""], ["x", "x", "y", "y"], ["x"])
    assert drawn.accuracy(["9", "1", "2", "2"]) == 100
    assert drawn.accuracy([0, 1, 2, 1]) == pytest.approx(66.67)


def test_run_process_measures_the_memory_of_that_process() -> None:
    python = [sys.executable, "-c"]
    large = run_process([*python, "x = bytearray(150 * 2**20); print(len(x))"])
    small = run_process([*python, "import time; time.sleep(0.3)"])
    assert large.output.strip() == str(150 * 2**20)
    assert large.peak_mb - small.peak_mb == pytest.approx(150, abs=30)
    assert small.seconds > 0.3
    with pytest.raises(InputError, match=r"failed .*no such thing"):
        run_process([*python, "raise SystemExit('no such thing')"])


def test_time_in_turns_alternates_and_returns_medians() -> None:
    order: list[str] = []
    found = time_in_turns({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 3)
    assert order == ["a", "b"] * 3
    assert all(sorted(m["runs"])[1] == round(m["seconds"], 4) for m in found.values())


def test_measure_encoding_compares_with_the_given_encoders(tiny_encoder: str) -> None:
    plain = EncoderFeatures(load_encoder(tiny_encoder), frozen_layers=3)
    texts = ["lost my card", "play a song", "rain"] * 4
    found = measure_encoding(plain, texts, 2, lambda t: 3 * plain(t), None)
    assert set(found) == {"fp32", "sentence-transformers"}
    assert found["sentence-transformers"]["cosine"] == pytest.approx(1)
    assert found["fp32"]["texts_per_second"] > 0


def test_measure_training_restores_the_encoder(tiny_encoder: str) -> None:
    encoder = load_encoder(tiny_encoder)
    before = {name: value.clone() for name, value in encoder.backbone.state_dict().items()}
    found = measure_training(encoder, ["lost my card please", "play a song now", "rain"] * 4, 1)
    assert len(found) == 8
    assert all(measure["texts_per_second"] > 0 for measure in found.values())
    for name, value in encoder.backbone.state_dict().items():
        np.testing.assert_array_equal(value, before[name])


def test_measure_kmeans_reaches_the_inertia_of_scikit_learn() -> None:
    features = np.random.default_rng(0).normal(size=(300, 4)).astype(np.float32)
    found = measure_kmeans(features, 5, 1, starts=5)
    assert found["ours"]["inertia"] == pytest.approx(found["scikit-learn"]["inertia"], rel=0.05)


def test_bench_speed_appends_lines_and_prints_tables(
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
    assert "**k-means, 10 starts** (cpu" in shown
    assert "head on pooled vectors" in shown


def test_section_discover_compares_with_peers(
    tiny_data: Path, tiny_encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sections, "_installed", lambda package: package != "bertopic")
    ran: list[list[str]] = []

    def fake(command: list[str]) -> Finished:
        ran.append(command)
        if "newfound.bench.speed.peers" in command:
            return Finished(9.0, 500, json.dumps({"seconds": {"work": 2.0}, "topics": None}))
        return in_this_process(command)

    monkeypatch.setattr(sections, "run_process", fake)
    options = sections.SpeedOptions(
        read_data_set(tiny_data, "banking"),
        texts=60,
        repeats=1,
        encoder=tiny_encoder,
        efforts=("fast",),
    )
    measures, notes = sections.MEASURE["discover"](options)
    assert set(measures) == {"encoding", "fast"}
    assert measures["encoding"]["seconds"] == 2.0
    assert 20 < measures["fast"]["accuracy"] <= 100
    assert measures["fast"]["seconds"] == 4.0
    assert len(notes) == 2
    assert len(ran) == 2


def test_distinct_texts_come_from_all_data_sets_and_have_no_repeats(tmp_path: Path) -> None:
    for name in ("banking", "clinc"):  # the same texts in both
        save_tiny_data_set(tmp_path, name)
    save_tiny_data_set(tmp_path, "stackoverflow")
    extra = tmp_path / "stackoverflow" / "train.tsv"
    extra.write_text(extra.read_text() + "only in this data set\tbank\n")
    pool = set(read_data_set(tmp_path, "banking").texts["train"]) | {"only in this data set"}
    texts, joined = draw_distinct_texts(tmp_path, len(pool))
    assert len(texts) == len(pool)
    assert set(texts) == pool
    assert joined == 0
    assert draw_distinct_texts(tmp_path, 7) == draw_distinct_texts(tmp_path, 7)
    assert len(draw_distinct_texts(tmp_path, 7)[0]) == 7
    assert draw_distinct_texts(tmp_path, 7, seed=1) != draw_distinct_texts(tmp_path, 7)
    texts, joined = draw_distinct_texts(tmp_path, len(pool) + 30)
    assert len(texts) == len(set(texts)) == len(pool) + 30
    assert set(texts) > pool
    assert joined == 30


def test_enlarged_data_set_has_words_and_categories_of_real_texts() -> None:
    words = {"a": "one two three four", "b": "five six seven eight"}
    real = [" ".join(order) for text in words.values() for order in permutations(text.split())][::3]
    labels = ["a" if "one" in text else "b" for text in real]
    data = DataSet("banking", {"train": real, "test": ["x"]}, {"train": labels, "test": ["a"]})
    larger = enlarge(data, 60)
    texts, labels = larger.texts["train"], larger.labels["train"]
    assert len(texts) == len(set(texts)) == 60
    assert texts[: len(real)] == real
    for text, label in zip(texts, labels, strict=True):
        assert set(text.split()) <= set(words[label].split())
        assert len(text.split()) == 4
    assert larger == enlarge(data, 60) != enlarge(data, 60, seed=1)
    assert larger.texts["test"] == ["x"]
    assert enlarge(data, 5) == data
    with pytest.raises(InputError, match="banking has too few texts to make 10,000 distinct ones"):
        enlarge(data, 10_000)


def test_section_scaling_measures_growing_tables(
    tiny_data: Path, tiny_encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scaling, "run_process", in_this_process)
    data = read_data_set(tiny_data, "banking")
    real = len(set(data.texts["train"]))
    sizes = (40, real + 20)
    options = sections.SpeedOptions(data, encoder=tiny_encoder, scaling_texts=sizes)
    (line,) = sections.measure(options, ["scaling"], tmp_path / "speed.jsonl", Output(Namespace()))
    first, last = line["measures"].values()
    assert (first["texts"], first["seconds"], first["ms_per_text"]) == (40, 4.0, 100.0)
    assert (last["texts"], last["kb_per_text"]) == (sizes[1], round(1024 * 300 / sizes[1], 2))
    assert 20 < last["accuracy"] <= 100
    assert {"encoding", "initialisation", "describing"} <= set(last["stages"])
    assert line["notes"][0] == "K = 4 given"
    assert line["notes"][1].startswith(f"tables drawn from {real} real texts and 20 that begin")
    shown = section_tables([line])
    assert f"| 40 texts | 4.00 | 100.00 | {first['accuracy']:.1f} | 300 | 7,680 |" in shown
    assert f"| stage, ms per text | 40 texts | {sizes[1]} texts |" in shown


def test_data_sets_of_the_paper_have_20_000_distinct_texts(paper_data: Path) -> None:
    texts, joined = draw_distinct_texts(paper_data, 20_000)
    assert len(set(texts)) == 20_000
    assert joined == 0


@pytest.mark.parametrize("int8", [False, True])
def test_section_prediction_measures_the_real_encoder(
    int8: bool,
    tiny_data: Path,
    tiny_encoder: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if int8:
        pytest.importorskip("openvino")
        pytest.importorskip("nncf")
    else:
        monkeypatch.setattr(prediction, "int8_installed", lambda: False)
    ran: list[list[str]] = []

    def in_process(command: list[str]) -> Finished:
        ran.append(command[len(newfound_command()) :])
        return in_this_process(command)

    monkeypatch.setattr(prediction, "run_process", in_process)
    options = sections.SpeedOptions(
        read_data_set(tiny_data, "banking"),
        tiny_data,
        texts=60,
        repeats=2,
        encoder=tiny_encoder,
        prediction_texts=30,
    )
    (line,) = sections.measure(
        options, ["prediction"], tmp_path / "speed.jsonl", Output(Namespace())
    )
    measures = line["measures"]
    first = measures["predict 30 distinct texts, fp32"]
    assert (first["texts"], first["seconds"], first["texts_per_second"]) == (30, 4.0, 7.5)
    assert ran[0][ran[0].index("--encoder") + 1] == tiny_encoder
    if int8:
        assert list(measures) == [f"predict 30 distinct texts, {p}" for p in ("fp32", "int8")]
        # int8 is calibrated before the clock starts; then the two take turns.
        assert ["--int8" in command for command in ran[1:]] == [True, False, True, False, True]
        assert "| predict 30 distinct texts, int8 | 4.00 | 8 | 300 |" in section_tables([line])
    else:
        assert list(measures) == ["predict 30 distinct texts, fp32"]
        assert line["notes"] == ["openvino and nncf are not installed: no int8"]


def test_section_prediction_reports_how_many_texts_are_joined(
    tiny_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prediction, "measure_prediction", lambda *arguments: {})
    data = read_data_set(tiny_data, "banking")
    distinct = len(set(data.texts["train"]))
    options = sections.SpeedOptions(data, tiny_data, prediction_texts=distinct + 9)
    _, notes = sections.MEASURE["prediction"](options)
    assert "9 of the texts begin as one real text and end as another of its category" in notes


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--only", "magic"], "--only takes some of encoding"),
        (["--only", ","], "--only takes"),
        (["--efforts", "great"], "--efforts takes some of fast"),
        (["--repeats", "0"], "--repeats must be at least 1"),
        (["--prediction-texts", "0"], "--prediction-texts must be at least 1"),
        (["--growth-texts", "2"], "--growth-texts must be at least 8"),
        (["--scaling-texts", "5000,x"], "--scaling-texts takes numbers from 20 on"),
        (["--scaling-texts", "19"], "--scaling-texts takes numbers from 20 on"),
    ],
)
def test_bench_speed_rejects_wrong_options(
    flags: list[str], message: str, tiny_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "speed", "--data", str(tiny_data), *flags]) == 2
    assert message in capsys.readouterr().err


def test_section_growth_with_few_texts_skips_kmeans(
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


def test_measure_epochs_with_the_plain_implementation(
    tiny_data: Path, tiny_encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(epochs, "SHORT_RUN", 1)
    monkeypatch.setattr(epochs, "LONG_RUN", 2)
    monkeypatch.setattr(epochs, "PLAIN_STEPS", 1)
    data = read_data_set(tiny_data, "banking")
    found = epochs.measure_epochs(data, tiny_encoder, torch.device("cpu"), 1)
    names = ["pretraining", "training", "pretraining, plain", "training, plain"]
    assert list(found) == names
    assert found["pretraining, plain"]["seconds"] > 0
    # 80 texts in batches of 128; 74 without a label in batches of 256
    assert (found["pretraining"]["steps"], found["training"]["steps"]) == (1, 1)
    assert found["pretraining"]["flop"] > 0
    assert "floor_seconds" not in found["training"]  # this device's peak is not known


def test_measure_runs_repeats_banking_without_shortcuts(
    tiny_data: Path, tiny_encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain: list[bool] = []
    real = epochs.run

    def watched(plan: Plan, data: DataSet) -> Any:
        plain.append(devices.plain())
        assert (plan.method, plan.seed) == ("dpn", 3)
        return real(replace(plan, settings={"pretrain_epochs": 1, "epochs": 1}), data)

    monkeypatch.setattr(epochs, "run", watched)
    found = epochs.measure_runs(tiny_data, tiny_encoder, 3)
    assert list(found) == ["banking", "banking, plain"]  # the other data sets are not there
    assert plain == [False, True]
    assert not devices.plain()
    assert found["banking"]["seconds"] >= found["banking"]["pretraining_seconds"] > 0
    assert 0 < found["banking"]["accuracy"] <= 100


def test_least_cost_matches_a_calculation_by_hand(tiny_encoder: str) -> None:
    encoder = load_encoder(tiny_encoder)  # 3 layers of width 32, inner width 64
    lengths = np.full(300, 10)
    tokens = Ragged.from_lengths(torch.zeros(3000, dtype=torch.int64), lengths)
    targets = np.where(np.arange(300) < 44, 0, -1)
    task = make_task(["a"] * 300, targets, ["x"], 2, validation=([], np.empty(0, np.int64)))
    config = DPNConfig(batch=64, labelled_batch=16)
    cpu = torch.device("cpu")
    least = epochs.least_cost(task, tokens, encoder, config, 2, cpu)
    layer = 4 * 32 * 32 + 2 * 32 * 64
    assert least["steps"] == 4  # 256 unlabelled texts
    assert least["flop"] == 6 * layer * 2 * 10 * (256 + 4 * 16)
    assert least["bytes"] == epochs.ADAM_BYTES * layer * 2 * 4
