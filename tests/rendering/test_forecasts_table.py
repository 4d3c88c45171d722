"""The table of forecasts beside the truth."""

from benchmarks.rendering.tables.forecasts import forecasts_table


def test_forecast_and_truth_are_compared() -> None:
    line = {
        "kind": "forecast",
        "data_set": "banking",
        "table": {"design": "ten", "sizes": "natural"},
        "forecast": {"all": 70.0, "known": 90.0, "novel": None},
        "draws": {"all": 60.0, "known": 84.0, "novel": None},
        "truth": {"all": 75.0, "known": 80.0, "novel": None},
    }
    other = {**line, "data_set": "clinc", "truth": {"all": 76.0, "known": 80.0, "novel": 50.0}}
    rows = forecasts_table([line, other]).splitlines()
    none = "\u2013 | \u2013 |"
    assert rows[2] == f"| banking | 1 | 5.0 | 100% | 10.0 | 0% | {none}"
    assert rows[3] == f"| clinc | 1 | 6.0 | 0% | 10.0 | 0% | {none}"
    assert rows[4] == f"| all | 2 | 5.5 | 50% | 10.0 | 0% | {none}"
    assert rows[5] == f"| all, draws alone | 2 | 15.5 | 0% | 4.0 | 100% | {none}"
    assert forecasts_table([]) == "No measurements yet.\n"
