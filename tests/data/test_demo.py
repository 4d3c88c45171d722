"""The demo data are as documented."""

import re
from itertools import combinations

import pandas as pd
import pytest

from newfound.data import demo


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return demo.load()


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def test_columns_and_missing_labels(table: pd.DataFrame) -> None:
    assert list(table.columns) == ["text", "label", "truth"]
    assert all(isinstance(text, str) for text in table["text"])
    assert all(isinstance(truth, str) for truth in table["truth"])
    assert all(label is None or isinstance(label, str) for label in table["label"])


def test_number_of_texts_and_categories(table: pd.DataFrame) -> None:
    assert 1000 <= len(table) <= 1150
    assert table["truth"].nunique() == 18
    assert table["label"].dropna().nunique() == 12


def test_category_sizes_differ(table: pd.DataFrame) -> None:
    sizes = table["truth"].value_counts()
    assert 25 <= sizes.min() <= 35
    assert 110 <= sizes.max() <= 135
    assert sizes.nunique() >= 12


def test_labels_equal_the_truth(table: pd.DataFrame) -> None:
    labelled = table[table["label"].notna()]
    assert (labelled["label"] == labelled["truth"]).all()


def test_about_a_fifth_of_each_known_category_is_labelled(table: pd.DataFrame) -> None:
    counts = table["label"].dropna().value_counts()
    assert counts.min() >= 5
    shares = counts / table["truth"].value_counts()[counts.index]
    assert shares.between(0.17, 0.23).all()


def test_category_names_are_readable(table: pd.DataFrame) -> None:
    assert all(re.fullmatch(r"[a-z]+( [a-z]+)*", name) for name in table["truth"].unique())


def test_texts_are_clean(table: pd.DataFrame) -> None:
    for text in table["text"]:
        assert text == " ".join(text.split())
        assert text.isprintable()
        assert words(text)


def test_no_duplicate_texts(table: pd.DataFrame) -> None:
    normalized = [" ".join(words(text)) for text in table["text"]]
    assert len(set(normalized)) == len(normalized)


def test_no_near_copies_within_a_category(table: pd.DataFrame) -> None:
    for _, group in table.groupby("truth"):
        bags = [(text, frozenset(words(text))) for text in group["text"]]
        for (first, a), (second, b) in combinations(bags, 2):
            assert len(a & b) <= 0.8 * len(a | b), (first, second)


def test_messages_do_not_follow_a_template(table: pd.DataFrame) -> None:
    """First words and lengths vary within every category, as in real messages."""
    for name, group in table.groupby("truth"):
        openings = [tuple(words(text)[:3]) for text in group["text"]]
        assert len(set(openings)) >= 0.9 * len(openings), name
        lengths = group["text"].map(lambda text: len(words(text)))
        assert lengths.min() <= 4, name
        assert lengths.max() >= 30, name


def test_order_does_not_reveal_the_truth(table: pd.DataFrame) -> None:
    same_as_previous = (table["truth"] == table["truth"].shift()).mean()
    assert same_as_previous < 0.15
