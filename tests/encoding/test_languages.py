"""Encoders and the languages that they read."""

import json
from pathlib import Path

import pytest
import torch
from conftest import save_tiny_encoder
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from newfound.data.languages import Languages
from newfound.encoding.languages import SERVED, language_notes, share_not_served
from newfound.encoding.loading import SHORT_NAMES, load_encoder


def test_every_short_name_states_its_languages() -> None:
    assert set(SERVED) == set(SHORT_NAMES)


def test_english_pile_gets_no_note() -> None:
    assert language_notes(Languages({"en": 1.0}, 1000), "minilm") == []
    assert language_notes(None, "minilm") == []


def test_other_languages_get_a_warning_that_names_an_encoder() -> None:
    first, second = language_notes(Languages({"de": 0.6, "en": 0.4}, 1000), "minilm")
    assert first == ("languages of the texts, estimated from 1,000 texts: German 60%, English 40%")
    assert second.startswith("the encoder minilm reads English only, and 60% of the texts")
    assert "use the encoder multilingual (--encoder, encoder)" in second


def test_languages_that_the_encoder_reads_get_no_warning() -> None:
    assert len(language_notes(Languages({"de": 0.6, "th": 0.4}, 100), "multilingual")) == 1
    # The languages of an encoder that the user brings are not known.
    assert len(language_notes(Languages({"de": 1.0}, 100), "./my-encoder")) == 1
    assert share_not_served(Languages({"en": 0.96, "fr": 0.04}, 100), "minilm") == 0


def test_language_that_no_short_name_reads_gets_other_advice() -> None:
    pile = Languages({"sw": 1.0}, 100)
    (_, warning) = language_notes(pile, "multilingual")
    assert "reads other languages" in warning
    assert "use an encoder for these languages" in warning
    assert "multilingual (" not in language_notes(pile, "minilm")[1]


def test_bert_with_the_tokeniser_of_multilingual_encoders_is_loaded(tmp_path: Path) -> None:
    """The multilingual MiniLM is a BERT with the Unigram tokeniser of XLM-R."""
    transformers = pytest.importorskip("transformers")
    folder = save_tiny_encoder(tmp_path / "tiny")
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "▁", "▁wo", "▁ist", "▁mein", "包裹", "พัสดุ"]
    tokenizer = Tokenizer(models.Unigram([(piece, -2.0) for piece in pieces], unk_id=3))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        cls_token="<s>",
        sep_token="</s>",
        unk_token="<unk>",
        pad_token="<pad>",
        mask_token="<mask>",
    )
    fast.save_pretrained(folder)
    (folder / "1_Pooling").mkdir(exist_ok=True)
    pooling = {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    encoder = load_encoder(str(folder))
    assert encoder.pooling == "mean"
    assert encoder.mask_id == 4
    ids = encoder.tokenizer.encode("wo ist mein 包裹").ids
    assert ids == fast("wo ist mein 包裹")["input_ids"]
    assert 3 not in ids
    model = transformers.AutoModel.from_pretrained(folder).eval()
    batch = torch.tensor([ids])
    with torch.no_grad():
        theirs = model(batch).last_hidden_state
        ours = encoder.backbone(batch, torch.ones_like(batch, dtype=torch.bool))
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)
