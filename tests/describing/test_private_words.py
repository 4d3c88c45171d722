"""Names and keywords without numbers, addresses and persons' names."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.fake_run import write_fake_run

from newfound.decisions import Decision, Part, apply
from newfound.describing.descriptions import describe
from newfound.describing.private_words import (
    is_number,
    person_names,
    without_addresses,
    without_private,
)
from newfound.storage.run_folder import read_run

PLAIN = ["the parcel is late", "my invoice is wrong", "please send the invoice to the team"]


@pytest.mark.parametrize(
    "text",
    [
        "Dear Anna, the parcel is late",
        "dear Anna the parcel is late",
        "Hello Mr Anna, the parcel is late",
        "I spoke to Mrs. Anna yesterday",
        "the parcel is late. Kind regards, Anna",
        "the parcel is late\nThanks!\nAnna",
        "My name is Anna and the parcel is late",
        "Anna wrote: the parcel is late",
        "In the thread Anna <a@b.org> writes: the parcel is late",
        "Liebe Anna, das Paket ist spät",
        "Chère Anna, le colis est en retard",
        "Estimada Anna, el paquete llega tarde",
    ],
)
def test_names_are_found_where_names_stand(text: str) -> None:
    assert "anna" in person_names([*PLAIN, text])


def test_signatures_count_from_two_on_also_in_lower_case() -> None:
    once = [*PLAIN, "The parcel is late. keith"]
    assert person_names(once) == frozenset()
    assert person_names([*once, "Keith told me. The invoice is wrong. keith"]) == {"keith"}


def test_surnames_follow() -> None:
    assert person_names([*PLAIN, "Dear Anna Okri, the parcel is late"]) == {"anna", "okri"}


@pytest.mark.parametrize("word", ["Team", "Invoice", "Parcel"])
def test_words_that_occur_in_lower_case_are_no_names(word: str) -> None:
    assert person_names([*PLAIN, f"Dear {word}, please help", f"thanks. {word}"]) == frozenset()


def test_brand_that_is_rarely_greeted_is_no_name() -> None:
    used = [f"my Acme card {i} is lost" for i in range(20)]
    assert person_names([*used, "Hi Acme, my card is lost"]) == frozenset()
    assert person_names([*used[:3], "Hi Acme, my card is lost"]) == {"acme"}  # a known limit


def test_greetings_and_capitals_alone_are_no_names() -> None:
    texts = ["HELLO THERE MY CARD", "Thanks. Thanks", "Regards. Thanks", "Dear SIR", "Hi there"]
    assert person_names([*PLAIN, *texts, "lost. Thanks"]) == frozenset()
    assert person_names([]) == frozenset()


def test_addresses_and_numbers_are_removed() -> None:
    text = "mail a.b@c.org, see https://x.y/z?q=1 or acme.com/help or @me; it is 3.5, not 2fa"
    assert without_addresses(text) == "mail ,, see , or , or ,; it is 3.5, not 2fa"
    assert without_private(text, frozenset()) == "mail ,, see , or , or ,; it is ,.,, not 2fa"
    numbers = ["7", "2024", "3rd", "20pm", "٣٤", "ab12345", "1,000"]
    assert [is_number(word.replace(",", "")) for word in numbers] == [True] * 7
    assert not any(is_number(word) for word in ("mp3", "2fa", "h264", "covid19", "word", ""))


def test_descriptions_have_no_private_words() -> None:
    rng = np.random.default_rng(0)
    one = [f"Refund {i} of order {90000 + i} is late. Keith Okri" for i in range(12)]
    two = [f"Write to keith@acme.org: the app {i} crashes 404. Keith Okri" for i in range(12)]
    texts = one + two
    assigned = np.repeat([0, 1], 12)
    features = np.eye(2)[assigned] + 0.01 * rng.random((24, 2))
    found = describe(
        texts, assigned, np.ones(24), features, np.eye(2), [None, None], -np.ones(24, int),
        [None, None],
    )  # fmt: skip
    for category in found:
        shown = " ".join([category.name, *category.keywords]).lower()
        assert not any(character.isdigit() for character in shown)
        assert not any(word in shown for word in ("keith", "okri", "acme", "org"))
    assert "refund" in found[0].keywords
    assert any("Keith" in text for text in found[0].examples)  # texts stay as they are


def test_parts_of_a_split_category_have_no_private_words(tmp_path: Path) -> None:
    result = read_run(write_fake_run(tmp_path, 60, 2, 2, 0))
    rows = np.flatnonzero(result.assigned == 3)
    texts = list(result.corpus.texts)
    for row in rows.tolist():
        texts[row] = f"The refund 4711 never came. Keith {row}" if row % 2 else "No app. Keith"
    signed = replace(result, corpus=replace(result.corpus, texts=texts))
    part = Part(tuple(result.corpus.ids[row] for row in rows.tolist() if row % 2))
    decided, problems = apply(signed, [Decision("split", category="c4", parts=(part,))])
    assert problems == ()
    new = decided.categories[-1]
    shown = " ".join([new.name, *new.keywords]).lower()
    assert "refund" in shown
    assert "keith" not in shown
    assert not any(character.isdigit() for character in shown)
