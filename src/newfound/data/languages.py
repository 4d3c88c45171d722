"""Detect the languages of a pile of texts with py3langid.

Short texts are hard to tell apart, so the languages are those of the pile, not of a text:

1. classify up to SAMPLE different texts, spread evenly over the sorted texts;
2. keep the languages of at least LEAST_SHARE of these texts, or else the most frequent one;
3. classify the texts again, among these languages only, and report the shares.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

SAMPLE = 1_000  # texts that are classified
LONGEST = 500  # characters of a text that are read
LEAST_SHARE = 0.03  # of the texts; single short texts are often taken for another language
LEAST_TEXTS = 3
NO_LANGUAGE = "zxx"  # the code of texts such as numbers
NAMES = {
    "af": "Afrikaans", "am": "Amharic", "ar": "Arabic", "az": "Azerbaijani", "be": "Belarusian",
    "bg": "Bulgarian", "bn": "Bengali", "bs": "Bosnian", "ca": "Catalan", "cs": "Czech",
    "cy": "Welsh", "da": "Danish", "de": "German", "el": "Greek", "en": "English", "es": "Spanish",
    "et": "Estonian", "eu": "Basque", "fa": "Persian", "fi": "Finnish", "fr": "French",
    "ga": "Irish", "gl": "Galician", "gu": "Gujarati", "ha": "Hausa", "he": "Hebrew",
    "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian", "hy": "Armenian", "id": "Indonesian",
    "is": "Icelandic", "it": "Italian", "ja": "Japanese", "ka": "Georgian", "kk": "Kazakh",
    "km": "Khmer", "kn": "Kannada", "ko": "Korean", "ku": "Kurdish", "ky": "Kyrgyz", "lo": "Lao",
    "lt": "Lithuanian", "lv": "Latvian", "mk": "Macedonian", "ml": "Malayalam", "mn": "Mongolian",
    "mr": "Marathi", "ms": "Malay", "mt": "Maltese", "my": "Burmese", "ne": "Nepali",
    "nl": "Dutch", "nn": "Norwegian", "no": "Norwegian", "pa": "Punjabi", "pl": "Polish",
    "ps": "Pashto", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "si": "Sinhala",
    "sk": "Slovak", "sl": "Slovenian", "so": "Somali", "sq": "Albanian", "sr": "Serbian",
    "sv": "Swedish", "sw": "Swahili", "ta": "Tamil", "te": "Telugu", "th": "Thai",
    "tl": "Tagalog", "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu", "uz": "Uzbek",
    "vi": "Vietnamese", "yo": "Yoruba", "zh": "Chinese", "zu": "Zulu",
}  # fmt: skip


@dataclass(frozen=True)
class Languages:
    """The languages of a pile of texts.

    Attributes
    ----------
    shares : mapping of str to float
        Share of the texts by ISO 639 code, the largest first.
    texts : int
        Number of texts that were classified.

    Examples
    --------
    >>> found = Languages({"de": 0.62, "en": 0.38}, 1000)
    >>> found.described, round(found.outside({"en"}), 2)
    ('German 62%, English 38%', 0.62)
    """

    shares: Mapping[str, float]
    texts: int

    @property
    def described(self) -> str:
        """The languages with their shares in percent."""
        return ", ".join(
            f"{NAMES.get(code, code)} {share:.0%}" for code, share in self.shares.items()
        )

    def outside(self, served: frozenset[str] | set[str]) -> float:
        """Return the share of texts in languages other than those served."""
        return sum(share for code, share in self.shares.items() if code not in served)

    def to_dict(self) -> dict[str, Any]:
        """Return the value that run.json holds."""
        return {"shares": dict(self.shares), "texts": self.texts}


def detect_languages(texts: Sequence[str]) -> Languages | None:
    """Return the languages of a pile of texts.

    Parameters
    ----------
    texts : sequence of str
        At most SAMPLE different ones are read.

    Returns
    -------
    Languages or None
        None if no text has a language, such as in a list of numbers.

    Examples
    --------
    >>> detect_languages(["wo ist mein Paket", "ich möchte mein Geld zurück"]).described
    'German 100%'
    """
    different = sorted(set(texts))
    step = max(1.0, len(different) / SAMPLE)
    sample = [different[int(i * step)] for i in range(min(SAMPLE, len(different)))]
    ranked = [_ranked(text) for text in sample]
    counts = Counter(codes[0] for codes in ranked if codes and codes[0] != NO_LANGUAGE)
    if not counts:
        return None
    least = max(LEAST_TEXTS, LEAST_SHARE * len(sample))
    order = sorted(counts, key=lambda code: (-counts[code], code))
    kept = [code for code in order if counts[code] >= least] or order[:1]
    again = Counter(
        next(code for code in codes if code in kept)
        for codes in ranked
        if codes and codes[0] != NO_LANGUAGE
    )
    total = sum(again.values())
    order = sorted(again, key=lambda code: (-again[code], code))
    return Languages({code: round(again[code] / total, 4) for code in order}, total)


def _ranked(text: str) -> list[str]:
    """Return the codes of all languages, the most probable first; none for text without letters."""
    start = text[:LONGEST]
    if not any(letter.isalpha() for letter in start):
        return []
    return [code for code, _ in _identifier().rank(start)]


@cache
def _identifier() -> Any:
    """Return the classifier; its model takes most of a second to load."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE)
