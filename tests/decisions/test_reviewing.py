"""The simulated reviewer answers by the truth, and the table shows what was measured."""

import numpy as np
import pytest
from support.small_texts import KNOWN, QUICK, small_task

from benchmarks.rendering.tables.reviewing import reviewing_table
from benchmarks.reviewing import Reviewer, Table, make_table, measure
from newfound.config import RunConfig
from newfound.data.corpus import Corpus
from newfound.decisions import apply
from newfound.decisions.questions import Question
from newfound.pipeline import discover


@pytest.fixture(scope="module")
def table() -> Table:
    task = small_task()
    return Table(
        Corpus.from_lists(task.texts, task.labels),
        task.truth,
        sorted(KNOWN),
        task.texts[:20],
        task.truth[:20].tolist(),
    )


def test_every_strategy_is_measured(table: Table, tiny_encoder: str) -> None:
    config = RunConfig("dpn", tiny_encoder, 4, "fast", device="cpu")
    lines = list(measure("small", table, config, ("queue", "random", "texts"), (0, 3), QUICK))
    found = [(line["strategy"], line["answers"]) for line in lines]
    assert found == [
        ("labelled", 0), ("queue", 0), ("queue", 3), ("random", 0), ("random", 3), ("texts", 0),
        ("texts", 3),
    ]  # fmt: skip
    assert all(0 <= line["scores"]["all"] <= 100 for line in lines)
    shown = reviewing_table(lines)
    assert "| small | 1 | questions of the queue |" in shown
    assert f"{lines[0]['scores']['all']:.1f}" in shown


def test_answers_follow_the_truth(table: Table, tiny_encoder: str) -> None:
    config = RunConfig("dpn", tiny_encoder, 4, "fast", device="cpu")
    result = discover(table.corpus, config, settings=QUICK)
    reviewer = Reviewer(table)
    rows = {name: np.flatnonzero(table.truth == name) for name in set(table.truth)}
    novel = result.categories[2]

    def shown(*names: str) -> tuple[str, ...]:
        own = np.flatnonzero(result.assigned == 2)
        chosen = [r for name in names for r in own if r in rows[name]][:6]
        return tuple(result.corpus.ids[row] for row in chosen)

    main = max(rows, key=lambda name: len(shown(name)))
    question = Question("category", novel.id, None, shown(main), 1.0)
    decisions = reviewer.answer(question, result)
    assert decisions[0].action == ("merge" if main in KNOWN else "accept")
    decided, problems = apply(result, decisions)
    assert problems == ()
    assert len(decided.categories) == len(result.categories) - (main in KNOWN)


def test_table_is_drawn_by_the_protocol() -> None:
    truth = [f"topic {i % 10}" for i in range(400)]
    table = make_table([f"text {i}" for i in range(400)], truth, 0, 300)
    assert len(table.known) == 5
    assert set(table.corpus.known) == set(table.known)
    labelled = sum(label is not None for label in table.corpus.labels)
    assert 10 <= labelled <= 20
    assert not set(table.corpus.texts) & set(table.test_texts)
