"""The paper's tables as Markdown, rendered from result lines; nothing in them is typed by hand."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from newfound.bench.ablations import ablation_table
from newfound.bench.lines import Line, read_results
from newfound.bench.paper_numbers import (
    TABLE_1,
    TABLE_2,
    TABLE_3,
    TABLE_4,
    TEXTOIR,
    TRUE_CATEGORIES,
)
from newfound.bench.parts import parts_table
from newfound.bench.regimes import regimes_table
from newfound.bench.rows import (
    NONE,
    Row,
    differing,
    markdown,
    mean_seconds,
    mean_spread,
    seed_list,
    select_runs,
)
from newfound.bench.speed_table import gpu_table, speed_table
from newfound.bench.summary import summary_table
from newfound.bench.titles import (
    BESIDE,
    SCORE_HEADER,
    SCORES,
    TITLES,
    both_scores,
    effort_of,
    in_order,
    method_name,
)
from newfound.errors import InputError
from newfound.files import write_text

# Beside the tables' files
PAGES = ("README.md", "../README.md", "../docs/method.md", "../docs/performance.md")
SPLIT = ("known", "novel", "labelled", "unlabelled", "test")
READ_SO = (
    "Accuracy in % (mean ± standard deviation over seeds), by k-means on the test features "
    "(20 starts, mean of three) as in the paper, and by the nearest prototype, which is how a "
    "saved model predicts. "
)


def table1(lines: Sequence[Line]) -> str:
    """What the protocol gives a method, beside what the paper prints."""
    body, spread = [], ""
    for data_set, title in TITLES.items():
        splits = [
            line
            for line in lines
            if line.get("kind") == "split"
            and line["data_set"] == data_set
            and (line["known_ratio"], line["labelled_ratio"]) == (0.75, 0.1)
        ]
        splits.sort(key=lambda line: line["seed"])
        paper = [f"{value:,}" for value in TABLE_1[data_set]]
        body.append([f"{title}, paper", *paper])
        if not splits:
            body.append([title, *[NONE] * len(SPLIT)])
            continue
        body.append([f"{title}, seed {splits[0]['seed']}", *_split_row(splits[0])])
        counts = [split["labelled"] for split in splits]
        if min(counts) < max(counts):
            spread += (
                f"The labelled texts of {title} are {min(counts)} to {max(counts)} over seeds "
                f"{seed_list([split['seed'] for split in splits])}: its categories differ in size. "
            )
    note = (
        "Known ratio 0.75, labelled ratio 0.1. "
        + spread
        + "Of CLINC 0.75 x 150 = 112.5 categories are known; that rounds to 112, and 1,344 "
        "labelled texts are 112 x 12, so 112 is what the paper ran although it prints 113.\n"
    )
    header = ["data set", *SPLIT]
    return markdown(header, body) + "\n" + note


def _split_row(split: Line) -> list[str]:
    return [f"{split[name]:,}" for name in SPLIT]


def table2(lines: Sequence[Line]) -> str:
    """All methods on all data sets with K given."""
    parts = [
        READ_SO + "K is given. Seconds are those of a whole run, pretraining "
        "included. TEXTOIR splits StackOverflow in another way.\n"
    ]
    for data_set, title in TITLES.items():
        rows = [r for r in select_runs(lines, data_set=data_set) if not _is_ablation(r.method)]
        rows = in_order(rows)
        body = []
        for row in rows:
            paper = TABLE_2.get(BESIDE.get(row.method, row.method), {}).get(data_set)
            body.append(
                [
                    method_name(row, rows),
                    row.encoder,
                    seed_list(row.seeds),
                    *both_scores(row),
                    mean_seconds(row, lines),
                    _accuracies(paper),
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
    """What DPN's training adds to its own pretraining: differences of runs with the same seed."""
    body = []
    for data_set, title in TITLES.items():
        rows = [r for r in select_runs(lines, data_set=data_set) if effort_of(r) == "best"]
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
        "**What training adds to pretraining**: accuracy by k-means less that of Semi-KM, which is "
        "k-means on the same pretrained features, seed by seed.\n\n" + markdown(header, body)
    )


def lead_table(lines: Sequence[Line], ours: str = "newfound") -> str:
    """How far our method is above each other one: differences of runs with the same seed."""
    cells: dict[tuple[str, str], dict[str, list[str]]] = {}
    for data_set in TITLES:
        rows = [r for r in select_runs(lines, data_set=data_set) if effort_of(r) == "best"]
        rows = in_order(rows)
        base = {(r.encoder, x["seed"]): x for r in rows if r.method == ours for x in r.lines}
        for row in rows:
            pairs = [
                (base[row.encoder, line["seed"]], line)
                for line in row.lines
                if (row.encoder, line["seed"]) in base
            ]
            if row.method == ours or not pairs or _is_ablation(row.method):
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
        f"**`{ours}` less the others**, seed by seed, on the same splits: its accuracy by nearest "
        "prototype less the better of the other's two, and with how many of the seeds it is above."
        "\n\n" + markdown(header, body)
    )


def _lead(pairs: Sequence[tuple[Line, Line]], score: str) -> str:
    leads = [
        ours["scores"]["prototype"][score]
        - max(other["scores"][by][score] for by in ("kmeans", "prototype"))
        for ours, other in pairs
    ]
    return f"{mean_spread(leads)} ({sum(lead > 0 for lead in leads)} of {len(leads)})"


def _is_ablation(method: str) -> bool:
    return method in TABLE_3 and method != "dpn"


def _accuracies(paper: tuple[float, float, float] | None) -> str:
    return " / ".join(f"{value:.2f}" for value in paper) if paper else NONE


def _textoir(method: str, data_set: str) -> str:
    value = TEXTOIR.get(method, {}).get(data_set)
    return NONE if value is None else f"{value:.2f}"


def table3(lines: Sequence[Line]) -> str:
    """The five ablations on StackOverflow; the full method on the seeds that they have."""
    rows = select_runs(lines, data_set="stackoverflow")
    ablated = [set(row.seeds) for row in rows if row.method in TABLE_3 and _is_ablation(row.method)]
    shared = set.intersection(*ablated) if ablated else set()
    rows = [_on_seeds(row, shared) if row.method == "dpn" else row for row in rows]
    body = []
    for method, (without, paper) in TABLE_3.items():
        found = [row for row in rows if row.method == method]
        for row in sorted(found, key=lambda row: (row.encoder, -len(row.lines))):
            other = differing(row, rows)
            name = f"{without} (`{method}`)" + (f", {other}" if other else "")
            cells = [name, row.encoder, seed_list(row.seeds), *both_scores(row)]
            body.append([*cells, _accuracies(paper)])
        if not found:
            body.append([f"{without} (`{method}`)", *[NONE] * 8, _accuracies(paper)])
    header = ["without", "encoder", "seeds", *SCORE_HEADER, "paper (BERT)"]
    return READ_SO + "StackOverflow, K given.\n\n" + markdown(header, body)


def _on_seeds(row: Row, seeds: set[int]) -> Row:
    """The row with these seeds alone, if it has all of them."""
    if not seeds or not seeds <= set(row.seeds):
        return row
    return replace(row, lines=[line for line in row.lines if line["seed"] in seeds])


def table4(lines: Sequence[Line]) -> str:
    """The number of categories: with no knowledge of the truth, and the paper's way."""
    header = ["", *TITLES.values()]
    truth = ["truth", *(str(TRUE_CATEGORIES[data_set]) for data_set in TITLES)]
    counts: dict[str, list[Line]] = {}
    for line in lines:
        if line.get("kind") == "count" and line["known_ratio"] == 0.75:
            counts.setdefault(line["encoder"], []).append(line)
    runs: dict[tuple[str, str], list[Line]] = {}
    for row in select_runs(lines, given_k=False):
        effort = "" if effort_of(row) == "best" else f", effort {effort_of(row)}"
        runs.setdefault((f"`{row.method}`{effort}", row.encoder), []).extend(row.lines)

    unknown = [
        [f"encoder before training, {encoder}", *_by_data_set(_untrained(found), "estimated")]
        for encoder, found in sorted(counts.items())
    ] + [
        [f"whole run of {', '.join(parts)}", *_by_data_set(found, "categories", "estimated")]
        for parts, found in sorted(runs.items())
    ]
    papers = [
        [f"paper, {name}", *(str(found[data_set]) for data_set in TITLES)]
        for name, found in TABLE_4.items()
    ]
    starts = [
        [f"from {multiple} x truth, {encoder}", *_by_data_set(found, "overclustering", multiple)]
        for encoder, found in sorted((e, _pretrained(found)) for e, found in counts.items())
        for multiple in sorted({m for line in found for m in line["overclustering"]}, key=float)
    ]
    return (
        "Estimated with no knowledge of the truth (mean ± standard deviation over seeds):\n\n"
        + (markdown(header, [truth, *unknown]) if unknown else "No runs yet.\n")
        + "\nThe paper's way: cluster into too many, a multiple of the *true* number, and count "
        "the clusters larger than 0.9 of the mean size. The paper does not say which multiple.\n\n"
        + markdown(header, [truth, *papers, *starts])
    )


def _untrained(lines: list[Line]) -> list[Line]:
    """The lines of one effort: where no layer learns, if there are, for none has learnt yet."""
    return [line for line in lines if line["config"].get("effort") == "fast"] or lines


def _pretrained(lines: list[Line]) -> list[Line]:
    """The lines whose encoder was pretrained whole, if there are: the paper counts in its space."""
    return [line for line in lines if line["config"].get("effort") == "best"] or lines


def _by_data_set(lines: Sequence[Line], *path: str) -> list[str]:
    """Mean and spread of the value at `path`, and the seeds behind it, for every data set."""
    cells = []
    for data_set in TITLES:
        # Of a seed that was counted with several settings, the last one.
        chosen = {line["seed"]: line for line in lines if line["data_set"] == data_set}
        values = [_at(line, path) for line in chosen.values()]
        seeds = f" (seeds {seed_list(sorted(chosen))})" if chosen else ""
        cells.append(mean_spread(values) + seeds)
    return cells


def _at(value: Any, path: Sequence[str]) -> float | None:
    for name in path:
        value = value.get(name)
    return None if value is None else float(value)


TABLES = {
    "table1": table1,
    "table2": table2,
    "table3": table3,
    "table4": table4,
    "regimes": regimes_table,
    "speed": speed_table,
}
HEADINGS = {
    "table1": "Table 1: the protocol",
    "table2": "Table 2: accuracy",
    "table3": "Table 3: ablations of DPN",
    "table4": "Table 4: the number of categories",
    "regimes": "Fewer labels, K unknown",
    "speed": "Speed",
    "parts": "What each part of `newfound` is worth",
    "ablations": "What was tried",
    "search": "How settings were chosen",
}


def render(lines: Sequence[Line]) -> dict[str, str]:
    """Every table as Markdown, by its name."""
    return {name: make(lines) for name, make in TABLES.items()}


def excerpts(lines: Sequence[Line]) -> dict[str, str]:
    """What pages show of the results that has no file of its own, by the markers' names."""
    return {"summary": summary_table(lines), "gpu": gpu_table(lines)}


def as_file(name: str, table: str) -> str:
    """A table's own file."""
    return f"# {HEADINGS[name]}\n\nRendered by `newfound bench tables`; do not edit.\n\n{table}"


def insert(text: str, tables: dict[str, str]) -> str:
    """Replace what stands between `<!-- table2 -->` and `<!-- /table2 -->`, for every table."""
    for name, table in tables.items():
        start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        if text.count(start) != text.count(end):
            raise InputError(f"a marker {start} has no {end} that goes with it")
        pattern = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", re.DOTALL)
        text = pattern.sub(lambda _, t=table, s=start, e=end: f"{s}\n{t}{e}", text)  # type: ignore[misc]
    return text


def write_tables(results: Path, out: Path) -> list[Path]:
    """Write a file for each table, and fill the markers of the pages that show some."""
    from newfound.bench.search import search_table  # needs torch, which the other tables do not

    lines = read_results(results)
    tables = {
        **render(lines),
        "parts": parts_table(out / "ablations", lines),
        "ablations": ablation_table(out / "ablations"),
        "search": search_table(out / "search"),
    }
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for name, table in tables.items():
        write_text(out / f"{name}.md", as_file(name, table))
        written.append(out / f"{name}.md")
    for page in (out / name for name in PAGES):
        if page.is_file():
            old = page.read_text(encoding="utf-8")
            new = insert(old, {**tables, **excerpts(lines)})
            if new != old:
                write_text(page, new)
                written.append(page)
    return written
