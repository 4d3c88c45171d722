"""`newfound bench wild`, end to end with a tiny encoder: the grid, its lines and its tables."""

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
from support.bench_fakes import save_tiny_data_set
from support.commands import Command

from newfound.bench.lines import key_of, read_lines
from newfound.bench.wild.command import make_plans
from newfound.bench.wild.peers import Peer
from newfound.bench.wild.runner import Plan
from newfound.bench.wild.scoring import SCORES
from newfound.bench.wild.sources import read_source, source_names
from newfound.bench.wild.tables import Cell
from newfound.cli.main import build_parser
from newfound.errors import InputError

pytestmark = pytest.mark.usefixtures("quick_newfound")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with banking, HWU64, one more data set, and out-of-scope texts."""
    folder = save_tiny_data_set(tmp_path_factory.mktemp("data"))
    rows = (folder / "banking" / "train.tsv").read_text().splitlines()[1:]
    (folder / "wild").mkdir()
    (folder / "published").mkdir()
    (folder / "wild" / "desk.tsv").write_text("\n".join(["text\tlabel", *rows]) + "\n")
    noise = [f"help me now the {word} please" for word in ("card", "rain", "song", "trip") * 10]
    (folder / "wild" / "out_of_scope.tsv").write_text("\n".join(["text", *noise]) + "\n")
    parts = [f"{row}\t{'train' if i % 2 else 'test'}" for i, row in enumerate(rows)]
    table = "\n".join(["text\tlabel\tpart", *parts]) + "\n"
    (folder / "published" / "hwu64.tsv").write_text(table)
    return folder


def arguments(data: Path, encoder: str, out: Path) -> list[str]:
    return ["bench", "wild", "--data", str(data), "--encoder", encoder, "-o", str(out)]


def options(*flags: str) -> Namespace:
    return build_parser().parse_args(["bench", "wild", *flags])


def test_sources_are_found_in_the_folder(data: Path) -> None:
    assert source_names(data) == ["banking", "hwu64", "desk"]
    assert len(read_source(data, "desk").texts) == 80
    assert len(read_source(data, "hwu64").texts) == 40  # the training part alone
    with pytest.raises(InputError, match=r"'desc' is not in the data folder; did you mean 'desk'"):
        read_source(data, "desc")


def test_grid_writes_complete_lines_and_is_not_repeated(
    data: Path, tiny_encoder: str, tmp_path: Path, command: Command
) -> None:
    out = tmp_path / "wild.jsonl"
    fixed = [*arguments(data, tiny_encoder, out), "--data-set", "desk", "--device", "cpu"]
    grid = ["--designs", "ten,none", "--methods", "semi-km,bert,script,oracle", "--noise", "0.2"]
    done = command(*fixed, *grid)
    assert done.code == 0, done.err
    assert "7 new result lines" in done.out
    assert "desk, ten, natural, noise 0.2, semi-km, seed 0: " in done.err
    lines = read_lines(out)
    made = [(line["table"]["design"], line["method"]) for line in lines]
    assert made == [
        *(("ten", method) for method in ("semi-km", "bert", "script", "oracle")),
        *(("none", method) for method in ("semi-km", "bert", "script")),  # no oracle without labels
    ]
    for line in lines:
        check_line(line)
    before = out.read_bytes()
    done = command(*fixed, *grid, "--quiet")
    assert (done.code, done.err) == (0, "")
    assert out.read_bytes() == before
    done = command("bench", "table", out)
    assert "| desk | 10 per category | natural | 20% | given |" in done.out


def check_line(line: dict[str, Any]) -> None:
    assert set(line["scores"]) == set(SCORES)
    assert line["kind"] == "wild"
    assert line["counts"]["texts"] == line["counts"]["out_of_scope"] + 80
    assert line["categories"]["true"] == 4
    assert line["config"]["given_k"] is True
    assert line["seconds"]["total"] > 0
    assert line["commit"] is None or len(line["commit"]) >= 7
    assert key_of(json.loads(json.dumps(line))) == key_of(line)
    scores = line["scores"]
    if line["method"] == "oracle":
        assert scores["all"] is None
        assert scores["exact_known"] > 33
    else:
        assert scores["all"] > 25
        assert 0 <= scores["auroc"] <= 1
        assert 0 <= scores["ece"] <= 1
        assert (scores["exact_known"] is None) == (line["table"]["design"] == "none")


def test_methods_share_the_encoders_pass(data: Path, tiny_encoder: str, tmp_path: Path) -> None:
    from newfound.cli.main import main

    fixed = [*arguments(data, tiny_encoder, tmp_path / "w.jsonl"), "--device", "cpu"]
    more = ["--data-set", "banking", "--designs", "tenth,ten", "--cache", str(tmp_path / "cache")]
    assert main([*fixed, *more, "--methods", "bert,script,hdbscan"]) == 0
    assert len(list((tmp_path / "cache").rglob("*.features"))) == 1
    assert len(read_lines(tmp_path / "w.jsonl")) == 6


def test_number_of_categories_can_be_found(
    data: Path, tiny_encoder: str, tmp_path: Path, command: Command
) -> None:
    out = tmp_path / "wild.jsonl"
    more = ["--data-set", "desk", "--designs", "tenth", "--categories", "given,auto"]
    more += ["--methods", "newfound,script", "--device", "cpu", "--json"]
    done = command(*arguments(data, tiny_encoder, out), *more)
    assert done.code == 0, done.err
    value = json.loads(done.out)
    assert (value["runs"], value["measured"], value["failed"]) == (4, 4, 0)
    assert value["lines"] == read_lines(out)
    for line in value["lines"]:
        found = line["categories"]
        assert (found["estimated"] is None) == line["config"]["given_k"]
        assert found["estimated"] in (None, found["used"])


def test_plans_on_the_same_texts_follow_each_other() -> None:
    given = options("--methods", "bert,script", "--designs", "ten,none", "--sizes", "even,tail10")
    plans, notes = make_plans(given, ["a", "b"])
    assert notes == []
    assert [(p.cell.data_set, p.cell.sizes, p.cell.design, p.method) for p in plans] == [
        (data_set, sizes, design, method)
        for data_set in ("a", "b")
        for sizes in ("even", "tail10")
        for design in ("ten", "none")
        for method in ("bert", "script")
    ]
    assert {plan.cell.limit for plan in plans} == {2000}
    assert {plan.effort for plan in plans} == {"fast"}


def test_peers_that_are_not_installed_are_skipped_with_a_note(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Peer, "installed", property(lambda peer: not peer.package))
    plans, (note,) = make_plans(options("--methods", "bertopic,hdbscan", "--designs", "ten"), ["a"])
    assert [plan.method for plan in plans] == ["hdbscan"]
    assert note.startswith("bertopic is not installed, so its runs are skipped")


def test_key_depends_on_the_cell_and_the_settings() -> None:
    cell = Cell("a")
    plans = [
        Plan(cell, "newfound"),
        *(
            Plan(other, "newfound")
            for other in (
                Cell("b"),
                Cell("a", design="ten"),
                Cell("a", sizes="tail10"),
                Cell("a", noise=0.1),
                Cell("a", seed=1),
                Cell("a", known_ratio=0.5),
                Cell("a", limit=100),
            )
        ),
        Plan(cell, "newfound", given_k=False),
        Plan(cell, "newfound", effort="best"),
        Plan(cell, "newfound", encoder="mpnet"),
        Plan(cell, "script"),
    ]
    assert len({key_of(plan.line()) for plan in plans}) == len(plans)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--data-set", "dest"], "'dest' is not in the data folder; did you mean 'desk'?"),
        (["--methods", "scrip"], "the method 'scrip' is unknown; did you mean 'script'?"),
        (["--designs", "tents"], "--designs has no 'tents'"),
        (["--sizes", "tail1000"], "--sizes has no 'tail1000'; did you mean 'tail100'?"),
        (["--noise", "1"], "--noise takes shares below 1"),
        (["--noise", "x"], "--noise takes shares"),
        (["--categories", "7"], "--categories has no '7'"),
        (["--limit", "3"], "--limit must be at least 20, not 3"),
        (["--set", "epoch=3"], "no setting 'epoch'"),
    ],
)
def test_wrong_options_print_one_sentence(
    flags: list[str], message: str, data: Path, tmp_path: Path, command: Command
) -> None:
    done = command(*arguments(data, "minilm", tmp_path / "x.jsonl"), *flags)
    assert done.code == 2
    assert message in done.err.splitlines()[-1]
    assert not (tmp_path / "x.jsonl").exists()


def test_noise_without_out_of_scope_texts_fails_with_advice(
    tiny_encoder: str, tmp_path: Path, command: Command
) -> None:
    folder = save_tiny_data_set(tmp_path / "data")
    fixed = arguments(folder, tiny_encoder, tmp_path / "x.jsonl")
    done = command(*fixed, "--methods", "bert", "--designs", "ten", "--noise", "0.1")
    assert done.code == 1
    assert "out_of_scope.tsv does not exist, and --noise above 0 draws from it" in done.err
