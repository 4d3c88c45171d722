"""Table 2: the accuracy of every method on every data set, and differences between methods."""

from collections.abc import Sequence

from benchmarks.rendering.paper_numbers import TABLE_2, TEXTOIR
from benchmarks.rendering.titles import (
    BESIDE,
    HOW_SCORED,
    TITLES,
    in_order,
    is_ablation,
    method_name,
    paper_accuracies,
)
from newfound.bench.lines import Line
from newfound.bench.rows import (
    NONE,
    SCORE_HEADER,
    SCORES,
    markdown,
    mean_seconds,
    mean_spread,
    seed_list,
    select_runs,
)


def table2(lines: Sequence[Line]) -> str:
    """Return all methods on all data sets with K given."""
    parts = [
        HOW_SCORED + "K is given. Seconds are those of a whole run, including pretraining. "
        "TEXTOIR splits StackOverflow differently.\n"
    ]
    for data_set, title in TITLES.items():
        rows = [r for r in select_runs(lines, data_set=data_set) if not is_ablation(r.method)]
        rows = in_order(rows)
        body = []
        for row in rows:
            paper = TABLE_2.get(BESIDE.get(row.method, row.method), {}).get(data_set)
            body.append(
                [
                    method_name(row, rows),
                    row.encoder,
                    seed_list(row.seeds),
                    *row.scores(),
                    mean_seconds(row, lines),
                    paper_accuracies(paper),
                    _textoir(row.method, data_set),
                ]
            )
        devices = sorted({line["device"] for row in rows for line in row.lines})
        parts.append(f"**{title}**" + (f" ({'; '.join(devices)})" if devices else "") + "\n")
        header = [
            "method",
            "encoder",
            "seeds",
            *SCORE_HEADER,
            "seconds",
            "paper (BERT)",
            "TEXTOIR, All",
        ]
        parts.append(markdown(header, body) if body else "No runs yet.\n")
    return "\n".join([*parts, *filter(None, (gains_table(lines), lead_table(lines)))])


def gains_table(lines: Sequence[Line], beside: str = "semi-km") -> str:
    """Return what DPN's training adds to its pretraining, from runs with the same seed."""
    body = []
    for data_set, title in TITLES.items():
        rows = [r for r in select_runs(lines, data_set=data_set) if r.effort == "best"]
        base = {
            (r.encoder, line["seed"]): line for r in rows if r.method == beside for line in r.lines
        }
        for row in rows:
            pairs = [
                (line, base[row.encoder, line["seed"]])
                for line in row.lines
                if row.method in ("dpn", "dpn-coupled") and (row.encoder, line["seed"]) in base
            ]
            if not pairs:
                continue
            gains = [
                mean_spread(
                    [a["scores"]["kmeans"][s] - b["scores"]["kmeans"][s] for a, b in pairs], 2
                )
                for s in SCORES
            ]
            seeds = seed_list(sorted(line["seed"] for line, _ in pairs))
            body.append([title, f"`{row.method}`", row.encoder, seeds, *gains])
    if not body:
        return ""
    header = ["data set", "method", "encoder", "seeds", *(s.title() for s in SCORES)]
    return (
        "**What training adds to pretraining**: the difference in accuracy by k-means from "
        "Semi-KM, which is k-means on the same pretrained features, with the same seed.\n\n"
        + markdown(header, body)
    )


def lead_table(lines: Sequence[Line], ours: str = "newfound") -> str:
    """Return the difference between our method and the others, from runs with the same seed."""
    cells: dict[tuple[str, str], dict[str, list[str]]] = {}
    for data_set in TITLES:
        rows = [r for r in select_runs(lines, data_set=data_set) if r.effort == "best"]
        rows = in_order(rows)
        base = {(r.encoder, x["seed"]): x for r in rows if r.method == ours for x in r.lines}
        for row in rows:
            pairs = [
                (base[row.encoder, line["seed"]], line)
                for line in row.lines
                if (row.encoder, line["seed"]) in base
            ]
            if row.method == ours or not pairs or is_ablation(row.method):
                continue
            found = cells.setdefault((method_name(row, rows), row.encoder), {})
            found[data_set] = [_lead(pairs, score) for score in ("all", "novel")]
    if not cells:
        return ""
    header = ["method", "encoder"]
    header += [f"{title}, {score}" for title in TITLES.values() for score in ("All", "Novel")]
    body = [
        [*key, *(cell for data_set in TITLES for cell in found.get(data_set, [NONE, NONE]))]
        for key, found in cells.items()
    ]
    return (
        f"**`{ours}` compared with the others**, on the same splits and seeds: its accuracy by the "
        "nearest prototype minus the better of the other method's two, and the number of seeds "
        "with a positive difference.\n\n" + markdown(header, body)
    )


def _lead(pairs: Sequence[tuple[Line, Line]], score: str) -> str:
    """Return the mean difference, and the number of seeds with a positive one."""
    leads = [
        ours["scores"]["prototype"][score]
        - max(other["scores"][by][score] for by in ("kmeans", "prototype"))
        for ours, other in pairs
    ]
    return f"{mean_spread(leads)} ({sum(lead > 0 for lead in leads)} of {len(leads)})"


def _textoir(method: str, data_set: str) -> str:
    """Return the cell for TEXTOIR's accuracy."""
    value = TEXTOIR.get(method, {}).get(data_set)
    return NONE if value is None else f"{value:.2f}"
