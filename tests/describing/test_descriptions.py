"""Descriptions: the numbers are right, the texts are the right ones, odd input is survived."""

import math
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from newfound.category import Category
from newfound.describing.descriptions import describe

TOPICS = ["refund status", "exchange rate", "lost card", "savings account", "cash machine"]
OPENINGS = ["where is my", "i want to know about the", "please help with a", "tell me of this"]


class Pile:
    """Texts in clear clusters with everything that describe() wants."""

    def __init__(self, each: int = 30, known: int = 2, topics: int = 5, seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        self.assigned = np.repeat(np.arange(topics), each)
        self.texts = [
            f"{OPENINGS[i % 4]} {TOPICS[c]} number{i} {'again' * (i % 3 == 0)}"
            for i, c in enumerate(self.assigned)
        ]
        self.prototypes = np.eye(topics, 8, dtype=np.float32)
        noise = 0.3 * random.standard_normal((len(self.texts), 8))
        self.features = (self.prototypes[self.assigned] + noise).astype(np.float32)
        self.probabilities = random.uniform(0.2, 1, len(self.texts)).astype(np.float32)
        self.known: list[str | None] = [f"label_{c}" if c < known else None for c in range(topics)]
        self.given = np.where(
            (self.assigned < known) & (np.arange(len(self.texts)) % 4 == 0), 0, -1
        )
        self.given = np.where(self.given == 0, self.assigned, -1)
        self.distance: list[float | None] = [0.1 * c if c < known else None for c in range(topics)]

    def describe(self, **settings: int) -> list[Category]:
        return describe(
            self.texts,
            self.assigned,
            self.probabilities,
            self.features,
            self.prototypes,
            self.known,
            self.given,
            self.distance,
            **settings,
        )


def odd(texts: list[str], assigned: list[int], known: list[str | None]) -> list[Category]:
    """Categories of texts whose features do not matter."""
    random = np.random.default_rng(0)
    return describe(
        texts,
        np.array(assigned, dtype=np.int64),
        np.full(len(texts), 0.5, dtype=np.float32),
        random.standard_normal((len(texts), 4)).astype(np.float32),
        random.standard_normal((len(known), 4)).astype(np.float32),
        known,
        np.full(len(texts), -1),
        [None] * len(known),
    )


def test_sizes_shares_and_confidences() -> None:
    pile = Pile()
    pile.assigned[:7] = 1  # unequal sizes
    for c, category in enumerate(pile.describe()):
        mine = pile.assigned == c
        assert category.id == f"c{c + 1}"
        assert category.status == ("known" if c < 2 else "proposed")
        assert category.size == mine.sum()
        assert category.share == pytest.approx(mine.sum() / len(pile.texts))
        assert category.labelled == (mine & (pile.given >= 0)).sum()
        assert category.confidence == pytest.approx(pile.probabilities[mine].mean(), rel=1e-5)
        assert category.kind == ("known" if c < 2 else "novel")
        assert category.distance == pile.distance[c]


def test_nearest_category_by_prototype() -> None:
    pile = Pile()
    pile.prototypes[3] = pile.prototypes[0] + 0.1
    found = pile.describe()
    for c, category in enumerate(found):
        gaps = [
            math.inf if o == c else math.dist(p, pile.prototypes[c])
            for o, p in enumerate(pile.prototypes)
        ]
        assert category.nearest == found[int(np.argmin(gaps))].id
        assert category.nearest_distance == pytest.approx(min(gaps), rel=1e-5)
    assert found[0].nearest == "c4"


def test_known_names_are_labels_and_novel_names_are_generated() -> None:
    found = Pile().describe()
    assert [c.name for c in found[:2]] == ["label_0", "label_1"]
    assert [c.name for c in found[2:]] == ["Lost card", "Savings account", "Cash machine"]


def test_known_label_is_kept_verbatim() -> None:
    pile = Pile(known=1)
    pile.known[0] = " Odd_Label?\t"
    assert pile.describe()[0].name == " Odd_Label?\t"


def test_novel_name_differs_from_labels() -> None:
    pile = Pile()
    pile.known[0] = "LOST_card"
    names = [c.name.casefold().replace("_", " ") for c in pile.describe()]
    assert len(set(names)) == len(names)


def test_keywords_name_the_topic() -> None:
    for topic, category in zip(TOPICS, Pile().describe(), strict=True):
        assert category.keywords[0] == topic
        assert len(category.keywords) <= 8


def test_examples_are_the_nearest_and_borders_the_least_sure() -> None:
    pile = Pile(each=8, known=0)
    pile.texts = [f"{TOPICS[c]} {'abcdefgh'[i % 8] * 9} {'ijklmnop'[i % 8] * 9}"
                  for i, c in enumerate(pile.assigned)]  # fmt: skip
    for c, category in enumerate(pile.describe(examples=3, border=3)):
        rows = np.flatnonzero(pile.assigned == c)
        gap = np.linalg.norm(pile.features[rows] - pile.prototypes[c], axis=1)
        nearest = [pile.texts[r] for r in rows[np.argsort(gap)]][:3]
        assert list(category.examples) == nearest
        rest = [r for r in rows if pile.texts[r] not in nearest]
        unsure = sorted(rest, key=lambda r: pile.probabilities[r])[:3]
        assert list(category.border) == [pile.texts[r] for r in unsure]


def test_labelled_texts_come_last_among_border_texts() -> None:
    pile = Pile(each=40)
    pile.probabilities[pile.given >= 0] = 0.01
    labelled = {t for t, g in zip(pile.texts, pile.given, strict=True) if g >= 0}
    for category in pile.describe(examples=2, border=3):
        assert not labelled & set(category.border)


def test_near_duplicates_are_shown_once() -> None:
    pile = Pile(each=12, known=0)
    mine = np.flatnonzero(pile.assigned == 0)
    for row in mine[:9]:
        pile.texts[row] = "Where is it, please?" if row % 2 else "where is  IT please"
    pile.features[mine[:9]] = pile.prototypes[0]
    first = pile.describe()[0]
    shown = [text for text in first.examples + first.border if text.lower().startswith("where")]
    assert len(shown) == 1
    assert shown[0] == first.examples[0]


def test_near_duplicates_by_features_are_replaced_by_others() -> None:
    texts = ["alpha beta gamma delta", "kappa lambda sigma omega", "one two three four five"]
    features = np.array([[1, 0], [1, 0.01], [0.6, 0.8]], dtype=np.float32)
    found = describe(
        texts, np.zeros(3, int), np.ones(3), features, np.array([[1.0, 0.0]]), [None],
        np.full(3, -1), [None], examples=2,
    )[0]  # fmt: skip
    assert found.examples == (texts[0], texts[2])


def test_collapsed_features_still_give_examples() -> None:
    pile = Pile(each=10, known=0)
    pile.texts = [f"{TOPICS[c]} {chr(97 + i % 10) * 5} {chr(75 + i % 10) * 5}"
                  for i, c in enumerate(pile.assigned)]  # fmt: skip
    pile.features = pile.prototypes[pile.assigned].copy()
    assert all(len(c.examples) == 5 and len(c.border) == 5 for c in pile.describe())


def test_readable_texts_come_first() -> None:
    texts = ["ok", "x " * 5_000, "could you tell me about the refund", "when does my refund arrive"]
    features = np.arange(4, dtype=np.float32)[:, None]
    found = describe(
        texts, np.zeros(4, int), np.ones(4), features, np.zeros((1, 1)), [None],
        np.full(4, -1), [None],
    )[0]  # fmt: skip
    assert set(found.examples[:2]) == set(texts[2:])
    assert set(found.examples) == set(texts)


def test_the_same_input_gives_the_same_description() -> None:
    assert Pile().describe() == Pile().describe()


def test_input_is_not_changed() -> None:
    pile, before = Pile(), Pile()
    pile.describe()
    assert pile.texts == before.texts
    for name in ("assigned", "features", "prototypes", "probabilities", "given"):
        assert np.array_equal(getattr(pile, name), getattr(before, name))


def test_one_category_is_described() -> None:
    texts = ["my refund is late", "a refund please", "where is the card", "what a day", "hello you"]
    found = odd(texts, [0] * 5, [None])
    assert found[0].nearest is None
    assert math.isnan(found[0].nearest_distance)
    assert found[0].keywords[0] == "refund"
    assert found[0].name
    assert found[0].share == 1


def test_categories_with_no_or_one_text_are_described() -> None:
    found = odd(
        ["lost my card", "some other words", "words again"], [1, 2, 2], ["a", None, None, None]
    )
    assert [c.size for c in found] == [0, 1, 2, 0]
    assert found[0].confidence == 0.0
    assert found[0].examples == found[0].border == found[0].keywords == ()
    assert found[1].examples == ("lost my card",)
    assert found[1].border == ()
    assert found[3].name == "novel 3"


def test_no_texts_are_described() -> None:
    found = odd([], [], ["a", None])
    assert [c.name for c in found] == ["a", "novel 1"]
    assert [c.share for c in found] == [0, 0]


def test_only_known_or_only_novel_categories_are_described() -> None:
    texts = ["red apple", "green pear"]
    assert [c.name for c in odd(texts, [0, 1], ["a", "b"])] == ["a", "b"]
    assert {c.kind for c in odd(texts, [0, 1], [None, None])} == {"novel"}


ODD = [
    "", " ", "\n\t", "🙂🙃", "?", "<script>alert(1)</script>", "{{7*7}} ${x} %s", "=cmd|'/c'!A0",
    "a\x00b\x1b[31m red", "\u202eevil right to left", "x" * 100_000, "word " * 20_000, "\ud800",
    "申请退款", "申请退款失败", "إلغاء التحويل", "สวัสดีครับ", "é" * 300, "a\u0301" * 50, "1234 5678",
    "line\nbreak\r\nhere", "\u2028\u2029", "ZA̡͊͠͝LGO" + "\u0315" * 500,
]  # fmt: skip


@pytest.mark.parametrize("count", [1, 2, 5])
def test_unusual_texts_are_described(count: int) -> None:
    texts = ODD * 3
    known: list[str | None] = [None] * count
    found = odd(texts, [i % len(ODD) % count for i in range(len(texts))], known)
    for category in found:
        assert category.name.strip()
        assert len(category.name) <= 45
        assert all(c.isprintable() or c in "\u200c\u200d" for c in category.name)
        assert set(category.examples) <= set(texts)
        for keyword in category.keywords:
            assert keyword.strip()
            assert "\n" not in keyword
            assert len(keyword) <= 81
    assert len({c.name.casefold() for c in found}) == count


def test_chinese_gets_a_name() -> None:
    texts = ["我要申请退款", "退款什么时候到", "信用卡丢了怎么办", "我的信用卡丢了"] * 3
    found = odd(texts, [0, 0, 1, 1] * 3, [None, None])
    assert "退款" in found[0].name
    assert "信用卡" in found[1].name


def test_equal_texts_in_two_categories_get_two_names() -> None:
    found = odd(["lost my card"] * 4, [0, 0, 1, 1], [None, None])
    assert found[0].name.casefold() != found[1].name.casefold()


def test_lengths_must_agree() -> None:
    with pytest.raises(ValueError, match="lengths do not agree"):
        odd(["a"], [0, 0], [None])
    with pytest.raises(ValueError, match="assigned must lie in"):
        odd(["a"], [1], [None])


def test_descriptions_are_plain_data() -> None:
    for category in Pile().describe():
        for value in asdict(category).values():
            assert type(value) in (int, float, str, tuple, type(None))


def test_descriptions_do_not_import_torch() -> None:
    code = (
        "import sys, newfound.describing.descriptions, newfound.describing.text_map;"
        "import newfound.describing.llm_names;"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.skipif(not os.environ.get("NEWFOUND_DATA"), reason="NEWFOUND_DATA is not set")
def test_banking_names_make_sense() -> None:
    import csv

    path = Path(os.environ["NEWFOUND_DATA"]) / "banking" / "train.tsv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    labels = sorted({row["label"] for row in rows})
    assigned = np.array([labels.index(row["label"]) for row in rows])
    found = odd([row["text"] for row in rows], assigned.tolist(), [None] * len(labels))
    by_label = dict(zip(labels, found, strict=True))
    assert "pin" in by_label["change_pin"].name.lower()
    assert by_label["exchange_rate"].keywords[0] in ("exchange rate", "exchange rates")
    assert "disposable" in by_label["get_disposable_virtual_card"].name.lower()
    # A label's own words are among its keywords for most categories.
    hits = sum(
        any(part in " ".join(c.keywords) for part in label.lower().split("_") if len(part) > 3)
        for label, c in by_label.items()
    )
    assert hits >= 0.8 * len(labels)
