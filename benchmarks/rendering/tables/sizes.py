"""The table of tools by size: texts per second, and what 100 million texts would take.

The last column is a division, and in brackets where the time does not grow with the texts alone:
a discovery has parts that take as long for any number of texts, and holds all texts in memory.
"""

from collections.abc import Iterator, Sequence

from benchmarks.rendering.tables.serving import serving_lines
from newfound.bench.lines import Line
from newfound.bench.rows import markdown

MANY = 100_000_000  # texts
HOUR, DAY = 3600, 86_400  # seconds


def sizes_table(lines: Sequence[Line]) -> str:
    """Return the speed of each way to predict, from the lines of other measurements."""
    rows = [
        [tool, machine, f"{speed:,.0f}", f"({time})" if "discover" in tool else time]
        for tool, machine, speed in _measured(lines)
        for time in [took(MANY / speed)]
    ]
    if not rows:
        return "No measurements yet.\n"
    header = ["tool", "measured on", "texts per second", "100 million texts, extrapolated"]
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
                yield tool, _machine(line), found["texts_per_second"]
    speed = serving_lines(lines).get("speed")
    if speed is not None:
        tool = "`newfound serve`, one text per request"
        yield tool, _machine(speed), speed["server"]["texts_per_second"]
    for line in lines:
        if line.get("kind") == "millions":
            config = line["config"]
            tool = (
                f"`newfound discover` on {config['texts']:,} texts, K = {line['n_categories']:,}, "
                f"encoder {config['encoder']}"
            )
            yield tool, _machine(line), config["texts"] / line["seconds"]
    scaled = [line for line in lines if line.get("kind") == "scale_out"][-1:]
    for line in scaled:
        for row in line["rows"]:
            if row["engine"] == "ray":
                workers = "1 worker" if row["workers"] == 1 else f"{row['workers']} workers"
                tool = f"`newfound predict --engine ray`, {workers}"
                yield tool, _machine(line), row["texts"] / row["predicting_seconds"]


def _machine(line: Line) -> str:
    """Return the device, with the instruction set of the CPU where the line has it."""
    if not line["device"].startswith("cpu"):
        return str(line["device"])
    return f"{line['device']}, {line.get('instruction_set', 'processor not recorded')}"
