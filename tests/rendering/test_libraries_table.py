"""The table of own code that stays."""

from benchmarks.rendering.tables.libraries import libraries_table


def test_the_last_measurement_is_shown_as_a_share_of_the_command() -> None:
    line = {
        "kind": "library_costs",
        "discovery_seconds": 20.0,
        "measures": {
            "adamw": {"own": 0.1, "library": 1.1},
            "tsne": {"own": 0.5, "library": 2.5},
        },
    }
    table = libraries_table([{**line, "discovery_seconds": 1.0}, line])
    assert "20.0 s" in table
    assert "| 1.00 | 5% |" in table
    assert "| 2.00 | 10% |" in table
    assert libraries_table([]) == "No measurements yet.\n"
