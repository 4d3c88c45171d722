"""The Markdown table of `newfound bench table`."""

from collections.abc import Sequence

from newfound.bench.lines import Line
from newfound.bench.rows import (
    SCORE_HEADER,
    differing,
    markdown,
    mean_seconds,
    seed_list,
    select_runs,
)
from newfound.bench.speed.table import section_tables
from newfound.errors import InputError

HEADER = ("data set", "method", "effort", "encoder", "known", "labelled", "K", "seeds")


def result_table(lines: Sequence[Line]) -> str:
    """Return a table of the runs in result lines, followed by speed measurements.

    Parameters
    ----------
    lines : sequence of dict
        Result lines of `newfound bench run` and `newfound bench speed`; others are ignored.

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
    runs, speed = _runs(lines), section_tables(lines)
    if not runs and not speed:
        raise InputError(
            "the files have neither runs nor speed measurements; `newfound bench run` and "
            "`newfound bench speed` append them"
        )
    return "\n".join(filter(None, (runs, speed)))


def _runs(lines: Sequence[Line]) -> str:
    """Return one row per data set, method, encoder, configuration and protocol."""
    runs = [line for line in lines if "scores" in line and line.get("kind") != "search"]
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
