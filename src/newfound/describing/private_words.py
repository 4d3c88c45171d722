"""Words that must not become names or keywords: numbers, addresses and persons' names.

A name or keyword goes into reports and exports, so it should not tell who wrote a text. There is
no list of names and no language model; the texts of the table themselves decide:

1. A number is a word of digits, or one with at least four of them: an amount, a date, an order.
2. An address is an e-mail address, a web address or a handle (@name).
3. A person's name is a word that stands where names stand: after a greeting or a title ("Dear
   Anna", "Mr Smith"), before "wrote:", or alone at the end of a text (a signature). It must stand
   there in a tenth of its uses, and hardly ever be written in lower case elsewhere, so that words
   such as "team" in "Dear team" are kept. A word with a capital that follows such a name is a
   surname.

Limits: texts without capital letters, and scripts that have none, show names only in signatures; a
name that is never used in such a place is not found; a company that is mostly greeted ("Hi Acme")
is taken for a person.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from newfound.data.words import LONGEST_TEXT, normalise_text

LEAST_SHARE = 0.1  # of a word's uses that stand where names stand
MOST_LOWER = 0.05  # of a word's uses that are in lower case elsewhere
LEAST_SIGNED = 2  # signatures with a word; a single one may be any last word
SAMPLE = 50_000, 6_000_000  # texts, and characters of them, that are searched for names
DIGITS = 4  # in a word that is an order number, a year or the like

_LETTERS = r"[^\W\d_][\w'-]*"
_NAME = rf"{_LETTERS}(?: +{_LETTERS}){{0,2}}"
_DOMAIN = r"\.(?:com|org|net|edu|gov|de|uk|fr|es|it)\b"
_ADDRESS = re.compile(
    rf"\S+@\S+\.\w+|(?:https?://|ftp://|www\.)\S+|(?<![\w@])@\w+|\b[\w.-]*\w{_DOMAIN}(?:/\S*)?",
    re.IGNORECASE,
)
_MAY_HAVE_ADDRESS = re.compile(rf"@|://|www\.|{_DOMAIN}", re.IGNORECASE)
_TITLES = (
    "mr mrs ms miss mx dr prof sir madam herr frau monsieur madame mme m señor señora sr sra "
    "signor signora"
)
_GREETINGS = (
    "dear hi hello hey hallo liebe lieber moin bonjour cher chère hola estimado estimada querido "
    "querida ciao gentile caro cara olá prezado"
)
_CLOSINGS = (
    "regards sincerely cheers yours thanks thank you best greetings grüße grüssen gruß mfg "
    "cordialement saludos atentamente saluti cumprimentos"
)
_NO_NAMES = frozenset(f"{_TITLES} {_GREETINGS} {_CLOSINGS}".split())
_INTRODUCED = "my name is|mein name ist|je m'appelle|me llamo|mi chiamo"


def _any(words: str) -> str:
    return "|".join(map(re.escape, words.split()))


# Where names stand; titles may stand between a greeting and the name.
_CALLED = re.compile(
    rf"(?i:\b(?:{_any(_GREETINGS)}|{_INTRODUCED})),? +"
    rf"(?:(?i:{_any(_TITLES)})\.? +)?({_NAME})"
    rf"|(?i:\b(?:{_any(_TITLES)}))\.? +({_NAME})"
    rf"|(?i:\b(?:{_any(_CLOSINGS)}))\s*[,.!\n]+\s*({_NAME})"
)
_WROTE = re.compile(r"[\s,<>()]+(?:wrote|writes|schrieb|écrit|escribió) *:")
_END_OF_NAME = re.compile(rf"{_NAME}$")
_LAST = re.compile(rf"(?:[.!?…]|\n|--)[\s\"')\]-]*(?P<name>{_NAME})[\s.]*$")
_ANY_WORD = re.compile(_LETTERS)


def is_number(word: str) -> bool:
    """Return whether a word is a number, or has as many digits as an order number.

    Examples
    --------
    >>> [is_number(word) for word in ("1234", "3rd", "ab12345", "mp3", "covid19", "refund")]
    [True, True, True, False, False, False]
    """
    digits = sum(character.isdigit() for character in word)
    if digits == 0:
        return False
    return digits >= DIGITS or re.sub(r"(st|nd|rd|th|px|kg|km|mb|gb|am|pm)$", "", word).isdigit()


def person_names(texts: Sequence[str]) -> frozenset[str]:
    """Return the persons' names in texts, in lower case.

    Examples
    --------
    >>> texts = ["Dear Anna, where is my card?", "Dear team, help", "the team is slow. Ben Okri"]
    >>> sorted(person_names([*texts, "Anna told me to wait. Ben Okri"]))
    ['anna', 'ben', 'okri']
    """
    length = sum(min(len(text), LONGEST_TEXT) for text in texts) / max(1, len(texts))
    most = min(SAMPLE[0], int(SAMPLE[1] / max(1.0, length)))
    if len(texts) > most:
        rows = np.linspace(0, len(texts) - 1, most).astype(int)
        texts = [texts[row] for row in rows.tolist()]
    uses: Counter[str] = Counter()
    lower: Counter[str] = Counter()  # uses in lower case, where no name stands
    called: Counter[str] = Counter()  # uses where a name stands
    signed: Counter[str] = Counter()
    for text in texts:
        whole = without_addresses(normalise_text(text))
        found = _ANY_WORD.findall(whole)
        uses.update(word.lower() for word in found)
        lower.update(word for word in found if word == word.lower())
        for match in _CALLED.finditer(whole):
            called.update(_capitals(next(filter(None, match.groups())).split()))
        for match in _WROTE.finditer(whole):
            if before := _END_OF_NAME.search(whole, max(0, match.start() - 60), match.start()):
                called.update(_capitals(before[0].split()[::-1]))  # the last words
        last = _LAST.search(whole) if len(text) <= LONGEST_TEXT else None
        if last:
            names = last["name"].split()
            signed.update(word.lower() for word in names)
            # A signature in lower case is a place of names, too.
            lower.subtract(word for word in names if word == word.lower())
    return frozenset(
        word
        for word, count in uses.items()
        if len(word) > 1
        and word not in _NO_NAMES
        and (called[word] or signed[word] >= LEAST_SIGNED)
        and called[word] + signed[word] >= LEAST_SHARE * count
        and lower[word] <= MOST_LOWER * count
    )


def _capitals(words: list[str]) -> Iterable[str]:
    """Yield the words of a name, in lower case, up to the first without a capital."""
    for word in words:
        if not word[0].isupper() or word.isupper():
            return
        yield word.lower().removesuffix("'s")


def is_private(word: str, persons: frozenset[str]) -> bool:
    """Return whether a word in lower case is a number or a person's name."""
    return word in persons or word.removesuffix("'s") in persons or is_number(word)


def without_addresses(text: str) -> str:
    """Return a text in which a comma stands for each address.

    Examples
    --------
    >>> without_addresses("see www.example.org or ask me@example.org, not @me")
    'see , or ask ,, not ,'
    """
    return _ADDRESS.sub(",", text) if _MAY_HAVE_ADDRESS.search(text) else text


def without_private(text: str, persons: frozenset[str]) -> str:
    """Return a text in which a comma stands for numbers, addresses and persons' names.

    Examples
    --------
    >>> without_private("Ask Anna at a.b@c.org about order 123456 now", frozenset({"anna"}))
    'Ask , at , about order , now'
    """
    return re.sub(
        r"[\w'-]+",
        lambda match: "," if is_private(match[0].lower(), persons) else match[0],
        without_addresses(normalise_text(text)),
    )
