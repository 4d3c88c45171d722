"""Measure how long a review takes to show each action, in Chromium.

    python -m benchmarks.review_latency --data DATA --cache CACHE

20,000 texts of CLINC, half of whose categories are known, are discovered (`fast`). `newfound
review` serves the run, and the actions are taken one after the other, each on another category. An
action takes from the key or click until its effect is drawn; a decision is on disk by then. One
result line is appended, from which `make tables` renders the table of ``docs/review.md``.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.torture.ground import from_tests
from newfound.bench.datasets import data_folder
from newfound.bench.lines import append_line, commit
from newfound.bench.wild.sources import read_source
from newfound.config import RunConfig
from newfound.data.corpus import Corpus
from newfound.decisions import read_decided
from newfound.devices import describe_environment, find_device
from newfound.pipeline import discover
from newfound.storage.run_folder import write_run

LINES = Path("benchmarks/results/review_latency.jsonl")
DATA_SET, KNOWN_RATIO, LABELLED_RATIO = "clinc", 0.5, 0.1
SETTLED = "document.documentElement.dataset.saving === undefined"
PARTS = "document.querySelector('.split .main') !== null"
ASKED = "document.querySelector('#panel .question') !== null"
FOUND = "/ found$/.test(document.querySelector('#panel h3')?.textContent)"
HITS = "/^[0-9,]+ of [0-9]/.test(document.querySelector('#table-body .amount')?.firstChild.data)"
CLEAR = (
    "(() => { const one = document.getElementById('map-search'); one.value = '';"
    "one.dispatchEvent(new Event('input')); })()"
)
MOVE = (
    "(() => {{ const one = document.querySelector('#panel .bulk select'); one.value = '{into}';"
    "one.dispatchEvent(new Event('change')); }})()"
)


def make_run(data: Path, folder: Path, texts: int, cache: str | None) -> None:
    """Discover the categories of so many texts, and write the run."""
    source = read_source(data, DATA_SET)
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(source.texts))[:texts]
    names = sorted(set(source.labels))
    known = set(rng.permutation(names)[: round(KNOWN_RATIO * len(names))].tolist())
    given = rng.random(len(rows)) < LABELLED_RATIO
    labels = [
        source.labels[row] if own and source.labels[row] in known else None
        for row, own in zip(rows.tolist(), given.tolist(), strict=True)
    ]
    corpus = Corpus.from_lists([source.texts[row] for row in rows.tolist()], labels)
    config = RunConfig(effort="fast", n_categories=len(names), cache=cache, device="cpu")
    folder.mkdir()
    write_run(discover(corpus, config), folder)


@contextmanager
def reviewed(folder: Path) -> Iterator[str]:
    """Serve the review in a process of its own, and give its address."""
    command = [sys.executable, "-m", "newfound", "review", str(folder), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            found = re.search(r"http://\S+", server.stdout.readline())
            assert found is not None, "newfound review prints no address"
            yield found[0]
        finally:
            server.terminate()


class Watch:
    """Times actions on the page."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.lines = 0  # of the log
        self.taken: dict[str, list[float]] = {}

    def time(self, name: str, action: Callable[[], object], shown: str, lines: int = 0) -> None:
        """Take an action, and wait until it is shown: a condition, and so many more decisions."""
        self.lines += lines
        conditions = [shown, f"document.querySelectorAll('.log li').length === {self.lines}"]
        # The page itself looks at each frame whether the action is shown, and then waits for the
        # next one.
        self.page.run(
            "(() => { const begun = performance.now(); window.took = null;"
            f"const look = () => ({' && '.join(conditions)})"
            " ? requestAnimationFrame(() => { window.took = performance.now() - begun; })"
            " : requestAnimationFrame(look); requestAnimationFrame(look); })()"
        )
        action()
        self.page.wait("window.took !== null")
        self.taken.setdefault(name, []).append(self.page.run("window.took"))


def measure(page: Any, folder: Path, repeats: int) -> dict[str, list[float]]:
    """Take every action so many times, and return the milliseconds of each."""
    watch = Watch(page)
    novel = [c for c in read_decided(folder)[0].categories if c.status == "proposed"]
    categories = iter(sorted(novel, key=lambda category: (-category.size, category.id)))

    is_named = "one => one.textContent === NAME"

    def click(selector: str) -> Callable[[], object]:
        return lambda: page.run(f"document.querySelector({selector!r}).click()")

    def choose() -> Any:
        category = next(categories)
        name = json.dumps(category.name)
        row = f"[...document.querySelectorAll('#table-body button.name')].find({is_named})"
        shown = f"[...document.querySelectorAll('#panel h3.name')].some({is_named})"
        watch.time(
            "select a category",
            lambda: page.run(f"{row.replace('NAME', name)}.click()"),
            shown.replace("NAME", name),
        )
        return category

    for _ in range(repeats):
        for name, key in (("accept", "a"), ("reject", "x")):
            choose()
            watch.time(name, partial(page.key, key), SETTLED, lines=1)
        watch.time("undo", lambda: page.key("u"), SETTLED, lines=1)
        choose()
        page.key("r")
        page.run("document.activeElement.select()")
        page.type(f"New name {watch.lines}")
        watch.time("rename", lambda: page.key("Enter"), SETTLED, lines=1)
        choose()
        page.key("m")
        page.run("document.activeElement.selectedIndex = 1")
        page.key("Tab")
        watch.time("merge", lambda: page.key("Enter"), SETTLED, lines=1)
        choose()
        watch.time("propose a split", lambda: page.key("s"), PARTS)
        watch.time("split", click(".split .main"), SETTLED, lines=1)
        watch.time("next question", lambda: page.key("n"), ASKED)
        category = choose()
        word = category.keywords[0].split()[0]
        page.run("document.getElementById('map-search').focus()")
        watch.time("search the texts", partial(page.type, word), HITS)
        page.run("document.getElementById('map-search').blur()")
        watch.time("choose what the search found", lambda: page.key("b"), FOUND)
        into = MOVE.format(into=category.id)
        watch.time("move the found texts", partial(page.run, into), SETTLED, lines=1)
        page.run(CLEAR)
        page.wait(f"!({HITS})")
    return watch.taken


def main(arguments: list[str] | None = None) -> None:
    """Discover, review, and append a result line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.review_latency")
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    parser.add_argument("--texts", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cache", help="folder of the feature cache")
    parser.add_argument("-o", "--out", type=Path, default=LINES)
    options = parser.parse_args(arguments)
    tools = from_tests("support.browser")
    executable = tools.find_chromium()
    if executable is None:
        parser.error(tools.HOW)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "run")
        make_run(data_folder(options.data), folder, options.texts, options.cache)
        with reviewed(folder) as address:
            page = tools.Browser(executable, Path(place, "profile"))
            try:
                page.size(1280, 900)
                page.call("Page.navigate", url=address)
                page.wait("document.documentElement?.dataset.review === 'ready'", seconds=60)
                taken = measure(page, folder, options.repeats)
            finally:
                page.close()
    for name, times in taken.items():
        print(f"{name}: median {np.median(times):.0f} ms, longest {max(times):.0f} ms")
    line = {
        "kind": "review_latency",
        "texts": options.texts,
        "milliseconds": {name: [round(one, 1) for one in each] for name, each in taken.items()},
        "environment": describe_environment(find_device("cpu")),
        "commit": commit(),
    }
    append_line(options.out, line)


if __name__ == "__main__":
    main()
