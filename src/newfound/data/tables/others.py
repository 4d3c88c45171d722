"""Columns of a table without a role, such as a date or a channel, which outputs keep."""

from collections.abc import Sequence
from dataclasses import replace

from newfound.data.tables.columns import Columns, is_index, missing_column
from newfound.data.tables.sources import Source
from newfound.errors import InputError
from newfound.wording import plural

MOST = 50  # columns kept of a table; one with more holds measurements


def with_others(
    sources: Sequence[Source], columns: Sequence[Columns], time_column: str | None = None
) -> tuple[list[Columns], list[str]]:
    """Return the columns of each table with those that outputs keep, and notes.

    Left out are columns without a name or with one that occurs twice, and lists, objects and
    bytes. `time_column` must be in one of the tables.
    """
    if time_column is not None:
        _check_time(sources, columns, time_column)
    found, notes = [], []
    for source, chosen in zip(sources, columns, strict=True):
        names = _others(source, chosen)
        # The time column is kept in any case, the others in their order.
        kept = set(sorted(names, key=lambda name: name != time_column)[:MOST])
        if len(names) > MOST:
            notes.append(
                f"{source.path}: there are {plural(len(names), 'other column')}: the first "
                f"{MOST} are kept in the outputs"
            )
        others = tuple(name for name in names if name in kept)
        found.append(replace(chosen, others=others))
    return found, notes


def _check_time(sources: Sequence[Source], columns: Sequence[Columns], name: str) -> None:
    """Raise InputError if the time column is missing, has another role or cannot be read."""
    having = [
        (source, chosen)
        for source, chosen in zip(sources, columns, strict=True)
        if name in source.columns
    ]
    if not having:
        raise InputError(missing_column(sources[0].path, name, "--time-column", sources[0].columns))
    for source, chosen in having:
        if name in chosen.wanted:
            raise InputError(
                f"{source.path}: column {name!r} holds the texts, labels or ids: name another one "
                "with --time-column"
            )
        source.read([name])  # raises errors


def _others(source: Source, chosen: Columns) -> list[str]:
    """Return the columns without a role that can be read as strings."""
    roles = set(chosen.wanted)
    return [
        name
        for name in source.columns
        if name not in roles
        and not is_index(name)
        and source.columns.count(name) == 1
        and _is_readable(source, name)
    ]


def _is_readable(source: Source, name: str) -> bool:
    """Return whether the cells of a column are texts or numbers."""
    schema = getattr(source, "schema", None)  # of Arrow, which reads bytes as texts if it can
    if schema is not None and "binary" in str(schema.field(name).type):
        return False
    # Where single rows can be set aside, `read` does not refuse such a column.
    if name in getattr(source, "unfit", ()):
        return False
    try:
        source.read([name])
    except InputError:
        return False
    return True
