"""The table of stability: answers with other threads and with rows in another order."""

from collections.abc import Sequence

from benchmarks.rendering.titles import TITLES
from newfound.bench.lines import Line
from newfound.bench.rows import markdown


def stability_table(lines: Sequence[Line]) -> str:
    """Return one row per data set, number of texts and way to choose K; the least over seeds."""
    groups: dict[tuple[str, int, bool], list[Line]] = {}
    for line in lines:
        if line.get("kind") == "stability":
            key = (line["data_set"], line["texts"], line["config"]["given_k"])
            groups.setdefault(key, []).append(line)
    if not groups:
        return "No measurements yet.\n"
    ways = [(row["threads"], row["shuffled"]) for row in next(iter(groups.values()))[0]["rows"]]
    header = ["data set", "texts", "K", "seeds", *(_title(*way) for way in ways[1:])]
    body = []
    for (name, texts, given), own in sorted(groups.items()):
        by_way = [
            {(row["threads"], row["shuffled"]): row["same"] for row in line["rows"]} for line in own
        ]
        seeds = ", ".join(str(line["seed"]) for line in own)
        least = [f"{min(each[way] for each in by_way):.1f}%" for way in ways[1:]]
        body.append(
            [TITLES.get(name, name), f"{texts:,}", "given" if given else "estimated", seeds, *least]
        )
    return markdown(header, body)


def _title(threads: int, shuffled: bool) -> str:
    """Return the heading of a way."""
    counted = f"{threads} threads" if threads > 1 else "1 thread"
    return f"{counted}, rows shuffled" if shuffled else counted
