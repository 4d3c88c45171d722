"""Columns of the user's table on the page: to filter and colour by, and volume over time."""

from collections import Counter
from typing import Any

import numpy as np

from newfound.data.times import periods
from newfound.report.shown import NAME, shown
from newfound.result import Result

MOST_VALUES = 40  # different values of a column that can be chosen from
MOST_COLUMNS = 8


def time_and_columns(result: Result, rows: np.ndarray) -> dict[str, Any]:
    """Return the periods, and the columns with few different values, of the texts in `rows` [n].

    A column has its values, the most frequent first, and the position of each text's value.
    """
    corpus = result.corpus
    divided = periods(corpus)
    time = None
    if divided is not None:
        time = {
            "name": shown(str(corpus.time_column), NAME),
            "unit": divided.unit,
            "values": list(divided.names),
            "of": divided.of[rows].tolist(),
        }
    columns = []
    for name, cells in corpus.columns.items():
        counts = Counter(cells)
        if name == corpus.time_column or not 2 <= len(counts) <= MOST_VALUES:
            continue
        values = sorted(counts, key=lambda value: (-counts[value], value))
        place = {value: at for at, value in enumerate(values)}
        columns.append(
            {
                "name": shown(name, NAME),
                "values": [shown(value, NAME) for value in values],
                "of": [place[cells[row]] for row in rows.tolist()],
            }
        )
        if len(columns) == MOST_COLUMNS:
            break
    return {"time": time, "columns": columns}
