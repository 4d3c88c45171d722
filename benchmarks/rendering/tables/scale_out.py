"""The table of prediction on Ray with one and two workers."""

from collections.abc import Sequence

from newfound.bench.lines import Line
from newfound.bench.rows import markdown

WAYS = {  # engine and workers
    ("local", 1): "`--engine local`",
    ("ray", 1): "`--engine ray`, 1 worker",
    ("ray", 2): "`--engine ray`, 2 workers",
}


def scale_out_table(lines: Sequence[Line]) -> str:
    """Return the table of the last line that `benchmarks.scale_out` wrote."""
    found = [line for line in lines if line.get("kind") == "scale_out"]
    if not found:
        return "No measurements yet.\n"
    line = found[-1]
    rows = [
        [
            WAYS[row["engine"], row["workers"]],
            f"{row['predicting_seconds']:.1f}",
            f"{row['texts'] / row['predicting_seconds']:,.0f}",
            f"{row['whole_seconds']:.1f}",
        ]
        for row in line["rows"]
    ]
    header = ["", "predicting, seconds", "texts per second", "with start and loading, seconds"]
    told = (
        f"\n{line['config']['texts']:,} texts in {line['config']['shards']} shards, MiniLM in full "
        f"precision, one thread per worker, on {line['device']}. The efficiency of the second "
        f"worker is {line['efficiency']:.2f}: the texts per second of two workers, divided by "
        "twice those of one. All three gave the same bytes.\n"
    )
    return markdown(header, rows) + told
