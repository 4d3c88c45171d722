"""`newfound estimate`: estimate the number of categories and print the score of each candidate."""

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from newfound.cli.flags import Commands, add_output_flags, add_run_flags, add_tables, new_command
from newfound.cli.inputs import method_settings, read_corpus, run_config
from newfound.cli.output import Output
from newfound.wording import plural

if TYPE_CHECKING:
    from newfound.clustering.estimate import Estimate

# Fields of RunConfig without a flag: an estimate comes before training and assigns no texts.
UNUSED = ("n_categories", "validation_share", "outside", "false_alarms")
WIDTH = 40  # characters of the longest bar


def add_parser(commands: Commands) -> None:
    """Add the command."""
    command = new_command(
        commands,
        "estimate",
        run,
        "estimate the number of categories",
        "Estimate the number of categories of the texts in tables. Print the estimate, a plausible "
        "range, and the score of each candidate number.",
    )
    add_tables(command)
    add_run_flags(command, leave_out=UNUSED)
    add_output_flags(command)


def run(options: argparse.Namespace) -> None:
    """Estimate the number of categories of tables."""
    from newfound import pipeline
    from newfound.data.corpus import check_corpus

    output = Output(options)
    config = run_config(options)
    corpus, notes = read_corpus(options)
    notes += check_corpus(corpus, None)
    output.notes(notes)
    output.settings({k: v for k, v in asdict(config).items() if k not in UNUSED})
    stages = output.stages()
    found = pipeline.estimate(corpus, config, settings=method_settings(options), stages=stages)
    notes += stages.notes
    output.result(
        {
            **found.to_dict(),
            "texts": len(corpus),
            "n_known": len(corpus.known),
            "notes": notes,
        },
        "\n".join(_lines(found, len(corpus.known))),
    )


def _lines(found: "Estimate", known: int) -> Iterator[str]:
    """Yield the estimate, how it was found, and one bar per candidate; `<` marks the estimate."""
    yield (
        f"About {plural(found.n_categories, 'category', 'categories')} ({found.low:,} to "
        f"{found.high:,}), {known:,} of them known."
    )
    yield found.how[:1].upper() + found.how[1:]
    low, high = min(found.scores), max(found.scores)
    nearest = min(found.candidates, key=lambda k: abs(k - found.n_categories))
    for k, score in zip(found.candidates, found.scores, strict=True):
        bar = "#" * round(1 + WIDTH * (score - low) / ((high - low) or 1))
        yield f"{k:>6}  {score:8.4f}  {bar}{' <' if k == nearest else ''}"
