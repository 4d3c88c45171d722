"""ModernBERT on our backbone, compared with the transformers library."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import save_tiny_encoder
from support.small_texts import SmallTask, small_task

from newfound import CategoryDiscoverer
from newfound.encoding.architecture import Architecture
from newfound.encoding.batching import Batch, Ragged, pack
from newfound.encoding.families import read_architecture, unsupported
from newfound.encoding.feature_maps import EncoderFeatures
from newfound.encoding.loading import load_encoder
from newfound.encoding.modern_backbone import angles, rotate
from newfound.errors import DamagedFileError, InputError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_encoder(
        tmp_path_factory.mktemp("tiny-modernbert"), "modernbert", layers=4, word_head=True
    )


def test_long_texts_equal_transformers(folder: Path) -> None:
    from transformers import AutoModel

    theirs = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    ours = load_encoder(str(folder)).backbone
    draw = torch.Generator().manual_seed(0)
    ids = torch.randint(5, 30, (3, 60), generator=draw)
    lengths = torch.tensor([60, 31, 2])
    mask = torch.arange(60) < lengths[:, None]
    with torch.inference_mode():
        wanted = theirs(input_ids=ids, attention_mask=mask.long()).last_hidden_state
        found = ours(ids, mask)
    assert torch.allclose(found[mask], wanted[mask], atol=1e-5)
    assert found.isfinite().all()  # padding, too


@pytest.mark.parametrize("cut", [0, 1, 3, 4])
def test_running_in_two_parts_equals_running_whole(cut: int, folder: Path) -> None:
    backbone = load_encoder(str(folder)).backbone
    ids = torch.tensor([[2, 5, 8, 9, 12, 20, 9, 8, 3]])
    mask = ids != 0
    with torch.inference_mode():
        whole = backbone(ids, mask)
        lower = backbone.run(backbone.embed(ids), mask, 0, cut)
        assert torch.equal(backbone.run(lower, mask, cut, 4), whole)


def test_packed_texts_equal_texts_in_rows(folder: Path) -> None:
    encoder = load_encoder(str(folder))
    model = EncoderFeatures(encoder, normalise=False).eval()
    lengths = np.array([20, 9, 14, 30, 3, 25])
    draw = torch.Generator().manual_seed(0)
    tokens = Ragged.from_lengths(
        torch.randint(5, 30, (int(lengths.sum()),), generator=draw), lengths
    )
    rows = torch.arange(6)
    places, grids = pack(lengths[None])
    assert grids[0][0] < 6  # several texts in a row
    with torch.inference_mode():
        packed = model.from_states(
            *tokens.packed(Batch(rows, rows, torch.from_numpy(places[0]), grids[0]))
        )
        apart = model.from_states(*tokens.padded(rows, 30))
    assert torch.allclose(packed, apart, atol=1e-5)


def test_rotary_scores_depend_on_the_distance_only() -> None:
    query, key = torch.randn(2, 1, 1, 1, 8)
    cos, sin = angles(torch.arange(20), 8, 10_000.0, torch.float32)
    turned = [rotate(x.expand(1, 1, 20, 8), cos, sin)[0, 0] for x in (query, key)]
    scores = turned[0] @ turned[1].T
    for distance in (-5, 0, 3):
        line = scores.diagonal(distance)
        assert torch.allclose(line, line[0].expand_as(line), atol=1e-5)
    # By a plain loop: component i turns with component i + 4.
    for place in (0, 7):
        for i in range(4):
            angle = place / 10_000 ** (2 * i / 8)
            a, b = float(query[0, 0, 0, i]), float(query[0, 0, 0, i + 4])
            assert turned[0][place, i].item() == pytest.approx(
                a * np.cos(angle) - b * np.sin(angle), abs=1e-5
            )


def test_config_of_older_versions_is_read(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    new = read_architecture(config, "x")
    del config["layer_types"], config["rope_parameters"]
    config |= {
        "global_attn_every_n_layers": 3,
        "global_rope_theta": 160_000.0,
        "local_rope_theta": 10_000.0,
    }
    assert read_architecture(config, "x") == new
    assert new.modern is not None
    assert new.modern.global_layers == (0, 3)
    assert Architecture.from_dict(json.loads(json.dumps(new.to_dict())), "x") == new


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mlp_bias": True}, "has biases"),
        ({"rope_parameters": {"full_attention": {"rope_type": "yarn"}}}, "scaled rotary positions"),
        ({"hidden_activation": "silu"}, "an activation"),
    ],
)
def test_unknown_variants_are_left_to_sentence_transformers(
    folder: Path, change: dict[str, object], message: str
) -> None:
    config = json.loads((folder / "config.json").read_text()) | change
    assert message in str(unsupported(config))
    with pytest.raises(InputError, match=message):
        read_architecture(config, "x")


@pytest.mark.parametrize(
    "change",
    [{"window": -1}, {"global_base": 0}, {"global_layers": ["a"]}, {"more": 1}, {"window": None}],
)
def test_damaged_options_are_refused(folder: Path, change: dict[str, object]) -> None:
    value = load_encoder(str(folder)).backbone.shape.to_dict()
    value["modern"] = {**value["modern"], **change}
    with pytest.raises(DamagedFileError):
        Architecture.from_dict(json.loads(json.dumps(value)), "encoder.json")


@pytest.mark.parametrize("method", ["newfound", "dpn"])
def test_all_layers_learn(method: str, folder: Path, tmp_path: Path) -> None:
    task = small_task(each=8, labelled=4)
    quick = {
        "newfound": {"initialisations": 1, "initialisation_rounds": 1},
        "dpn": {"epochs": 1, "pretrain_epochs": 20, "pretrain_learning_rate": 3e-3, "starts": 1},
    }
    discoverer = CategoryDiscoverer(
        method, str(folder), n_categories=4, effort="best", device="cpu", settings=quick[method]
    )
    discoverer.fit(task.texts, task.labels)
    before, after = load_encoder(str(folder)).backbone, discoverer.model_.features.backbone
    for (name, old), new in zip(before.named_parameters(), after.parameters(), strict=True):
        assert not torch.equal(old, new), name
    stage = [line for line in discoverer.history_ if line["stage"] in ("contrast", "pretraining")]
    assert stage[-1]["loss"] < stage[0]["loss"]
    if method == "dpn":  # masked words and labels
        assert {"masked_words", "cross_entropy"} <= stage[0].keys()
        assert stage[-1]["masked_words"] < stage[0]["masked_words"]
    discoverer.save(tmp_path / "model")
    loaded = CategoryDiscoverer.load(tmp_path / "model", device="cpu")
    assert (loaded.predict(task.texts) == discoverer.predict(task.texts)).all()


def test_last_layer_learns_on_the_cached_output_of_the_others(
    folder: Path, task: SmallTask
) -> None:
    settings = {"pretrain_epochs": 1, "epochs": 1, "starts": 1}
    discoverer = CategoryDiscoverer(
        "dpn", str(folder), n_categories=4, effort="balanced", device="cpu", settings=settings
    )
    discoverer.fit(task.texts, task.labels)
    before, after = load_encoder(str(folder)).backbone, discoverer.model_.features.backbone
    changed = {
        name.split(".")[1] if name.startswith("layers") else name
        for (name, old), new in zip(before.named_parameters(), after.parameters(), strict=True)
        if not torch.equal(old, new)
    }
    assert changed == {"3", "final_norm.weight"}


@pytest.mark.slow
def test_int8_agrees(folder: Path, task: SmallTask) -> None:
    pytest.importorskip("openvino")
    pytest.importorskip("nncf")
    discoverer = CategoryDiscoverer("bert", str(folder), n_categories=4, device="cpu")
    discoverer.fit(task.texts, task.labels)
    expected = discoverer.transform(task.texts)
    discoverer.use_int8(task.texts)
    found = discoverer.transform(task.texts)
    cosine = (found * expected).sum(1)
    assert cosine.min() > 0.95
