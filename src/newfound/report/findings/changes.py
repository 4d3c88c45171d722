"""What an update changed: which categories are new, growing and fading, and which texts moved."""

from newfound.report.findings.finding import Finding, Item, percent
from newfound.result import Result
from newfound.wording import plural

TRENDS = {"appeared": "new", "growing": "growing", "fading": "fading"}


def what_changed(result: Result) -> Finding | None:
    """Return what changed since the run that this one updates; None if it is no update."""
    changes = result.changes
    if changes is None or "new_texts" not in changes:
        return None
    new, moved = changes["new_texts"], changes["moved"]
    earlier = len(result.corpus) - new
    items = [
        Item(
            result.position[id_],
            None,
            f"{word}: {plural(changes['joined'].get(id_, 0), 'new text')}, "
            f"{percent(changes['joined'].get(id_, 0) / max(1, new))} of all new ones",
        )
        for name, word in TRENDS.items()
        for id_ in changes[name]
        if id_ in result.position  # a decision may have removed it since
    ]
    proposed = plural(len(changes["appeared"]), "category is", "categories are")
    return Finding(
        "changes",
        "check" if changes["appeared"] else "note",
        "What changed since the run before",
        f"{plural(new, 'text')} joined {earlier:,}; {proposed} new. Of the earlier texts, "
        f"{moved['looked_at']:,} that fitted worst were looked at again: "
        f"{plural(moved['to_new_categories'], 'text')} went to a new category, "
        f"{moved['to_other_categories']:,} to another one that is clearly more probable.",
        "Read the new categories, and accept, rename, merge or reject them."
        if changes["appeared"]
        else "",
        tuple(items),
    )
