"""Split texts of any language into words, and compare words and texts.

There is no word list and no language detection. Text with spaces is split at them. Scripts without
spaces (Chinese, Japanese, Thai, ...) are split into all short runs of characters; keyword scores
and the neighbours of a run then select the runs that are words.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator

BREAK = ""  # separates words that are not neighbours: a comma, a full stop, a bracket
LONGEST_TEXT = 2_000  # characters read of one text: a keyword occurs early, or in other texts
LONGEST_WORD = 40  # characters; anything longer is an address or a key
LONGEST_ENDING = 5  # letters in which two forms of one word may differ
SAME_SIDE = 0.75  # share of the uses of a run beside the same letter, above which it is no word
SAME_WORDS = 0.67  # two texts with this share of words in common count as the same


def _marks() -> str:
    """Return the combining marks of modern scripts, which `\\w` does not match."""
    blocks = (range(0x300, 0x1E00), range(0x20D0, 0x2100), range(0xA600, 0xAC00))
    return "".join(
        chr(c) for block in blocks for c in block if unicodedata.category(chr(c))[0] == "M"
    )


_MARKS = _marks()
_IN_WORD = rf"[\w{_MARKS}\u200c\u200d]"  # the last two join letters in Persian and Indic words
_KATAKANA = "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3005-\u3007\u3041-\u309f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
# An elided article (l'argent) is a separate word; a contraction (don't) is one word; c++ and c#
# keep their sign; a dot inside a word (node.js) splits it but does not end the phrase.
_WORD = re.compile(
    rf"\w{{1,2}}'(?=\w{{3}})|\w{_IN_WORD}*(?:'{_IN_WORD}+)*(?:[+#]{{1,2}}(?!\w))?"
    r"|[.,:](?=\s|$)|[;!?…()\[\]{}<>|\"“”«»\n\r\u3001\u3002\uff0c\u060c\u0964]"
)
_HIRAGANA = "\u3041-\u309f"
# Hiragana are mostly particles and endings, so a change between them and other letters is a border.
_PIECE = re.compile(
    rf"[{_KATAKANA}]{{2,}}|[{_HIRAGANA}]+|(?:(?![{_HIRAGANA}])[{_UNSPACED}{_MARKS}])+"
    rf"|[{_KATAKANA}]|[^{_UNSPACED}{_KATAKANA}]+"
)
_WHOLE_PIECE = re.compile(rf"[{_KATAKANA}]{{2,}}|[{_HIRAGANA}]{{3,}}")
_HIRAGANA_RUN = re.compile(rf"[{_HIRAGANA}]")
_UNSPACED_RUN = re.compile(rf"[{_UNSPACED}{_KATAKANA}]")
_HANGUL = re.compile("[\uac00-\ud7a3]")
_ARTICLE = re.compile("[\u0590-\u06ff]{1,2}")
# A Thai or Lao vowel that is written before its consonant, or after it, belongs to it.
_BEFORE, _AFTER = "\u0e40-\u0e44\u0ec0-\u0ec4", "\u0e30\u0e32\u0e33\u0e45\u0eb0\u0eb2\u0eb3"
_CLUSTER = re.compile(rf"[{_BEFORE}]?[^{_MARKS}][{_MARKS}{_AFTER}]*")
_THAI_OR_LAO = re.compile("[\u0e00-\u0eff]")


def normalise_text(text: str) -> str:
    """Return the start of a text in Unicode normal form, with case kept."""
    text = text[:LONGEST_TEXT]
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).replace("\u2019", "'")
    return text.replace("_", " ")


def words(text: str) -> list[str]:
    """Split a text into lower-case words.

    Parameters
    ----------
    text : str

    Returns
    -------
    list of str
        Words in order, with BREAK between neighbours that do not form a phrase.

    Examples
    --------
    >>> words("Lost card, new PIN")
    ['lost', 'card', '', 'new', 'pin']
    """
    found = _WORD.findall(normalise_text(text).lower())
    if text.isascii():
        return [
            word if word[0].isalnum() and len(word) <= LONGEST_WORD else BREAK for word in found
        ]
    cut: list[str] = []
    for word in found:
        if not word[0].isalnum():
            cut.append(BREAK)
        elif _UNSPACED_RUN.search(word):
            cut.extend(_pieces(word))
        else:
            cut.append(word if len(word) <= LONGEST_WORD else BREAK)
    return cut


def _pieces(run: str) -> Iterator[str]:
    """Yield the words and the short runs of characters in text without spaces."""
    for piece in _PIECE.findall(run):
        yield BREAK
        if _UNSPACED_RUN.match(piece) is None or _WHOLE_PIECE.fullmatch(piece):
            yield piece if len(piece) <= LONGEST_WORD else BREAK
            continue
        if _HIRAGANA_RUN.match(piece):  # a particle or an ending
            continue
        clusters = _CLUSTER.findall(piece)
        # Two to four Chinese characters make a word, and up to six parts of a Thai one.
        longest = 6 if _THAI_OR_LAO.match(piece) else 4
        lengths = range(2, longest + 1) if len(clusters) > 1 else range(1, 2)
        for length in lengths:
            for start in range(len(clusters) - length + 1):
                yield "".join(clusters[start : start + length])
                yield BREAK  # runs overlap, so two of them never form a pair
    yield BREAK


def spans(text: str) -> list[tuple[str, int, int]]:
    """Return (word, start, end) in `normalise_text(text)`, with BREAKs; runs are not split."""
    return [
        (match[0].lower() if match[0][0].isalnum() else BREAK, match.start(), match.end())
        for match in _WORD.finditer(normalise_text(text))
    ]


def is_written(character: str) -> bool:
    """Return True if a character is part of words: a letter, a digit, a mark or a joiner."""
    return character.isalnum() or character in _MARKS or character in "\u200c\u200d"


def is_whole(run: str, texts: str) -> bool:
    """Return whether a run of characters without spaces looks like a whole word in texts.

    The letters beside a word vary; those beside a part of a word are mostly the same.

    Parameters
    ----------
    run : str
        Characters of a script without spaces.
    texts : str
        Texts that contain the run, in lower case, on separate lines.

    Returns
    -------
    bool
        False if more than three quarters of its uses, of at least two, follow the same letter or
        come before the same letter.

    Examples
    --------
    >>> is_whole("退款", "我要退款\\n退款在哪\\n还没退款吗")
    True
    >>> is_whole("款在", "退款在哪\\n我的退款在哪里\\n退款在吗")
    False
    """
    sides: tuple[Counter[str], Counter[str]] = Counter(), Counter()
    uses = 0
    place = texts.find(run)
    while place >= 0:
        uses += 1
        end = place + len(run)
        for side, letter in zip(
            sides, (texts[max(0, place - 1) : place], texts[end : end + 1]), strict=True
        ):
            side[letter if letter and _UNSPACED_RUN.match(letter) else f"{BREAK}{uses}"] += 1
        place = texts.find(run, end)
    return uses < 2 or all(max(side.values()) <= SAME_SIDE * uses for side in sides)


def unspaced(text: str) -> bool:
    """Return True if a text contains a script without spaces between words."""
    return not text.isascii() and _UNSPACED_RUN.search(text) is not None


def same_stem(first: str, second: str) -> bool:
    """Return True if two words look like forms of one word: same start, short endings.

    Examples
    --------
    >>> same_stem("payment", "payments"), same_stem("card", "cash")
    (True, False)
    >>> same_stem("kirjautuminen", "kirjautumisessa"), same_stem("택배가", "택배를")
    (True, True)
    """
    if first == second:
        return True
    if first[:1] > "\u024f" and _ARTICLE.fullmatch(_longer_start(first, second)):
        return True  # Arabic and Hebrew write the article at the start of the word
    common = 0
    for a, b in zip(first, second, strict=False):
        if a != b:
            break
        common += 1
    endings = max(len(first), len(second)) - common
    if _HANGUL.match(first):  # a syllable is one character
        return common >= 2 and endings <= 2
    return common >= 4 and endings <= LONGEST_ENDING and common >= 2 * endings


def _longer_start(first: str, second: str) -> str:
    """Return what one word has before the other one, "" if it does not end in the other."""
    short, long = sorted((first, second), key=len)
    return long.removesuffix(short) if len(short) > 2 and long.endswith(short) else ""


def overlap(first: str, second: str) -> int:
    """Return how many characters the end of one string shares with the start of the other.

    Examples
    --------
    >>> overlap("abcd", "cdef")
    2
    """
    reach = range(min(len(first), len(second)), 0, -1)
    return max(
        next((n for n in reach if first.endswith(second[:n])), 0),
        next((n for n in reach if second.endswith(first[:n])), 0),
    )


def same_words(first: frozenset[str], second: frozenset[str]) -> bool:
    """Return True if two texts, as sets of words, count as the same text."""
    if not first or not second:
        return first == second
    return len(first & second) >= SAME_WORDS * len(first | second)
