"""Tables in which nearly every text has a label, or a category of its own."""

import random
from dataclasses import fields

import numpy as np
import pytest
import torch
from support.small_texts import WORDS_OF

from newfound import pipeline
from newfound.clustering.assignment import fit_temperature, near_ties, squared_distances
from newfound.clustering.n_categories import estimate_categories
from newfound.config import RunConfig
from newfound.data.corpus import Corpus
from newfound.errors import InputError
from newfound.methods import METHODS

WORDS = " ".join(WORDS_OF.values()).split()
# Labelled texts, labels and unlabelled texts.
SHAPES = {
    "more labels than half the texts": (50, 50, 10),
    "one unlabelled text": (50, 50, 1),
    "every text its own label": (50, 50, 0),
    "all labelled": (30, 10, 0),
    "few texts": (7, 7, 1),
    "two texts": (2, 2, 0),
    "one labelled text": (1, 1, 1),
}


def corpus_of(labelled: int, labels: int, unlabelled: int) -> Corpus:
    """Return different texts; the labels are given in turn."""
    draw, texts = random.Random(0), dict[str, None]()
    while len(texts) < labelled + unlabelled:
        texts[" ".join(draw.choices(WORDS, k=5))] = None
    given = [f"label {i % labels}" for i in range(labelled)]
    return Corpus.from_lists(list(texts), [*given, *[None] * unlabelled])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("method", ["newfound", "dpn", "semi-km", "bert", "cdac+", "deepcluster"])
def test_estimate_has_all_known_categories_and_discover_succeeds(
    method: str, shape: str, tiny_encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("newfound.methods.newfound.config.MIN_STEPS", 0)
    corpus = corpus_of(*SHAPES[shape])
    config = RunConfig(method=method, encoder=tiny_encoder, effort="fast", device="cpu")
    names = [field.name for field in fields(METHODS[method].config)]
    settings = {name: 1 for name in names if "epochs" in name or "initialisations" in name}
    settings |= {"initialisation_rounds": 0} if method == "newfound" else {}
    found = pipeline.estimate(corpus, config, settings=settings)
    known, most = len(corpus.known), len(corpus.known) + corpus.labels.count(None)
    assert known <= found.low <= found.n_categories <= found.high <= most
    assert known <= min(found.candidates) <= max(found.candidates) <= most
    result = pipeline.discover(corpus, config, settings=settings)
    assert len(result.categories) == found.n_categories
    assert result.estimate == found
    assert [c.name for c in result.categories[:known]] == corpus.known
    assert np.isfinite(result.map_positions).all()


def test_fewer_categories_than_known_are_refused(tiny_encoder: str) -> None:
    corpus = corpus_of(50, 50, 10)
    with pytest.raises(InputError, match="50 are known from the labels"):
        pipeline.discover(corpus, RunConfig(encoder=tiny_encoder, n_categories=49))


@pytest.mark.parametrize(("known", "each"), [(30, 1), (30, 2), (8, 1), (3, 20)])
@pytest.mark.parametrize("unlabelled", [1, 2, 5, 40])
def test_estimate_stays_between_the_known_categories_and_one_for_each_unlabelled_text(
    known: int, each: int, unlabelled: int
) -> None:
    points = torch.randn(known * each + unlabelled, 8, generator=torch.Generator().manual_seed(0))
    targets = torch.cat([torch.arange(known).repeat(each), torch.full((unlabelled,), -1)])
    found = estimate_categories(points, targets)
    assert known <= found.low <= found.n_categories <= found.high <= known + unlabelled
    assert known <= min(found.candidates) <= max(found.candidates) <= known + unlabelled
    assert len(found.candidates) == len(found.scores)


def test_thousands_of_categories_are_compared_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    prototypes, features = rng.normal(size=(2000, 4)), rng.normal(size=(300, 4))
    features[:5] = (prototypes[:5] + prototypes[5:10]) / 2
    whole = near_ties(features, prototypes, 0.01)
    temperature = fit_temperature(features, prototypes, np.arange(300))
    largest = 0

    def measured(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        nonlocal largest
        largest = max(largest, len(one) * len(other))
        return squared_distances(one, other)

    monkeypatch.setattr("newfound.clustering.assignment.squared_distances", measured)
    monkeypatch.setattr("newfound.clustering.assignment.CELLS", 10_000)
    monkeypatch.setattr("newfound.clustering.assignment.LEAST_LABELS", 50)
    np.testing.assert_array_equal(near_ties(features, prototypes, 0.01), whole)
    assert largest <= 10_000
    assert fit_temperature(features, prototypes, np.arange(300)) == pytest.approx(temperature, 0.5)
