"""Keywords: the score against an obvious loop, the choice by its promises."""

import math
import time
from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_array

from newfound.data.words import BREAK, same_stem, words
from newfound.describing import keywords as module
from newfound.describing.keywords import (
    BOND,
    LETTERS,
    NUMBER,
    PRIOR,
    Terms,
    choose_keywords,
    count_terms,
    score_terms,
)

TOPICS = ["refund status", "exchange rate", "lost card", "savings account", "cash machine"]
FILLER = ["where is my", "i want to know about the", "please help with a", "what about my", "the"]


def corpus(texts: int, topics: int, seed: int) -> tuple[list[str], np.ndarray]:
    random = np.random.default_rng(seed)
    assigned = random.integers(0, topics, texts)
    extra = ["today", "now", "again", "42", "please"]
    return [
        f"{random.choice(FILLER)} {TOPICS[topic]} {random.choice(extra)}" for topic in assigned
    ], assigned


def loop_scores(
    texts: list[str], assigned: np.ndarray, count: int, neighbours: np.ndarray
) -> dict[tuple[int, str], float]:
    """The score as its docstring states it, term by term and category by category."""
    held: dict[str, list[int]] = {}
    for text, category in zip(texts, assigned, strict=True):
        found = words(text)
        terms = {word for word in found if word != BREAK}
        terms |= {f"{a} {b}" for a, b in pairwise(found) if BREAK not in (a, b) and a != b}
        for term in terms:
            held.setdefault(term, [0] * count)[category] += 1
    held = {term: by for term, by in held.items() if " " not in term or sum(by) >= 2}
    sizes = [int((assigned == c).sum()) for c in range(count)]
    filled = [c for c in range(count) if sizes[c] > 0]

    def rate(term: str, c: int) -> float:
        share = sum(held[term]) / sum(sizes)
        return (held[term][c] + PRIOR * share) / (sizes[c] + PRIOR)

    def uneven(term: str) -> float:
        raw = [held[term][c] / sizes[c] for c in filled]
        entropy = -sum(r / sum(raw) * math.log(r / sum(raw)) for r in raw if r > 0)
        return min(1.0, max(0.0, 1 - entropy / math.log(max(2, min(len(filled), sum(held[term]))))))

    def plain_weight(word: str) -> float:
        return min(1.0, len(word) / LETTERS) * (NUMBER if word.isdigit() else 1.0)

    def weight(term: str) -> float:
        parts = term.split()
        if len(parts) == 1:
            return plain_weight(term)
        a, b = parts
        meaning = math.sqrt(uneven(a) * plain_weight(a) * uneven(b) * plain_weight(b))
        company = sum(held[term]) / math.sqrt(sum(held[a]) * sum(held[b]))
        bond = math.sqrt(meaning * company)
        return min(plain_weight(a), plain_weight(b)) * (bond if bond >= BOND else 0.0)

    scores = {}
    for term, by in held.items():
        for c in filled:
            if by[c] == 0:
                continue
            background = sum(rate(term, o) for o in filled if o != c) / (len(filled) - 1)
            near = [o for o in neighbours[c] if sizes[o] > 0]
            if near:
                background = (background + sum(rate(term, o) for o in near) / len(near)) / 2
            contrast = max(0.0, math.log(rate(term, c) / background))
            scores[c, term] = rate(term, c) * contrast * uneven(term) * weight(term)
    return scores


@pytest.mark.parametrize(
    ("texts", "count", "near"), [(60, 5, 3), (60, 7, 2), (25, 5, 0), (9, 3, 1)]
)
def test_scores_match_a_plain_loop(texts: int, count: int, near: int) -> None:
    some, assigned = corpus(texts, min(count, 5), seed=texts)  # beyond five: empty categories
    random = np.random.default_rng(1)
    neighbours = np.array(
        [random.permutation([o for o in range(count) if o != c])[:near] for c in range(count)],
        dtype=np.int64,
    ).reshape(count, near)
    terms = count_terms(some, assigned, count)
    scores = score_terms(terms, neighbours)
    expected = loop_scores(some, assigned, count, neighbours)
    table = scores.tocoo()
    entries = zip(table.row, table.col, table.data, strict=True)
    found = {(int(row), terms.names[term]): float(value) for row, term, value in entries}
    assert found.keys() == expected.keys()
    assert found == pytest.approx(expected, abs=1e-12)
    assert max(found.values()) > 0


def score(terms: Terms, scores: csr_array, name: str) -> np.ndarray:
    """[K] what a term scores in each category."""
    return scores.toarray()[:, terms.names.index(name)]


def test_evenly_spread_words_score_zero_in_any_language() -> None:
    texts = ["zum Konto", "zum Geld", "zum Haus"] * 4
    assigned = np.array([0, 1, 2] * 4)
    terms = count_terms(texts, assigned, 3)
    scores = score_terms(terms, np.zeros((3, 0), dtype=np.int64))
    assert score(terms, scores, "zum").max() == pytest.approx(0.0, abs=1e-12)
    assert score(terms, scores, "konto")[0] > 0


def best(texts: list[str], assigned: list[int], count: int = 8) -> list[list[str]]:
    owner = np.array(assigned)
    terms = count_terms(texts, owner, max(assigned) + 1)
    none = np.zeros((max(assigned) + 1, 0), dtype=np.int64)
    return choose_keywords(terms, score_terms(terms, none), count)


def test_keywords_describe_the_topics() -> None:
    texts, assigned = corpus(400, 5, seed=0)
    for topic, found in zip(TOPICS, best(texts, assigned.tolist()), strict=True):
        assert found[0] == topic
        assert not {"the", "my", "is", "about"} & set(found)


def test_words_shared_with_neighbours_rank_lower() -> None:
    # "card" is shared by 0 and 1, "lost" separates them; 2 to 5 have other topics.
    texts = ["lost card", "new card", "rate", "loan", "cash", "cheque"] * 10
    assigned = np.array([0, 1, 2, 3, 4, 5] * 10)
    terms = count_terms(texts, assigned, 6)
    far = score_terms(terms, np.array([[2], [2], [3], [4], [5], [2]]))
    near = score_terms(terms, np.array([[1], [0], [3], [4], [5], [2]]))
    assert score(terms, near, "card")[0] < score(terms, far, "card")[0]
    assert score(terms, near, "lost")[0] == pytest.approx(score(terms, far, "lost")[0])


def test_no_keyword_repeats_another() -> None:
    texts, assigned = corpus(300, 5, seed=3)
    texts += ["refund", "refunds", "refund", "status", "refunds status"] * 5
    for found in best(texts, assigned.tolist() + [0] * 25):
        assert len(found) == len(set(found)) <= 8
        for i, one in enumerate(found):
            for other in found[:i]:
                short, long = sorted((one.split(), other.split()), key=len)
                assert not all(any(same_stem(a, b) for b in long) for a in short), (one, other)


def test_numbers_rank_below_words() -> None:
    found = best(["alpha 1234", "beta"] * 10, [0, 1] * 10)
    assert found[0][0] == "alpha"


def test_keywords_of_chinese_texts() -> None:
    texts = [
        "我要申请退款",
        "退款什么时候到",
        "请问退款进度",
        "信用卡丢了怎么办",
        "我的信用卡丢了",
        "信用卡在哪里",
    ]
    found = best(texts * 3, [0, 0, 0, 1, 1, 1] * 3)
    assert found[0][0] == "退款"
    assert any("信用卡" in word for word in found[1])
    for each in found:
        for i, one in enumerate(each):
            assert not any(one in other or other in one for other in each[:i])


def test_one_category_still_has_keywords() -> None:
    texts = ["where is the refund", "the refund is late", "a parcel and the card", "the end"]
    found = best(texts, [0] * 4)[0]
    assert "refund" in found
    assert "the" not in found[:2]


def test_texts_without_words_have_no_keywords() -> None:
    assert best(["", "🙂", "  "], [0, 1, 2]) == [[], [], []]
    terms = count_terms([], np.zeros(0, dtype=np.int64), 2)
    scores = score_terms(terms, np.array([[1], [0]]))
    assert choose_keywords(terms, scores, 8) == [[], []]


def test_order_of_the_texts_does_not_matter() -> None:
    texts, assigned = corpus(200, 5, seed=5)
    order = np.random.default_rng(9).permutation(200)
    shuffled = [texts[i] for i in order]
    assert best(texts, assigned.tolist()) == best(shuffled, assigned[order].tolist())


def test_large_corpus_is_sampled_by_category(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_WORDS", 300)
    monkeypatch.setattr(module, "MOST_TERMS", 20)
    texts, assigned = corpus(5_000, 5, seed=6)
    terms = count_terms(texts, assigned, 5)
    assert terms.sizes.sum() < 200
    assert terms.sizes.min() >= 5
    assert len(terms.names) <= 40
    assert terms.parts.max() < 20


def test_ten_thousand_texts_are_fast() -> None:
    random = np.random.default_rng(0)
    vocabulary = np.array([f"word{i}" for i in range(3_000)])
    assigned = random.integers(0, 150, 10_000)
    draws = (random.zipf(1.3, (10_000, 12)) + assigned[:, None] * 7) % 3_000
    texts = [" ".join(row) for row in vocabulary[draws]]
    neighbours = np.stack([(np.arange(150) + i) % 150 for i in (1, 2, 3)], axis=1)
    start = time.process_time()
    terms = count_terms(texts, assigned, 150)
    choose_keywords(terms, score_terms(terms, neighbours), 8)
    assert time.process_time() - start < 4  # about 0.6 s; the margin is for slow machines
