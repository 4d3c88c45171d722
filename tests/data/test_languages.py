"""Which languages are found in a pile of texts."""

import random

import pytest
from support.languages import MESSAGES

from newfound.data import demo, languages
from newfound.data.languages import Languages, detect_languages


def messages(language: str) -> list[str]:
    return [text for group in MESSAGES[language].values() for text in group]


@pytest.mark.parametrize("language", MESSAGES)
def test_language_of_a_pile_is_found(language: str) -> None:
    found = detect_languages(messages(language))
    assert found == Languages({language: 1.0}, 18)


def test_shares_of_a_mixed_pile_add_up() -> None:
    found = detect_languages([*messages("de"), *messages("zh"), *messages("ru")[:9]])
    assert found is not None
    assert found.shares == {"de": 0.4, "zh": 0.4, "ru": 0.2}
    assert found.described == "German 40%, Chinese 40%, Russian 20%"


def test_single_short_texts_do_not_add_a_language() -> None:
    english = [f"I have lost card number {i} and want a new one" for i in range(100)]
    found = detect_languages([*english, "ok merci", "tarif?", "no bueno", "gracias"])
    assert found is not None
    assert set(found.shares) == {"en"}


def test_english_demo_is_english() -> None:
    found = detect_languages(demo.load()["text"].tolist())
    assert found is not None
    assert dict(found.shares) == {"en": 1.0}


def test_order_and_repetitions_do_not_matter() -> None:
    texts = [*messages("fi"), *messages("tr")[:6]]
    shuffled = [*texts, *texts[:5]]
    random.Random(0).shuffle(shuffled)
    assert detect_languages(shuffled) == detect_languages(texts)


def test_texts_without_letters_have_no_language() -> None:
    assert detect_languages(["123", "45,6", "🙂", ""]) is None
    found = detect_languages([*messages("el"), *map(str, range(100))])
    assert found is not None
    assert found.shares == {"el": 1.0}


def test_large_pile_is_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    real = languages._ranked
    monkeypatch.setattr(languages, "_ranked", lambda text: read.append(text) or real(text))
    monkeypatch.setattr(languages, "SAMPLE", 50)
    half = [f"Das Paket {i} ist nicht gekommen" for i in range(500)]
    other = [f"the parcel {i} has not arrived" for i in range(500)]
    found = detect_languages(half + other)
    assert len(read) == 50
    assert found is not None
    assert found.shares == {"de": 0.5, "en": 0.5}
