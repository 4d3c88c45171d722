"""The table of prediction on Ray."""

from benchmarks.rendering.tables.scale_out import scale_out_table


def test_the_last_measurement_is_shown_with_its_efficiency() -> None:
    rows = [
        {"engine": engine, "workers": workers, "texts": 3000}
        | {"predicting_seconds": seconds, "whole_seconds": seconds + 5}
        for engine, workers, seconds in (("local", 1, 9.0), ("ray", 1, 10.0), ("ray", 2, 5.5))
    ]
    line = {
        "kind": "scale_out",
        "config": {"texts": 3000, "shards": 3},
        "rows": rows,
        "efficiency": 10 / 11,
        "device": "cpu, 2 cores",
    }
    table = scale_out_table([{**line, "efficiency": 0.5}, line])
    assert "| `--engine ray`, 2 workers | 5.5 | 545 | 10.5 |" in table
    assert "The efficiency of the second worker is 0.91" in table
    assert "3,000 texts in 3 shards" in table
    assert scale_out_table([]) == "No measurements yet.\n"
