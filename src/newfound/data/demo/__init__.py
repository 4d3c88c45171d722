"""Built-in demo data: messages to a help desk, written for this package."""

from importlib.resources import files

import pandas as pd


def load() -> pd.DataFrame:
    """Load the demo messages.

    Returns
    -------
    DataFrame
        With the columns text, label (None where unlabelled) and truth.

    Examples
    --------
    >>> list(load().columns)
    ['text', 'label', 'truth']
    """
    with files(__name__).joinpath("helpdesk.csv").open(encoding="utf-8") as file:
        # Without keep_default_na=False a message such as "None" would become a missing value.
        table = pd.read_csv(file, dtype=object, keep_default_na=False)
    labels = [label or None for label in table["label"]]
    # dtype=object, because a string column would turn None into NaN.
    return table.assign(label=pd.Series(labels, index=table.index, dtype=object))
