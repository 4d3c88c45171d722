"""`newfound info`: what a run found, from what, with which settings."""

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from newfound.cli.flags import Commands, add_output_flags, add_run_folder, new_command
from newfound.cli.output import Output, category_table, pairs, run_value
from newfound.errors import InputError


def add_parser(commands: Commands) -> None:
    """Add the command."""
    command = new_command(commands, "info", run, "print what a run found and how")
    add_run_folder(command)
    add_output_flags(command, works=False)


def run(options: argparse.Namespace) -> None:
    """Print the categories and the record of a run."""
    from newfound.storage.model_files import read_categories
    from newfound.storage.run_folder import read_run

    about = read_run(options.folder)
    categories = read_categories(options.folder / "categories.json")
    try:
        value = run_value(options.folder, about, categories)
        lines = list(_lines(about))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{options.folder / 'run.json'} is damaged; run `newfound discover` again"
        ) from error
    Output(options).result(value, "\n".join([category_table(categories), *lines]))


def _lines(about: Mapping[str, Any]) -> Iterator[str]:
    """Yield the record of a run for people."""
    categories, settings = about["categories"], about["settings"]
    given = "given" if categories["given"] else "estimated"
    yield f"texts       {about['texts']:,}, {about['labelled']:,} labelled"
    yield (
        f"categories  {categories['total']:,} ({given}): {categories['known']:,} known, "
        f"{categories['novel']:,} novel"
    )
    yield f"made by     newfound {about['newfound']} on {about['device']}, seed {about['seed']}"
    yield f"command     {about.get('command')}"
    seconds = (f"{name} {value:.1f}" for name, value in about["seconds"].items())
    yield f"seconds     {', '.join(seconds)}"
    yield f"settings    {pairs({k: v for k, v in settings.items() if k != 'settings'})}"
    yield f"            {pairs(settings['settings'])}"
    for note in about["notes"]:
        yield f"note        {note}"
