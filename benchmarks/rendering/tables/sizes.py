"""The table of tools by size: texts per second, and what 100 million texts would take."""

from collections.abc import Iterator, Sequence

from benchmarks.rendering.tables.serving import serving_lines
from newfound.bench.lines import Line
from newfound.bench.rows import markdown

MANY = 100_000_000  # texts
HOUR, DAY = 3600, 86_400  # seconds


def sizes_table(lines: Sequence[Line]) -> str:
    """Return the speed of each way to predict, from the lines of other measurements."""
    rows = [
        [tool, machine, f"{speed:,.0f}", took(MANY / speed)]
        for tool, machine, speed in _measured(lines)
    ]
    if not rows:
        return "No measurements yet.\n"
    header = ["tool", "measured on", "texts per second", "100 million texts"]
    return markdown(header, rows)


def took(seconds: float) -> str:
    """Return a long time in hours or days.

    Examples
    --------
    >>> took(36_000), took(3 * 86_400)
    ('10.0 hours', '3.0 days')
    """
    if seconds < 2 * DAY:
        return f"{seconds / HOUR:.1f} hours"
    return f"{seconds / DAY:.1f} days"


def _measured(lines: Sequence[Line]) -> Iterator[tuple[str, str, float]]:
    """Yield tool, machine and texts per second of every measurement."""
    for line in lines:
        if line.get("kind") == "speed" and line.get("method") == "prediction":
            for name, found in line["measures"].items():
                precision = name.rpartition(", ")[2]
                tool = f"`newfound predict`, {precision}, {found['texts']:,} texts"
                yield tool, line["device"], found["texts_per_second"]
    speed = serving_lines(lines).get("speed")
    if speed is not None:
        tool = "`newfound serve`, one text per request"
        yield tool, speed["device"], speed["server"]["texts_per_second"]
    for line in lines:
        if line.get("kind") == "millions":
            config = line["config"]
            tool = (
                f"`newfound discover` on {config['texts']:,} texts, K = {line['n_categories']:,}, "
                f"encoder {config['encoder']}"
            )
            yield tool, line["device"], config["texts"] / line["seconds"]
    scaled = [line for line in lines if line.get("kind") == "scale_out"][-1:]
    for line in scaled:
        for row in line["rows"]:
            if row["engine"] == "ray":
                workers = "1 worker" if row["workers"] == 1 else f"{row['workers']} workers"
                tool = f"`newfound predict --engine ray`, {workers}"
                yield tool, line["device"], row["texts"] / row["predicting_seconds"]
