"""`newfound decide`: accept, reject, rename, merge or split categories of a run, or move texts."""

import argparse
import getpass
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from newfound.cli.flags import (
    Commands,
    HelpFormatter,
    add_output_flags,
    add_run_folder,
    new_command,
)
from newfound.cli.output import Output
from newfound.cli.printing import printable
from newfound.errors import InputError

if TYPE_CHECKING:
    from newfound.decisions import Decision, Log
    from newfound.result import Result

ID = "id of a category, such as c12; `newfound info RUN` lists them"
TEXT = "id of a text, as in the column id of assignments.csv"


def add_parser(commands: Commands) -> None:
    """Add the command."""
    command = new_command(
        commands,
        "decide",
        run,
        "accept, reject, rename, merge or split categories, or move texts",
        "Record a decision on the categories of a run in RUN/decisions.jsonl. The other commands "
        "show the run after all decisions; `newfound refit` learns from them.",
    )
    add_run_folder(command)
    actions = command.add_subparsers(title="decisions", metavar="DECISION", required=True)
    one = _action(actions, "accept", "keep a proposed category; a refit makes it known")
    one.add_argument("category", metavar="ID", help=ID)
    one.add_argument(
        "--texts",
        metavar="TEXT",
        nargs="+",
        default=[],
        help="texts that you saw in it and found right (default: its typical and border texts)",
    )
    one = _action(actions, "reject", "drop a proposed category; its texts are free again")
    one.add_argument("category", metavar="ID", help=ID)
    one = _action(actions, "rename", "give a category another name; its id stays")
    one.add_argument("category", metavar="ID", help=ID)
    one.add_argument("name", metavar="NAME", help="the new name")
    one = _action(actions, "merge", "merge categories into another one, which keeps id and name")
    one.add_argument("categories", metavar="ID", nargs="+", help=ID)
    one.add_argument("--into", metavar="ID", required=True, help="category that gets their texts")
    one = _action(actions, "split", "split parts off a category, each as a category with a new id")
    one.add_argument("category", metavar="ID", help=ID)
    one.add_argument(
        "--part",
        dest="parts",
        metavar="TEXT",
        nargs="+",
        action="append",
        required=True,
        help="texts of a part, can be repeated; texts that no part names stay where they are",
    )
    one.add_argument(
        "--name",
        dest="names",
        metavar="NAME",
        action="append",
        default=[],
        help="name of a part, in the order of --part (default: from its keywords)",
    )
    one = _action(actions, "move", "move texts into a category")
    one.add_argument("texts", metavar="TEXT", nargs="+", help=TEXT)
    one.add_argument("--into", metavar="ID", required=True, help=ID)
    one = _action(actions, "nowhere", "mark texts as fitting nowhere")
    one.add_argument("texts", metavar="TEXT", nargs="+", help=TEXT)
    one = _action(actions, "note", "remember a remark")
    one.add_argument("text", metavar="REMARK", help="the remark")
    one.add_argument("--category", metavar="ID", default=None, help=ID)
    one = _action(actions, "undo", "take a decision back; the undo of an undo puts it in force")
    one.add_argument(
        "line", metavar="LINE", nargs="?", type=int, help="its line (default: the last in force)"
    )
    _action(actions, "list", "print all decisions with their lines", records=False)


def _action(actions: Any, name: str, help: str, *, records: bool = True) -> argparse.ArgumentParser:
    """Add one kind of decision."""
    one: argparse.ArgumentParser = actions.add_parser(
        name, help=help, description=f"{help[0].upper()}{help[1:]}.", formatter_class=HelpFormatter
    )
    one.set_defaults(action=name)
    if records:
        one.add_argument(
            "--author",
            metavar="NAME",
            default=argparse.SUPPRESS,
            help="who decides (default: your user name)",
        )
    add_output_flags(one, works=False)
    return one


def run(options: argparse.Namespace) -> None:
    """Record a decision, or list all."""
    from newfound.decisions import append, apply, describe_log, now, read_log
    from newfound.storage.run_folder import read_run

    output = Output(options)
    result, log = read_run(options.folder), read_log(options.folder)
    if options.action == "list":
        output.result(_log_value(log, result), "\n".join(map(printable, _lines(log, result))))
        return
    author = getattr(options, "author", None) or _user()
    decision = replace(_decision(options, log), time=now(), author=author)
    line = len(log.entries) + 1
    _, problems = apply(result, [*log.entries, decision])
    for problem in problems:
        if problem.line == line:
            raise InputError(f"{problem.reason}; nothing was recorded")
    # The digest is that of the decisions that this one was checked against.
    after = append(options.folder, [decision], expected=log.digest)
    decided, problems = apply(result, after.entries)
    output.notes(map(str, problems))
    value = {
        "run": str(options.folder),
        "line": line,
        **decision.to_dict(),
        "problems": [{"line": each.line, "reason": each.reason} for each in problems],
    }
    added = [c.id for c in decided.categories[-len(decision.parts) :]] if decision.parts else []
    new = f" ({', '.join(added)})" if added else ""
    output.result(
        value | ({"new": added} if added else {}),
        f"line {line}: {decision.action}{new}; {describe_log(after)} on {options.folder}",
    )


def _decision(options: argparse.Namespace, log: "Log") -> "Decision":
    """Return the decision that the options describe."""
    from newfound.decisions import decision_from

    names = ("category", "categories", "into", "name", "texts", "text", "line")
    given = {name: getattr(options, name) for name in names if getattr(options, name, None)}
    if options.action == "undo" and "line" not in given:
        if log.last is None:
            raise InputError(f"there is no decision on {options.folder} that could be undone")
        given["line"] = log.last
    if options.action == "split":
        if len(options.names) > len(options.parts):
            raise InputError("there are more --name than --part; give one name per part, or none")
        given["parts"] = [{"texts": texts} for texts in options.parts]
        for part, name in zip(given["parts"], options.names, strict=False):
            part["name"] = name
    return decision_from({"decision": options.action, **given})


def _user() -> str:
    """Return the user's name."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # the user has no name on this machine
        return "unknown"


def _log_value(log: "Log", result: "Result") -> dict[str, Any]:
    """Return all decisions as a JSON object."""
    from newfound.decisions import Decision, apply

    _, problems = apply(result, log.entries)
    return {
        "decisions": [
            {"number": number, **entry.to_dict(), "undone": number in log.undone}
            for number, entry in enumerate(log.entries, start=1)
            if isinstance(entry, Decision)
        ],
        "problems": [{"line": each.line, "reason": each.reason} for each in problems],
    }


def _lines(log: "Log", result: "Result") -> list[str]:
    """Return all decisions as lines of text."""
    from newfound.decisions import describe_log

    value = _log_value(log, result)
    reasons = {problem["line"]: problem["reason"] for problem in value["problems"]}
    lines = []
    for entry in value["decisions"]:
        number = entry.pop("number")
        state = " (undone)" if entry.pop("undone") else ""
        state = f" (not applied: {reasons.pop(number)})" if number in reasons else state
        lines.append(f"{number:>4}  {_sentence(entry)}{state}")
    lines += [f"{number:>4}  not applied: {reason}" for number, reason in reasons.items()]
    return [*sorted(lines, key=lambda line: int(line.split()[0])), describe_log(log)]


def _sentence(entry: dict[str, Any]) -> str:
    """Return a decision in words."""
    by = " ".join(filter(None, (entry.pop("time", None), entry.pop("author", None))))
    if "line" in entry:
        entry["line"] = f"line {entry['line']}"
    if "into" in entry:
        entry["into"] = f"into {entry['into']}"
    if "parts" in entry:
        sizes = " and ".join(f"{len(part['texts']):,}" for part in entry.pop("parts"))
        entry["parts"] = f"parts of {sizes} texts"
    words = [", ".join(v) if isinstance(v, list) else str(v) for v in entry.values()]
    return f"{by}: {' '.join(words)}" if by else " ".join(words)
