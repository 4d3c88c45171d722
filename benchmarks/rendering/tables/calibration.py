"""Calibration errors and areas under the curve of fit scores, by group of tables."""

from collections.abc import Iterator, Sequence
from statistics import fmean

from newfound.bench.lines import Line

COLUMNS = {  # measurement and part of a line, with its heading
    ("calibration_error_of_softmax", "known"): "calibration error of the softmax, known",
    ("calibration_error_of_softmax", "novel"): "the same, novel",
    ("calibration_error", "known"): "calibration error, known",
    ("calibration_error", "novel"): "calibration error, novel",
    ("auroc", "in_pile"): "AUROC, among the texts",
    ("auroc", "in_predict"): "AUROC, in `predict`",
    ("auroc", "unseen"): "AUROC, unseen categories",
}


def calibration_table(lines: Sequence[Line]) -> str:
    """Return the summary of the lines that `benchmarks.fits_nowhere` wrote."""
    own = [line for line in lines if line.get("kind") == "fits-nowhere"]
    return "\n".join(summary(own)) + "\n" if own else "No measurements yet.\n"


def summary(lines: Sequence[Line]) -> Iterator[str]:
    """Yield the mean and the worst value of each measurement, one row per group of tables."""
    yield "| tables | number | " + " | ".join(COLUMNS.values()) + " |"
    yield "| :-- | --: |" + " --: |" * len(COLUMNS)
    for group in dict.fromkeys(line["tables"] for line in lines):
        own = [line for line in lines if line["tables"] == group]
        cells = []
        for measurement, part in COLUMNS:
            values = [line[measurement][part] for line in own]
            values = [value for value in values if value is not None]
            worst = min if measurement == "auroc" else max
            cells.append(f"{fmean(values):.3f} ({worst(values):.3f})" if values else "")
        yield f"| {group} | {len(own)} | " + " | ".join(cells) + " |"
