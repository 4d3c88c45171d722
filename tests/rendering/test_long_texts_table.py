"""The table of accuracy on long texts."""

from typing import Any

from benchmarks.rendering.tables.long_texts import long_texts_table


def line(limit: int | None, seed: int, score: float) -> dict[str, Any]:
    return {
        "kind": "long_texts",
        "seed": seed,
        "config": {"max_tokens": limit},
        "scores": {"all": score, "known": score + 1, "novel": score - 1},
        "texts": 200,
        "long_texts": 50 if limit else 30,
    }


def test_means_over_seeds_are_shown_by_limit() -> None:
    lines = [line(None, 0, 80), line(128, 0, 10), line(128, 0, 70), line(128, 1, 71)]
    rows = long_texts_table(lines).splitlines()[2:]
    assert rows == [
        "| `--max-tokens 128` | 25% truncated | 70.5 | 71.5 | 69.5 | 2 |",
        "| whole texts (default) | 15% split | 80.0 | 81.0 | 79.0 | 1 |",
    ]
    assert long_texts_table([]) == "No measurements yet.\n"
