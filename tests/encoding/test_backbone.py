"""The backbone, compared with the transformers library for each family."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import save_tiny_encoder

from newfound.encoding import backbone
from newfound.encoding.backbone import MaskedWordHead, _relative_buckets, attend
from newfound.encoding.batching import Runs
from newfound.encoding.families import read_architecture
from newfound.encoding.loading import load_encoder
from newfound.errors import InputError

FAMILIES = ["bert", "roberta", "distilbert", "mpnet", "modernbert"]


def a_batch() -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.tensor([[2, 5, 8, 9, 12, 20, 3], [2, 7, 11, 3, 0, 0, 0]])
    return ids, ids != 0


@pytest.mark.parametrize("family", FAMILIES)
def test_hidden_states_equal_transformers(family: str, tmp_path: Path) -> None:
    from transformers import AutoModel

    save_tiny_encoder(tmp_path, family)
    theirs = AutoModel.from_pretrained(tmp_path, dtype=torch.float32).eval()
    ours = load_encoder(str(tmp_path)).backbone
    ids, mask = a_batch()
    with torch.inference_mode():
        wanted = theirs(input_ids=ids, attention_mask=mask.long()).last_hidden_state
        found = ours(ids, mask)
    assert torch.allclose(found[mask], wanted[mask], atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_masked_word_scores_equal_transformers(family: str, tmp_path: Path) -> None:
    from transformers import AutoModelForMaskedLM

    save_tiny_encoder(tmp_path, family, word_head=True)
    theirs = AutoModelForMaskedLM.from_pretrained(tmp_path, dtype=torch.float32).eval()
    encoder = load_encoder(str(tmp_path))
    assert encoder.word_head is not None
    head = MaskedWordHead(encoder.backbone.shape)
    head.load_state_dict(encoder.word_head)
    ids, mask = a_batch()
    with torch.inference_mode():
        wanted = theirs(input_ids=ids, attention_mask=mask.long()).logits
        found = head(encoder.backbone(ids, mask), encoder.backbone.words)
    assert torch.allclose(found[mask], wanted[mask], atol=1e-5)


@pytest.mark.parametrize("cut", [0, 1, 2, 3])
def test_running_in_two_parts_equals_running_whole(cut: int, tiny_encoder: str) -> None:
    backbone = load_encoder(tiny_encoder).backbone
    ids, mask = a_batch()
    with torch.inference_mode():
        whole = backbone(ids, mask)
        lower = backbone.run(backbone.embed(ids), mask, 0, cut)
        assert torch.equal(backbone.run(lower, mask, cut, 3), whole)


def test_relative_buckets_equal_transformers() -> None:
    from transformers.models.mpnet.modeling_mpnet import MPNetEncoder

    place = torch.arange(200)
    offset = place[None, :] - place[:, None]
    wanted = MPNetEncoder.relative_position_bucket(offset, num_buckets=32)
    assert torch.equal(_relative_buckets(200, 32, torch.device("cpu")), wanted)


def test_half_precision_weights_are_converted_to_float32(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    save_tiny_encoder(tmp_path)
    path = tmp_path / "model.safetensors"
    save_file({k: v.half() for k, v in load_file(path).items()}, path)
    assert load_encoder(str(tmp_path)).backbone.words.weight.dtype == torch.float32


def test_unknown_family_is_refused() -> None:
    with pytest.raises(InputError, match="type 'gpt2'"):
        read_architecture({"model_type": "gpt2"}, "x")


def test_missing_weights_are_named(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    save_tiny_encoder(tmp_path)
    path = tmp_path / "model.safetensors"
    stored = {k: v for k, v in load_file(path).items() if "layer.1.output.dense" not in k}
    save_file(stored, path)
    with pytest.raises(InputError, match=r"layer\.1\.output\.dense"):
        load_encoder(str(tmp_path))


def test_config_with_a_missing_field_is_refused(tmp_path: Path) -> None:
    save_tiny_encoder(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    del config["hidden_size"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match="hidden_size"):
        load_encoder(str(tmp_path))


@pytest.mark.parametrize("by_head", [False, True])
def test_attention_by_matrix_products_equals_fused_attention(by_head: bool) -> None:
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 4, 2, 7, 8, requires_grad=True)
    mask = torch.arange(7) < torch.tensor([7, 3, 5, 1])[:, None]
    bias = torch.zeros(4, 1, 1, 7).masked_fill(~mask[:, None, None], float("-inf"))
    if by_head:  # like MPNet's position bias
        bias = bias + torch.randn(2, 7, 7)
    bias = bias.expand(-1, -1, 7, -1)
    plain = attend(query, key, value, bias, 0.0)
    fused = torch.nn.functional.scaled_dot_product_attention(query, key, value, bias)
    torch.testing.assert_close(plain, fused)
    for mine, theirs in zip(
        torch.autograd.grad(plain.square().sum(), (query, key, value)),
        torch.autograd.grad(fused.square().sum(), (query, key, value)),
        strict=True,
    ):
        torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("family", ["bert", "mpnet"])
@pytest.mark.parametrize("length", [4, 7, 15, 16, 17, 22, 31])
def test_padded_keys_do_not_change_attention(
    family: str, length: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = load_encoder(str(save_tiny_encoder(tmp_path, family)))
    torch.manual_seed(0)
    ids = torch.randint(5, 30, (3, length))
    mask = torch.arange(length) < torch.tensor([[length], [length - 1], [2]])
    network = encoder.backbone.eval()
    with torch.no_grad():
        padded = network(ids, mask)
        monkeypatch.setattr(backbone, "SMALL_TAIL", backbone.LANES)
        plain = network(ids, mask)
    assert torch.allclose(padded[mask], plain[mask], atol=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_texts_one_after_the_other_equal_texts_in_rows(family: str, tmp_path: Path) -> None:
    network = load_encoder(str(save_tiny_encoder(tmp_path, family))).backbone.eval()
    lengths = np.array([22, 22, 17, 7, 7, 7, 4, 1])
    torch.manual_seed(0)
    ids = torch.randint(5, 30, (len(lengths), int(lengths.max())))
    mask = torch.arange(ids.shape[1]) < torch.from_numpy(lengths)[:, None]
    runs = Runs.of(lengths)
    with torch.no_grad():
        wanted = network(ids, mask)[mask]
        found = network.embed_joined(ids[mask], runs)
        found = network.run_joined(found, runs, 0, 1)
        found = network.run_joined(found, runs, 1, network.shape.layers)
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-4)
