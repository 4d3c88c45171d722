"""Short names for novel categories, from phrases in their typical texts."""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import pairwise

from newfound.data.words import BREAK, LONGEST_WORD, is_written, normalise_text, same_stem, spans

LONGEST_NAME = 40  # characters, without a number at the end
LONGEST_PHRASE = 4  # words
CENTRAL = 0.25  # least weight of the first and last word of a name, relative to the best word
BEST = 3  # keywords of which a name contains at least one
POWER = 0.7  # exponent of a word's score, so that the best word does not dominate
Places = list[tuple[str, int, int]]  # words of a text with their start and end
ENDS = 0.2  # words that end a phrase less often than this are poor last words


def candidate_names(
    texts: list[str], scores: dict[str, float], keywords: list[str]
) -> list[tuple[float, str]]:
    """Return candidate names of a category with their scores, best first.

    A candidate is a phrase that begins and ends with distinctive words and contains one of the
    best keywords. Its score grows with the scores of its words and with the number of texts that
    use it. It is lower if the phrase looks incomplete: if its last word rarely ends a phrase
    ("exchange rate was"), or its first word mostly follows the same word ("up with cash"). Phrases
    with the same distinctive words ("activate my card", "activate the card") count as one, in the
    most frequent form. Pairs of keywords come last, for when all phrases are taken.

    texts: typical texts; scores: by word; keywords: best first.
    """
    marked = [spans(text) for text in texts]
    worth = {word: score**POWER for word, score in scores.items() if score > 0}
    best = {word for keyword in keywords[:BEST] for word in keyword.split()}
    found = _worthy_phrases(texts, marked, worth, CENTRAL, best)
    if not found:  # one word dominates all others
        found = _worthy_phrases(texts, marked, worth, CENTRAL / 5, best)
    found.sort(key=lambda each: (-round(each[0], 12), each[1]))
    written = _written(texts, marked)
    pairs = [(0.0, _title(name)) for name in _side_by_side(texts, keywords, written)]
    return [each for each in found + pairs if 0 < len(each[1]) <= LONGEST_NAME]


def _worthy_phrases(
    texts: list[str], marked: list[Places], worth: dict[str, float], share: float, best: set[str]
) -> list[tuple[float, str]]:
    """Return phrases that several texts use and that contain one of the best words, with scores."""
    least = share * max(worth.values(), default=0.0)
    central = {word for word, value in worth.items() if value >= least}
    forms: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for text, places in zip(texts, marked, strict=True):
        for key, form in sorted(set(_phrases(normalise_text(text), places, central))):
            forms[key][form] += 1
    ends, cuts = _ends(marked), _cuts(marked, central)
    found: list[tuple[float, str]] = []
    for key, used in forms.items():
        count = sum(used.values())
        if count < 2 <= len(texts) // 2 or not best.intersection(key):
            continue
        # The most frequent form; among equals the shortest, then one in lower case.
        form = min(used, key=lambda form: (-used[form], len(form), form.swapcase()))
        whole = min(1.0, ends[key[-1]] / ENDS) * (1 - cuts[key[0]])
        found.append((sum(worth[word] for word in key) * count**0.5 * whole, _title(form)))
    return found


def _phrases(
    whole: str, places: Places, central: set[str]
) -> Iterable[tuple[tuple[str, ...], str]]:
    """Yield phrases of two to four words between central words: central words, and the phrase."""
    for start, (first, begin, _) in enumerate(places):
        if first not in central:
            continue
        key = [first]
        for word, _, end in places[start + 1 : start + LONGEST_PHRASE]:
            if not word or len(word) > LONGEST_WORD:
                break
            if word in central and not any(same_stem(word, other) for other in key):
                key.append(word)
                yield tuple(key), _tidy(whole[begin:end])


def _tidy(phrase: str) -> str:
    """Return a phrase with letters, digits and common signs only, no invisible characters."""
    return " ".join(
        "".join(c if is_written(c) or c in "'+#-./&$€£%" else " " for c in phrase).split()
    )


def _ends(marked: list[Places]) -> dict[str, float]:
    """Return how often each word ends a phrase, as a share smoothed towards one half."""
    ends: Counter[str] = Counter()
    uses: Counter[str] = Counter()
    for places in marked:
        for (word, _, _), (after, _, _) in pairwise([*places, (BREAK, 0, 0)]):
            uses[word] += 1
            ends[word] += after == BREAK
    return {word: (ends[word] + 1) / (uses[word] + 2) for word in uses}


def _cuts(marked: list[Places], central: set[str]) -> dict[str, float]:
    """Return how often each word follows its most frequent central predecessor, as a share."""
    before: dict[str, Counter[str]] = defaultdict(Counter)
    uses: Counter[str] = Counter()
    for places in marked:
        for (earlier, _, _), (word, _, _) in pairwise([(BREAK, 0, 0), *places]):
            uses[word] += 1
            before[word][earlier] += earlier in central
    return {word: max(before[word].values()) / (uses[word] + 1) for word in uses}


def _written(texts: list[str], marked: list[Places]) -> dict[str, str]:
    """Return the most frequent spelling of each word: SQL, iPhone."""
    forms: dict[str, Counter[str]] = defaultdict(Counter)
    for text, places in zip(texts, marked, strict=True):
        whole = normalise_text(text)
        for word, begin, end in places:
            forms[word][whole[begin:end]] += 1
    return {word: min(used, key=lambda f: (-used[f], f.swapcase())) for word, used in forms.items()}


def _side_by_side(texts: list[str], keywords: list[str], written: dict[str, str]) -> list[str]:
    """Return pairs of keywords in the order in which texts use them, then single keywords."""
    if not keywords:
        return []
    first = keywords[0]
    others = [
        k
        for k in keywords[1:]
        if not any(same_stem(a, b) for a in first.split() for b in k.split())
    ]
    shown = {k: " ".join(written.get(word, word) for word in k.split()) for k in keywords}
    together = [_in_order(texts, first, other) for other in others[:3]]
    return [f"{shown[a]}, {shown[b]}" for a, b in together] + [shown[k] for k in keywords]


def _in_order(texts: list[str], first: str, second: str) -> tuple[str, str]:
    """Return two terms in the order that is more frequent in the texts."""
    before = 0
    for text in texts:
        lowered = normalise_text(text).lower()
        places = lowered.find(first), lowered.find(second)
        if min(places) >= 0:
            before += 1 if places[0] < places[1] else -1
    return (first, second) if before >= 0 else (second, first)


def _title(phrase: str) -> str:
    """Return the phrase with a capital first letter, unless its first word has capitals."""
    first = phrase.split(" ", 1)[0]
    return phrase[:1].upper() + phrase[1:] if first == first.lower() else phrase


def same_name(name: str) -> str:
    """Return a key that is equal for equivalent names: refund_status and Refund status."""
    return re.sub(r"[\s_-]+", " ", unicodedata.normalize("NFKC", name).casefold()).strip()


def unique_names(
    candidates: dict[int, list[tuple[float, str]]], taken: list[str]
) -> dict[int, str]:
    """Return one name per category, all distinct and different from those taken.

    Categories choose in the order of their best scores. If all candidates are taken, a number is
    appended to the best one ("Refund status 2"). Without candidates, the third novel category is
    called "novel 3".
    """
    used = {same_name(name) for name in taken}
    names: dict[int, str] = {}
    place = {category: n for n, category in enumerate(sorted(candidates), start=1)}
    order = sorted(candidates, key=lambda c: (-max([v for v, _ in candidates[c]], default=0.0), c))
    for category in order:
        free = [name for _, name in candidates[category] if same_name(name) not in used]
        if free:
            names[category] = free[0]
        elif candidates[category]:
            names[category] = _numbered(candidates[category][0][1], 2, used)
        else:
            names[category] = _numbered("novel", place[category], used)
        used.add(same_name(names[category]))
    return names


def _numbered(name: str, number: int, used: set[str]) -> str:
    """Return the name with this number, or with the next free one."""
    while same_name(f"{name} {number}") in used:
        number += 1
    return f"{name} {number}"
