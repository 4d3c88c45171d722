"""Table 1: the size of every part of the data sets under the paper's protocol."""

from collections.abc import Sequence

from benchmarks.rendering.paper_numbers import TABLE_1
from benchmarks.rendering.titles import TITLES
from newfound.bench.lines import Line
from newfound.bench.rows import NONE, markdown, seed_list

SPLIT = ("known", "novel", "labelled", "unlabelled", "test")


def table1(lines: Sequence[Line]) -> str:
    """Return the sizes of the splits, and those that the paper prints."""
    body, spread = [], ""
    for data_set, title in TITLES.items():
        splits = [
            line
            for line in lines
            if line.get("kind") == "split"
            and line["data_set"] == data_set
            and (line["known_ratio"], line["labelled_ratio"]) == (0.75, 0.1)
        ]
        splits.sort(key=lambda line: line["seed"])
        paper = [f"{value:,}" for value in TABLE_1[data_set]]
        body.append([f"{title}, paper", *paper])
        if not splits:
            body.append([title, *[NONE] * len(SPLIT)])
            continue
        body.append([f"{title}, seed {splits[0]['seed']}", *_split_row(splits[0])])
        counts = [split["labelled"] for split in splits]
        if min(counts) < max(counts):
            spread += (
                f"{title} has {min(counts)} to {max(counts)} labelled texts with seeds "
                f"{seed_list([split['seed'] for split in splits])}, because its categories differ "
                "in size. "
            )
    note = (
        "Known ratio 0.75, labelled ratio 0.1. "
        + spread
        + "For CLINC the paper prints 113 known categories, but 0.75 x 150 = 112.5 rounds to 112, "
        "and its 1,344 labelled texts are 112 x 12.\n"
    )
    header = ["data set", *SPLIT]
    return markdown(header, body) + "\n" + note


def _split_row(split: Line) -> list[str]:
    """Return the cells of a split."""
    return [f"{split[name]:,}" for name in SPLIT]
