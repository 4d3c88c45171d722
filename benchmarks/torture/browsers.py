"""Hostile texts, labels and ids in a report that Chromium shows: nothing runs, nothing leaves."""

import csv
import json
from pathlib import Path
from typing import Any

from benchmarks.torture.ground import Ground, from_tests
from benchmarks.torture.processes import run
from benchmarks.torture.tallies import Tally

CLICKS = (
    "[...document.querySelectorAll('button, summary, th, select, input, [tabindex], "
    'a[href^="#"]\')]'
)


def browser(ground: Ground, trials: int, seed: int) -> Tally:
    """Discover the categories of hostile texts and click on everything in the report."""
    tally = Tally()
    folder = ground.family(f"browser-{seed}")
    tools = from_tests("support.browser")
    executable = tools.find_chromium()
    if executable is None:
        tally.notes.append(f"skipped: {tools.HOW}")
        return tally
    out = folder / "run"
    table = _hostile_table(ground, folder)
    done = run(["discover", table, "-o", out, *ground.flags(), "--raw-cells"])
    if done.code:
        tally.fail("tracebacks", f"exit code {done.code}: {done.err[-400:]}")
        return tally
    page = tools.Browser(executable, folder / "profile")
    try:
        page.size(1280, 900)
        page.open(out / "report.html")
        count = page.run(f"{CLICKS}.length")
        for number in range(min(count, trials)):
            page.run(f"{CLICKS}[{number}]?.click()")
        tally.trials += min(count, trials)
        if page.run("typeof window.hacked") != "undefined":
            tally.fail("broken", f"a text ran as a script: {page.run('window.hacked')}")
        for request in page.requests():
            if not request.startswith(("file:", "data:", "about:", "blob:")):
                tally.fail("broken", f"a request left the page: {request[:200]}")
        for complaint in page.complaints():
            tally.fail("tracebacks", f"the page reports: {complaint[:300]}")
    except (TimeoutError, RuntimeError) as error:
        tally.fail("hangs", f"{type(error).__name__}: {error}")
    finally:
        page.close()
    return tally


def _hostile_table(ground: Ground, folder: Path) -> Path:
    """Write a table with hostile strings wherever a user's can stand."""
    evil: list[str] = [text[:20_000] for text in from_tests("support.fake_run").EVIL]
    rows: list[dict[str, Any]] = []
    with ground.table.open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.DictReader(file)):
            text = evil[number % len(evil)]
            label = row["label"] and f"{text[:200]} {row['label']}"
            rows.append({"id": f"{text[:50]} {number}", "text": f"{row['text']} {text}"})
            rows[-1]["label"] = label or None
    table = folder / "table.jsonl"
    lines = [json.dumps(row) for row in rows]
    table.write_text("\n".join(lines), encoding="utf-8")
    return table
