"""Names of novel categories: phrases that people use, unique, printable."""

from hypothesis import given
from hypothesis import strategies as st

from newfound.data.words import words
from newfound.describing.names import LONGEST_NAME, candidate_names, same_name, unique_names


def best(texts: list[str], scores: dict[str, float], keywords: list[str]) -> str:
    return candidate_names(texts, scores, keywords)[0][1]


def test_name_is_a_phrase_of_the_texts() -> None:
    texts = ["I want to activate my card", "please activate my card now", "activate the card"] * 2
    assert best(texts, {"card": 0.3, "activate": 0.5}, ["activate"]) == "Activate my card"


def test_phrase_is_complete() -> None:
    texts = ["I top up with cash", "how to top up", "a top up", "my top up today", "top up"]
    assert best(texts, {"up": 0.5, "top": 0.5, "cash": 0.01}, ["top up"]) == "Top up"


def test_word_that_never_ends_a_phrase_is_not_last() -> None:
    texts = ["the exchange rate was low", "my exchange rate was off", "exchange rate?"] * 2
    scores = {"exchange": 0.5, "rate": 0.5, "was": 0.4}
    assert best(texts, scores, ["exchange rate"]) == "Exchange rate"


def test_name_keeps_the_usual_capitals() -> None:
    texts = ["the SQL server is down", "our SQL server", "a SQL server", "which SQL server?"]
    assert best(texts, {"sql": 0.5, "server": 0.5}, ["sql server"]) == "SQL server"


def test_without_a_common_phrase_the_name_is_two_keywords() -> None:
    texts = ["pets are fun and animals too", "pets or other animals", "pets", "animals", "of pets"]
    found = best(texts, {"animals": 0.5, "pets": 0.4}, ["animals", "pets"])
    assert found == "Pets, animals"


def test_phrase_has_no_invisible_characters() -> None:
    texts = ["refund \u202e\x07 status", "refund\u2028status", "refund \x1b[31m status"] * 2
    for _, name in candidate_names(texts, {"refund": 0.5, "status": 0.5}, ["refund"]):
        assert name.isprintable()


def test_texts_without_words_have_no_candidates() -> None:
    assert candidate_names([], {}, []) == []
    assert candidate_names(["🙂"], {}, []) == []


def test_category_with_the_better_score_gets_the_name() -> None:
    candidates = {4: [(1.0, "Refund"), (0.5, "Money back")], 7: [(2.0, "Refund")]}
    assert unique_names(candidates, []) == {4: "Money back", 7: "Refund"}


def test_labels_are_not_reused_in_any_spelling() -> None:
    found = unique_names({3: [(1.0, "Card arrival"), (0.5, "Late card")]}, ["CARD_arrival"])
    assert found == {3: "Late card"}


def test_names_are_numbered_when_candidates_run_out() -> None:
    same = [(1.0, "Refund")]
    assert unique_names({1: same, 2: same, 3: same}, []) == {
        1: "Refund",
        2: "Refund 2",
        3: "Refund 3",
    }
    assert unique_names({5: [], 6: [], 9: []}, ["Novel_2"]) == {
        5: "novel 1",
        6: "novel 3",
        9: "novel 4",
    }


names = st.from_regex("[aAbB][aAbB_ 12]{0,3}", fullmatch=True)


@given(
    st.dictionaries(
        st.integers(0, 20), st.lists(st.tuples(st.floats(0, 1), names), max_size=3), max_size=8
    ),
    st.lists(names, max_size=4),
)
def test_names_are_always_unique(
    candidates: dict[int, list[tuple[float, str]]], taken: list[str]
) -> None:
    found = unique_names(candidates, taken)
    assert found.keys() == candidates.keys()
    keys = [same_name(name) for name in found.values()]
    assert len(set(keys)) == len(keys)
    assert not set(keys) & {same_name(name) for name in taken}
    assert all(name.strip() for name in found.values())


@given(st.lists(st.text(max_size=60), max_size=8), st.integers(1, 3))
def test_candidates_are_short_and_printable_for_any_texts(texts: list[str], n: int) -> None:
    found = sorted({word for text in texts for word in words(text) if word})
    scores = {word: 1.0 / (i + 1) for i, word in enumerate(found)}
    for _, name in candidate_names(texts, scores, found[:n]):
        assert 0 < len(name) <= LONGEST_NAME
        assert "\n" not in name
        assert all(c.isprintable() or c in "\u200c\u200d" for c in name)
