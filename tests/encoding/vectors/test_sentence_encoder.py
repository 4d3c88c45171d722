"""Models of sentence-transformers as frozen encoders, compared with that library itself."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.commands import Command, Refuse
from support.sentence_models import save_sentence_model
from support.small_texts import SmallTask

from newfound import CategoryDiscoverer, InputError
from newfound.config import RunConfig
from newfound.data.corpus import Corpus
from newfound.encoding.feature_maps import EncoderFeatures
from newfound.encoding.loading import load_encoder
from newfound.encoding.vectors.choice import find_frozen
from newfound.encoding.vectors.sentence_encoder import SentenceEncoder
from newfound.encoding.vectors.sentence_folder import read_folder
from newfound.pipeline import discover, estimate
from newfound.progress import Stages

pytest.importorskip("sentence_transformers")
PROMPTS = {"query": "please help me ", "Clustering": "the day ", "document": ""}
MODELS: dict[str, dict[str, Any]] = {
    "dense": {"family": "bert", "dense": 20, "normalise": True},
    "electra": {"family": "electra"},  # a family that our backbone does not know
    "qwen3": {"family": "qwen3", "pooling": "lasttoken", "prompts": PROMPTS},
    "max": {"family": "bert", "pooling": "max"},
    "prompted": {"family": "bert", "prompts": PROMPTS, "default_prompt_name": "query"},
}
QUICK = {"initialisations": 1, "initialisation_rounds": 1}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("sentence-models")
    made = {name: save_sentence_model(place / name, **kind) for name, kind in MODELS.items()}
    made["plain"] = save_sentence_model(place / "plain", normalise=True)
    return made


def own_vectors(folder: Path, texts: list[str], **options: Any) -> np.ndarray:
    """What sentence-transformers itself gives."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    return np.asarray(model.encode(texts, show_progress_bar=False, **options))


@pytest.mark.parametrize("name", MODELS)
def test_vectors_equal_those_of_sentence_transformers(
    name: str, folders: dict[str, Path], task: SmallTask
) -> None:
    texts = [*task.texts, "the " * 60]
    frozen = find_frozen(RunConfig(encoder=str(folders[name])), None)
    assert isinstance(frozen, SentenceEncoder)
    done: list[int] = []
    found = frozen.encode(texts, done.append)
    prompt = {"prompt_name": "Clustering"} if "prompts" in MODELS[name] else {}
    assert np.allclose(found, own_vectors(folders[name], texts, **prompt), atol=1e-6)
    assert found.shape == (65, MODELS[name].get("dense", 32))
    assert frozen.width == found.shape[1]
    assert sum(done) == 65


@pytest.mark.parametrize("name", ["dense", "prompted"])
def test_long_texts_are_split_and_the_vectors_of_their_parts_averaged(
    name: str, folders: dict[str, Path]
) -> None:
    frozen = find_frozen(RunConfig(encoder=str(folders[name])), None)
    assert isinstance(frozen, SentenceEncoder)
    text = "lost my card " * 40 + "rain and sun " * 40
    model = frozen._loaded()
    pieces = frozen._pieces(model, text)
    assert len(pieces) > 3
    joined = " ".join(pieces).split()
    assert joined[0] == "lost"
    assert joined[-1] == "sun"
    assert all(
        len(model.tokenizer(frozen.prompt + piece)["input_ids"]) <= model.max_seq_length
        for piece in pieces
    )
    found = frozen.encode(["rain", text])
    prompt = {"prompt_name": "Clustering"} if "prompts" in MODELS[name] else {}
    wanted = own_vectors(folders[name], pieces, **prompt).mean(0)
    np.testing.assert_allclose(found[1], wanted, atol=1e-5)
    assert "1 text is longer than the encoder" in frozen.notes()[-1]


def test_plain_model_runs_on_our_backbone_and_gives_equal_vectors(
    folders: dict[str, Path], task: SmallTask
) -> None:
    folder = folders["plain"]
    assert find_frozen(RunConfig(encoder=str(folder)), None) is None
    encoder = load_encoder(str(folder))
    assert encoder.pooling == "mean"  # as this version of sentence-transformers writes it
    features = EncoderFeatures(encoder, frozen_layers=encoder.layers)
    assert np.allclose(features(task.texts), own_vectors(folder, task.texts), atol=2e-3)  # half


@pytest.mark.parametrize(
    ("given", "text", "name"),
    [
        (None, "the day ", "Clustering"),
        ("query", "please help me ", "query"),
        ("document", "", "document"),
        ("my own: ", "my own: ", None),
    ],
)
def test_prompt_is_a_name_or_a_text(
    folders: dict[str, Path], given: str | None, text: str, name: str | None
) -> None:
    assert read_folder(folders["prompted"]).prompt(given) == (text, name)
    frozen = find_frozen(RunConfig(encoder=str(folders["prompted"]), prompt=given), None)
    if not text:  # nothing that our backbone could not do
        assert frozen is None
        return
    assert frozen is not None
    expected = own_vectors(folders["prompted"], ["a card"], prompt=text)
    assert np.allclose(frozen.encode(["a card"]), expected, atol=1e-6)
    assert repr(text) in frozen.notes()[0]


def test_default_prompt_is_used_without_one_for_clustering(folders: dict[str, Path]) -> None:
    folder = read_folder(folders["prompted"])
    assert folder.default_prompt == "query"
    del folder.prompts["Clustering"]
    assert folder.prompt(None) == ("please help me ", "query")


@pytest.mark.parametrize("name", ["dense", "qwen3"])
def test_discovery_and_prediction(
    name: str, folders: dict[str, Path], task: SmallTask, tmp_path: Path
) -> None:
    discoverer = CategoryDiscoverer(
        encoder=str(folders[name]), n_categories=4, effort="fast", device="cpu", settings=QUICK
    )
    discoverer.fit(task.texts, task.labels)
    expected = discoverer.classes_[discoverer.predicted_]
    assert (discoverer.predict(task.texts) == expected).all()
    discoverer.save(tmp_path / "model")
    loaded = CategoryDiscoverer.load(tmp_path / "model", device="cpu")
    assert (loaded.predict(task.texts) == expected).all()
    assert estimate(
        Corpus.from_lists(task.texts, task.labels),
        RunConfig(encoder=str(folders[name]), device="cpu", method="bert"),
    ).n_categories


def test_encoder_that_changed_since_the_fit_is_refused(
    folders: dict[str, Path], task: SmallTask, tmp_path: Path
) -> None:
    folder = tmp_path / "encoder"
    shutil.copytree(folders["dense"], folder)
    discoverer = CategoryDiscoverer("bert", str(folder), n_categories=4, device="cpu")
    discoverer.fit(task.texts, task.labels).save(tmp_path / "model")
    config = json.loads((folder / "2_Dense" / "config.json").read_text())
    config["activation_function"] = "torch.nn.modules.linear.Identity"
    (folder / "2_Dense" / "config.json").write_text(json.dumps(config))
    loaded = CategoryDiscoverer.load(tmp_path / "model", device="cpu")
    with pytest.raises(InputError, match="has changed since the model was fitted"):
        loaded.predict(["a card"])
    shutil.rmtree(folder)
    loaded = CategoryDiscoverer.load(tmp_path / "model", device="cpu")
    with pytest.raises(InputError, match=r"the encoder folder .* does not exist"):
        loaded.predict(["a card"])


def test_best_trains_our_families_and_refuses_others(
    folders: dict[str, Path], task: SmallTask
) -> None:
    corpus = Corpus.from_lists(task.texts, task.labels)
    config = RunConfig(method="semi-km", effort="best", n_categories=4, device="cpu")
    quick = {"pretrain_epochs": 1, "starts": 1}
    result = discover(
        corpus, RunConfig(**{**vars(config), "encoder": str(folders["dense"])}), settings=quick
    )
    assert any("leaves out its Dense" in note for note in result.notes)
    assert isinstance(result.model.features, EncoderFeatures)  # type: ignore[union-attr]
    with pytest.raises(InputError, match="trains layers of an encoder, and there are only vectors"):
        discover(corpus, RunConfig(**{**vars(config), "encoder": str(folders["electra"])}))


def test_vectors_are_cached_in_the_feature_cache(
    folders: dict[str, Path], task: SmallTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = Corpus.from_lists(task.texts, task.labels)
    config = RunConfig(
        "bert", str(folders["electra"]), 4, device="cpu", cache=str(tmp_path / "cache")
    )
    one = discover(corpus, config)
    monkeypatch.setattr(SentenceEncoder, "encode", None)
    other = discover(corpus, config, stages=Stages(False))
    assert np.array_equal(one.predicted, other.predicted)


def write_code(folder: Path) -> None:
    """Add a module whose code leaves a file behind."""
    modules = json.loads((folder / "modules.json").read_text())
    modules.append({"idx": 9, "name": "9", "path": "9_Mine", "type": "mine.Mine"})
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "mine.py").write_text(
        "from pathlib import Path\n"
        "Path(__file__).with_name('ran').touch()\n"
        "from sentence_transformers.sentence_transformer.modules import Normalize as Mine\n"
    )


def test_code_of_a_model_runs_only_if_the_user_says_so(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "encoder"
    shutil.copytree(folders["electra"], folder)
    write_code(folder)
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "c"))
    monkeypatch.setattr(sys, "path", [*sys.path])  # the library adds its cache
    frozen = find_frozen(RunConfig(encoder=str(folder)), None)
    assert frozen is not None
    with pytest.raises(InputError, match=r"the module mine.Mine.*--trust-remote-code"):
        frozen.encode(["a card"])
    assert not list(tmp_path.rglob("ran"))
    # A saved model cannot allow it either.
    trusting = SentenceEncoder(str(folder), trust_remote_code=True)
    again = SentenceEncoder.from_dict(trusting.to_dict(), trusting.fingerprint)
    with pytest.raises(InputError, match="comes with code of its own"):
        again.encode(["a card"])
    assert not list(tmp_path.rglob("ran"))
    assert trusting.encode(["a card"]).shape == (1, 32)
    assert list(tmp_path.rglob("ran"))


def test_pickled_weights_are_refused(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "encoder"
    shutil.copytree(folders["dense"], folder)
    (folder / "2_Dense" / "model.safetensors").rename(folder / "2_Dense" / "pytorch_model.bin")
    frozen = find_frozen(RunConfig(encoder=str(folder)), None)
    assert frozen is not None
    with pytest.raises(InputError, match="unpickling can run code"):
        frozen.encode(["a card"])


def test_missing_library_and_damaged_folders_get_one_sentence(
    folders: dict[str, Path],
    tmp_path: Path,
    task: SmallTask,
    refuse: Refuse,
    monkeypatch: pytest.MonkeyPatch,
) -> None:

    table = tmp_path / "table.csv"
    table.write_text(task.csv())
    run = ["discover", table, "-o", tmp_path / "run", "--device", "cpu", "--encoder"]
    folder = tmp_path / "encoder"
    shutil.copytree(folders["electra"], folder)
    (folder / "model.safetensors").write_bytes(b"nothing")
    assert "sentence-transformers cannot load the encoder" in refuse(*run, folder)
    (folder / "modules.json").write_text("[1]")
    assert "modules.json" in refuse(*run, folder)
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    message = refuse(*run, folders["electra"])
    assert "(electra)" in message
    assert "install newfound[sentence-transformers]" in message


def test_command_reports_the_prompt(
    folders: dict[str, Path], task: SmallTask, command: Command, tmp_path: Path
) -> None:
    (tmp_path / "table.csv").write_text(task.csv())
    done = command(
        "discover", tmp_path / "table.csv", "-o", tmp_path / "run", "--categories", "4",
        "--encoder", folders["qwen3"], "--prompt", "query", "--method", "bert", "--device", "cpu",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "the prompt 'query' of the encoder" in done.err
    assert "%|" not in done.err  # no progress bars of other libraries
    done = command("predict", tmp_path / "run", tmp_path / "table.csv", "-o", tmp_path / "out.csv")
    assert done.code == 0, done.err
