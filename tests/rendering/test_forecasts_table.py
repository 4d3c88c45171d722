"""The table of forecasts beside the truth."""

from benchmarks.rendering.tables.forecasts import forecasts_table


def test_forecast_and_truth_are_compared() -> None:
    scores = {"known": 90.0, "novel": None, "exact_known": 80.0}
    line = {
        "kind": "forecast",
        "data_set": "banking",
        "table": {"design": "ten", "sizes": "natural"},
        "forecast": {"all": 70.0, **scores},
        "truth": {"all": 75.0, **scores, "known": 80.0},
    }
    other = {**line, "truth": {**line["truth"], "all": 75.1}}  # type: ignore[dict-item]
    rows = forecasts_table([line, other]).splitlines()
    assert "| banking | 10 per category | natural | 70.0 / 75.0 | 90.0 / 80.0 |" in rows[2]
    assert rows[-1].startswith("| within 5 points |")
    assert rows[-1].endswith("| 1 of 2 | 0 of 2 | 0 of 0 | 2 of 2 |")
    assert forecasts_table([]) == "No measurements yet.\n"
