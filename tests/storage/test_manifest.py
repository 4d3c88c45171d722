"""The manifest: changed and mixed files are refused, and a reader during a swap gets one whole."""

import json
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.sealing import reseal, unseal
from support.small_texts import QUICK, SmallTask

from newfound import CategoryDiscoverer, InputError
from newfound.config import RunConfig
from newfound.data.corpus import Corpus
from newfound.files import swapping
from newfound.pipeline import discover
from newfound.result import Result
from newfound.storage.model_files import load_model, save_model
from newfound.storage.run_folder import new_run, read_run, write_run


@pytest.fixture(scope="module")
def results(tiny_encoder: str, task: SmallTask) -> list[Result]:
    """Two results of different seeds, which differ in every file with numbers."""
    corpus = Corpus.from_lists(task.texts, task.labels)
    config = RunConfig("dpn", tiny_encoder, 4, "fast", device="cpu")
    found = [discover(corpus, replace(config, seed=seed), settings=QUICK) for seed in (0, 1)]
    return [replace(result, notes=(f"run {seed}",)) for seed, result in enumerate(found)]


@pytest.fixture
def runs(results: list[Result], tmp_path: Path) -> list[Path]:
    folders = [tmp_path / "0", tmp_path / "1"]
    for result, folder in zip(results, folders, strict=True):
        folder.mkdir()
        write_run(result, folder)
    return folders


def test_manifest_lists_what_is_read_back(runs: list[Path]) -> None:
    listed = json.loads((runs[0] / "manifest.json").read_text())["sha256"]
    assert set(listed) == {
        "assignments.csv",
        "categories.json",
        "history.jsonl",
        "model/manifest.json",
        "run.json",
    }
    listed = json.loads((runs[0] / "model" / "manifest.json").read_text())["sha256"]
    there = {path.name for path in (runs[0] / "model").iterdir()}
    assert set(listed) == there - {"manifest.json"}


@pytest.mark.parametrize(
    "name", ["assignments.csv", "categories.json", "history.jsonl", "run.json"]
)
def test_changed_file_of_a_run_is_refused(runs: list[Path], name: str) -> None:
    path = runs[0] / name
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(InputError, match=rf"{name} is damaged \({name} does not have its"):
        read_run(runs[0])


@pytest.mark.parametrize(
    "name", ["encoder.json", "encoder.safetensors", "prototypes.safetensors", "tokenizer.json"]
)
def test_file_of_another_model_is_refused(runs: list[Path], name: str) -> None:
    path = runs[0] / "model" / name
    content = path.read_bytes()
    shutil.copy(runs[1] / "model" / name, path)
    if path.read_bytes() == content:
        path.write_bytes(content + b" ")
    with pytest.raises(InputError, match="belongs to another run or model"):
        load_model(runs[0], "cpu")


def test_model_of_another_run_is_refused(runs: list[Path]) -> None:
    shutil.rmtree(runs[0] / "model")
    shutil.copytree(runs[1] / "model", runs[0] / "model")
    load_model(runs[0] / "model", "cpu")
    with pytest.raises(InputError, match="belongs to another run or model"):
        load_model(runs[0], "cpu")


@pytest.mark.parametrize("content", [None, "", "[]", "{}", '{"format": 1, "sha256": {"a": 1}}'])
def test_damaged_manifest_is_reported(runs: list[Path], content: str | None) -> None:
    path = runs[0] / "manifest.json"
    path.unlink() if content is None else path.write_text(content)
    for read in (read_run, load_model):
        with pytest.raises(InputError, match=r"is damaged \(.*manifest\.json"):
            read(runs[0])


def test_runs_and_models_without_a_manifest_are_read(runs: list[Path]) -> None:
    unseal(runs[0])
    assert read_run(runs[0]).notes == ("run 0",)
    load_model(runs[0], "cpu")
    assert CategoryDiscoverer.load(runs[0]).notes_ == ["run 0"]


# Readers while a run is replaced.


def while_swapping(folder: Path, results: list[Result], read: Callable[[], None]) -> int:
    """Call `read` while another thread replaces the run 40 times; return the number of calls."""
    failures: list[BaseException] = []

    def swap() -> None:
        try:
            for number in range(40):
                with new_run(folder, force=True) as new:
                    write_run(results[number % 2], new)
        except BaseException as error:
            failures.append(error)

    writer = threading.Thread(target=swap)
    writer.start()
    count = 0
    while writer.is_alive():
        read()
        count += 1
    writer.join()
    assert not failures
    return count


@pytest.mark.parametrize("exchange", [True, False])
def test_reader_during_swaps_gets_one_model_whole(
    results: list[Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchange: bool
) -> None:
    monkeypatch.setattr("os.fsync", lambda handle: None)  # slow
    if not exchange:
        monkeypatch.setattr(swapping, "exchange", lambda one, other: False)
    with new_run(tmp_path / "run", force=False) as new:
        write_run(results[0], new)
    heads = [_fingerprint(result) for result in results]
    seen = set()

    def read() -> None:
        model = load_model(tmp_path / "run", "cpu")
        seen.add(heads.index(_fingerprint(replace(results[0], model=model))))
        assert read_run(tmp_path / "run").notes in [result.notes for result in results]

    assert while_swapping(tmp_path / "run", results, read) > 2
    assert seen == {0, 1}


def test_estimator_during_swaps_has_model_and_result_of_one_run(
    results: list[Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.fsync", lambda handle: None)
    with new_run(tmp_path / "run", force=False) as new:
        write_run(results[0], new)
    heads = [_fingerprint(result) for result in results]

    def read() -> None:
        found = CategoryDiscoverer.load(tmp_path / "run").result_
        assert found.notes == (f"run {heads.index(_fingerprint(found))}",)

    assert while_swapping(tmp_path / "run", results, read) > 2


def _fingerprint(result: Result) -> tuple[bytes, bytes]:
    """Return the bytes of the prototypes and of the head, which belong together."""
    assert result.model is not None
    weights = result.model.features.state_dict()  # type: ignore[attr-defined]
    head = np.concatenate([w.numpy().ravel() for n, w in weights.items() if "head" in n])
    return result.model.prototypes.tobytes(), head.tobytes()


# Values.


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0])
def test_prototypes_that_are_not_finite_or_zero_are_refused(
    results: list[Result], tmp_path: Path, value: float
) -> None:
    assert results[0].model is not None
    wrong = np.full_like(results[0].model.prototypes, value)
    if value != 0:
        wrong[:-1] = results[0].model.prototypes[:-1]
    save_model(replace(results[0].model, prototypes=wrong), tmp_path / "model")
    with pytest.raises(InputError, match=r"prototypes.* (not finite|zero)"):
        load_model(tmp_path / "model", "cpu")


@pytest.mark.parametrize("value", ["NaN", "Infinity", "0", "-0.1", "1e999"])
def test_temperature_out_of_range_is_refused(runs: list[Path], value: str) -> None:
    path = runs[0] / "model" / "model.json"
    about = json.loads(path.read_text())
    path.write_text(json.dumps({**about, "temperature": "HERE"}).replace('"HERE"', value))
    reseal(runs[0])
    with pytest.raises(InputError, match="the temperature cannot be"):
        load_model(runs[0], "cpu")


@pytest.mark.parametrize("name", ["backbone.words.weight", "backbone.layers.1.up.bias", "head"])
@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_weights_that_are_not_finite_are_refused(runs: list[Path], name: str, value: float) -> None:
    from safetensors.numpy import load_file, save_file

    path = runs[0] / "model" / "encoder.safetensors"
    weights = {key: weight.copy() for key, weight in load_file(path).items()}
    next(weight for key, weight in weights.items() if key.startswith(name)).flat[-1] = value
    save_file(weights, path)
    reseal(runs[0])
    with pytest.raises(InputError, match="values that are not finite"):
        load_model(runs[0], "cpu")


def test_encoder_of_zeros_is_refused(runs: list[Path]) -> None:
    from safetensors.numpy import load_file, save_file

    path = runs[0] / "model" / "encoder.safetensors"
    save_file({key: np.zeros_like(weight) for key, weight in load_file(path).items()}, path)
    reseal(runs[0])
    with pytest.raises(InputError, match="all zeros"):
        load_model(runs[0], "cpu")


@pytest.mark.parametrize("name", ["vectors", "labelled", "unlabelled", "label_cosines"])
def test_reference_texts_that_are_not_finite_are_refused(
    results: list[Result], tmp_path: Path, name: str
) -> None:
    model = results[0].model
    assert model is not None
    assert model.fit_reference is not None
    values = getattr(model.fit_reference, name).copy()
    values.flat[0] = np.nan
    wrong = replace(model.fit_reference, **{name: values})
    save_model(replace(model, fit_reference=wrong), tmp_path / "model")
    with pytest.raises(InputError, match=rf"{name} has values that are not finite"):
        load_model(tmp_path / "model", "cpu")
