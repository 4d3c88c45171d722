"""The table of own code that stays: what the library in its place would cost."""

from collections.abc import Sequence

from newfound.bench.lines import Line
from newfound.bench.rows import markdown

ROWS = {  # own code and library, by the name of the measurement
    "adamw": ("`CpuAdamW`, the state of AdamW on a CPU", "`torch.optim.AdamW`"),
    "tsne": ("`describing/tsne.py`, exact t-SNE of at most 300 points", "scikit-learn's `TSNE`"),
}


def libraries_table(lines: Sequence[Line]) -> str:
    """Return the table of the last line that `benchmarks.library_costs` wrote."""
    found = [line for line in lines if line.get("kind") == "library_costs"]
    if not found:
        return "No measurements yet.\n"
    line = found[-1]
    whole, rows = line["discovery_seconds"], []
    for name, (own, library) in ROWS.items():
        measured = line["measures"][name]
        extra = measured["library"] - measured["own"]
        rows.append([own, library, f"{extra:.2f}", f"{100 * extra / whole:.0f}%"])
    header = ["own code", "library", "extra CPU seconds", f"share of the command's {whole:.1f} s"]
    return markdown(header, rows)
