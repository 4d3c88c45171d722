"""The table of static prediction: speed, and agreement with the full model."""

from collections.abc import Sequence

from newfound.bench.lines import Line
from newfound.bench.rows import NONE, markdown


def static_table(lines: Sequence[Line]) -> str:
    """Return the table of the last line that `benchmarks.static_prediction` wrote."""
    found = [line for line in lines if line.get("kind") == "static"]
    if not found:
        return "No measurements yet.\n"
    line = found[-1]
    full, static = line["seconds"]["fp32"], line["seconds"]["static"]

    def speeds(times: dict[str, float]) -> list[str]:
        return [
            f"{line['texts'] / times[part]:,.0f} ({full[part] / times[part]:.0f}x)"
            for part in ("encode", "predict")
        ]

    rows = [
        ["fp32", *speeds(full), NONE, NONE],
        ["`--static`", *speeds(static), f"{line['same']:.1%}", f"{line['cosine']:.3f}"],
    ]
    header = ["", "texts per second: encode", "predict", "same category", "mean cosine"]
    return markdown(header, rows)
