"""Check methods on a corpus: hide categories, discover, score, in several draws."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from newfound.checking.check import Check, MethodCheck
from newfound.checking.draws import SHARE, hide_categories
from newfound.checking.forecast import believed
from newfound.checking.scores import DrawScores, score_draw
from newfound.config import RunConfig
from newfound.data.corpus import Corpus
from newfound.encoding.feature_cache import cache_folder
from newfound.errors import InputError
from newfound.methods import find_method
from newfound.pipeline import discover
from newfound.progress import Stages

DRAWS = 4  # with SHARE, each category is hidden once
Tell = Callable[[str, int, DrawScores], None]  # method, draw from 0, its scores


def check(
    corpus: Corpus,
    config: RunConfig | None = None,
    *,
    methods: Sequence[str] | None = None,
    draws: int = DRAWS,
    share: float = SHARE,
    settings: Mapping[str, Any] | None = None,
    stages: Stages | None = None,
    tell: Tell | None = None,
) -> Check:
    """Measure the accuracy to expect of a discovery on a user's own table.

    Each draw hides a share of the known categories and a share of the labels of the others, runs a
    discovery with the remaining labels, and scores the texts whose labels were hidden. One more
    discovery has all labels; its probabilities and the scores of the draws give the forecast. All
    discoveries share one feature cache.

    Parameters
    ----------
    corpus : Corpus
        Texts with labels of at least four categories, and texts without labels.
    config : RunConfig, optional
        Settings of the discoveries. `n_categories` includes the hidden categories.
    methods : sequence of str, optional
        Methods to compare; by default the one of `config`.
    draws : int, default 4
        Number of draws; each hides other categories.
    share : float, default 0.25
        Share of the known categories that a draw hides.
    settings : Mapping, optional
        Hyper-parameters of the method by name; only for a single method.
    stages : Stages, optional
        Times the stages and shows their progress.
    tell : callable, optional
        Called after each discovery with method, draw and scores.

    Returns
    -------
    Check

    Examples
    --------
    >>> from newfound.checking.runner import check
    >>> from newfound.config import RunConfig
    >>> from newfound.data import demo
    >>> from newfound.data.corpus import Corpus
    >>> table = demo.load()[:300]
    >>> corpus = Corpus.from_lists(table["text"], table["label"])
    >>> found = check(corpus, RunConfig(method="bert", effort="fast", device="cpu"), draws=1)
    >>> found.methods[0].method, found.methods[0].mean("n_hidden")
    ('bert', 3.0)
    """
    config = config or RunConfig()
    names = list(dict.fromkeys(methods or [config.method]))
    for name in names:
        find_method(name)
    if settings and len(names) > 1:
        raise InputError(
            "settings apply to one method, and several are given; check one method at a time"
        )
    if draws < 1:
        raise InputError(f"the number of draws must be at least 1, not {draws}")
    hidden = [hide_categories(corpus, share, config.seed, draw) for draw in range(draws)]
    stages = stages or Stages(False)
    checked = []
    with cache_folder(config.cache) as cache:
        for name in names:
            begun, scores = time.perf_counter(), []
            own = replace(config, method=name, cache=cache)
            whole = believed(discover(corpus, own, settings=settings, stages=stages))
            for number, draw in enumerate(hidden):
                seeded = replace(own, seed=(config.seed + number) % 2**32)
                result = discover(draw.corpus, seeded, settings=settings, stages=stages)
                scores.append(
                    score_draw(draw, result.predicted, result.probability, len(result.categories))
                )
                if tell is not None:
                    tell(name, number, scores[-1])
            seconds = round(time.perf_counter() - begun, 3)
            checked.append(MethodCheck(name, tuple(scores), seconds, whole))
    return Check(
        methods=tuple(checked),
        texts=len(corpus),
        labelled=len(corpus) - corpus.labels.count(None),
        n_known=len(corpus.known),
        share=share,
        config={**asdict(config), "method": ",".join(names), "settings": dict(settings or {})},
    )
