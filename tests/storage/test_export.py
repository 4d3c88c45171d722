"""Export: what is written is what Label Studio, Rasa and a CSV reader get back."""

import csv
import errno
import json
import os
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support.fake_run import EVIL, write_fake_run

from newfound.cli.main import main
from newfound.data.corpus import clean_text
from newfound.data.tables import read_tables
from newfound.errors import InputError
from newfound.result import Result
from newfound.storage.export import (
    Selection,
    _intent_name,
    _renamed,
    _write_labelstudio,
    _write_rasa,
    export_result,
    select,
)
from newfound.storage.run_folder import read_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_fake_run(tmp_path_factory.mktemp("runs") / "run", 300, 4, 3, seed=0)


@pytest.fixture(scope="module")
def run(folder: Path) -> Result:
    return read_run(folder)


@pytest.fixture(scope="module")
def evil_run(tmp_path_factory: pytest.TempPathFactory) -> Result:
    folder = tmp_path_factory.mktemp("runs") / "evil"
    return read_run(write_fake_run(folder, 300, 12, 8, seed=0, evil=True, parquet=True))


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def read_rasa(path: Path) -> dict[str, list[str]]:
    """The examples of each intent as Rasa's documentation describes them."""
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert data.keys() == {"version", "nlu"}
    assert data["version"] == "3.1"
    intents: dict[str, list[str]] = {}
    for item in data["nlu"]:
        assert item.keys() == {"intent", "examples"}
        assert isinstance(item["intent"], str)
        assert item["intent"] not in intents
        lines = item["examples"].splitlines()
        assert all(line.startswith("- ") for line in lines)
        intents[item["intent"]] = [line[2:] for line in lines]
    return intents


def check_labelstudio(path: Path) -> tuple[list[dict], list[str]]:
    """The tasks and the choices, each task checked against the labelling configuration."""
    view = ElementTree.fromstring(path.with_suffix(".xml").read_text(encoding="utf-8"))
    assert view.tag == "View"
    text, choices = view.find("Text"), view.find("Choices")
    assert text is not None
    assert choices is not None
    names = [choice.attrib["value"] for choice in choices.findall("Choice")]
    assert len(set(names)) == len(names)
    assert choices.attrib["toName"] == text.attrib["name"]
    field = text.attrib["value"].removeprefix("$")
    tasks = json.loads(path.read_text(encoding="utf-8"))
    for task in tasks:
        assert isinstance(task["data"][field], str)
        (kind,) = task.keys() - {"data"}
        ((answer,),) = (task[kind],)
        (result,) = answer["result"]
        assert result["from_name"] == choices.attrib["name"]
        assert result["to_name"] == text.attrib["name"]
        assert result["type"] == "choices"
        (chosen,) = result["value"]["choices"]
        assert chosen in names
        assert kind == "annotations" or 0 <= answer["score"] <= 1
    return tasks, names


def test_csv_has_every_text_unchanged(evil_run: Result, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    export_result(evil_run, out, "csv", raw_cells=True, min_probability=None)
    rows = read_csv(out)
    assert [row["label"] for row in rows] == evil_run.labels.tolist()
    assert [row["text"] for row in rows] == evil_run.corpus.texts


def test_csv_protects_formulas(evil_run: Result, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    export_result(evil_run, out, "csv", min_probability=None)
    cells = [cell for row in read_csv(out) for cell in row.values()]
    assert any(cell.startswith("'=cmd|") for cell in cells)
    assert not any(cell[:1] in ("=", "+", "-", "@", "\t", "\r") for cell in cells)
    read = read_tables([out]).corpus
    assert read.texts == [clean_text(text) for text in evil_run.corpus.texts]
    assert read.labels == [clean_text(label) for label in evil_run.labels]


def test_labelstudio_has_labels_as_annotations_and_predictions(run: Result, tmp_path: Path) -> None:
    out = tmp_path / "tasks.json"
    paths, _, notes = export_result(run, out, "labelstudio", min_probability=None)
    assert paths == [out, tmp_path / "tasks.xml"]
    assert notes == []
    tasks, names = check_labelstudio(out)
    source = run
    assert names == [category.name for category in source.categories]
    for i, task in enumerate(tasks):
        answer = task["annotations" if source.labelled[i] else "predictions"][0]
        assert task["data"]["text"] == source.corpus.texts[i]
        assert answer["result"][0]["value"]["choices"] == [names[source.assigned[i]]]
        if not source.labelled[i]:
            assert answer["score"] == pytest.approx(source.probability[i], abs=1e-4)


def test_labelstudio_accepts_any_name_and_text(evil_run: Result, tmp_path: Path) -> None:
    export_result(evil_run, tmp_path / "tasks.json", "labelstudio", min_probability=None)
    tasks, names = check_labelstudio(tmp_path / "tasks.json")
    assert [task["data"]["text"] for task in tasks] == evil_run.corpus.texts
    assert len(names) == 20
    # Label Studio would put a field of the task in the place of these.
    assert not any(re.search(r"\$[\w\[\].{}]", name) for name in names)


def test_rasa_has_one_intent_per_category(run: Result, tmp_path: Path) -> None:
    out = tmp_path / "nlu.yml"
    _, _, notes = export_result(run, out, "rasa", min_probability=None)
    source = run
    intents = read_rasa(out)
    assert list(intents) == [c.name.replace(" ", "_") for c in source.categories]
    for i, examples in enumerate(intents.values()):
        texts = [source.corpus.texts[row] for row in np.flatnonzero(source.assigned == i)]
        assert examples == list(dict.fromkeys(texts))
    assert notes[0].startswith("some intent names differ from the category names: ")


def test_rasa_accepts_any_name_and_text(evil_run: Result, tmp_path: Path) -> None:
    export_result(evil_run, tmp_path / "nlu.yml", "rasa", min_probability=None)
    intents = read_rasa(tmp_path / "nlu.yml")
    assert all(re.fullmatch(r"[\w.-]+", name) for name in intents)
    source = evil_run
    used = {int(i) for i in source.assigned}
    assert len(intents) == len(used)
    lines = [line for examples in intents.values() for line in examples]
    assert EVIL[-1] in lines
    assert "line break and tab and separators end" in lines


def test_brackets_in_texts_are_no_entities_in_rasa(tmp_path: Path) -> None:
    texts = ["see [here](http://x)", 'a [b]{"entity": "c"}', "d[0][1]", "(a) [b] {c}"]
    chosen = Selection(["x"], ["c1"], texts, np.zeros(4, int), np.zeros(4, bool), np.ones(4))
    _write_rasa(chosen, tmp_path / "nlu.yml")
    assert read_rasa(tmp_path / "nlu.yml") == {
        "x": ["see [here] (http://x)", 'a [b] {"entity": "c"}', "d[0] [1]", "(a) [b] {c}"]
    }


@given(texts=st.lists(st.text(max_size=30), min_size=1), names=st.lists(st.text(), min_size=1))
def test_files_are_valid_for_any_texts_and_names(
    texts: list[str], names: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("any")
    count = len(texts)
    category = np.arange(count) % len(names)
    ids = [f"c{number + 1}" for number in range(len(names))]
    chosen = Selection(names, ids, texts, category, category % 2 == 0, np.full(count, 0.5))
    _write_rasa(chosen, folder / "nlu.yml")
    intents = read_rasa(folder / "nlu.yml") if any(map(visible, texts)) else {}
    lines = [" ".join(line.split()) for examples in intents.values() for line in examples]
    for text in texts:
        assert not visible(text) or visible(text) in map(visible, lines)
    assert not any(re.search(r"\][(\[{]", line) for line in lines)
    _write_labelstudio(chosen, folder / "tasks.json")
    tasks, choices = check_labelstudio(folder / "tasks.json")
    assert [task["data"]["text"] for task in tasks] == texts
    assert len(choices) == len(names)


def visible(text: str) -> str:
    """What is left of a text without white space and what a YAML file cannot hold."""
    unsafe = {*map(chr, range(0x20)), *map(chr, range(0x7F, 0xA0)), "\ufeff", "\ufffe", "\uffff"}
    return "".join(c for c in text if not c.isspace() and c not in unsafe)


def test_valid_names_are_kept_and_names_stay_unique() -> None:
    names, notes = _renamed(["a b", "a_b", "a/b", "?!", "Fine-1.0", "a_b"], _intent_name, "intent")
    assert names == ["a_b_2", "a_b", "a_b_3", "intent", "Fine-1.0", "a_b_4"]
    assert len(notes) == 1
    assert "'a b' is 'a_b_2'" in notes[0]
    assert notes[0].endswith("and 1 more")


def test_categories_kind_and_probability_select_texts(run: Result) -> None:
    source = run
    first, last = source.categories[0].name, source.categories[-1].name
    assert select(source, [first, last], "all", 0).names == [first, last]
    assert select(source, [first, last], "novel", 0).names == [last]
    assert select(source, [], "known", 0).names == [c.name for c in source.categories[:4]]
    chosen = select(source, [], "all", 0.8)
    assert (chosen.given | (chosen.probability >= 0.8)).all()
    assert len(chosen.texts) == (source.labelled | (source.probability >= 0.8)).sum() < 300
    assert chosen.given.sum() == source.labelled.sum()


@pytest.mark.parametrize(
    ("to", "file"), [("csv", "o.csv"), ("rasa", "o.yml"), ("labelstudio", "o.json")]
)
def test_texts_that_fit_nowhere_are_left_out_and_counted(
    run: Result, to: str, file: str, tmp_path: Path
) -> None:
    free = np.flatnonzero(~run.labelled)
    marks = np.zeros(len(run.corpus), bool)
    marks[free[:3]] = True
    marked = replace(run, fits_nowhere=marks)
    _, chosen, notes = export_result(marked, tmp_path / file, to, min_probability=None)
    assert chosen.outside == 3
    assert len(chosen.texts) == len(run.corpus) - 3
    assert "3 texts that fit nowhere: omitted; --with-outside exports them" in notes
    _, chosen, notes = export_result(
        marked, tmp_path / file, to, min_probability=None, with_outside=True, force=True
    )
    assert chosen.texts == run.corpus.texts
    assert "3 texts that fit nowhere: exported with their category" in notes
    assert not any("nowhere" in note for note in export_result(run, tmp_path / f"b-{file}", to)[2])


def test_categories_of_outside_texts_alone_say_what_to_do(run: Result) -> None:
    novel = run.kinds[run.assigned] == "novel"
    marked = replace(run, fits_nowhere=novel)
    with pytest.raises(InputError, match="or add --with-outside"):
        select(marked, [], "novel", 0)
    assert select(marked, [], "known", 0).outside == 0
    assert len(select(marked, [], "novel", 0, with_outside=True).texts) == novel.sum()


def test_invalid_exports_are_errors(run: Result, tmp_path: Path) -> None:
    name = run.categories[-1].name
    bad = [
        ({"categories": [name[:-1]]}, f"did you mean {name!r}"),
        ({"categories": ["zzzzz"]}, "newfound info"),
        ({"categories": [name], "kind": "known"}, "no text of the run matches"),
        ({"min_probability": 1.5}, "between 0 and 1"),
        ({"min_probability": float("nan")}, "between 0 and 1"),
    ]
    for options, said in bad:
        with pytest.raises(InputError, match=re.escape(said)):
            export_result(run, tmp_path / "out.csv", "csv", **options)
    for to, file, said in (
        ("rasa", "out.json", ".yml or .yaml"),
        ("labelstudio", "out.xml", ".json"),
        ("csv", "missing/out.csv", "cannot write"),
    ):
        with pytest.raises(InputError, match=said):
            export_result(run, tmp_path / file, to)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("to", "file", "there"), [("csv", "a.csv", "a.csv"), ("labelstudio", "a.json", "a.xml")]
)
def test_existing_file_is_replaced_only_with_force(
    folder: Path, tmp_path: Path, to: str, file: str, there: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / there).write_text("mine")
    command = ["export", str(folder), "--to", to, "-o", str(tmp_path / file), "--kind", "novel"]
    assert main(command) == 2
    assert f"{there} exists" in capsys.readouterr().err
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]
    assert main([*command, "--force"]) == 0
    assert re.search(r"\d+ texts of 3 categories: ", capsys.readouterr().out)
    assert (tmp_path / there).read_text() != "mine"


# What the model is sure of, and groups of categories.


def test_only_what_is_sure_or_decided_is_exported_by_default(run: Result, tmp_path: Path) -> None:
    fit = np.linspace(0, 1, len(run.corpus))
    rng = np.random.default_rng(0)
    fit = rng.permutation(fit)
    accepted = run.categories[-1]
    categories = (*run.categories[:-1], replace(accepted, status="accepted"))
    decided = replace(run, fit=fit, categories=categories)
    _, chosen, notes = export_result(decided, tmp_path / "o.csv", "csv")
    limit = np.quantile(fit[run.labelled], 0.05)
    wanted = [
        text
        for row, text in enumerate(run.corpus.texts)
        if run.labelled[row]
        or run.assigned[row] == len(categories) - 1
        or (run.probability[row] >= 0.8 and fit[row] >= limit)
    ]
    assert chosen.texts == wanted
    assert 0 < chosen.unsure == len(run.corpus) - len(wanted)
    assert any(f"{chosen.unsure} texts that the model is not sure of" in note for note in notes)
    _, everything, notes = export_result(
        decided, tmp_path / "o.csv", "csv", min_probability=None, force=True
    )
    assert everything.texts == run.corpus.texts
    assert everything.unsure == 0
    assert not any("not sure" in note for note in notes)


def test_command_exports_all_on_request(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "o.csv"
    assert main(["export", str(folder), "--to", "csv", "-o", str(out), "-q"]) == 0
    sure = len(read_csv(out))
    more = ["--all", "--force"]
    assert main(["export", str(folder), "--to", "csv", "-o", str(out), "-q", *more]) == 0
    assert sure < len(read_csv(out)) == 300


@pytest.mark.parametrize("to", ["csv", "rasa", "labelstudio"])
def test_groups_are_exported_at_a_level(run: Result, tmp_path: Path, to: str) -> None:
    groups = [("cards", "money"), ("refunds", "money"), ("cards", "money"), ("apps", "apps")]
    categories = tuple(replace(c, groups=groups[at % 4]) for at, c in enumerate(run.categories))
    tree = replace(run, categories=categories)
    out = tmp_path / {"csv": "o.csv", "rasa": "o.yml", "labelstudio": "o.json"}[to]
    for level in (1, 2):
        _, chosen, _ = export_result(tree, out, to, level=level, min_probability=None, force=True)
        assert chosen.names == (["cards", "refunds", "apps"] if level == 1 else ["money", "apps"])
        wanted = [groups[at % 4][level - 1] for at in run.assigned]
        assert [chosen.names[at] for at in chosen.category] == wanted
    if to == "csv":
        assert [row["label"] for row in read_csv(out)] == wanted
    with pytest.raises(InputError, match="--level must be from 0 to 2 for this run, not 3"):
        export_result(tree, out, to, level=3, force=True)
    with pytest.raises(InputError, match="from 0 to 0"):
        export_result(run, out, to, level=1, force=True)


def test_full_disk_never_mixes_the_files_of_two_exports(
    run: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.json"
    export_result(run, out, "labelstudio")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    write = Path.write_text

    def full(path: Path, *arguments: Any, **options: Any) -> int:
        if path.suffix == ".json":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(path, *arguments, **options)

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(InputError, match="No space left"):
        export_result(run, out, "labelstudio", kind="known", force=True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
