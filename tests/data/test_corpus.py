"""The corpus: accepted and refused inputs, and notes."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from newfound import InputError
from newfound.data.corpus import Corpus, check_corpus, check_texts, clean_text


def corpus_of(*pairs: tuple[str, str | None]) -> Corpus:
    return Corpus.from_lists([text for text, _ in pairs], [label for _, label in pairs])


@settings(deadline=None)
@given(st.lists(st.sampled_from([None, "", "b", "a", "Z", "10", "9"])))
def test_targets_point_into_known(labels: list[str | None]) -> None:
    corpus = Corpus.from_lists([f"text {i}" for i in range(len(labels))], labels)
    assert corpus.known == sorted({label for label in labels if label})
    assert corpus.targets.dtype == np.int64
    assert corpus.targets.shape == (len(labels),)
    for label, target in zip(labels, corpus.targets, strict=True):
        assert (corpus.known[target] if target >= 0 else None) == (label or None)


def test_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="2 texts, 1 labels and 2 ids"):
        Corpus(["a", "b"], [None], ["1", "2"])
    with pytest.raises(InputError, match="2 texts but 1 label: give one per text, None for"):
        Corpus.from_lists(["a", "b"], ["x"])
    with pytest.raises(InputError, match="2 texts but 3 ids"):
        Corpus.from_lists(["a", "b"], ids=[1, 2, 3])


@pytest.mark.parametrize(
    ("texts", "labels"),
    [
        (["a", "b", "c"], ["x", None, "3"]),
        (("a", "b", "c"), ("x", "", 3)),
        (np.array(["a", "b", "c"]), np.array(["x", None, 3], dtype=object)),
        (pd.Series(["a", "b", "c"], index=[7, 8, 9]), pd.Series(["x", float("nan"), "3"])),
        (pd.array(["a", "b", "c"], dtype="string"), pd.array(["x", pd.NA, "3"], dtype="string")),
        (pd.Series(["a", "b", "c"]), pd.Series(["x", None, "3"], dtype="category")),
        (iter(["a", "b", "c"]), iter(["x", "  ", np.int64(3)])),
        (["a", "b", "c"], ["x", pd.NaT, 3]),
    ],
)
def test_any_sequence_is_accepted(texts: object, labels: object) -> None:
    corpus = Corpus.from_lists(texts, labels)  # type: ignore[arg-type]
    assert corpus == Corpus(["a", "b", "c"], ["x", None, "3"], ["1", "2", "3"])
    assert all(type(text) is str for text in corpus.texts)


def test_number_labels_become_strings_and_minus_one_means_unlabelled() -> None:
    labels = [0, -1, 2.0, 1.5, np.float32(7), True, "-1", float("nan"), 10**400, -1.0]
    corpus = Corpus.from_lists([f"t{i}" for i in range(10)], labels)
    wanted = ["0", None, "2", "1.5", "7", "True", "-1", None, str(10**400), None]
    assert corpus.labels == wanted
    # pandas reads integers with missing values as floats.
    gap = pd.Series([1, None, 3])
    assert gap.dtype == np.float64
    assert Corpus.from_lists(["a", "b", "c"], gap).labels == ["1", None, "3"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, r"texts\[1\] is missing \(None\)"),
        (float("nan"), r"texts\[1\] is missing \(nan\)"),
        (pd.NA, r"texts\[1\] is missing"),
        (42, r"texts\[1\] is a number \(42\): convert the texts with str\(\)"),
        (np.float32(1.5), r"texts\[1\] is a number .* str\(\)"),
        (np.int64(3), r"texts\[1\] is a number .* str\(\)"),
        (b"bytes", r"texts\[1\] is of type bytes"),
        (["list"], r"texts\[1\] is of type list"),
        ("", r"texts\[1\] is empty"),
        (" \n\u3000", r"texts\[1\] is empty or only white space"),
        ("\0", r"texts\[1\] is empty or only white space"),
    ],
)
def test_invalid_text_is_named_by_position(text: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Corpus.from_lists(["fine", text, "fine too"])


def test_empty_texts_can_be_kept() -> None:
    assert check_texts(["", " ", "a\0b"], keep_empty=True) == ["", " ", "a b"]
    with pytest.raises(InputError, match="missing"):
        check_texts([None], keep_empty=True)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("one text", "texts is a single string"),
        (b"one text", "texts is a single string"),
        ({"a": 1}, "texts is a dict"),
        ({"a"}, "texts is a set"),
        (3, "texts is a int"),
        (None, "texts is a NoneType"),
        (pd.DataFrame({"text": ["a"]}), "texts has 2 dimensions: give one column"),
        (np.array([["a"]]), "texts has 2 dimensions"),
    ],
)
def test_other_than_a_sequence_of_texts_is_refused(texts: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Corpus.from_lists(texts)  # type: ignore[arg-type]


def test_invalid_label_is_refused() -> None:
    with pytest.raises(InputError, match=r"labels\[1\] is of type list"):
        Corpus.from_lists(["a", "b"], ["x", ["y"]])
    with pytest.raises(InputError, match="labels is a single string"):
        Corpus.from_lists(["a", "b"], "xy")


def test_ids_must_be_unique_and_complete() -> None:
    assert Corpus.from_lists(["a", "b"], ids=[7, "x"]).ids == ["7", "x"]
    with pytest.raises(InputError, match="id '7' occurs more than once"):
        Corpus.from_lists(["a", "b"], ids=[7, "7"])
    with pytest.raises(InputError, match="an id is missing"):
        Corpus.from_lists(["a", "b"], ids=[7, None])


def test_clean_text_replaces_nul_and_unpaired_surrogates() -> None:
    assert clean_text("a\0b") == "a b"
    assert clean_text("half \ud83d pair") == "half \ufffd pair"
    assert clean_text("\ud83d\ude00") == "😀"  # a surrogate pair
    long = "שלום 😀 " * 20_000
    assert clean_text(long) is long


@settings(deadline=None)
@given(st.text(st.characters()))
def test_clean_text_is_encodable_and_idempotent(text: str) -> None:
    cleaned = clean_text(text)
    cleaned.encode()
    assert "\0" not in cleaned
    assert clean_text(cleaned) == cleaned


# Refused corpora.


@pytest.mark.parametrize(
    ("texts", "message"),
    [([], "no text"), (["a"], "only one text"), (["a", "a", "a"], "all 3 texts are the same")],
)
def test_too_few_texts_are_refused(texts: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_corpus(Corpus.from_lists(texts), None)


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (0, "0 categories are asked for .*--categories.* give at least 1"),
        (-3, "give at least 1"),
        (1, "but 2 are known from the labels: give at least 2"),
        (5, "only 4 different texts: give at most 4"),
    ],
)
def test_impossible_number_of_categories_is_refused(number: int, message: str) -> None:
    corpus = corpus_of(("a", "x"), ("b", "y"), ("c", None), ("d", None), ("d", None))
    with pytest.raises(InputError, match=message):
        check_corpus(corpus, number)


def test_more_labels_than_texts_are_refused() -> None:
    corpus = corpus_of(("a", "1"), ("a", "2"), ("b", "3"))
    with pytest.raises(InputError, match="3 labels but only 2 different texts"):
        check_corpus(corpus, None)


@pytest.mark.parametrize("number", [None, 3, 4, 6])
def test_ordinary_corpus_has_no_notes(number: int | None) -> None:
    corpus = corpus_of(
        ("a", "x"), ("b", "x"), ("c", "y"), ("d", "y"), ("e", None), ("f", None), ("f", None)
    )
    assert check_corpus(corpus, number) == []


# Notes.


def test_note_on_no_labels() -> None:
    corpus = Corpus.from_lists(["a", "b"])
    for number in (None, 1, 2):
        (note,) = check_corpus(corpus, number)
        assert "no text is labelled" in note
        assert "unsupervised" in note


def test_note_on_all_texts_labelled() -> None:
    corpus = corpus_of(("a", "x"), ("b", "x"), ("c", "y"), ("d", "y"))
    (note,) = check_corpus(corpus, 2)
    assert "every text is labelled" in note


def test_note_on_no_novel_categories() -> None:
    corpus = corpus_of(("a", "x"), ("b", "x"), ("c", "y"), ("d", "y"), ("e", None))
    (note,) = check_corpus(corpus, 2)
    assert "no novel category can be found" in note


def test_note_on_one_known_category() -> None:
    (note,) = check_corpus(corpus_of(("a", "x"), ("b", "x"), ("c", None)), None)
    assert "only one category is known, 'x'" in note


def test_note_names_up_to_five_categories_with_one_text() -> None:
    pairs = [(f"text {i}", f"c{i}") for i in range(7)]
    (note,) = check_corpus(corpus_of(*pairs, ("other", None)), None)
    assert note == (
        "7 categories have only one labelled text: 'c0', 'c1', 'c2', 'c3', 'c4' and 2 more"
    )
    pairs = [("a", "x"), ("b", "x"), ("c", "y"), ("d", None)]
    (note,) = check_corpus(corpus_of(*pairs), None)
    assert note == "1 category has only one labelled text: 'y'"


def test_note_on_a_text_with_different_labels() -> None:
    corpus = Corpus.from_lists(
        ["p", "same", "q", "same", "same", "same", "r", "r", "u"],
        ["x", None, "y", "x", "x", "y", "x", "y", None],
        ids=list("abcdefghi"),
    )
    (note,) = check_corpus(corpus, None)
    assert "2 texts occur with different labels" in note
    assert "'same': 'x' (id d) and 'y' (id f)" in note
    # The same text unlabelled, or twice with the same label, is not noted.
    fine = corpus_of(("a", "x"), ("a", "x"), ("a", None), ("b", "y"), ("c", "y"))
    assert check_corpus(fine, None) == []


def test_note_on_labels_that_differ_in_case_or_space() -> None:
    pairs = [(f"{i}{label}", label) for i in range(2) for label in ("Refund", " refund", "b")]
    (note,) = check_corpus(corpus_of(*pairs, ("u", None)), None)
    assert "' refund' and 'Refund' differ only in case or white space" in note


def test_note_on_labels_that_may_mean_unlabelled() -> None:
    pairs = [("a", "NA"), ("b", "NA"), ("c", "y"), ("d", "y"), ("e", None)]
    (note,) = check_corpus(corpus_of(*pairs), None)
    assert "2 texts have the label 'NA', which counts as a category" in note


def test_note_on_texts_that_are_numbers() -> None:
    pairs = [("1", "x"), ("2.5", "x"), ("-3", "y"), ("4e5", "y")]
    (note,) = check_corpus(corpus_of(*pairs, ("5", None)), None)
    assert "every text is a number" in note
    assert check_corpus(corpus_of(*pairs, ("five", None)), None) == []


def test_corpus_does_not_import_torch() -> None:
    code = (
        "import sys, newfound.data.tables, newfound.data.corpus; "
        "print({'torch', 'pandas'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_sorted_rows_do_not_depend_on_the_order_of_a_table() -> None:
    corpus = Corpus.from_lists(["b", "a", "c", "a"], ["x", None, None, "y"], ids=list("1234"))
    ordered = corpus.take(corpus.sorted_rows)
    assert (ordered.texts, ordered.labels) == (["a", "a", "b", "c"], [None, "y", "x", None])
    assert ordered.ids == ["2", "4", "1", "3"]
    for order in ([3, 2, 1, 0], [1, 3, 0, 2]):
        other = corpus.take(np.array(order))
        assert other.take(other.sorted_rows) == ordered
