"""Table 3: the five ablations of DPN on StackOverflow."""

from collections.abc import Sequence
from dataclasses import replace

from benchmarks.rendering.paper_numbers import TABLE_3
from benchmarks.rendering.titles import HOW_SCORED, is_ablation, paper_accuracies
from newfound.bench.lines import Line
from newfound.bench.rows import NONE, SCORE_HEADER, Row, differing, markdown, seed_list, select_runs


def table3(lines: Sequence[Line]) -> str:
    """Return the five ablations and the full method on the same seeds."""
    rows = select_runs(lines, data_set="stackoverflow")
    ablated = [set(row.seeds) for row in rows if row.method in TABLE_3 and is_ablation(row.method)]
    shared = set.intersection(*ablated) if ablated else set()
    rows = [_on_seeds(row, shared) if row.method == "dpn" else row for row in rows]
    body = []
    for method, (without, paper) in TABLE_3.items():
        found = [row for row in rows if row.method == method]
        for row in sorted(found, key=lambda row: (row.encoder, -len(row.lines))):
            other = differing(row, rows)
            name = f"{without} (`{method}`)" + (f", {other}" if other else "")
            cells = [name, row.encoder, seed_list(row.seeds), *row.scores()]
            body.append([*cells, paper_accuracies(paper)])
        if not found:
            body.append([f"{without} (`{method}`)", *[NONE] * 8, paper_accuracies(paper)])
    header = ["without", "encoder", "seeds", *SCORE_HEADER, "paper (BERT)"]
    return HOW_SCORED + "StackOverflow, K given.\n\n" + markdown(header, body)


def _on_seeds(row: Row, seeds: set[int]) -> Row:
    """Return the row with these seeds alone, if it has all of them."""
    if not seeds or not seeds <= set(row.seeds):
        return row
    return replace(row, lines=[line for line in row.lines if line["seed"] in seeds])
