"""The tables of `newfound serve` and of tools by size."""

from typing import Any

from benchmarks.rendering.tables.serving import serving_table
from benchmarks.rendering.tables.sizes import sizes_table

SPEED: dict[str, Any] = {
    "kind": "serving",
    "table": "speed",
    "texts": 3000,
    "connections": 128,
    "device": "cpu, 2 cores",
    "encoder": {"texts_per_second": 400.0},
    "server": {"texts_per_second": 360.0, "p50_ms": 300.0, "p99_ms": 500.0},
    "ratio": 0.9,
    "latencies": {"10%": {"per_second": 36.0, "p50_ms": 8.0, "p99_ms": 12.0}},
}


def test_the_last_measurement_of_each_part_is_shown() -> None:
    old = {**SPEED, "ratio": 0.1}
    overload = {"kind": "serving", "table": "overload", "connections": 400, "queue": 64}
    counts = {"right": 1234, "refused": 5678, "wrong": 0, "dropped": 0}
    table = serving_table([old, SPEED, {**overload, **counts}])
    assert "360, that is 0.90 of it (goal: 0.85)" in table
    assert "| 10% of the throughput | 36 | 8 | 12 |" in table
    assert "1,234 right, 5,678 refused with 503 and Retry-After, 0 wrong, 0 missing" in table
    assert serving_table([]) == "No measurements yet.\n"


def test_sizes_tell_what_many_texts_would_take() -> None:
    prediction = {
        "kind": "speed",
        "method": "prediction",
        "device": "cpu, 2 threads",
        "instruction_set": "AVX2",
        "measures": {
            "predict 20,000 distinct texts, fp32": {"texts": 20_000, "texts_per_second": 10_000.0}
        },
    }
    scaled = {
        "kind": "scale_out",
        "device": "cpu",
        "rows": [{"engine": "ray", "workers": 2, "texts": 500, "predicting_seconds": 1.0}],
    }
    fitted = {
        "kind": "millions",
        "device": "gpu",
        "config": {"texts": 1_000_000, "encoder": "minilm"},
        "n_categories": 247,
        "seconds": 1000.0,
    }
    table = sizes_table([prediction, SPEED, scaled, fitted])
    assert "on 1,000,000 texts, K = 247, encoder minilm | gpu | 1,000 | (27.8 hours) |" in table
    predicted = (
        "| `newfound predict`, fp32, 20,000 texts | cpu, 2 threads, AVX2 | 10,000 | 2.8 hours |"
    )
    assert predicted in table
    served = "`newfound serve`, one text per request | cpu, 2 cores, processor not recorded | 360 |"
    assert served in table
    spread = (
        "`newfound predict --engine ray`, 2 workers | cpu, processor not recorded | 500 | 2.3 days"
    )
    assert spread in table
    assert sizes_table([]) == "No measurements yet.\n"
