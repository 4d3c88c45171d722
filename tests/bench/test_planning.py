"""From options to runs: what lists mean, in which order runs come, where pretrainings are kept."""

from pathlib import Path

import pytest

from newfound.bench.planning import (
    caches,
    data_sets,
    make_plans,
    names,
    numbers,
    ratios,
    split_name,
)
from newfound.bench.runner import Plan
from newfound.cli.main import build_parser, main
from newfound.errors import InputError


def plans(*options: str) -> list[Plan]:
    parsed = build_parser().parse_args(["bench", "run", *options])
    return make_plans(parsed, names(parsed.method, "--method"))


def test_lists_of_names_numbers_and_ratios() -> None:
    assert numbers("0-4") == [0, 1, 2, 3, 4]
    assert numbers("3,0-1,1") == [3, 0, 1]
    assert ratios("0.25, 0.5", "--known-ratio") == [0.25, 0.5]
    assert data_sets("all") == ["banking", "stackoverflow", "clinc"]
    assert data_sets("clinc,banking") == ["clinc", "banking"]
    for wrong in ("", ",", "a", "-1", "1-", "2-1"):
        with pytest.raises(InputError):
            numbers(wrong)
    for wrong in ("0", "1.1", "nan", "", "-0.5"):
        with pytest.raises(InputError):
            ratios(wrong, "--known-ratio")
    assert ratios("0,0.5", "--known-ratio", none=True) == [0, 0.5]
    with pytest.raises(InputError):
        ratios("-0.5", "--known-ratio", none=True)


def test_runs_that_share_their_pretraining_are_consecutive() -> None:
    found = plans("--data-set", "banking,clinc", "--seeds", "0-1", "--method", "dpn,semi-km")
    assert [(p.data_set, p.seed, p.method) for p in found] == [
        (data_set, seed, method)
        for data_set in ("banking", "clinc")
        for seed in (0, 1)
        for method in ("dpn", "semi-km")
    ]


def test_options_reach_the_plan() -> None:
    (plan,) = plans(
        *("--data-set", "clinc", "--seeds", "7", "--known-ratio", "0.5", "--labelled-ratio", "0.2"),
        *("--encoder", "mpnet", "--effort", "fast", "--max-tokens", "30", "--categories", "auto"),
        *("--set", "epochs=3", "--set", "batch = 8", "--method", "dpn-coupled"),
    )
    assert plan == Plan(
        data_set="clinc",
        method="dpn-coupled",
        encoder="mpnet",
        seed=7,
        known_ratio=0.5,
        labelled_ratio=0.2,
        given_k=False,
        effort="fast",
        max_tokens=30,
        settings={"epochs": "3", "batch": "8"},
    )
    config = plan.line()["config"]
    assert (config["epochs"], config["batch"], config["coupled"]) == (3, 8, True)


def test_temporary_cache_lasts_while_runs_share_it(tmp_path: Path) -> None:
    with caches(None, ["first", "first", "third", "third", "alone"]) as cache_of:
        place = cache_of("first")
        assert place is not None
        place.mkdir()
        (place / "kept").write_text("x")
        assert cache_of("first") == place
        assert (place / "kept").exists()
        assert cache_of("third") not in (None, place)
        assert not place.exists()
        assert cache_of("alone") is None
        root = place.parent
    assert not root.exists()
    with caches(tmp_path, ["first", "alone"]) as cache_of:
        assert cache_of("first") == cache_of("alone") == tmp_path


def test_runs_of_one_split_share_their_pretraining() -> None:
    first, second = Plan("banking", "dpn", seed=0), Plan("banking", "semi-km", seed=0)
    assert split_name(first) == split_name(second)
    assert split_name(first) != split_name(Plan("banking", "dpn", seed=1))


def test_bench_without_a_command_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench"]) == 2
    shown = capsys.readouterr().out
    for command in ("fetch", "run", "count", "splits", "wild", "speed", "table"):
        assert f"\n    {command} " in shown


def test_bench_splits_writes_each_line_once(tmp_path: Path) -> None:
    from support.bench_fakes import save_tiny_data_set

    from newfound.bench.lines import read_lines

    data, out = save_tiny_data_set(tmp_path / "data"), tmp_path / "table1.jsonl"
    options = ["--data", str(data), "--data-set", "banking", "-o", str(out)]
    for seeds in ("0", "0-1"):
        assert main(["bench", "splits", *options, "--seeds", seeds]) == 0
    lines = read_lines(out)
    assert [line["seed"] for line in lines] == [0, 1]
    assert {name: lines[0][name] for name in ("known", "novel", "labelled", "test")} == {
        "known": 3,
        "novel": 1,
        "labelled": 6,
        "test": 32,
    }
