"""The languages that the encoders with a short name were trained for."""

from newfound.data.languages import Languages
from newfound.wording import plural

_ENGLISH = frozenset({"en"})
# As the card of paraphrase-multilingual-MiniLM-L12-v2 lists them; Norwegian under both codes.
_CARD = (
    "ar bg ca cs da de el en es et fa fi fr gl gu he hi hr hu hy id it ja ka ko ku lt lv mk mn mr "
    "ms my nb nl no pl pt ro ru sk sl sq sr sv th tr uk ur vi zh"
)
_MULTILINGUAL = frozenset(_CARD.split())
SERVED = {
    "minilm": _ENGLISH,
    "mpnet": _ENGLISH,
    "bert": _ENGLISH,
    "multilingual": _MULTILINGUAL,
}
LEAST_OUTSIDE = 0.05  # share of texts in other languages from which a warning is given


def share_not_served(languages: Languages | None, encoder: str) -> float:
    """Return the share of texts in languages that an encoder was not trained for.

    Parameters
    ----------
    languages : Languages or None
        Of the pile of texts.
    encoder : str
        As the user gave it; 0 is returned for one whose languages are not known.

    Returns
    -------
    float
        Between 0 and 1; 0 if it is too small for a warning.
    """
    served = SERVED.get(encoder)
    if languages is None or served is None:
        return 0.0
    share = languages.outside(served)
    return share if share >= LEAST_OUTSIDE else 0.0


def better_encoder(languages: Languages) -> str:
    """Return advice on an encoder for these languages."""
    if share_not_served(languages, "multilingual"):
        return "use an encoder for these languages (--encoder, encoder: a folder or a Hub id)"
    return "use the encoder multilingual (--encoder, encoder), which reads 50 languages"


def language_notes(languages: Languages | None, encoder: str) -> list[str]:
    """Return notes on the languages of a pile, none if it is all in English.

    Parameters
    ----------
    languages : Languages or None
        Of the pile of texts.
    encoder : str
        As the user gave it.

    Returns
    -------
    list of str
        The languages, and a warning if the encoder was not trained for them.
    """
    if languages is None or set(languages.shares) == _ENGLISH:
        return []
    looked_at = plural(languages.texts, "text")
    notes = [f"languages of the texts, estimated from {looked_at}: {languages.described}"]
    share = share_not_served(languages, encoder)
    if share:
        reads = "English only" if SERVED[encoder] == _ENGLISH else "other languages"
        notes.append(
            f"the encoder {encoder} reads {reads}, and {share:.0%} of the texts are in languages "
            "that it does not read: their categories and probabilities are not reliable; "
            f"{better_encoder(languages)}"
        )
    return notes
