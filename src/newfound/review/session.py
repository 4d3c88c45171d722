"""A review session: the run, its decisions, and what the page shows of both.

The result of the run is read once; after each decision, all decisions are applied to it again. The
file decisions.jsonl is the only state, so several pages, people and programs can decide on one run:
a decision is written only if the log is still the one that the person saw.
"""

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from newfound.decisions import (
    Decision,
    Log,
    Problem,
    StaleError,
    append,
    apply,
    decision_from,
    now,
    read_log,
)
from newfound.errors import InputError
from newfound.files.manifest import MANIFEST, sha256_of
from newfound.report.data import changing, page_rows, prepare
from newfound.report.shown import NAME, SENTENCE, shown
from newfound.result import Result
from newfound.review.queue import queue
from newfound.review.splitting import Splitter
from newfound.storage.check_file import NAME as CHECK
from newfound.storage.check_file import read_check
from newfound.storage.run_folder import read_run

MOST_LINES = 200  # of decisions listed on the page


class Session:
    """The review of one run folder; its methods may be called from several threads.

    Parameters
    ----------
    folder : Path
        Run folder.
    author : str
        Name that is written with each decision.
    """

    def __init__(self, folder: Path, author: str) -> None:
        self.folder, self.author = folder, author
        self._lock = threading.Lock()
        self._read()
        self.splitter = Splitter(folder)

    def _read(self) -> None:
        """Read the run and its decisions."""
        self.run = _run_digest(self.folder)
        self.result = read_run(self.folder)
        self.rows = page_rows(self.result)
        self.log = Log()
        self.decided: Result = self.result
        self.problems: tuple[Problem, ...] = ()
        self._apply(read_log(self.folder))

    def _apply(self, log: Log) -> None:
        """Apply the decisions of a log."""
        self.log = log
        self.decided, self.problems = apply(self.result, log.entries)

    def _refresh(self) -> None:
        """Read what other programs have changed."""
        if _run_digest(self.folder) != self.run:
            self._read()
            return
        log = read_log(self.folder)
        if log.digest != self.log.digest:
            self._apply(log)

    def page_data(self) -> dict[str, Any]:
        """Return the data of the whole page: those of the report, and the state of the review."""
        with self._lock:
            self._refresh()
            kept = self.folder / CHECK
            check = read_check(kept) if kept.is_file() else None
            return {
                **prepare(self.decided, str(self.folder), check, self.rows),
                "review": self._state(),
            }

    def state(self) -> dict[str, Any]:
        """Return what changes with decisions."""
        with self._lock:
            self._refresh()
            return {**changing(self.decided, self.rows), "review": self._state()}

    def digest(self) -> dict[str, str]:
        """Return what tells the page whether anything has changed."""
        with self._lock:
            return {"digest": read_log(self.folder).digest, "run": _run_digest(self.folder)}

    def decide(self, values: Sequence[Any], expected: str) -> dict[str, Any]:
        """Write decisions, all or none, and return the new state.

        Parameters
        ----------
        values : sequence of dict
            Decisions as in decisions.jsonl, without time and author.
        expected : str
            Digest of the log that the person saw.

        Raises
        ------
        StaleError
            If there are other decisions since; nothing is written.
        InputError
            If a decision is not valid; nothing is written.
        """
        with self._lock:
            made = [self._signed(decision_from(value)) for value in values]
            if not made:
                raise InputError("there is no decision in the request")
            self._refresh()
            applied = None
            if self.log.digest == expected:
                entries = (*self.log.entries, *made)
                applied = self._checked(entries, len(made))
            log = append(self.folder, made, expected=expected)
            if applied is not None and log.entries == entries:
                self.log, (self.decided, self.problems) = log, applied
            else:
                self._apply(log)
            return {**changing(self.decided, self.rows), "review": self._state()}

    def _signed(self, decision: Decision) -> Decision:
        """Return a decision with time and author."""
        return replace(decision, time=now(), author=self.author)

    def _checked(
        self, entries: tuple[Decision | Problem | None, ...], new: int
    ) -> tuple[Result, tuple[Problem, ...]]:
        """Apply decisions; raise InputError if one of the last `new` ones cannot be applied."""
        decided, problems = apply(self.result, entries)
        for problem in problems:
            if problem.line > len(entries) - new:
                raise InputError(problem.reason)
        return decided, problems

    def split(self, id_: str) -> dict[str, Any]:
        """Return a proposal to split a category into two parts, each a list of text ids."""
        with self._lock:
            self._refresh()
            at = self.decided.position.get(id_)
            if at is None:
                raise InputError(f"there is no category {id_[:40]!r}")
            result = self.decided
        return {"parts": self.splitter.propose(result, at)}

    def _state(self) -> dict[str, Any]:
        """Return the state of the review beside the categories."""
        log, result = self.log, self.decided
        found = [category for category in result.categories if category.status != "known"]
        gone = [each for each in result.lineage.retired if each not in self.result.lineage.retired]
        done = sum(category.status == "accepted" for category in found) + len(gone)
        last = log.last
        return {
            "digest": log.digest,
            "run": self.run,
            "author": shown(self.author, NAME),
            "last": last,
            "undo": None if last is None else self._line(last),
            "progress": {
                "decided": done,
                "all": len(found) + len(gone),
                "reviewed": 0 if result.reviewed is None else int(result.reviewed.sum()),
                "texts": len(result.corpus),
            },
            "questions": queue(result),
            "lines": self._lines(),
            "problems": [shown(str(problem), SENTENCE) for problem in self.problems],
            "refitted": None if log.refit is None else shown(str(log.refit[1].run), SENTENCE),
        }

    def _lines(self) -> list[dict[str, Any]]:
        """Return the decisions since the last refit, the latest first."""
        undone = self.log.undone
        start = self.log.refit[0] if self.log.refit else 0
        numbers = [
            number
            for number, entry in enumerate(self.log.entries, start=1)
            if number > start and isinstance(entry, Decision)
        ]
        return [
            {"line": number, "text": self._line(number), "undone": number in undone}
            for number in numbers[::-1][:MOST_LINES]
        ]

    def _line(self, number: int) -> str:
        """Return a decision as a sentence."""
        entry = self.log.entries[number - 1]
        assert isinstance(entry, Decision)
        who = f" ({entry.author}, {entry.time})" if entry.author else ""
        return shown(f"{self._words(entry)}{who}", SENTENCE)

    def _words(self, decision: Decision) -> str:
        """Return what was decided."""
        texts = f"{len(decision.texts):,} text" + ("" if len(decision.texts) == 1 else "s")
        name = self._name
        return {
            "accept": f"accepted {name(decision.category)}",
            "reject": f"rejected {name(decision.category)}",
            "rename": f"renamed {decision.category} to {decision.name}",
            "merge": f"merged {', '.join(map(name, decision.categories))} into "
            f"{name(decision.into)}",
            "split": f"split {name(decision.category)} into {len(decision.parts) + 1}",
            "move": f"moved {texts} into {name(decision.into)}",
            "nowhere": f"marked {texts} as fitting nowhere",
            "note": f"note: {decision.text}",
            "undo": f"undid line {decision.line}",
            "refit": f"refitted into {decision.run}",
        }[decision.action]

    def _name(self, id_: str | None) -> str:
        """Return the name of a category that is or was there."""
        for category in (*self.decided.categories, *self.result.categories):
            if category.id == id_:
                return category.name
        return id_ or ""


def _run_digest(folder: Path) -> str:
    """Return what changes when the run is replaced."""
    for name in (MANIFEST, "run.json"):
        if (folder / name).is_file():
            return sha256_of(folder, [name])[name]
    raise InputError(f"{folder} is not a run folder (no run.json); give the folder of a run")


__all__ = ["Session", "StaleError"]
