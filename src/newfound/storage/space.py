"""How much space a run will take, estimated before the work begins."""

from pathlib import Path

from newfound.clustering.fit_scores import MOST_TEXTS
from newfound.config import RunConfig
from newfound.data.corpus import Corpus
from newfound.encoding.loading import find_folder
from newfound.encoding.vectors.choice import find_frozen
from newfound.encoding.weights import stored_shapes
from newfound.files.space import check_free_space, existing
from newfound.methods import find_method

PER_TEXT = 300  # bytes of a text's row in the table and in the report, beside the text
USUAL_WIDTH = 1024  # of the vectors of an encoder that has not run yet
HEAD = 5_000  # bytes of a head per dimension of a vector
FIXED = 500_000  # bytes of the report's page and of small files


def check_run_space(folder: Path, corpus: Corpus, config: RunConfig) -> None:
    """Raise InputError if the disks have too little space for a run and its cache.

    Parameters
    ----------
    folder : Path
        The run folder.
    corpus : Corpus
    config : RunConfig
    """
    run, cache = estimate_bytes(corpus, config)
    if config.cache is not None:
        place = Path(config.cache)
        if any(existing(place).glob("*.features")):  # perhaps of these texts
            cache = 0
        if existing(place).stat().st_dev == existing(folder).stat().st_dev:
            run += cache
        else:
            check_free_space(place, cache, "the cache")
    check_free_space(folder, run, "the run")


def estimate_bytes(corpus: Corpus, config: RunConfig) -> tuple[int, int]:
    """Return about how many bytes a run folder takes, and the least that its cache takes."""
    texts = sum(len(text.encode("utf-8", "replace")) for text in corpus.texts)
    others = sum(len(cell) + 1 for column in corpus.columns.values() for cell in column)
    table = 2 * texts + others + PER_TEXT * len(corpus) + FIXED
    if find_frozen(config, corpus.vectors) is not None:
        width = USUAL_WIDTH if corpus.vectors is None else corpus.vectors.shape[1]
        reference = 2 * width * min(len(corpus), MOST_TEXTS)
        return table + reference + HEAD * width, 2 * width * len(corpus)
    encoder = find_folder(config.encoder)
    shapes = stored_shapes(encoder / "model.safetensors")
    width = next((shape[1] for name, shape in shapes.items() if _is_words(name, shape)), 0)
    run = table + 2 * width * min(len(corpus), MOST_TEXTS)
    if find_method(config.method).keeps_encoder:
        run += 4 * sum(_size(shape) for name, shape in shapes.items() if _is_backbone(name))
        tokenizer = encoder / "tokenizer.json"
        run += tokenizer.stat().st_size if tokenizer.is_file() else 0
    return run, 2 * width * len(corpus)


def _is_words(name: str, shape: tuple[int, ...]) -> bool:
    """Return whether a weight holds the word embeddings."""
    return name.endswith(("word_embeddings.weight", "tok_embeddings.weight")) and len(shape) == 2


def _is_backbone(name: str) -> bool:
    """Return whether a weight is saved with a model; those of a masked-word head are not."""
    heads = ("cls.", "lm_head.", "vocab_", "pooler.", "head.", "decoder.")
    return not name.startswith(heads) and ".pooler." not in name


def _size(shape: tuple[int, ...]) -> int:
    """Return the number of values of an array."""
    size = 1
    for length in shape:
        size *= length
    return size
