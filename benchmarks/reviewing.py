"""Measure a review: accuracy after decisions of a simulated reviewer who knows the truth.

    python -m benchmarks.reviewing --data DATA --cache CACHE

Half of the categories are known, a tenth of their texts are labelled, and the number of categories
is estimated. The reviewer answers the questions of `newfound.decisions.questions` by the truth;
each answer counts, also one that changes nothing. After 20, 50, 100 and 200 answers the run is
refitted, and the next questions are on the new run. Scored are texts that the run never sees.

| strategy | what the answers are spent on |
|---|---|
| queue | the questions in their order |
| random | the same questions in a random order |
| texts | the labels of random texts, with a discovery on them |

`labelled` is the model whose novel categories are all labelled, a tenth of their texts as well.
"""

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from newfound.bench.datasets import data_folder
from newfound.bench.lines import Line, append_line, commit
from newfound.bench.wild.sources import read_source
from newfound.clustering.metrics import accuracy
from newfound.config import RunConfig
from newfound.data.corpus import Corpus
from newfound.decisions import Decision, Part, apply
from newfound.decisions.questions import Question, questions
from newfound.decisions.refitting import refit
from newfound.pipeline import discover
from newfound.result import Result
from newfound.versions import versions

LINES = Path("benchmarks/results/reviewing.jsonl")
DATA_SETS = ("banking", "massive")
ANSWERS = (0, 20, 50, 100, 200)
STRATEGIES = ("queue", "random", "texts")
LIMIT, TEST = 3000, 1500  # texts of the run, and texts to score
KNOWN_RATIO, LABELLED_RATIO = 0.5, 0.1
LEAST_TOGETHER = 3  # texts of one topic among the shown ones that the reviewer splits off
MAIN_SHARE = 0.5  # of the shown texts, from which on a category is about its main topic


@dataclass(frozen=True)
class Table:
    """The texts of a run with their true categories, and texts to score."""

    corpus: Corpus
    truth: np.ndarray  # [N] of the corpus
    known: list[str]
    test_texts: list[str]
    test_truth: list[str]


def make_table(texts: Sequence[str], labels: Sequence[str], seed: int, limit: int) -> Table:
    """Draw the texts of the run and those to score, the known categories and the labels."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(texts))
    rows, held = order[:limit], order[limit : limit + TEST]
    truth = np.array([labels[row] for row in rows], object)
    categories = sorted(set(truth))
    known = sorted(rng.permutation(categories)[: round(KNOWN_RATIO * len(categories))].tolist())
    given = draw_labels(truth, known, rng)
    corpus = Corpus.from_lists([texts[row] for row in rows], given)
    return Table(corpus, truth, known, [texts[row] for row in held], [labels[row] for row in held])


def draw_labels(
    truth: np.ndarray, categories: Sequence[str], rng: np.random.Generator
) -> list[str | None]:
    """Return labels for a tenth of the texts of each of these categories, at least one."""
    labels: list[str | None] = [None] * len(truth)
    for category in categories:
        rows = rng.permutation(np.flatnonzero(truth == category))
        for row in rows[: max(1, round(LABELLED_RATIO * len(rows)))].tolist():
            labels[row] = category
    return labels


class Reviewer:
    """Answers questions by the truth, as a careful person would who sees only the shown texts."""

    def __init__(self, table: Table) -> None:
        self.row = {id_: row for row, id_ in enumerate(table.corpus.ids)}
        self.truth = table.truth
        self.topic = {name: name for name in table.known}  # of a category, by id

    def answer(self, question: Question, decided: Result) -> list[Decision]:
        """Return the decisions of one answer; none if all is as it should be."""
        topics = Counter(self.truth[self.row[id_]] for id_ in question.texts)
        own = self._owner_of_topic(decided)
        if question.kind == "pair":
            return self._pair(question, decided)
        if question.kind == "split":
            return self._groups(question, own, decided)
        if question.kind == "border":
            topic = self.topic_of(question.category, decided)
            return self._clear(question, topic, own)
        (main, count), *_ = topics.most_common()
        if count < MAIN_SHARE * len(question.texts):
            return self._split(question, topics, own, decided)
        if main in own:
            return [Decision("merge", categories=(question.category,), into=own[main])]
        self.topic[question.category] = main
        right = tuple(id_ for id_ in question.texts if self.truth[self.row[id_]] == main)
        return [
            Decision("accept", category=question.category, texts=right),
            *self._clear(question, main, own),
        ]

    def topic_of(self, id_: str, decided: Result) -> str | None:
        """Return the topic of a category that a person knows, None of a proposal."""
        category = decided.categories[decided.position[id_]]
        return category.name if category.status == "known" else self.topic.get(id_)

    def _owner_of_topic(self, decided: Result) -> dict[str, str]:
        """Return the id of the known or accepted category of each topic."""
        found = {}
        for category in decided.categories:
            if category.status in ("known", "accepted"):
                topic = self.topic_of(category.id, decided)
                if topic is not None:
                    found[topic] = category.id
        return found

    def _clear(self, question: Question, topic: str | None, own: dict[str, str]) -> list[Decision]:
        """Move or split off the shown texts that do not belong to the topic."""
        others: dict[str, list[str]] = {}
        for id_ in question.texts:
            if self.truth[self.row[id_]] != topic:
                others.setdefault(self.truth[self.row[id_]], []).append(id_)
        moves = [
            Decision("move", texts=tuple(ids), into=own[other])
            for other, ids in others.items()
            if other in own
        ]
        new = {t: ids for t, ids in others.items() if t not in own and len(ids) >= LEAST_TOGETHER}
        if new:
            moves.append(self._parts(question.category, new))
        return moves

    def _split(
        self, question: Question, topics: Counter[str], own: dict[str, str], decided: Result
    ) -> list[Decision]:
        """Split a mixed category by its main topics, or reject it."""
        groups = {
            topic: [id_ for id_ in question.texts if self.truth[self.row[id_]] == topic]
            for topic, count in topics.items()
            if count >= LEAST_TOGETHER
        }
        if not groups:
            return [Decision("reject", category=question.category)]
        new = {topic: ids for topic, ids in groups.items() if topic not in own}
        moves = [
            Decision("move", texts=tuple(ids), into=own[topic])
            for topic, ids in groups.items()
            if topic in own
        ]
        return [*moves, *([self._parts(question.category, new)] if new else [])]

    def _parts(self, category: str, groups: dict[str, list[str]]) -> Decision:
        """Return the split of a category into these topics."""
        parts = tuple(Part(tuple(ids), f"{topic} (found)") for topic, ids in groups.items())
        return Decision("split", category=category, parts=parts)

    def _pair(self, question: Question, decided: Result) -> list[Decision]:
        """Merge two categories whose shown texts are mostly of one topic."""
        half = len(question.texts) // 2
        mains = [
            Counter(self.truth[self.row[id_]] for id_ in part).most_common(1)[0][0]
            for part in (question.texts[:half], question.texts[half:])
        ]
        if mains[0] != mains[1] or question.other is None:
            return []
        first, second = question.category, question.other
        if decided.categories[decided.position[first]].status == "proposed":
            first, second = second, first  # the decided one stays
        self.topic.setdefault(first, mains[0])
        return [Decision("merge", categories=(second,), into=first)]

    def _groups(self, question: Question, own: dict[str, str], decided: Result) -> list[Decision]:
        """Split off, or move, the shown texts of a group that is about another topic."""
        half = len(question.texts) // 2
        groups = []
        for part in (question.texts[:half], question.texts[half:]):
            topic, count = Counter(self.truth[self.row[id_]] for id_ in part).most_common(1)[0]
            ids = tuple(id_ for id_ in part if self.truth[self.row[id_]] == topic)
            groups.append((topic, ids if count > MAIN_SHARE * len(part) else ()))
        if groups[0][0] == groups[1][0] or not (groups[0][1] and groups[1][1]):
            return []
        stays = self.topic_of(question.category, decided)
        found = []
        new = {}
        for topic, ids in groups:
            if topic in own and own[topic] != question.category:
                found.append(Decision("move", texts=ids, into=own[topic]))
            elif topic != stays and topic not in own:
                new[topic] = list(ids)
        return [*found, *([self._parts(question.category, new)] if new else [])]

    def learn_parts(self, decided: Result) -> None:
        """Remember the topics of categories that were split off, which their names tell."""
        for category in decided.categories:
            if category.name.endswith(" (found)"):
                self.topic.setdefault(category.id, category.name.removesuffix(" (found)"))


def review(
    table: Table, start: Result, strategy: str, seed: int, answers: Sequence[int]
) -> list[tuple[int, int, Result]]:
    """Return the runs after each number of answers, with the number of decisions."""
    reviewer, rng = Reviewer(table), np.random.default_rng(seed)
    current, given = start, 0
    found = []
    decisions = 0
    for wanted in answers:
        log: list[Decision] = []
        asked: set[tuple[str, str, str | None]] = set()
        while given < wanted:
            decided, _ = apply(current, log)
            reviewer.learn_parts(decided)
            queue = questions(decided, asked)
            if not queue:
                break
            question = queue[0] if strategy == "queue" else queue[rng.integers(len(queue))]
            asked.add(question.key)
            log += reviewer.answer(question, decided)
            given += 1
        if log:
            decided, problems = apply(current, log)
            for problem in problems:
                print(f"  not applied: {problem.reason}")
            reviewer.learn_parts(decided)
            current, _ = refit(current, log)
            decisions += len(log)
        found.append((wanted, decisions, current))
    return found


def label_texts(
    table: Table,
    start: Result,
    config: RunConfig,
    answers: Sequence[int],
    settings: Mapping[str, Any] | None = None,
) -> list[tuple[int, int, Result]]:
    """Return the runs after labelling this many random texts."""
    order = np.random.default_rng(config.seed).permutation(len(table.truth))
    unlabelled = [row for row in order.tolist() if table.corpus.labels[row] is None]
    found = []
    for wanted in answers:
        labels = list(table.corpus.labels)
        for row in unlabelled[:wanted]:
            labels[row] = table.truth[row]
        corpus = replace(table.corpus, labels=labels)
        result = discover(corpus, config, settings=settings) if wanted else start
        found.append((wanted, wanted, result))
    return found


def scored(table: Table, result: Result) -> dict[str, float]:
    """Return the accuracy on the held-out texts."""
    assert result.model is not None
    index = result.model.predict(table.test_texts).index
    return accuracy(index, np.array(table.test_truth, object), set(table.known)).to_dict()


def measure(
    name: str,
    table: Table,
    config: RunConfig,
    strategies: Sequence[str],
    answers: Sequence[int],
    settings: Mapping[str, Any] | None = None,
) -> Iterator[Line]:
    """Yield one line per strategy and number of answers."""
    start = discover(table.corpus, config, settings=settings)
    rng = np.random.default_rng(config.seed)
    novel = sorted(set(table.truth) - set(table.known))
    full = draw_labels(table.truth, novel, rng)
    both = [a or b for a, b in zip(table.corpus.labels, full, strict=True)]
    labelled = discover(replace(table.corpus, labels=both), config, settings=settings)
    runs = [("labelled", 0, 0, labelled)]
    yield from (make_line(name, table, config, *run) for run in runs)
    for strategy in strategies:
        if strategy == "texts":
            found = label_texts(table, start, config, answers, settings)
        else:
            found = review(table, start, strategy, config.seed, answers)
        for given, decisions, result in found:
            yield make_line(name, table, config, strategy, given, decisions, result)


def make_line(
    name: str,
    table: Table,
    config: RunConfig,
    strategy: str,
    answers: int,
    decisions: int,
    result: Result,
) -> Line:
    """Return the result line of a run, and print its scores."""
    scores = scored(table, result)
    print(
        f"{name} seed {config.seed} {strategy:>8} {answers:>3} ({decisions}): all "
        f"{scores['all']:.1f}, known {scores['known']:.1f}, novel {scores['novel']:.1f}; "
        f"{len(result.categories)} categories",
        flush=True,
    )
    return {
        "kind": "reviewing",
        "data_set": name,
        "seed": config.seed,
        "known_ratio": KNOWN_RATIO,
        "labelled_ratio": LABELLED_RATIO,
        "strategy": strategy,
        "answers": answers,
        "decisions": decisions,
        "config": {
            "effort": config.effort,
            "texts": len(table.corpus),
            "test_texts": len(table.test_texts),
        },
        "scores": scores,
        "categories": {"true": len(set(table.truth)), "found": len(result.categories)},
        "versions": versions(),
        "commit": commit(),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and append one result line per run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    parser.add_argument("--sets", nargs="+", default=list(DATA_SETS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--strategies", nargs="+", default=list(STRATEGIES), choices=STRATEGIES)
    parser.add_argument("--answers", nargs="+", type=int, default=list(ANSWERS))
    parser.add_argument("--limit", type=int, default=LIMIT, help="texts of a run")
    parser.add_argument("--device", help="cpu, cuda or cuda:N")
    parser.add_argument("--cache", type=Path, help="folder for encoded texts")
    parser.add_argument("--out", type=Path, default=LINES, help="result lines to append to")
    options = parser.parse_args(arguments)
    folder = data_folder(options.data)
    for name in options.sets:
        for seed in options.seeds:
            source = read_source(folder, name)
            table = make_table(source.texts, source.labels, seed, options.limit)
            cache = None if options.cache is None else str(options.cache)
            config = RunConfig(effort="fast", seed=seed, cache=cache, device=options.device)
            for line in measure(name, table, config, options.strategies, options.answers):
                append_line(options.out, line)


if __name__ == "__main__":
    main()
