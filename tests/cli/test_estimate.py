"""`newfound estimate`: the number of categories and its curve."""

import json
import re
from pathlib import Path

import pytest
from support.commands import Command, put_task
from support.small_texts import SmallTask

pytestmark = pytest.mark.usefixtures("quick_newfound")


def test_estimate_prints_number_range_and_scores(
    command: Command, task: SmallTask, tiny_encoder: str, tmp_path: Path
) -> None:
    chosen = ["--encoder", tiny_encoder]
    table = put_task(tmp_path / "t.csv", task)
    done = command("estimate", table, *chosen)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    number = re.match(r"About (\d+) categories \((\d+) to (\d+)\), 2 of them known\.", lines[0])
    assert number is not None
    best, low, high = map(int, number.groups())
    assert low <= best <= high
    curve = [line for line in lines[2:] if re.match(r" *\d+ +\d\.\d+ +#+( <)?$", line)]
    assert len(curve) == len(lines) - 2
    assert sum(line.endswith(" <") for line in curve) == 1
    found = json.loads(command("estimate", table, *chosen, "--json").out)
    assert found["estimate"] == best
    assert len(found["candidates"]) == len(found["scores"]) == len(curve)


@pytest.mark.parametrize("labels", ["none", "all"])
def test_estimate_with_all_or_no_texts_labelled(
    command: Command, task: SmallTask, tiny_encoder: str, tmp_path: Path, labels: str
) -> None:
    given: list[str | None] = list(task.truth) if labels == "all" else [None] * len(task.texts)
    table = put_task(tmp_path / "t.csv", SmallTask(task.texts, given, task.truth))
    done = command("estimate", table, "--encoder", tiny_encoder)
    assert done.code == 0, done.err
    assert done.out.startswith("About 4 " if labels == "all" else "About ")
    assert "no text is labelled" in done.err if labels == "none" else "every text is" in done.err


@pytest.mark.parametrize("method", ["newfound", "dpn", "sae"])
def test_estimate_equals_the_estimate_of_discover(
    command: Command, task: SmallTask, tiny_encoder: str, tmp_path: Path, method: str
) -> None:
    chosen = ["--encoder", tiny_encoder, "--method", method, "--effort", "fast"]
    if method != "newfound":
        chosen += ["--set", "epochs=2"]
    table = put_task(tmp_path / "t.csv", task)
    found = json.loads(command("estimate", table, *chosen, "--json").out)
    done = command("discover", table, *chosen, "-o", tmp_path / "run")
    assert done.code == 0, done.err
    kept = json.loads((tmp_path / "run" / "run.json").read_text())["estimate"]
    assert kept == {name: found[name] for name in kept}
