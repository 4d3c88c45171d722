"""The Markdown table of `newfound bench table`."""

from collections.abc import Sequence

from newfound.bench.lines import Line
from newfound.bench.rows import (
    SCORE_HEADER,
    differing,
    is_run,
    markdown,
    mean_seconds,
    seed_list,
    select_runs,
)
from newfound.bench.speed.table import section_tables
from newfound.bench.wild.grid import wild_tables
from newfound.errors import InputError

HEADER = ("data set", "method", "effort", "encoder", "known", "labelled", "K", "seeds")


def result_table(lines: Sequence[Line]) -> str:
    """Return the runs among result lines as tables, and speed measurements below them.

    Parameters
    ----------
    lines : sequence of dict
        Result lines of `newfound bench run`, `wild` and `speed`; others are left out.

    Returns
    -------
    str
        Markdown. Accuracies are in percent: mean and standard deviation over seeds, by k-means on
        the test features and by the nearest prototype. Seconds are those of a whole run.

    Raises
    ------
    InputError
        If there is neither a run nor a speed measurement.
    """
    shown = [part for part in (_runs(lines), wild_tables(lines), section_tables(lines)) if part]
    if not shown:
        raise InputError(
            "the files hold neither runs nor speed measurements; `newfound bench run`, `wild` and "
            "`speed` append them"
        )
    return "\n".join(shown)


def _runs(lines: Sequence[Line]) -> str:
    """Return one row per data set, method, encoder, configuration and protocol."""
    runs = [line for line in lines if is_run(line) and line.get("kind") != "search"]
    protocols = sorted(
        {(line["known_ratio"], line["labelled_ratio"], line["config"]["given_k"]) for line in runs},
        reverse=True,
    )
    body = []
    for known, labelled, given in protocols:
        rows = select_runs(runs, known_ratio=known, labelled_ratio=labelled, given_k=given)
        for row in rows:
            beside = (row.data_set, row.effort)
            same = [other for other in rows if (other.data_set, other.effort) == beside]
            method = ", ".join(filter(None, (f"`{row.method}`", differing(row, same))))
            protocol = [f"{known:g}", f"{labelled:g}", "given" if given else "estimated"]
            body.append(
                [
                    row.data_set,
                    method,
                    row.effort,
                    row.encoder,
                    *protocol,
                    seed_list(row.seeds),
                    *row.scores(),
                    mean_seconds(row, lines),
                ]
            )
    return markdown([*HEADER, *SCORE_HEADER, "seconds"], body) if body else ""
