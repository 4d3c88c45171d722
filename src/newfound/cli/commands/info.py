"""`newfound info`: print the categories and the settings of a run, or how far it came."""

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from newfound.checkpoints import Unfinished, read_unfinished, unfinished_folder
from newfound.cli.flags import Commands, add_output_flags, add_run_folder, new_command
from newfound.cli.output import Output, category_table, pairs, run_value
from newfound.cli.printing import printable
from newfound.wording import plural


def add_parser(commands: Commands) -> None:
    """Add the command."""
    command = new_command(
        commands,
        "info",
        run,
        "print the categories and the settings of a run",
        "Print the categories after all decisions (`newfound decide`) and the settings of a run. "
        "Of a run that is not finished, print how far it came.",
    )
    add_run_folder(command)
    add_output_flags(command, works=False)


def run(options: argparse.Namespace) -> None:
    """Print the categories and the settings of a run, or how far an unfinished one came."""
    from newfound.decisions import describe_log, read_decided

    unfinished = read_unfinished(unfinished_folder(options.folder))
    if unfinished is not None and not (options.folder / "run.json").is_file():
        so_far = {"run": str(options.folder), "unfinished": unfinished.to_dict()}
        Output(options).result(so_far, "\n".join(map(printable, _unfinished_lines(unfinished))))
        return
    result, log, problems = read_decided(options.folder)
    value: dict[str, Any] = run_value(options.folder, result)
    value["decisions"] = len(log.entries)
    value["problems"] = [{"line": each.line, "reason": each.reason} for each in problems]
    if unfinished is not None:  # a later run that is to replace this one
        value["unfinished"] = unfinished.to_dict()
    lines = [category_table(result.categories), *map(printable, _lines(value, result.versions))]
    if log.entries:
        lines.append(f"decisions   {describe_log(log)}")
        lines += [printable(f"note        {problem}") for problem in problems]
    if unfinished is not None:
        lines += ["", "A later run into this folder is not finished:"]
        lines += map(printable, _unfinished_lines(unfinished))
    Output(options).result(value, "\n".join(lines))


def _unfinished_lines(unfinished: Unfinished) -> Iterator[str]:
    """Yield how far a run came as lines of text."""
    yield f"unfinished  {unfinished.position}{'' if unfinished.position.share is None else ' done'}"
    yield f"written     {unfinished.written}"
    yield f"command     {unfinished.command}"
    yield "The same command goes on from there; with --no-resume it starts anew."


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
