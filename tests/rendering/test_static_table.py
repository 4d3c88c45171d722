"""The table of static prediction."""

from benchmarks.rendering.tables.static import static_table
from newfound.bench.rows import NONE


def test_the_last_measurement_is_shown_with_its_ratios() -> None:
    line = {
        "kind": "static",
        "texts": 1000,
        "seconds": {
            "fp32": {"encode": 10.0, "predict": 10.0},
            "static": {"encode": 0.1, "predict": 0.2},
        },
        "same": 0.875,
        "cosine": 0.9512,
    }
    rows = static_table([{**line, "same": 0.1}, line]).splitlines()[2:]
    assert rows == [
        f"| fp32 | 100 (1x) | 100 (1x) | {NONE} | {NONE} |",
        "| `--static` | 10,000 (100x) | 5,000 (50x) | 87.5% | 0.951 |",
    ]
    assert static_table([]) == "No measurements yet.\n"
