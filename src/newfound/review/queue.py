"""The queue of the review as the page shows it: questions in words, with texts to read."""

from typing import Any

from newfound.decisions.questions import Question, questions
from newfound.report.shown import NAME, shown
from newfound.result import Result
from newfound.wording import plural

MOST = 30  # questions sent to the page; answering one gives a new list


def queue(result: Result) -> list[dict[str, Any]]:
    """Return the questions for the page, the one first whose answer changes most."""
    return [_shown(result, question) for question in questions(result)[:MOST]]


def _shown(result: Result, question: Question) -> dict[str, Any]:
    """Return a question for the page."""
    category, other = question.category, question.other
    if other is not None and _rank(result, category) > _rank(result, other):
        category, other = other, category  # the smaller one would be merged into the other
    names = [
        f"\u201c{shown(result.categories[result.position[id_]].name, NAME)}\u201d"
        for id_ in (category, other)
        if id_ is not None
    ]
    words = {
        "category": f"Is {names[0]} one topic of its own?",
        "border": f"Which of these texts do not belong to {names[0]}?",
        "pair": f"Are {names[0]} and {names[-1]} the same?",
        "split": f"Are these two groups of {names[0]} two topics?",
    }
    return {
        "key": " ".join(filter(None, question.key)),
        "kind": question.kind,
        "category": category,
        "other": other,
        "text": words[question.kind],
        "why": f"The answer may change about {plural(round(question.gain), 'text')}.",
        "texts": list(question.texts),
    }


def _rank(result: Result, id_: str) -> tuple[bool, int]:
    """Return what a category is kept by in a merge: known ones first, then large ones."""
    category = result.categories[result.position[id_]]
    return category.status == "known", category.size
