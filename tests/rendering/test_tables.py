"""Tables: what is rendered from lines, and that the committed tables are just that."""

from pathlib import Path

import pytest
from support.bench_fakes import fake_count, fake_line

from benchmarks.rendering.__main__ import main
from benchmarks.rendering.pages import (
    HEADINGS,
    fill_markers,
    pages_with_markers,
    render_excerpts,
    render_tables,
    table_page,
    write_pages,
)
from benchmarks.rendering.paper_numbers import NAMES, TABLE_1, TABLE_2, TABLE_3, TRUE_CATEGORIES
from benchmarks.rendering.tables.ablations import ablation_table
from benchmarks.rendering.tables.parts import PARTS, parts_table
from benchmarks.rendering.tables.regimes import estimated_table, ratios_table
from benchmarks.rendering.tables.summary import summary_table
from benchmarks.rendering.tables.table1 import table1
from benchmarks.rendering.tables.table2 import gains_table, lead_table, table2
from benchmarks.rendering.tables.table3 import table3
from benchmarks.rendering.tables.table4 import table4
from newfound.bench.lines import append_line, read_results
from newfound.bench.rows import NONE, mean_seconds, mean_spread, seed_list, select_runs
from newfound.errors import InputError

ROOT = Path(__file__).parents[2]


def rows_of(table: str) -> list[list[str]]:
    """The cells of every row of every Markdown table in a text, headers included."""
    lines = [line for line in table.splitlines() if line.startswith("|") and "--:" not in line]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def row_of(table: str, name: str) -> list[str]:
    (found,) = [row for row in rows_of(table) if row[0].startswith(name)]
    return found


def test_committed_tables_are_rendered_from_committed_lines() -> None:
    folder = ROOT / "benchmarks"
    if not (folder / "results").is_dir():
        pytest.skip("no results are kept here")
    lines = read_results(folder / "results")
    tables = render_tables(lines, folder / "ablations")
    for name, table in tables.items():
        written = (folder / f"{name}.md").read_text(encoding="utf-8")
        assert written == table_page(name, table), f"run `make tables` ({name})"
    tables |= render_excerpts(lines)
    for page in pages_with_markers(folder):
        text = page.read_text(encoding="utf-8")
        assert text == fill_markers(text, tables), f"run `make tables` ({page})"


def test_table_2_shows_mean_spread_and_the_papers_numbers() -> None:
    lines = [
        fake_line("banking", "dpn", seed, scores=(70.0 + seed, 80.0, 50.0)) for seed in range(3)
    ]
    lines += [fake_line("banking", "semi-km", 0, scores=(66.0, 70.0, 40.0))]
    table = table2(lines)
    dpn = row_of(table, "DPN")
    assert dpn[1:9] == [
        "minilm",
        "0-2",
        "71.0 ± 1.0",
        "80.0 ± 0.0",
        "50.0 ± 0.0",
        "72.0 ± 1.0",
        "81.0 ± 0.0",
        "51.0 ± 0.0",
    ]
    assert dpn[-2] == "72.96 / 80.93 / 48.60"
    single = row_of(table, "Semi-KM")
    assert single[2:4] == ["0", "66.0"]
    assert single[-2] == "66.23 / 73.62 / 43.68"
    # In the order of the paper: Semi-KM stands above DPN.
    assert table.index("Semi-KM") < table.index("DPN")
    assert "some GPU" in table


def test_table_2_leaves_out_other_protocols() -> None:
    lines = [
        fake_line(known_ratio=0.5),
        fake_line(given_k=False, estimated=70),
        {**fake_line(), "labelled_ratio": 0.2},
        fake_line("stackoverflow", "dpn-no-ce"),
        {"kind": "speed", "seconds": {"total": 1.0}},
    ]
    assert table2(lines).count("No runs yet.") == 3


def test_other_settings_of_a_method_have_a_separate_row() -> None:
    lines = [fake_line(seed=seed) for seed in range(2)]
    lines += [fake_line(seed=0, epochs=10), fake_line(seed=0, encoder="mpnet")]
    table = table2(lines)
    names = [row[0] for row in rows_of(table)[1:]]
    assert names == ["DPN (`dpn`)", "DPN (`dpn`), epochs=10", "DPN (`dpn`)"]


def test_table_2_shows_methods_that_are_not_in_the_paper() -> None:
    table = table2([fake_line(method="own"), fake_line(method="dpn-coupled")])
    assert row_of(table, "`own`")[-2:] == [NONE, NONE]
    assert row_of(table, "DPN, as in the released")[-2:] == ["72.96 / 80.93 / 48.60", NONE]
    table = table2([fake_line(method="dac")])
    assert row_of(table, "DAC")[-2:] == ["63.63 / 69.60 / 45.44", "64.63"]


def test_mean_seconds_includes_cached_pretraining() -> None:
    own = fake_line(seconds={"total": 40.0, "pretraining": 30.0})
    kept = fake_line(
        method="semi-km", seconds={"total": 6.0, "pretraining (kept)": 1.0, "scoring": 5.0}
    )
    other_seed = {**kept, "seed": 1}
    (row,) = select_runs([kept])
    assert mean_seconds(row, [own, kept]) == "35"
    assert mean_seconds(row, [kept]) == "5 + pretraining"
    (row,) = select_runs([other_seed])
    assert mean_seconds(row, [own, other_seed]) == "5 + pretraining"
    trained = fake_line(method="sae", seconds={"total": 50.0, "autoencoder": 45.0})
    found = fake_line(method="dec", seconds={"total": 7.0, "autoencoder (kept)": 2.0})
    (row,) = select_runs([found])
    assert mean_seconds(row, [trained, found]) == "50"
    assert mean_seconds(row, [found]) == "5 + autoencoder"


def test_mean_seconds_passes_over_lines_of_other_measurements() -> None:
    own = fake_line(seconds={"total": 40.0, "pretraining": 30.0})
    (row,) = select_runs([own])
    others = [{"kind": "millions", "seconds": 229.0}, {**own, "kind": "wild", "config": {}}]
    assert mean_seconds(row, [own, *others]) == "40"


def test_mean_seconds_includes_a_cached_pass_of_the_encoder() -> None:
    frozen = {"pretrain_layers": 0, "trainable_layers": 0, "max_tokens": 128}
    whole = [
        fake_line(
            method="newfound", seed=s, seconds={"total": 30.0, "encoding": 20.0 + s}, **frozen
        )
        for s in range(3)
    ]
    kept = fake_line(method="bert", seconds={"total": 5.0, "encoding": 0.1}, max_tokens=128)
    (row,) = select_runs([kept])
    assert mean_seconds(row, [kept, *whole]) == "26"  # the median of 20, 21, 22 in its place
    assert mean_seconds(row, [kept]) == "5"
    for other in ({"encoder": "mpnet"}, {"device": "another"}, {"data_set": "clinc"}):
        assert mean_seconds(row, [kept, *({**line, **other} for line in whole)]) == "5"
    # Where the encoder learns there is no such pass.
    learns = fake_line(seconds={"total": 40.0, "encoding": 0.0}, trainable_layers="all")
    (row,) = select_runs([learns])
    assert mean_seconds(row, [learns, *whole]) == "40"


def test_gains_compare_equal_seeds() -> None:
    lines = [
        fake_line("banking", "dpn", 0, scores=(70.0, 71.0, 60.0)),
        fake_line("banking", "dpn", 1, scores=(74.0, 75.0, 60.0)),
        fake_line("banking", "dpn", 2, scores=(10.0, 10.0, 10.0)),  # has no pair
        fake_line("banking", "semi-km", 0, scores=(69.0, 73.0, 50.0)),
        fake_line("banking", "semi-km", 1, scores=(71.0, 73.0, 50.0)),
    ]
    row = row_of(gains_table(lines), "BANKING")
    assert row[1:] == ["`dpn`", "minilm", "0, 1", "2.00 ± 1.41", "0.00 ± 2.83", "10.00 ± 0.00"]
    assert gains_table(lines[:3]) == ""
    assert gains_table(lines) in table2(lines)


def test_leads_compare_equal_seeds_and_the_better_score() -> None:
    lines = [
        fake_line("banking", "newfound", 0, scores=(80.0, 81.0, 70.0)),
        fake_line("banking", "newfound", 1, scores=(82.0, 83.0, 60.0)),
        fake_line("banking", "dac", 0, scores=(79.0, 73.0, 60.0)),
        fake_line("banking", "dac", 1, scores=(79.0, 73.0, 70.0)),
        fake_line("banking", "dac", 2, scores=(99.0, 99.0, 99.0)),  # has no pair
        fake_line("banking", "dpn-no-ema", 0, scores=(10.0, 10.0, 10.0)),  # is no method
    ]
    lines[2]["scores"]["kmeans"]["all"] = 81.0  # better than by prototype
    (row,) = [r for r in lead_table(lines).splitlines() if "`" in r and r.startswith("| ")]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[:4] == ["DAC (`dac`)", "minilm", "1.5 ± 2.1 (1 of 2)", "0.0 ± 14.1 (1 of 2)"]
    assert set(cells[4:]) == {NONE}
    assert lead_table(lines[2:]) == ""
    assert lead_table(lines) in table2(lines)


def test_table_3_has_a_row_for_every_ablation() -> None:
    lines = [fake_line("stackoverflow", m, scores=(30, 31, 32)) for m in ("dpn", "dpn-no-ema")]
    table = table3([*lines, fake_line("banking", "dpn-no-ce")])
    rows = rows_of(table)[1:]
    assert len(rows) == 6
    assert row_of(table, "moving average")[3] == "30.0"
    assert row_of(table, "moving average")[-1] == "82.50 / 83.87 / 78.40"
    assert row_of(table, "cross-entropy")[3] == NONE


def test_table_3_compares_on_the_seeds_that_all_have() -> None:
    lines = [
        fake_line("stackoverflow", "dpn", 0, scores=(30, 31, 32)),
        fake_line("stackoverflow", "dpn", 1, scores=(90, 91, 92)),
        fake_line("stackoverflow", "dpn-no-ema", 0, scores=(20, 21, 22)),
    ]
    table = table3(lines)
    assert row_of(table, "nothing")[2:4] == ["0", "30.0"]
    assert row_of(table, "moving average")[2:4] == ["0", "20.0"]


def test_table_4_uses_one_effort_per_estimate() -> None:
    """Over-clustering from whole pretrained features, the estimate from untrained ones."""
    quick = fake_count("banking", 0, 70, {"2": 100})
    whole = fake_count("banking", 1, 72, {"2": 80})
    quick["config"]["effort"], whole["config"]["effort"] = "fast", "best"
    table = table4([quick, whole])
    assert row_of(table, "from 2 x truth")[1] == "80.0 (seeds 1)"
    assert row_of(table, "encoder before training")[1] == "70.0 (seeds 0)"
    assert row_of(table4([whole]), "encoder before training")[1] == "72.0 (seeds 1)"


def test_table_4_separates_the_two_estimates() -> None:
    lines = [
        fake_count("banking", 0, 70, {"1.5": 60, "2": 100}),
        fake_count("banking", 1, 74, {"1.5": 62, "2": 104}),
        fake_line("banking", given_k=False, estimated=71),
        fake_line("banking", seed=1, given_k=False, estimated=69, effort="fast"),
        fake_line("banking", estimated=None),
    ]
    table = table4(lines)
    unknown, papers_way = table.split("Estimated as in the paper")
    assert row_of(unknown, "truth")[1:] == ["77", "20", "150"]
    assert row_of(unknown, "encoder before training")[1] == "72.0 ± 2.8 (seeds 0, 1)"
    assert row_of(unknown, "whole run of `dpn`, minilm")[1] == "71.0 (seeds 0)"
    assert row_of(unknown, "whole run of `dpn`, effort fast, minilm")[1] == "69.0 (seeds 1)"
    assert "x truth" not in unknown
    assert row_of(papers_way, "from 1.5 x truth")[1] == "61.0 ± 1.4 (seeds 0, 1)"
    assert row_of(papers_way, "paper, DPN")[1:] == ["67", "18", "137"]


def test_table_1_reports_where_seeds_differ() -> None:
    counts = [(58, 19, 673, 8330, 3080), (58, 19, 689, 8314, 3080)]
    names = ("known", "novel", "labelled", "unlabelled", "test")
    lines = [
        {
            "kind": "split",
            "data_set": "banking",
            "seed": seed,
            "known_ratio": 0.75,
            "labelled_ratio": 0.1,
            **dict(zip(names, row, strict=True)),
        }
        for seed, row in enumerate(counts)
    ]
    table = table1(lines)
    assert row_of(table, "BANKING, seed 0")[1:] == ["58", "19", "673", "8,330", "3,080"]
    assert row_of(table, "BANKING, paper")[1:] == ["58", "19", "673", "8,330", "3,080"]
    assert "673 to 689" in table


def test_mean_spread_and_seed_lists() -> None:
    assert mean_spread([1.0, 3.0]) == "2.0 ± 1.4"  # the sample's, not the population's
    assert mean_spread([2.0]) == "2.0"
    assert mean_spread([None]) == NONE
    assert seed_list([0, 1, 2]) == "0-2"
    assert seed_list([0, 2, 3]) == "0, 2, 3"
    assert seed_list([0, 1]) == "0, 1"


def test_numbers_of_the_paper_are_consistent() -> None:
    assert set(TABLE_2) == set(NAMES)
    assert TABLE_3["dpn"][1] == TABLE_2["dpn"]["stackoverflow"]
    for data_set, (known, novel, *_) in TABLE_1.items():
        assert known + novel == TRUE_CATEGORIES[data_set]
    for method, by_data_set in TABLE_2.items():
        for data_set, (all_texts, known_part, novel_part) in by_data_set.items():
            low, high = sorted((known_part, novel_part))
            assert low <= all_texts <= high, (method, data_set)


def test_fill_markers_changes_nothing_else() -> None:
    tables = {"table1": "one\n", "table2": "two \\1\n"}
    text = "a\n<!-- table2 -->\nold\n<!-- /table2 -->\nb <!-- table3 -->"
    assert (
        fill_markers(text, tables)
        == "a\n<!-- table2 -->\ntwo \\1\n<!-- /table2 -->\nb <!-- table3 -->"
    )
    assert fill_markers(fill_markers(text, tables), tables) == fill_markers(text, tables)
    with pytest.raises(InputError, match="table1"):
        fill_markers("<!-- table1 -->", tables)


def test_command_writes_tables_and_fills_all_pages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "benchmarks"
    append_line(folder / "results" / "banking.jsonl", fake_line())
    (tmp_path / "docs" / "guide").mkdir(parents=True)
    pages = [tmp_path / "README.md", folder / "README.md", tmp_path / "docs" / "guide" / "page.md"]
    for page in pages:
        page.write_text("before <!-- table2 --><!-- /table2 --> after")
    assert main(["tables", "--benchmarks", str(folder)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(HEADINGS) + len(pages)
    for page in pages:
        assert "70.0" in page.read_text()
        assert page.read_text().endswith(" after")
    assert [path.name for path in write_pages(folder)] == [f"{n}.md" for n in HEADINGS]


def test_command_reports_missing_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tables", "--benchmarks", str(tmp_path)]) == 2
    assert "error: the results folder" in capsys.readouterr().err


def test_read_results_rejects_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="newfound bench run"):
        read_results(tmp_path / "nowhere")


def test_ablation_table_names_the_files(tmp_path: Path) -> None:
    for seed in (0, 1):
        line = fake_line("banking", "dpn", seed, scores=(70.0 + 2 * seed, 80.0, 50.0))
        append_line(tmp_path / "random-classifier.jsonl", line)
    (row,) = rows_of(ablation_table(tmp_path))[1:]
    assert row[:5] == ["random-classifier", "banking", "dpn", "minilm", "0.75"]
    assert row[5:7] == ["0, 1", "71.0 ± 1.4"]
    assert row[-1] == "40"
    assert ablation_table(tmp_path / "none") == "No runs yet.\n"


def test_table_2_names_efforts_other_than_best() -> None:
    best, fast = fake_line("banking", "dpn", 0), fake_line("banking", "dpn", 0)
    fast["config"] = {**fast["config"], "effort": "fast", "epochs": 1}
    names = [row[0] for row in rows_of(table2([best, fast])) if row[0].startswith("DPN")]
    assert sorted(names) == ["DPN (`dpn`)", "DPN (`dpn`), effort fast"]


def test_read_results_keeps_the_last_of_equal_lines(tmp_path: Path) -> None:
    first, other, again = (
        {"kind": "speed", "method": "encoding", "config": {"repeats": repeats}, "measures": value}
        for repeats, value in ((3, 1), (2, 2), (3, 3))
    )
    for line in (first, other, again):
        append_line(tmp_path / "speed.jsonl", line)
    assert read_results(tmp_path) == [other, again]


def test_ratios_table_names_ratios_and_no_labels() -> None:
    lines = [
        fake_line("banking", "newfound", 0, known_ratio=0.25, scores=(76.0, 90.0, 72.0)),
        fake_line("banking", "newfound", 1, known_ratio=0.25, scores=(78.0, 90.0, 72.0)),
        fake_line("clinc", "newfound", 0, known_ratio=0.0, scores=(80.0, 0.0, 80.0)),
        fake_line("banking", "newfound", 0, scores=(86.0, 88.0, 78.0)),  # Table 2's
    ]
    for scores in lines[2]["scores"].values():
        scores["known"] = None
    _, few, none = rows_of(ratios_table(lines))
    assert few[:6] == ["BANKING", "0.25", "0.1", "`newfound`", "minilm", "0, 1"]
    assert few[6] == "77.0 ± 1.4"
    assert none[:3] == ["CLINC", "no labels", ""]
    assert none[6:9] == ["80.0", NONE, "80.0"]
    assert ratios_table(lines[3:]) == ""


def test_estimated_table_compares_with_k_given_on_equal_seeds() -> None:
    given = [fake_line("clinc", "newfound", s, scores=(90.0 + s, 95.0, 80.0)) for s in range(3)]
    found = [
        fake_line(
            "clinc", "newfound", s, scores=(89.0 - s, 94.0, 79.0), given_k=False, estimated=78 + s
        )
        for s in (1, 2, 5)  # 5 has no run with K given
    ]
    (_, row) = rows_of(estimated_table([*given, *found]))
    assert row[:6] == ["CLINC", "`newfound`", "minilm", "1, 2", "77", "79, 80"]
    # The prototypes of fake lines are one point above their k-means
    assert row[6:] == ["92.5 ± 0.7", "88.5 ± 0.7", "-4.0 ± 1.4", "-3.0, -5.0"]
    assert estimated_table(given) == ""
    other = [fake_line("clinc", "newfound", 1, given_k=False, estimated=78, effort="fast")]
    assert estimated_table([*given, *other]) == ""  # another effort is no comparison


def test_parts_table_compares_runs_with_and_without_a_part(tmp_path: Path) -> None:
    part = PARTS["fast"][0]
    assert part.whole is None
    whole = [
        fake_line("clinc", "newfound", s, scores=(90.0 + s, 95.0, 80.0), effort="fast")
        for s in range(3)
    ]
    others = [
        fake_line("clinc", "newfound", 1, scores=(50.0, 50.0, 50.0)),  # another effort
        fake_line("clinc", "newfound", 1, scores=(50.0, 50.0, 50.0), effort="fast", given_k=False),
    ]
    for seed, lost in ((0, 1.0), (2, 2.0)):
        without = fake_line(
            "clinc", "newfound", seed, scores=(90.0 + seed - lost, 95.0, 81.0), effort="fast", on=0
        )
        append_line(tmp_path / f"{part.without}.jsonl", without)
    (_, row) = rows_of(parts_table(tmp_path, [*whole, *others]))
    assert row[:6] == ["fast", part.name, "current", "CLINC", "minilm", "0, 2"]
    assert row[6:] == ["1.5 ± 0.7", "0.0 ± 0.0", "-1.0 ± 0.0"]
    # Another encoder has a row of its own, and its runs are compared with its own
    large = [
        fake_line("clinc", "newfound", 0, scores=(97.0, 95.0, 80.0), effort="fast", encoder="mpnet")
    ]
    append_line(
        tmp_path / f"{part.without}.jsonl",
        fake_line("clinc", "newfound", 0, scores=(94.0, 95.0, 80.0), encoder="mpnet", on=0),
    )
    (_, same, row) = rows_of(parts_table(tmp_path, [*whole, *large]))
    assert same[4:7] == ["minilm", "0, 2", "1.5 ± 0.7"]
    assert row[4:7] == ["mpnet", "0", "3.0"]
    assert parts_table(tmp_path, others) == "No runs yet.\n"


def test_every_part_has_result_lines() -> None:
    folder = ROOT / "benchmarks" / "ablations"
    if not folder.is_dir():
        pytest.skip("no lines are kept here")
    for part in (part for parts in PARTS.values() for part in parts):
        for name in filter(None, (part.without, part.whole)):
            assert (folder / f"{name}.jsonl").is_file(), name


def test_summary_shows_our_prototype_score_and_the_better_score_of_others() -> None:
    ours = [fake_line("banking", "newfound", s, scores=(86.0 + s, 90.0, 78.0)) for s in range(2)]
    for line in ours:
        line["scores"]["kmeans"]["all"] = 99.0  # not how a saved model predicts
    other = fake_line("banking", "dpn", 0, scores=(72.0, 79.0, 50.0))
    other["scores"]["kmeans"]["all"] = 74.0
    hidden = [
        fake_line("banking", "dpn", 0, effort="fast"),
        fake_line("banking", "dec", 0),
        fake_line("banking", "newfound", 0, known_ratio=0.25),
        fake_line("banking", "newfound", 0, encoder="mpnet"),
    ]
    _, first, second = rows_of(summary_table([*ours, other, *hidden]))
    assert first == ["DPN", "74.0 / 79.0 / 50.0", NONE, NONE]
    assert second == ["`newfound`, best", "87.5 / 91.0 / 79.0", NONE, NONE]
    assert summary_table(hidden) == "No runs yet.\n"


def test_summary_lists_other_methods_first_and_our_efforts_in_order() -> None:
    lines = [
        fake_line("banking", "newfound", 0, effort=effort)
        for effort in ("best", "fast", "balanced")
    ]
    lines += [fake_line("banking", method, 0) for method in ("dpn", "laskm", "bert")]
    _, *rows = rows_of(summary_table(lines))
    assert [row[0] for row in rows] == [
        "LASKM",
        "DPN",
        "`newfound`, fast",
        "`newfound`, balanced",
        "`newfound`, best",
    ]
