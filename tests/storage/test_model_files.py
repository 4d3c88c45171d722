"""Tests of model files: their content, and the errors for damaged ones."""

import json
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from support.sealing import reseal
from support.small_texts import QUICK, SmallTask, everything_under, small_task

from newfound import CategoryDiscoverer, InputError
from newfound.errors import DamagedFileError
from newfound.storage.categories import read_categories
from newfound.storage.formats import MODEL_FORMAT
from newfound.storage.model_files import FEATURE_MAPS, load_model

FILES = {
    "encoder.json",
    "encoder.safetensors",
    "fit_reference.safetensors",
    "manifest.json",
    "model.json",
    "prototypes.safetensors",
    "tokenizer.json",
}


@pytest.fixture(scope="module")
def task() -> SmallTask:
    return small_task()


@pytest.fixture(scope="module")
def saved(
    tiny_encoder: str, task: SmallTask, tmp_path_factory: pytest.TempPathFactory
) -> tuple[CategoryDiscoverer, Path]:
    folder = tmp_path_factory.mktemp("saved") / "model"
    discoverer = CategoryDiscoverer("dpn", tiny_encoder, 4, "fast", settings=QUICK)
    discoverer.fit(task.texts, task.labels).save(folder)
    return discoverer, folder


@pytest.fixture
def copy(saved: tuple[CategoryDiscoverer, Path], tmp_path: Path) -> Path:
    shutil.copytree(saved[1], tmp_path / "model")
    return tmp_path / "model"


def test_file_permissions_follow_the_umask(
    saved: tuple[CategoryDiscoverer, Path],
) -> None:
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in saved[1].iterdir()}
    before = os.umask(0)
    os.umask(before)
    assert modes == dict.fromkeys(FILES, 0o666 & ~before)


def change(folder: Path, **changes: Any) -> None:
    about = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps({**about, **changes}))
    reseal(folder)


def refused(folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        CategoryDiscoverer.load(folder)
    message = str(caught.value)
    assert str(folder) in message
    return message


def test_model_is_safetensors_and_json(saved: tuple[CategoryDiscoverer, Path]) -> None:
    assert everything_under(saved[1]) == FILES
    about = json.loads((saved[1] / "model.json").read_text())
    assert about["format"] == MODEL_FORMAT
    assert about["known"] == ["bank", "travel"]
    assert about["config"]["settings"]["epochs"] == 1
    assert len(about["categories"]) == 4


def test_model_folder_is_self_contained(
    saved: tuple[CategoryDiscoverer, Path], task: SmallTask, copy: Path, tmp_path: Path
) -> None:
    change(copy, parameters={**saved[0].get_params(), "encoder": str(tmp_path / "gone")})
    assert (CategoryDiscoverer.load(copy).predict(task.texts) == saved[0].predict(task.texts)).all()


def test_run_folder_has_a_model(
    saved: tuple[CategoryDiscoverer, Path], task: SmallTask, copy: Path, tmp_path: Path
) -> None:
    found = CategoryDiscoverer.load(tmp_path)  # whose model/ is the copy
    assert (found.predict(task.texts) == saved[0].predict(task.texts)).all()


def test_saving_replaces_an_earlier_model(
    saved: tuple[CategoryDiscoverer, Path], task: SmallTask, copy: Path, tmp_path: Path
) -> None:
    (copy / "thesis").write_text("years of work")
    with pytest.raises(InputError, match=r"a file that is not of a model \(thesis\)"):
        saved[0].save(copy)
    (copy / "thesis").unlink()
    saved[0].save(copy)
    assert everything_under(tmp_path) == {"model", *(f"model/{name}" for name in FILES)}
    CategoryDiscoverer.load(copy)


def test_saving_replaces_only_models(
    saved: tuple[CategoryDiscoverer, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "thesis"
    folder.mkdir()
    (folder / "chapter").write_text("years of work")
    with pytest.raises(InputError, match="exists and is not a model of newfound"):
        saved[0].save(folder)
    with pytest.raises(InputError, match="exists and is not a model of newfound"):
        saved[0].save(folder / "chapter")
    with pytest.raises(InputError, match="cannot write"):
        saved[0].save(folder / "chapter" / "model")
    assert everything_under(tmp_path) == {"thesis", "thesis/chapter"}
    (folder / "chapter").unlink()
    saved[0].save(folder)  # an empty folder is free to use
    assert everything_under(folder) == FILES


def test_numpy_numbers_can_be_saved(tiny_encoder: str, task: SmallTask, tmp_path: Path) -> None:
    chosen = {**QUICK, "learning_rate": np.float32(1e-3), "batch": np.int64(8)}
    discoverer = CategoryDiscoverer(
        "dpn", Path(tiny_encoder), np.int64(4), "fast", seed=np.int64(3), settings=chosen
    )
    discoverer.fit(task.texts, task.labels).save(tmp_path / "model")
    found = CategoryDiscoverer.load(tmp_path / "model")
    assert (found.seed, found.n_categories, found.encoder) == (3, 4, tiny_encoder)
    assert found.settings["batch"] == 8
    assert found.settings["learning_rate"] == pytest.approx(1e-3)


@pytest.mark.parametrize("name", sorted(FILES))
@pytest.mark.parametrize("damage", ["gone", "empty", "half", "garbage", "other"])
@pytest.mark.parametrize("sealed", [True, False])
def test_damage_of_each_file_is_reported(copy: Path, name: str, damage: str, sealed: bool) -> None:
    path = copy / name
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "half":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "garbage":
        path.write_bytes(b"\xff\xfe" + content[2:])
    else:
        path.write_bytes(b"[1, 2]" if name.endswith("json") else b"\x02" + b"\0" * 7 + b"{}")
    if sealed and name != "manifest.json":
        reseal(copy)
    message = refused(copy)
    assert len(message) < 600
    assert "\n" not in message


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "horoscope"},
        {"kind": ["encoder"]},
        {"known": 5},
        {"known": ["a"] * 9},
        {"temperature": "warm"},
        {"temperature": None},
        {"categories": []},
        {"categories": {}},
        {"categories": ["a", "b", "c", "d"]},
        {"categories": [{"id": 0}] * 4},
        {"parameters": {"speed": 3}},
        {"parameters": None},
    ],
)
def test_changed_model_json_is_reported(copy: Path, changes: dict[str, Any]) -> None:
    change(copy, **changes)
    assert "damaged" in refused(copy)


def test_prototypes_of_another_model_are_reported(copy: Path) -> None:
    path = copy / "prototypes.safetensors"
    arrays = load_file(path)
    for other in (
        {"something": arrays["prototypes"]},
        {"prototypes": arrays["prototypes"][:, :7].copy()},
        {"prototypes": arrays["prototypes"][0].copy()},
        {"prototypes": np.vstack([arrays["prototypes"]] * 2)},
    ):
        save_file(other, path)
        reseal(copy)
        assert "damaged" in refused(copy)


def test_newer_format_is_an_error(copy: Path) -> None:
    change(copy, format=MODEL_FORMAT + 1)
    message = refused(copy)
    assert f"has format {MODEL_FORMAT + 1}" in message
    assert "install a newer version" in message


@pytest.mark.parametrize("content", ["{}", '{"format": "x"}', '{"format": null}', "[]", "no json"])
def test_foreign_file_is_reported(copy: Path, content: str) -> None:
    (copy / "model.json").write_text(content)
    reseal(copy)
    message = refused(copy)
    assert "damaged" in message or "not written by newfound" in message


def test_folders_without_a_model_are_errors(tmp_path: Path) -> None:
    assert "does not exist" in refused(tmp_path / "nowhere")
    assert "is not a model of newfound" in refused(tmp_path)
    (tmp_path / "file").write_text("x")
    assert "is not a model of newfound" in refused(tmp_path / "file")


def test_code_in_a_model_is_not_run(copy: Path, tmp_path: Path) -> None:
    import pickle

    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (tmp_path / "boom",)

    for name in FILES:
        content = (copy / name).read_bytes()
        (copy / name).write_bytes(pickle.dumps(Bomb()))
        refused(copy)
        (copy / name).write_bytes(content)
    assert not (tmp_path / "boom").exists()


def test_categories_are_read_back_or_reported_as_damaged(
    saved: tuple[CategoryDiscoverer, Path], tmp_path: Path
) -> None:
    path = tmp_path / "categories.json"
    entries = json.loads((saved[1] / "model.json").read_text())["categories"]
    path.write_text(json.dumps(entries))
    assert read_categories(path) == saved[0].model_.categories
    for content in ("{", "{}", "[{}]", "[1]", '["a"]', "null"):
        path.write_text(content)
        with pytest.raises(DamagedFileError, match=r"categories\.json"):
            read_categories(path)
    with pytest.raises(DamagedFileError, match=r"gone\.json"):
        read_categories(tmp_path / "gone.json")


@pytest.mark.parametrize(
    "changes",
    [
        {"architecture": {}},
        {"architecture": {"width": "wide"}},
        {"heads": 0},
        {"heads": 5},
        {"layers": 9},
        {"vocabulary": 10**12},
        {"activation": "softsign"},
        {"speed": 1},
        {"pooling": "max"},
        {"head": "two"},
        {"logits": "some"},
        {"logits": 7},
        {"max_tokens": -1},
        {"normalise": None},
    ],
)
def test_changed_encoder_file_is_reported_as_damage(copy: Path, changes: dict[str, Any]) -> None:
    settings = json.loads((copy / "encoder.json").read_text())
    shape = settings["architecture"]
    inside = changes.keys() - settings.keys()
    settings["architecture"] = shape | {name: changes[name] for name in inside}
    settings.update({name: value for name, value in changes.items() if name not in inside})
    (copy / "encoder.json").write_text(json.dumps(settings))
    reseal(copy)
    assert "damaged" in refused(copy)


@pytest.mark.parametrize("error", [AttributeError, TypeError, RuntimeError, KeyError, ValueError])
def test_bugs_are_not_reported_as_damage(
    copy: Path, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def mistaken(folder: Path) -> None:
        raise error("a bug of ours")

    monkeypatch.setitem(FEATURE_MAPS, "encoder", mistaken)
    with pytest.raises(error, match="a bug of ours") as caught:
        load_model(copy, "cpu")
    assert not isinstance(caught.value, InputError)
