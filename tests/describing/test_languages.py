"""Names, keywords and typical texts in twelve languages and nine scripts."""

import unicodedata

import numpy as np
import pytest
from support.languages import MESSAGES, STEMS, TOPICS

from newfound.category import Category
from newfound.data.words import is_whole, normalise_text, same_stem, unspaced, words
from newfound.describing.descriptions import describe


def described(language: str) -> list[Category]:
    """Describe the three topics of a language, none of them known."""
    groups = [MESSAGES[language][topic] for topic in TOPICS]
    texts = [text for group in groups for text in group]
    owner = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    prototypes = np.eye(len(groups), 8)
    noise = np.random.default_rng(0).normal(size=(len(texts), 8))
    features = prototypes[owner] + 0.1 * noise
    nothing = np.full(len(texts), -1)
    sure = np.full(len(texts), 0.9)
    none: list[None] = [None] * len(groups)
    return describe(texts, owner, sure, features, prototypes, none, nothing, none)


@pytest.mark.parametrize("language", MESSAGES)
def test_first_keywords_name_the_topic(language: str) -> None:
    for topic, category in zip(TOPICS, described(language), strict=True):
        first = category.keywords[:2]
        assert any(stem in word for stem in STEMS[language][topic] for word in first), first


@pytest.mark.parametrize("language", MESSAGES)
def test_keywords_are_words_of_the_texts(language: str) -> None:
    for topic, category in zip(TOPICS, described(language), strict=True):
        texts = "\n".join(normalise_text(text).lower() for text in MESSAGES[language][topic])
        for keyword in category.keywords:
            assert keyword in texts
            assert unicodedata.category(keyword[0])[0] != "M"  # a mark without its letter
            assert not unspaced(keyword) or is_whole(keyword, texts)


@pytest.mark.parametrize("language", MESSAGES)
def test_names_differ_and_hold_a_keyword(language: str) -> None:
    categories = described(language)
    assert len({category.name for category in categories}) == len(TOPICS)
    for category in categories:
        name = category.name.lower()
        assert any(word in name for keyword in category.keywords for word in keyword.split())


@pytest.mark.parametrize("language", MESSAGES)
def test_typical_texts_are_five_different_ones(language: str) -> None:
    for topic, category in zip(TOPICS, described(language), strict=True):
        assert len(set(category.examples)) == 5
        assert set(category.examples) <= set(MESSAGES[language][topic])


def test_japanese_particles_and_endings_are_no_words() -> None:
    found = set(words("先週注文した荷物はどこですか"))
    assert {"先週", "注文", "荷物"} <= found
    assert not any("は" in word and "物" in word for word in found)
    assert "はどこですか" in found  # a whole run of Hiragana may be a word


def test_thai_vowel_before_a_consonant_stays_with_it() -> None:
    found = {word for word in words("ขอเงินคืน") if word}
    assert "เงินคืน" in found
    assert not any(word.startswith("งิน") for word in found)  # เงิน without its first vowel
    assert not any(word.endswith("เ") for word in found)


def test_forms_of_one_word_are_recognised() -> None:
    assert same_stem("kirjautuminen", "kirjautumisessa")  # Finnish
    assert same_stem("passwort", "passworts")  # German
    assert same_stem("hesabımın", "hesabıma")  # noqa: RUF001 (Turkish)
    assert same_stem("택배가", "택배를")  # Korean particles
    assert same_stem("الطرد", "طرد")  # the Arabic article
    assert same_stem("הסיסמה", "סיסמה")  # the Hebrew article
    assert not same_stem("택배", "환불")
    assert not same_stem("lock", "clock")
    assert not same_stem("pass", "passport")
