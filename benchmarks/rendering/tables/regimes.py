"""regimes.md: fewer labels, no labels, and an unknown number of categories."""

import json
from collections.abc import Sequence

from benchmarks.rendering.titles import TITLES, in_order, method_name
from newfound.bench.lines import Line
from newfound.bench.rows import (
    SCORE_HEADER,
    Row,
    is_run,
    markdown,
    mean_spread,
    seed_list,
    select_runs,
)

OF_TABLE_2 = (0.75, 0.1)  # known and labelled ratio


def regimes_table(lines: Sequence[Line]) -> str:
    """Return the accuracy with other ratios than the paper's, and with K estimated."""
    parts = (ratios_table(lines), estimated_table(lines))
    return "\n".join(filter(None, parts)) or "No runs yet.\n"


def ratios_table(lines: Sequence[Line]) -> str:
    """Return the runs with K given whose known or labelled ratio is not that of Table 2."""
    runs = [line for line in lines if is_run(line)]
    ratios = sorted({(line["known_ratio"], line["labelled_ratio"]) for line in runs} - {OF_TABLE_2})
    body = []
    for data_set, title in TITLES.items():
        for known, labelled in ratios:
            rows = select_runs(lines, data_set=data_set, known_ratio=known, labelled_ratio=labelled)
            for row in in_order(rows):
                shares = [f"{known:g}", f"{labelled:g}"] if known else ["no labels", ""]
                name = [method_name(row, rows), row.encoder, seed_list(row.seeds)]
                body.append([title, *shares, *name, *row.scores()])
    if not body:
        return ""
    header = ["data set", "known", "labelled", "method", "encoder", "seeds", *SCORE_HEADER]
    return (
        "**Fewer labels**, K given. *Known* is the share of categories that are known, *labelled* "
        "the share of their texts that are labelled (0.75 and 0.1 in Table 2).\n\n"
        + markdown(header, body)
    )


def estimated_table(lines: Sequence[Line]) -> str:
    """Return the difference between runs with K estimated and with K given, by seed."""
    body = []
    for data_set, title in TITLES.items():
        given = {_twin(row): row for row in select_runs(lines, data_set=data_set)}
        rows = select_runs(lines, data_set=data_set, given_k=False)
        for row in in_order(rows):
            twin = given.get(_twin(row))
            beside = {line["seed"]: line for line in twin.lines} if twin else {}
            pairs = [(x, beside[x["seed"]]) for x in row.lines if x["seed"] in beside]
            if not pairs:
                continue
            after, before = ([_all(pair[i]) for pair in pairs] for i in (0, 1))
            gains = [a - b for a, b in zip(after, before, strict=True)]
            numbers = ", ".join(str(line["categories"]["estimated"]) for line, _ in pairs)
            body.append(
                [
                    title,
                    method_name(row, rows),
                    row.encoder,
                    ", ".join(str(line["seed"]) for line, _ in pairs),
                    str(pairs[0][0]["categories"]["true"]),
                    numbers,
                    *(mean_spread(values) for values in (before, after, gains)),
                    ", ".join(f"{gain:.1f}" for gain in gains),
                ]
            )
    if not body:
        return ""
    header = ["data set", "method", "encoder", "seeds", "true K", "estimated K", "All, K given"]
    header += ["All, K estimated", "difference", "by seed"]
    return (
        "**K estimated**: accuracy by the nearest prototype, compared with K given on the same "
        "seeds.\n\n" + markdown(header, body)
    )


def _twin(row: Row) -> str:
    """Return the key that a row shares with the same configuration with K given."""
    config = {name: value for name, value in row.config.items() if name != "given_k"}
    return json.dumps([row.method, row.encoder, config], sort_keys=True)


def _all(line: Line) -> float:
    """Return the accuracy of a run by the nearest prototype."""
    return float(line["scores"]["prototype"]["all"])
