"""Views of texts with replaced words."""

import pytest
import torch

from newfound.encoding.feature_maps import EncoderFeatures
from newfound.encoding.loading import load_encoder
from newfound.training.masking import replace_words


def test_special_tokens_and_padding_are_not_replaced(tiny_encoder: str) -> None:
    model = EncoderFeatures(load_encoder(tiny_encoder))
    torch.manual_seed(0)
    ids = torch.full((200, 20), 10)
    ids[:, 0] = 2
    mask = torch.ones_like(ids, dtype=torch.bool)
    mask[:, 15:] = False
    view = replace_words(ids, mask, model, 0.5)
    assert (view[:, 0] == 2).all()
    assert (view[:, 15:] == 10).all()
    changed = (view[:, 1:15] != 10).float().mean().item()
    assert changed == pytest.approx(0.5 * 34 / 35, abs=0.03)
