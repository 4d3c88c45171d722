"""The runner, end to end with a tiny encoder: lines, resuming, failures, shared pretraining."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.bench_fakes import SIZES, TOPICS, fake_line, save_tiny_data_set

from benchmarks.rendering.tables.search import search_table
from newfound.bench.lines import append_line, commit, key_of, read_lines, read_results
from newfound.bench.rows import NONE
from newfound.bench.runner import VARIANTS, Plan, count_plan, resolve_variant
from newfound.cli.main import main
from newfound.errors import InputError
from newfound.methods.dpn import PAPER

QUICK = ["--set", "pretrain_epochs=1", "--set", "pretrain_batch=16"]
ONE_EPOCH = ("--set", "epochs=1")
SRC = Path(__file__).parents[2] / "src"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_tiny_data_set(tmp_path_factory.mktemp("data")))


def bench(command: str, data: str, encoder: str, out: Path, *more: str) -> int:
    fixed = ["--data-set", "banking", "--data", data, "--encoder", encoder, "--device", "cpu"]
    return main(["bench", command, *fixed, "-o", str(out), *QUICK, *more])


def test_run_writes_a_complete_line_and_is_not_repeated(
    data: str, tiny_encoder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "results" / "banking.jsonl"
    more = ("--seeds", "0-1", *ONE_EPOCH)
    assert bench("run", data, tiny_encoder, out, *more, "--method", "dpn,dpn-coupled") == 0
    lines = read_lines(out)
    # Runs that share a pretraining come one after the other.
    order = [(0, "dpn"), (0, "dpn-coupled"), (1, "dpn"), (1, "dpn-coupled")]
    assert [(line["seed"], line["method"]) for line in lines] == order
    for line in lines:
        check_line(line)
        again = "pretraining (kept)" in line["seconds"]
        assert again == (line["method"] == "dpn-coupled")
    before = out.read_bytes()
    capsys.readouterr()
    assert bench("run", data, tiny_encoder, out, *more, "--method", "dpn-coupled,dpn") == 0
    assert out.read_bytes() == before
    assert "4 already have a result line" in capsys.readouterr().err
    # A changed setting is another run.
    assert bench("run", data, tiny_encoder, out, "--seeds", "0", "--set", "epochs=2") == 0
    assert len(read_lines(out)) == 5


def check_line(line: dict[str, Any]) -> None:
    fields = "data_set method encoder seed known_ratio labelled_ratio config scores categories"
    assert {*fields.split(), "seconds", "device", "versions", "commit"} == set(line)
    for by in ("kmeans", "prototype"):
        scores = line["scores"][by]
        assert list(scores) == ["all", "known", "novel", "nmi", "ari"]
        # 3 of 4 categories of one size are known, so All is a mean of the two.
        assert scores["all"] == pytest.approx((3 * scores["known"] + scores["novel"]) / 4, abs=0.02)
    assert line["categories"] == {"true": 4, "used": 4, "estimated": None}
    assert line["config"]["pretrain_epochs"] == 1
    assert line["config"]["given_k"] is True
    seconds = dict(line["seconds"])
    total = seconds.pop("total")
    assert sum(seconds.values()) <= total + 0.005 * (1 + len(seconds))  # each is rounded
    assert line["versions"]["torch"]
    assert key_of(json.loads(json.dumps(line))) == key_of(line)


def test_run_with_estimated_k_writes_an_artefact(
    data: str, tiny_encoder: str, tmp_path: Path
) -> None:
    out, kept = tmp_path / "b.jsonl", tmp_path / "artefacts"
    more = ("--seeds", "0", "--categories", "auto", "--artefacts", str(kept), *ONE_EPOCH)
    assert bench("run", data, tiny_encoder, out, *more) == 0
    (line,) = read_lines(out)
    assert line["categories"]["estimated"] == line["categories"]["used"]
    assert line["categories"]["estimated"] >= 3
    (path,) = kept.iterdir()
    assert path.name.startswith("banking-dpn-")
    assert path.name.endswith("-known0.75-auto-seed0.json")
    artefact = json.loads(path.read_text())
    used = line["categories"]["used"]
    assert [len(row) for row in artefact["distances"]] == [used] * 3
    assert len(artefact["map"]) == len(artefact["truth"]) == SIZES["test"] * 4
    assert artefact["categories"] == sorted(TOPICS)
    assert {step["stage"] for step in artefact["history"]} == {"pretraining", "training"}
    # Matched prototypes stand first, in the order of the known categories.
    diagonal = sum(row[i] for i, row in enumerate(artefact["distances"]))
    assert diagonal <= sum(row[(i + 1) % 3] for i, row in enumerate(artefact["distances"]))


def test_search_runs_have_their_own_kind_and_table(
    data: str, tiny_encoder: str, tmp_path: Path
) -> None:
    out = tmp_path / "search" / "banking.jsonl"
    more = ("--search", "--seeds", "0", *ONE_EPOCH, "--set", "batch=7")
    assert bench("run", data, tiny_encoder, out, *more) == 0
    (line,) = read_lines(out)
    assert line["kind"] == "search"
    assert key_of(line) != key_of({**line, "kind": None})
    assert line["categories"]["true"] == 4
    table = search_table(out.parent)
    assert "batch=7" in table
    assert "epochs=1" in table
    assert "temperature=" not in table  # as it is at present
    assert f"{line['scores']['prototype']['all']:.1f}" in table
    assert search_table(tmp_path / "nowhere") == "No runs yet.\n"


def test_count_writes_one_line_per_split(data: str, tiny_encoder: str, tmp_path: Path) -> None:
    out, cache = tmp_path / "b.jsonl", tmp_path / "cache"
    more = ("--seeds", "0", "--cache", str(cache))
    assert bench("run", data, tiny_encoder, out, *more, "--method", "semi-km") == 0
    assert bench("count", data, tiny_encoder, out, *more) == 0
    assert bench("count", data, tiny_encoder, out, *more) == 0
    run, count = read_lines(out)
    assert count["kind"] == "count"
    assert "pretraining (kept)" in count["seconds"]
    assert count["truth"] == 4
    assert count["low"] <= count["estimated"] <= count["high"]
    for multiple, found in count["overclustering"].items():
        assert 0 < found <= round(4 * float(multiple))
    assert "method" not in count
    assert count["config"] == run["config"]


def test_failing_run_does_not_stop_the_others(
    data: str,
    tiny_encoder: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from newfound.bench import runner

    real = runner.fit

    def fit(plan: Plan, *rest: Any) -> Any:
        if plan.seed == 0:
            raise RuntimeError("out of memory")
        if plan.seed == 1:
            raise InputError("no such weights")
        return real(plan, *rest)

    monkeypatch.setattr(runner, "fit", fit)
    out = tmp_path / "b.jsonl"
    assert bench("run", data, tiny_encoder, out, "--seeds", "0-2") == 1
    assert [line["seed"] for line in read_lines(out)] == [2]
    messages = capsys.readouterr().err
    assert "out of memory" in messages
    assert "seed 1, known 0.75 failed: no such weights" in messages
    assert "2 of 3 runs failed" in messages
    monkeypatch.setattr(runner, "fit", real)
    assert bench("run", data, tiny_encoder, out, "--seeds", "0-2") == 0
    assert [line["seed"] for line in read_lines(out)] == [2, 0, 1]


def test_interruption_keeps_finished_runs(
    data: str, tiny_encoder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from newfound.bench import runner

    def fit(plan: Plan, *rest: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "fit", fit)
    out = tmp_path / "b.jsonl"
    append_line(out, fake_line())
    assert bench("run", data, tiny_encoder, out) == 130
    assert len(read_lines(out)) == 1


def test_run_without_labels_has_no_known_score(
    data: str, tiny_encoder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "x.jsonl"
    more = ("--seeds", "0", "--known-ratio", "0", "--effort", "fast", "--method", "newfound,bert")
    assert (
        main(
            [
                "bench",
                "run",
                "--data-set",
                "banking",
                "--data",
                data,
                "-o",
                str(out),
                *more,
                "--encoder",
                tiny_encoder,
                "--device",
                "cpu",
            ]
        )
        == 0
    )
    for line in read_lines(out):
        for scores in line["scores"].values():
            assert scores["known"] is None
            assert scores["novel"] == scores["all"] > 25  # one of four by chance
    assert f" / {NONE} / " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--data-set", "bankink"], "the data set 'bankink' is unknown"),
        (["--method", "dpm"], "the method 'dpm' is unknown"),
        (["--set", "epoch=3"], "no setting 'epoch'"),
        (["--set", "epochs"], "NAME=VALUE"),
        (["--seeds", "a"], "--seeds takes numbers"),
        (["--seeds", "4-0"], "--seeds takes numbers"),
        (["--known-ratio", "75"], "--known-ratio takes shares"),
        (["--labelled-ratio", "x"], "--labelled-ratio takes shares"),
        (["--labelled-ratio", "0"], "--labelled-ratio takes shares"),
        (["--search", "--known-ratio", "0"], "--known-ratio must be above 0"),
        (["--data", "nowhere"], "nowhere does not exist"),
    ],
)
def test_invalid_options_print_one_sentence(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "run", "-o", str(tmp_path / "x.jsonl"), *options]) == 2
    assert message in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "x.jsonl").exists()


def test_variant_overrides_user_settings() -> None:
    changed = {"moving_average": "true", "starts": "3"}
    _, config = resolve_variant("dpn-no-ema", "banking", "best", changed)
    assert (config.moving_average, config.starts) == (False, 3)
    _, config = resolve_variant("dpn", "stackoverflow", "best", None)
    for name, value in PAPER["stackoverflow"].items():
        assert getattr(config, name) == value
    resolved = [resolve_variant(name, "clinc", "best", None)[1] for name in ("dpn", *VARIANTS)]
    assert len(set(map(repr, resolved))) == len(resolved)


def test_key_depends_on_all_settings() -> None:
    plan = Plan("banking", "dpn")
    others = [
        Plan("clinc", "dpn"),
        Plan("banking", "semi-km"),
        Plan("banking", "dpn", encoder="mpnet"),
        Plan("banking", "dpn", seed=1),
        Plan("banking", "dpn", known_ratio=0.5),
        Plan("banking", "dpn", labelled_ratio=0.5),
        Plan("banking", "dpn", given_k=False),
        Plan("banking", "dpn", effort="fast"),
        Plan("banking", "dpn", max_tokens=64),
        Plan("banking", "dpn", settings={"epochs": 5}),
    ]
    keys = {key_of(p.line()) for p in (plan, *others)}
    assert len(keys) == len(others) + 1
    assert key_of(count_plan(plan)) not in keys
    assert key_of(Plan("banking", "dpn", encoder="some/folder/minilm").line()) == key_of(
        plan.line()
    )
    assert key_of(Plan("banking", "dpn", settings={"epochs": "60"}).line()) == key_of(plan.line())


def test_incomplete_line_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "b.jsonl"
    append_line(path, {"seed": 0, "score": math.nan})
    with path.open("a") as file:
        file.write('{"seed": 1, "sco')
    append_line(path, {"seed": 2})
    assert read_lines(path) == [{"seed": 0, "score": None}, {"seed": 2}]


def test_last_line_of_equal_runs_counts(tmp_path: Path) -> None:
    append_line(tmp_path / "a.jsonl", fake_line(scores=(1, 1, 1)))
    append_line(tmp_path / "b.jsonl", fake_line(scores=(2, 2, 2)))
    append_line(tmp_path / "b.jsonl", fake_line(seed=1))
    found = read_results(tmp_path)
    assert [line["seed"] for line in found] == [0, 1]
    assert found[0]["scores"]["kmeans"]["all"] == 2


def test_commit_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEWFOUND_COMMIT", "0123abc")
    assert commit() == "0123abc"


def test_runs_need_neither_rich_nor_matplotlib_nor_an_installed_package(
    data: str, tiny_encoder: str, tmp_path: Path
) -> None:
    """As on a machine with only torch, scikit-learn, pandas and the source folder."""
    program = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('rich', 'matplotlib', 'pyarrow'):\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        f"sys.path.insert(0, {str(SRC)!r})\n"
        "from newfound.cli.main import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    out = tmp_path / "b.jsonl"
    options = ["--data", data, "--data-set", "banking", "--encoder", tiny_encoder, "-o", str(out)]
    command = [sys.executable, "-c", program, "bench", "run", *options, "--seeds", "0", *QUICK]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    assert len(read_lines(out)) == 1
