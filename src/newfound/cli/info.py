"""`newfound info`: print the categories and the settings of a run."""

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from newfound.cli.flags import Commands, add_output_flags, add_run_folder, new_command
from newfound.cli.output import Output, category_table, pairs, run_value
from newfound.cli.printing import printable
from newfound.wording import plural


def add_parser(commands: Commands) -> None:
    """Add the command."""
    command = new_command(commands, "info", run, "print the categories and the settings of a run")
    add_run_folder(command)
    add_output_flags(command, works=False)


def run(options: argparse.Namespace) -> None:
    """Print the categories and the settings of a run."""
    from newfound.storage.run_folder import read_run

    result = read_run(options.folder)
    value = run_value(options.folder, result)
    lines = [category_table(result.categories), *map(printable, _lines(value, result.versions))]
    Output(options).result(value, "\n".join(lines))


def _lines(value: Mapping[str, Any], versions: Mapping[str, str]) -> Iterator[str]:
    """Yield the properties of a run as lines of text."""
    settings = value["settings"]
    given = "estimated" if settings.get("n_categories", "auto") == "auto" else "given"
    yield f"texts       {value['texts']:,}, {value['labelled']:,} labelled"
    yield (
        f"categories  {value['n_categories']:,} ({given}): {value['n_known']:,} known, "
        f"{value['n_novel']:,} novel"
    )
    if value["fits_nowhere"] is not None:
        yield f"fit nowhere {plural(value['fits_nowhere'], 'text')}"
    yield (
        f"version     newfound {versions.get('newfound', '?')} on {value['device']}, "
        f"seed {settings.get('seed')}"
    )
    if environment := value["environment"]:
        yield f"environment {pairs(environment)}"
    yield f"command     {value['command']}"
    seconds = (f"{name} {passed:.1f}" for name, passed in value["seconds"].items())
    yield f"seconds     {', '.join(seconds)}"
    yield f"settings    {pairs({k: v for k, v in settings.items() if k != 'settings'})}"
    yield f"            {pairs(settings.get('settings') or {})}"
    for note in value["notes"]:
        yield f"note        {note}"
