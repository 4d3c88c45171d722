"""A tiny GloVe file: words of one subject have vectors that lie together."""

from pathlib import Path

import numpy as np

SUBJECTS = 4
WORDS_EACH = 40


def subject_words(subject: int) -> list[str]:
    """The words of one subject."""
    return [f"{'abcd'[subject]}{'xyz'[i % 3]}{i}" for i in range(WORDS_EACH)]


def write_vectors(path: Path, *, meaning: bool = True, width: int = 6) -> Path:
    """Write vectors of all subjects' words; without `meaning` the same vectors in random order."""
    rng = np.random.default_rng(0)
    centres = 3 * np.eye(SUBJECTS, width)
    words = [word for subject in range(SUBJECTS) for word in subject_words(subject)]
    subjects = np.repeat(np.arange(SUBJECTS), WORDS_EACH)
    vectors = centres[subjects] + 0.3 * rng.normal(size=(len(words), width))
    if not meaning:
        vectors = rng.permutation(vectors)
    lines = [
        f"{word} {' '.join(f'{x:.5f}' for x in row)}"
        for word, row in zip(words, vectors, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def subject_texts(each: int = 20, seed: int = 0) -> tuple[list[str], np.ndarray]:
    """Texts of three words of their subject, so that two texts hardly share one; their subjects."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.repeat(np.arange(SUBJECTS), each))
    texts = [" ".join(rng.choice(subject_words(s), 3, replace=False)) for s in truth]
    return texts, truth
