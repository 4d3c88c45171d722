"""Splitting texts of any script into words."""

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newfound.data.words import (
    BREAK,
    LONGEST_WORD,
    overlap,
    same_stem,
    same_words,
    spans,
    unspaced,
    words,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Where is my REFUND", ["where", "is", "my", "refund"]),
        ("I don't know", ["i", "don't", "know"]),
        ("don\u2019t", ["don't"]),
        ("snake_case top-up", ["snake", "case", "top", "up"]),
        ("c++ and C# rule", ["c++", "and", "c#", "rule"]),
        ("l'argent d'identité", ["l'", "argent", "d'", "identité"]),
        ("node.js", ["node", "js"]),
        ("no. yes", ["no", BREAK, "yes"]),
        ("one, two! three", ["one", BREAK, "two", BREAK, "three"]),
        ("Größe ΣΙΓΜΑ", ["größe", "σιγμα"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("как дела", ["как", "дела"]),
        ("한국어 문장", ["한국어", "문장"]),
        ("", []),
        ("🙂🙃", []),
    ],
)
def test_words_of_spaced_scripts(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_unspaced_script_gives_runs_of_characters() -> None:
    found = [word for word in words("我要退款。") if word != BREAK]
    assert found == ["我要", "要退", "退款", "我要退", "要退款", "我要退款"]


def test_runs_of_characters_are_not_paired() -> None:
    found = words("我要退款")
    assert all(BREAK in pair for pair in pairwise(found))


def test_katakana_and_latin_inside_japanese_are_words() -> None:
    found = words("iPhoneのクレジットカード決済")
    assert {"iphone", "クレジットカード", "決済"} <= set(found)


def test_thai_marks_stay_with_their_letter() -> None:
    for run in words("ขอเงินคืนที่นี่"):
        assert not run or unicodedata.category(run[0])[0] != "M"


def test_only_the_start_of_a_long_text_is_read() -> None:
    assert len(words("refund please " * 10_000)) < 500


def test_very_long_word_is_skipped() -> None:
    assert words("a " + "x" * 1_000 + " b") == ["a", BREAK, "b"]
    assert all(len(word) <= LONGEST_WORD for word in words("é" + "x" * 1_000))


@given(st.text(max_size=200))
def test_words_of_any_text_are_clean(text: str) -> None:
    for word in words(text):
        assert len(word) <= LONGEST_WORD
        assert not any(c.isspace() for c in word)
        assert all(unicodedata.category(c)[0] != "C" or c in "\u200c\u200d" for c in word)


@given(st.text(alphabet=st.characters(max_codepoint=0x24F), max_size=200))
def test_spans_and_words_agree_on_spaced_scripts(text: str) -> None:
    short = [w for w, _, _ in spans(text) if len(w) <= LONGEST_WORD]
    assert [w for w in short if w] == [w for w in words(text) if w]


def test_unspaced() -> None:
    assert unspaced("退款")
    assert unspaced("สวัสดี")
    assert not unspaced("refund")
    assert not unspaced("возврат")


def test_same_stem() -> None:
    assert same_stem("refund", "refunds")
    assert same_stem("exchange", "exchanging")
    assert not same_stem("pin", "pink")
    assert not same_stem("card", "care")
    assert not same_stem("transfer", "transaction")


def test_same_words_and_overlap() -> None:
    assert same_words(frozenset("abcde"), frozenset("abcde"))
    assert not same_words(frozenset("abc"), frozenset("abd"))
    assert not same_words(frozenset(), frozenset("a"))
    assert overlap("信用卡", "用卡丢") == 2
    assert overlap("abc", "xyz") == 0
