"""The table of how long a review takes to show each action."""

from benchmarks.rendering.tables.review_latency import review_latency_table


def test_the_last_measurement_is_shown() -> None:
    old = {"kind": "review_latency", "texts": 5, "milliseconds": {"accept": [9.0]}}
    new = {"kind": "review_latency", "texts": 20_000, "milliseconds": {"undo": [80.0, 99.6, 91.0]}}
    table = review_latency_table([old, new, {"kind": "other"}])
    assert "| 20,000 texts | times | median, ms | longest, ms |" in table
    assert "| undo | 3 | 91 | 100 |" in table
    assert "accept" not in table
    assert review_latency_table([]) == "No measurements yet.\n"
