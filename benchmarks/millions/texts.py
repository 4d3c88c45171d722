"""Make a million distinct texts from real ones by edits that keep their meaning.

An edit adds a polite beginning or ending, a typo, a reference number or another case. Categories
keep the shares that they have among the real texts.
"""

import random
from collections.abc import Callable
from pathlib import Path

from newfound.bench.datasets import DATA_SETS, read_data_set
from newfound.bench.speed.sample import KNOWN_RATIO, Sample
from newfound.errors import InputError

LABELLED = 20  # texts labelled of each known category
LEAST_LETTERS = 5  # of a word with a typo
MOST_EDITS = 3
TRIES = 20  # to make a new text, for each that is wanted
BEGINNINGS = (
    "hi, ", "hello, ", "hey there, ", "please help: ", "good morning, ", "good evening, ",
    "quick question: ", "sorry to bother you, ", "excuse me, ", "dear team, ", "one question, ",
    "hello again, ", "just wondering, ", "hi all, ",
)  # fmt: skip
ENDINGS = (
    " please", " thanks", " thank you", ", cheers", ", thanks in advance", ", many thanks",
    ", best regards", " thx", ", please help", ", thank you very much",
)  # fmt: skip
NUMBERS = ("(ref {})", "(case {})", "(my number is {})", "- ticket {}", "#{}")


def make_texts(folder: Path, count: int, seed: int = 0) -> dict[str, str]:
    """Return distinct texts with their categories: the real ones, and edited ones of them.

    Parameters
    ----------
    folder : Path
        Folder of the paper's data sets, of which those that are there are used.
    count : int
        Number of texts.
    seed : int

    Returns
    -------
    dict of str to str
        Category by text, in random order.
    """
    real: dict[str, str] = {}
    for name in DATA_SETS:
        if (folder / name).is_dir():
            data = read_data_set(folder, name)
            for text, label in zip(data.texts["train"], data.labels["train"], strict=True):
                real.setdefault(text, f"{name}: {label}")
    if not real:
        raise InputError(f"{folder} holds none of the data sets {', '.join(DATA_SETS)}")
    rng, found, sources = random.Random(seed), dict(real), list(real)
    for _ in range(TRIES * count):
        if len(found) >= count:
            break
        source = rng.choice(sources)
        found.setdefault(edited(source, rng), real[source])
    if len(found) < count:
        raise InputError(f"the texts in {folder} are too few to make {count:,} distinct ones")
    chosen = rng.sample(list(found), count)
    return {text: found[text] for text in chosen}


def edited(text: str, rng: random.Random) -> str:
    """Return a text with one to three edits that keep its meaning.

    Examples
    --------
    >>> edited("where is my card", random.Random(1))
    'excuse me, where is my crad'
    """
    for edit in rng.sample(EDITS, rng.randint(1, MOST_EDITS)):
        text = edit(text, rng)
    return text


def _beginning(text: str, rng: random.Random) -> str:
    return rng.choice(BEGINNINGS) + text


def _ending(text: str, rng: random.Random) -> str:
    return text + rng.choice(ENDINGS)


def _number(text: str, rng: random.Random) -> str:
    return f"{text} {rng.choice(NUMBERS).format(rng.randint(1_000, 999_999))}"


def _case(text: str, rng: random.Random) -> str:
    return rng.choice((text.upper(), text.lower(), text[:1].upper() + text[1:], text.title()))


def _typo(text: str, rng: random.Random) -> str:
    """Return the text with two letters of a long word swapped, or one lost or doubled."""
    words = text.split(" ")
    long = [at for at, word in enumerate(words) if len(word) >= LEAST_LETTERS and word.isalpha()]
    if not long:
        return text
    at = rng.choice(long)
    word, place = words[at], rng.randint(1, len(words[at]) - 3)
    here, following = word[place], word[place + 1]
    middle = rng.choice((following + here, here, here + here + following))
    words[at] = word[:place] + middle + word[place + 2 :]
    return " ".join(words)


EDITS: tuple[Callable[[str, random.Random], str], ...] = (
    _beginning, _ending, _number, _case, _typo,
)  # fmt: skip


def make_sample(folder: Path, count: int, seed: int = 0) -> Sample:
    """Return texts of which 20 of each of three quarters of the categories are labelled."""
    made = make_texts(folder, count, seed)
    texts, truth = list(made), list(made.values())
    rng, categories = random.Random(seed), sorted(set(truth))
    known = sorted(rng.sample(categories, round(KNOWN_RATIO * len(categories))))
    left = dict.fromkeys(known, LABELLED)
    labels = []
    for category in truth:
        labels.append(category if left.get(category, 0) else "")
        if category in left:
            left[category] = max(0, left[category] - 1)
    return Sample(texts, labels, truth, known)
