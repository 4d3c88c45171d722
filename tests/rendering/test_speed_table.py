"""speed.md: which goals hold, and what the rows are called."""

from typing import Any

from benchmarks.rendering.tables.speed import GOALS, speed_table
from newfound.bench.speed.table import section_tables


def line(section: str, measures: dict[str, Any]) -> dict[str, Any]:
    return {
        "kind": "speed",
        "method": section,
        "data_set": "banking",
        "encoder": "minilm",
        "config": {"texts": 4000, "repeats": 3},
        "measures": measures,
        "notes": [],
        "device": "cpu, 2 threads",
    }


def goals(text: str) -> dict[str, str]:
    rows = [row.strip("| ").split(" | ") for row in text.splitlines() if row.startswith("|")]
    return {row[0]: row[-1] for row in rows[2 : 2 + len(GOALS)]}


def test_speed_table_checks_the_goals() -> None:
    lines = [
        line("encoding", {"fp32": {"seconds": 100.0}}),  # an older measurement
        line(
            "encoding",
            {
                "fp32": {"seconds": 10.0},
                "int8": {"seconds": 6.0, "cosine": 0.9985},
                "sentence-transformers": {"seconds": 15.0},
            },
        ),
        line(
            "kmeans",
            {
                "ours": {"seconds": 5.0, "inertia": 100.2},
                "scikit-learn": {"seconds": 10.0, "inertia": 100.0},
            },
        ),
        line(
            "discover",
            {
                "encoding": {"seconds": 10.0},
                "bertopic": {"seconds": 30.0, "accuracy": 40.0},
                "bertopic-kmeans": {"seconds": 30.0, "accuracy": 67.0},
                "fast": {"seconds": 13.0, "accuracy": 73.0},
                "balanced": {"seconds": 26.0, "accuracy": 72.0},
            },
        ),
        line(
            "growth",
            {
                "predict 10 texts": {"texts": 10, "seconds": 5.0, "peak_mb": 500},
                "predict 110 texts": {"texts": 110, "seconds": 6.0, "peak_mb": 600},
                "predict 210 texts": {"texts": 210, "seconds": 9.0, "peak_mb": 900},
            },
        ),
        line(
            "scaling",
            {
                f"{texts} texts": {"texts": texts, "seconds": seconds, "stages": {"encoding": 1.0}}
                for texts, seconds in ((100, 5.0), (200, 7.0), (400, 10.0), (800, 18.0))
            },
        ),
        line("runs", {"banking": {"seconds": 40.0}, "clinc": {"seconds": 120.0}}),
    ]
    table = speed_table(lines)
    holds = list(goals(table).values())
    assert holds == [
        *("yes", "no", "yes"),  # fp32, int8, its cosine
        "yes",  # k-means
        *("yes", "yes", "no", "no", "yes"),  # fast, its accuracy, balanced, accuracy, BERTopic
        *("no", "no"),  # memory, time per text
        "yes",  # time per text of discover: 20 ms at first, 20 ms at last
        *("yes", "no"),  # whole runs
    ]
    assert "| int8 | 6.00 | 0.9985 | 2.50 |" in table
    assert "| 20,000, then 20,000 µs per text | yes |" in table
    assert "| encoding | 10.000 | 5.000 | 2.500 | 1.250 |" in table
    assert "| `newfound discover --effort fast` | 13.00 | 73.0 | 1.30 |" in table


def test_goals_without_measurement_have_no_result() -> None:
    assert speed_table([{"kind": "speed", "seconds": 1}]) == "No measurements yet.\n"
    table = speed_table([line("discover", {"fast": {"seconds": 13.0, "accuracy": 71.0}})])
    assert set(goals(table).values()) == {"no", "–"}  # noqa: RUF001


def test_growth_rows_name_the_random_encoder() -> None:
    measures = {
        "predict 1,000,000 texts": {"texts": 1_000_000, "seconds": 100.0, "peak_mb": 425},
        "k-means 1,000,000 x 384, K = 200, 1 start": {"seconds": 50.0, "peak_mb": 2055},
    }
    table = section_tables([line("growth", measures)])
    assert "| predict 1,000,000 texts, random one-layer encoder | 100.00 | 425 |" in table
    assert "(cpu, 2 threads, one run each; `predict` on generated texts" in table
    assert "| k-means 1,000,000 x 384, K = 200, 1 start | 50.00 | 2,055 |" in table


def test_prediction_rows_name_the_precision() -> None:
    measures = {
        "predict 20,000 distinct texts, fp32": {"seconds": 40.0, "texts_per_second": 500.0},
        "predict 20,000 distinct texts, int8": {"seconds": 20.0, "texts_per_second": 1000.0},
    }
    table = section_tables([line("prediction", measures)])
    assert "(cpu, 2 threads, minilm, medians of 3)" in table
    assert "| predict 20,000 distinct texts, int8 | 20.00 | 1,000 |" in table
