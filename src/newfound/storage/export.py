"""Export categories and their texts to Label Studio, Rasa or CSV."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np

from newfound.data.tables import TableWriter
from newfound.errors import InputError
from newfound.files import write_atomically, write_text
from newfound.files.syncing import sync_file
from newfound.result import Result
from newfound.versions import __version__
from newfound.wording import plural, suggestion

SUFFIXES = {"labelstudio": (".json",), "rasa": (".yml", ".yaml"), "csv": (".csv",)}
KINDS = ("all", "known", "novel")
SURE = 0.8  # probability from which the model is sure of a text,
FIT_SHARE = 0.05  # if it fits better than this share of the labelled texts
# Limits of one imported file in Label Studio.
MOST_TASKS, MOST_BYTES = 250_000, 50_000_000
# Characters that are not allowed in YAML, XML or a single line.
UNSAFE = re.compile(r"[^\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Selection:
    """The texts to export, by category."""

    names: list[str]  # of the chosen categories
    ids: list[str]  # of the chosen categories
    texts: list[str]
    category: np.ndarray  # [n] position in `names`
    given: np.ndarray  # [n] bool: True for a label of the user, False for a prediction
    probability: np.ndarray  # [n] of the prediction
    outside: int = 0  # texts of these categories that are marked as fitting nowhere
    unsure: int = 0  # texts that are omitted because the model is not sure of them


def export_result(
    result: Result,
    out: Path,
    to: str,
    *,
    categories: Sequence[str] = (),
    kind: str = "all",
    min_probability: float | None = SURE,
    level: int = 0,
    with_outside: bool = False,
    raw_cells: bool = False,
    force: bool = False,
) -> tuple[list[Path], Selection, list[str]]:
    """Export categories of a result to a file for another tool.

    Parameters
    ----------
    result : Result
        The result of a discovery, or one read from a run folder.
    out : Path
        File to write: .json for Label Studio (an .xml is written beside it), .yml for Rasa, .csv.
    to : {"labelstudio", "rasa", "csv"}
        Target format.
    categories : sequence of str, optional
        Names of the categories to export; all by default.
    kind : {"all", "known", "novel"}, default "all"
        Export only categories of this kind.
    min_probability : float or None, default 0.8
        Omit texts that the model is not sure of: those with a lower probability or a low fit score,
        unless they are labelled or of a category that a person accepted. None omits no text.
    level : int, default 0
        Export groups of categories instead of categories: 1 for groups of look-alikes, 2 for groups
        of these.
    with_outside : bool, default False
        Export also texts that are marked as fitting nowhere.
    raw_cells : bool, default False
        Whether a CSV file holds texts as they are, also those that a spreadsheet would run as
        formulas (see `newfound.data.tables.formulas`).
    force : bool, default False
        Replace existing files.

    Returns
    -------
    paths : list of Path
        The files written.
    selection : Selection
        The exported texts.
    notes : list of str
        Notes for the user.
    """
    if to not in SUFFIXES:
        raise InputError(f"--to must be one of {', '.join(SUFFIXES)}, not {to!r}")
    if out.suffix.lower() not in SUFFIXES[to]:
        wanted = " or ".join(SUFFIXES[to])
        raise InputError(f"{out} must end in {wanted} for {to}; choose another name")
    paths = [out, out.with_suffix(".xml")] if to == "labelstudio" else [out]
    for path in paths:
        if path.is_dir():
            raise InputError(f"{path} is a folder; name a file to write")
        if path.exists() and not force:
            raise InputError(f"{path} exists; replace it with --force or choose another name")
    chosen = select(
        result,
        categories,
        kind,
        min_probability,
        level=level,
        with_outside=with_outside,
    )
    writers: dict[str, Callable[[Selection, Path], list[str]]] = {
        "labelstudio": _write_labelstudio,
        "rasa": _write_rasa,
        "csv": partial(_write_csv, raw_cells=raw_cells),
    }
    notes = writers[to](chosen, out)
    if chosen.outside:
        texts = plural(chosen.outside, "text that fits", "texts that fit")
        done = "exported with their category" if with_outside else "omitted"
        advice = "" if with_outside else "; --with-outside exports them"
        notes.append(f"{texts} nowhere: {done}{advice}")
    if chosen.unsure:
        notes.append(
            f"{plural(chosen.unsure, 'text')} that the model is not sure of, of categories that "
            "nobody accepted: omitted; --all exports them"
        )
    return paths, chosen, notes


def select(
    result: Result,
    categories: Sequence[str],
    kind: str,
    min_probability: float | None,
    *,
    level: int = 0,
    with_outside: bool = False,
) -> Selection:
    """Return the texts of the named categories, or of all categories of the kind.

    Texts that are marked as fitting nowhere are counted; they are included only `with_outside`.
    Texts that the model is not sure of are counted, too, and included only if `min_probability` is
    None. From level 1 on, the groups of the chosen categories are returned in their place.
    """
    if kind not in KINDS:
        raise InputError(f"--kind must be one of {', '.join(KINDS)}, not {kind!r}")
    if min_probability is not None and not 0 <= min_probability <= 1:
        raise InputError(f"--min-probability must be between 0 and 1, not {min_probability}")
    names = [category.name for category in result.categories]
    for name in categories:
        if name not in names:
            advice = suggestion(name, names, "`newfound info RUN` lists them")
            raise InputError(f"the run has no category {name!r}; {advice}")
    taken = [
        i
        for i, category in enumerate(result.categories)
        if kind in ("all", category.kind) and (not categories or category.name in categories)
    ]
    place = np.full(len(names), -1)
    place[taken] = np.arange(len(taken))
    matching = (place[result.assigned] >= 0) & (result.assigned >= 0)
    marked = np.zeros(len(matching), bool)
    if result.fits_nowhere is not None:
        marked = matching & result.fits_nowhere
    outside = int(marked.sum())
    doubted = np.zeros(len(matching), bool)
    if min_probability is not None:
        doubted = matching & ~marked & ~sure_texts(result, min_probability)
    omitted = int(doubted.sum())
    matching &= ~doubted
    if not with_outside:
        matching &= ~marked
    rows = np.flatnonzero(matching)
    if not len(rows):
        raise InputError(
            "no text of the run matches; change --categories or --kind, or lower --min-probability"
            + (", or add --with-outside" if outside else "")
            + (", or add --all" if omitted else "")
        )
    return _at_level(result, taken, rows, place, level, outside, omitted)


def sure_texts(result: Result, min_probability: float = SURE) -> np.ndarray:
    """Return which texts a person decided on or the model is sure of, bool [N].

    The model is sure of a text if its calibrated probability is at least `min_probability` and it
    fits as well as all but FIT_SHARE of the labelled texts (without labels, of all texts). A person
    decided on a labelled text, a reviewed one, and on the texts of an accepted category.
    """
    accepted = np.array([category.status == "accepted" for category in result.categories])
    sure = ~(result.probability < min_probability)  # also texts without a probability
    if result.fit is not None:
        judged = result.fit[result.labelled] if result.labelled.any() else result.fit
        sure &= ~(result.fit < np.nanquantile(judged, FIT_SHARE))
    if result.reviewed is not None:
        sure |= result.reviewed
    return result.labelled | accepted[result.assigned] | sure


def _at_level(
    result: Result,
    taken: list[int],
    rows: np.ndarray,
    place: np.ndarray,
    level: int,
    outside: int,
    omitted: int,
) -> Selection:
    """Return the texts of these rows, by category or by group of categories."""
    depth = min((len(result.categories[i].groups) for i in taken), default=0)
    if not 0 <= level <= depth:
        raise InputError(
            f"--level must be from 0 to {depth} for this run, not {level}; 0 exports categories"
        )
    chosen = [result.categories[i] for i in taken]
    labels = [(c.groups[level - 1], "") if level else (c.name, c.id) for c in chosen]
    names = list(dict.fromkeys(labels))  # by id, because categories may have the same name
    group = np.array([names.index(label) for label in labels])
    return Selection(
        names=[name for name, _ in names],
        ids=[id_ for _, id_ in names],
        texts=[result.corpus.texts[i] for i in rows],
        category=group[place[result.assigned[rows]]],
        given=result.labelled[rows],
        probability=result.probability[rows],
        outside=outside,
        unsure=omitted,
    )


def _write_csv(chosen: Selection, out: Path, *, raw_cells: bool) -> list[str]:
    columns = {
        "text": chosen.texts,
        "label": [chosen.names[i] for i in chosen.category],
        "category_id": [chosen.ids[i] for i in chosen.category],
    }
    with TableWriter(out, dict.fromkeys(columns, str), raw_cells=raw_cells) as table:
        table.write(columns)
    return []


def _write_labelstudio(chosen: Selection, out: Path) -> list[str]:
    """Write tasks as JSON, and the labelling configuration of the project as XML.

    Labels of the user become annotations, predictions of the model become predictions to review.
    """
    names, notes = _renamed(chosen.names, _choice_name, "choice")
    tasks = []
    rows = zip(chosen.texts, chosen.category, chosen.given, chosen.probability, strict=True)
    for text, category, given, probability in rows:
        result = {
            "from_name": "category",
            "to_name": "text",
            "type": "choices",
            "value": {"choices": [names[category]]},
        }
        answer: dict[str, Any] = {"result": [result]}
        if not given:
            answer["model_version"] = f"newfound {__version__}"
            if np.isfinite(probability):
                answer["score"] = round(float(probability), 4)
        data = {"text": text, "category_id": chosen.ids[category]}
        task = {"data": data, "annotations" if given else "predictions": [answer]}
        tasks.append(json.dumps(task, ensure_ascii=False))
    content = "[\n" + ",\n".join(tasks) + "\n]\n"
    choices = "".join(f'    <Choice value="{_attribute(name)}"/>\n' for name in names)
    config = (
        "<View>\n"
        '  <Text name="text" value="$text" valueType="text"/>\n'
        '  <Choices name="category" toName="text" choice="single" showInline="true">\n'
        f"{choices}"
        "  </Choices>\n"
        "</View>\n"
    )
    # Both are complete before the first replaces an old file, so that they always fit each other.
    with (
        write_atomically(out.with_suffix(".xml")) as config_file,
        write_atomically(out) as task_file,
    ):
        for file, text in ((config_file, config), (task_file, content)):
            file.write_text(text, encoding="utf-8")
            sync_file(file)
    if len(tasks) > MOST_TASKS or len(content.encode()) > MOST_BYTES:
        notes.append(
            f"Label Studio imports files of at most {MOST_TASKS:,} tasks or "
            f"{MOST_BYTES // 10**6} MB and this one is larger; export fewer --categories at a time"
        )
    return notes


def _write_rasa(chosen: Selection, out: Path) -> list[str]:
    """Write NLU training data: one intent per category, one line per distinct text."""
    names, notes = _renamed(chosen.names, _intent_name, "intent")
    examples: list[dict[str, None]] = [{} for _ in names]
    for text, category in zip(chosen.texts, chosen.category, strict=True):
        # [text](entity) is an annotation in Rasa and cannot be escaped; a space between the
        # brackets makes it plain text.
        line = re.sub(r"\](?=[(\[{])", "] ", _one_line(text))
        if line:
            examples[category][line] = None
    parts = ['version: "3.1"\n\nnlu:\n']
    for name, id_, lines in zip(names, chosen.ids, examples, strict=True):
        if lines:
            # Quoted, because YAML reads yes and 12 not as strings.
            parts.append(f'- intent: "{name}"  # {id_}\n  examples: |\n')
            parts.extend(f"    - {line}\n" for line in lines)
    write_text(out, "".join(parts))
    return notes


def _renamed(
    names: Sequence[str], valid: Callable[[str], str], what: str
) -> tuple[list[str], list[str]]:
    """Return unique names that the tool accepts, and a note on those that were changed."""
    result: list[str] = []
    used = {name for name in names if valid(name) == name}  # these are not changed
    for name in names:
        new = valid(name)
        if new != name or new in result:
            base, number = new or what, 1
            new = base
            while new in used:
                number += 1
                new = f"{base}_{number}"
            used.add(new)
        result.append(new)
    changed = [(old, new) for old, new in zip(names, result, strict=True) if old != new]
    if not changed:
        return result, []
    shown = ", ".join(f"{old[:60]!r} is {new[:60]!r}" for old, new in changed[:3])
    more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
    return result, [f"some {what} names differ from the category names: {shown}{more}"]


def _intent_name(name: str) -> str:
    """Return a name of letters, digits, underscores, hyphens and dots, as Rasa requires."""
    valid = re.sub(r"[^\w.-]+", "_", name)
    return valid if valid == name else valid.strip("_")


def _choice_name(name: str) -> str:
    """Return a name on one line, with no $ before a word, which Label Studio would replace."""
    return re.sub(r"\$(?=[\w\[\].{}])", "$ ", _one_line(name))


def _one_line(text: str) -> str:
    return " ".join(UNSAFE.sub(" ", text).split())


def _attribute(text: str) -> str:
    return escape(text, {'"': "&quot;"})
