"""The grid as Markdown: rows, bold cells and the summary."""

from typing import Any

from newfound.bench.rows import NONE
from newfound.bench.wild.grid import wild_tables


def line(
    method: str, all: float | None, exact: float | None = 50.0, seed: int = 0, **table: Any
) -> dict[str, Any]:
    config = {"given_k": table.pop("given_k", True)}
    if "effort" in table:
        config["effort"] = table.pop("effort")
    return {
        "kind": "wild",
        "data_set": table.pop("data_set", "desk"),
        "method": method,
        "encoder": "minilm",
        "seed": seed,
        "known_ratio": 0.75,
        "table": {"design": "ten", "sizes": "natural", "noise": 0.0, "limit": 2000, **table},
        "config": config,
        "scores": {"all": all, "exact_known": exact},
    }


def rows_of(text: str) -> list[list[str]]:
    lines = [row for row in text.splitlines() if row.startswith("|") and "--:" not in row]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in lines]


LINES = [
    line("script", 70.0, 72.0),
    line("newfound", 80.0, 90.0, effort="fast"),
    line("newfound", 84.0, 92.0, seed=1, effort="fast"),
    line("oracle", None, 95.0),
    line("newfound", 60.0, 61.0, sizes="tail100", effort="fast"),
    line("script", 66.0, 62.0, sizes="tail100"),
    line("newfound", 50.0, None, design="none", effort="fast"),
    line("newfound", 40.0, 41.0, given_k=False, effort="fast"),
]


def test_rows_are_cells_and_columns_are_methods() -> None:
    given, estimated = wild_tables(LINES).split("K estimated:")
    *_, header, ten, tail, none = rows_of(given)
    assert header[5:] == ["`newfound`", "`script`", "`oracle`"]
    ten_auto = rows_of(estimated)[3]
    fixed = ["desk", "10 per category", "natural", "0%", "given"]
    assert ten == [*fixed, "**82.0** (91.0)", "70.0 (72.0)", f"{NONE} (95.0)"]
    assert ten_auto[4:] == ["auto", "**40.0** (41.0)"]
    assert tail[2:] == ["tail100", "0%", "given", "60.0 (61.0)", "**66.0** (62.0)", NONE]
    assert none[1] == "none"
    assert none[5] == f"**50.0** ({NONE})"


def test_summary_has_mean_worst_cell_and_how_often_best() -> None:
    header, ours, script, oracle = rows_of(wild_tables(LINES))[:4]
    assert header[1] == "All, mean of 2 cells"  # those that both methods have
    worst = "-6.0 (desk, labels: 10 per category, tail100)"
    assert ours == ["`newfound`", "71.0", "76.0", NONE, NONE, "1 of 2", worst]
    assert script == [
        *("`script`", "68.0", "67.0", NONE, NONE, "1 of 2"),
        "-12.0 (desk, labels: 10 per category)",
    ]
    assert oracle == ["`oracle`", *[NONE] * 6]  # it has one cell of the two


def test_a_method_with_few_cells_does_not_limit_the_means() -> None:
    lines = [line("bert", 10.0 * n, data_set=f"desk {n}") for n in range(1, 4)]
    lines += [line("newfound", 90.0, data_set="desk 1", effort="best")]
    lines += [line("newfound", 40.0, data_set=f"desk {n}", effort="fast") for n in range(1, 4)]
    header, ours, best, bert = rows_of(wild_tables(lines))[:4]
    assert header[1] == "All, mean of 3 cells"
    assert (ours[1], best[1], bert[1]) == ("40.0", NONE, "20.0")
    assert ours[-2] == "3 of 3"  # another effort of the same method is no other method


def test_estimates_are_compared_with_the_truth_and_with_k_given() -> None:
    def counted(estimated: int, **changes: Any) -> dict[str, Any]:
        found = line("newfound", 70.0, effort="fast", given_k=False, **changes)
        return {**found, "categories": {"estimated": estimated, "true_counted": 100}}

    lines = [counted(110), counted(151, data_set="shop"), counted(90, design="none")]
    lines += [line("newfound", 80.0, effort="fast")]
    last = rows_of(wild_tables(lines))[-2:]
    assert last[0] == ["`newfound`", "some", "2", "50%", "50%", "-10.0", "-10.0"]
    assert last[1] == ["`newfound`", "no", "1", "100%", "100%", NONE, NONE]


def test_newest_line_counts_and_other_efforts_are_columns() -> None:
    lines = [line("newfound", 10.0, effort="fast"), line("newfound", 20.0, effort="fast")]
    lines.append(line("newfound", 30.0, effort="best"))
    header, row = rows_of(wild_tables(lines))[-2:]
    assert header[5:] == ["`newfound`", "`newfound`, best"]
    assert row[5:] == ["20.0 (50.0)", "**30.0** (50.0)"]


def test_limits_have_tables_of_their_own() -> None:
    shown = wild_tables([line("bert", 10.0), line("bert", 20.0, limit=500)])
    assert "**minilm, at most 2,000 texts, 75% of the categories known**" in shown
    assert "**minilm, at most 500 texts, 75% of the categories known**" in shown
    assert wild_tables([{"kind": "speed"}]) == ""
