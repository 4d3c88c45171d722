"""The part of a large table that a method is fitted on, and the result on the whole table."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

from newfound.arrays import as_recorded
from newfound.category import Category
from newfound.checkpoints import Kept
from newfound.clustering.fit_scores import with_scores
from newfound.data.corpus import Corpus
from newfound.describing.volume import with_volumes
from newfound.encoding.vectors.frozen_encoder import AnyEncoder
from newfound.large.assigning import Assigned, assign_all
from newfound.large.duplicates import fold_duplicates
from newfound.large.sample import draw_sample
from newfound.large.sharing import Engine
from newfound.large.vectors import KeptVectors, keep_vectors
from newfound.marking import mark_outside, with_fits
from newfound.progress import Stages
from newfound.result import Result

LEAST_PER_CATEGORY = 20  # texts of the sample for each category that is asked for


@dataclass(frozen=True, eq=False)
class FitSample:
    """The texts that a method is fitted on, and the vectors of all.

    Attributes
    ----------
    rows : ndarray of int64
        Rows of the sample, sorted.
    different : int
        Number of texts after near-duplicates were folded.
    kept : KeptVectors
        Of all texts.
    """

    rows: np.ndarray
    different: int
    kept: KeptVectors

    @property
    def vectors(self) -> np.ndarray:
        """Vectors of the sample, float16 [n, w]."""
        return self.kept.of(self.rows)

    @property
    def note(self) -> str:
        """What the user should know about the sample."""
        texts = len(self.kept.place)
        return (
            f"categories are fitted on a sample of {len(self.rows):,} of {texts:,} texts, of which "
            f"{self.different:,} differ in more than case, spacing and long numbers; names, "
            "keywords, typical texts and the map come from the sample, and every text is assigned "
            "(--fit-texts, fit_texts)"
        )


def fit_sample(
    corpus: Corpus,
    encoder: AnyEncoder,
    size: int,
    n_categories: int | None,
    *,
    seed: int,
    stages: Stages,
    cache: Path | None,
    engine: Engine | None = None,
) -> FitSample:
    """Encode all texts and draw those to fit a method on.

    Parameters
    ----------
    corpus : Corpus
        Its texts are sorted.
    encoder : Encoder or VectorEncoder
    size : int
        Number of texts to draw; more are drawn if many categories are known or asked for.
    n_categories : int or None
        Number of categories that is asked for, if any.
    seed : int
    stages : Stages
    cache : Path, optional
        Folder that keeps the vectors for later runs; not with an engine.
    engine : callable, optional
        Shares the encoding among workers; see `newfound.large.sharing`.

    Returns
    -------
    FitSample
    """
    kept = keep_vectors(corpus, encoder, stages, cache, engine)
    targets, known = corpus.targets, len(corpus.known)
    size = max(size, LEAST_PER_CATEGORY * max(n_categories or 0, known))

    def work() -> Kept:
        folded = fold_duplicates(corpus.texts, targets).first
        drawn = draw_sample(
            lambda rows: kept.of(folded[rows]), targets[folded], size, seed, encoder.device
        )
        return Kept(len(folded), {"rows": torch.from_numpy(folded[drawn])})

    with stages.stage("sampling"):
        found = stages.checkpoints.compute("sampling", work)
    return FitSample(found.tensors["rows"].numpy(), found.value, kept)


def whole_result(result: Result, corpus: Corpus, sample: FitSample, stages: Stages) -> Result:
    """Return the result on a whole corpus from the result on its sample.

    All texts are assigned; sizes, confidences and fit scores of the categories are those of all
    texts, their descriptions those of the sample. Texts outside the sample have no place on the
    map.

    Parameters
    ----------
    result : Result
        On the sample, with its model.
    corpus : Corpus
        The whole corpus, sorted.
    sample : FitSample
    stages : Stages

    Returns
    -------
    Result
    """
    assert result.model is not None
    assert result.model.fit_reference is not None
    found = assign_all(result.model, corpus, sample.kept, stages)
    given = corpus.targets
    assigned = np.where(given >= 0, given, found.predicted)
    reference = with_scores(result.model.fit_reference, found.fit, given >= 0)
    model = replace(result.model, fit_reference=reference)
    outside, notes = mark_outside(model, found.fit, given >= 0)
    counted = _counted(result.categories, assigned, given, found)
    categories = with_fits(counted, assigned, found.fit, outside)
    categories = with_volumes(categories, corpus, assigned)
    return replace(
        result,
        corpus=corpus,
        categories=categories,
        assigned=assigned,
        predicted=found.predicted,
        probability=as_recorded(found.probability),
        best_known=found.best_known,
        best_known_probability=as_recorded(found.best_known_probability),
        fit=as_recorded(found.fit),
        fits_nowhere=outside,
        positions=partial(_scattered, result.positions, sample.rows, len(corpus)),
        model=replace(model, categories=categories),
        training_features=None,
        long_texts=sample.kept.long,
        notes=(*(note for note in result.notes if note not in notes), *notes),
        seconds={name: round(value, 3) for name, value in stages.seconds.items()},
        sample={
            "texts": len(corpus),
            "different": sample.different,
            "fitted": len(sample.rows),
        },
    )


def _counted(
    categories: tuple[Category, ...], assigned: np.ndarray, given: np.ndarray, found: Assigned
) -> tuple[Category, ...]:
    """Return the categories with the numbers of all texts and their mean probability."""
    total = len(categories)
    sizes = np.bincount(assigned, minlength=total)
    labelled = np.bincount(given[given >= 0], minlength=total)
    sure = np.bincount(assigned, weights=found.probability.astype(np.float64), minlength=total)
    return tuple(
        replace(
            category,
            size=int(sizes[i]),
            share=float(sizes[i] / len(assigned)),
            labelled=int(labelled[i]),
            confidence=float(sure[i] / sizes[i]) if sizes[i] else 0.0,
        )
        for i, category in enumerate(categories)
    )


def _scattered(
    positions: np.ndarray | Callable[[], np.ndarray], rows: np.ndarray, count: int
) -> np.ndarray:
    """Return map positions [count, 2] that are NaN but for the rows of the sample."""
    scattered = np.full((count, 2), np.nan)
    scattered[rows] = positions() if callable(positions) else positions
    return scattered
