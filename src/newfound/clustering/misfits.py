"""Whether more texts fit nowhere than expected.

A text fits nowhere if its fit score is below a threshold. How many of the training texts lie below
it is known, so of new texts of the same kind about the same share should. A one-sided binomial test
tells whether more do than chance explains. The expected share is itself known from a limited number
of training texts, so the test takes the upper end of its confidence interval.
"""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from newfound.wording import plural

if TYPE_CHECKING:
    from newfound.clustering.fit_scores import FitReference

USUAL_SHARE = 0.05  # of the training texts that count as fitting nowhere where no rule is given
CONFIDENCE = 0.95  # of the bound of the expected share
LEVEL = 0.01  # probability below which chance does not explain the number


@dataclass(frozen=True)
class Misfits:
    """How many texts fit nowhere, and how many were expected to.

    Attributes
    ----------
    texts : int
        Number of texts that are not empty.
    count : int
        Number of those that fit nowhere.
    expected : float
        Share of the training texts that fit nowhere by the same threshold.
    p_value : float
        Probability of at least `count` of `texts`, if the share is as expected.
    """

    texts: int
    count: int
    expected: float
    p_value: float

    @property
    def more_than_expected(self) -> bool:
        """Whether chance does not explain the number."""
        return self.p_value < LEVEL

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes by name."""
        return {**asdict(self), "more_than_expected": self.more_than_expected}

    def __str__(self) -> str:
        share = self.count / max(1, self.texts)
        verdict = "more than expected" if self.more_than_expected else "no more than expected"
        return (
            f"{plural(self.count, 'text fits', 'texts fit')} nowhere ({share:.1%} of "
            f"{self.texts:,}; {self.expected:.1%} in the run): {verdict}"
        )


def usual_threshold(reference: "FitReference") -> float:
    """Return the fit score below which 5% of the unlabelled training texts lie."""
    threshold = reference.threshold(outside=USUAL_SHARE)
    assert threshold is not None
    return threshold


def judge_misfits(count: int, texts: int, reference: "FitReference", threshold: float) -> Misfits:
    """Compare how many texts fit nowhere with how many of the training texts do.

    Parameters
    ----------
    count : int
        Texts whose fit score is below the threshold.
    texts : int
        All texts that are not empty.
    reference : FitReference
        Reference texts of the model.
    threshold : float

    Returns
    -------
    Misfits

    Examples
    --------
    >>> import numpy as np
    >>> from newfound.clustering.fit_scores import make_reference
    >>> vectors, none = np.random.default_rng(0).normal(size=(400, 3)) + 2, np.zeros(400, bool)
    >>> reference, _ = make_reference(vectors, np.zeros(400, int), none, frozen=False, seed=0)
    >>> print(judge_misfits(40, 200, reference, usual_threshold(reference)))
    40 texts fit nowhere (20.0% of 200; 5.0% in the run): more than expected
    """
    scores = reference.unlabelled if len(reference.unlabelled) else reference.labelled
    below = int((scores < threshold).sum())
    p_value = excess_p_value(count, texts, below, len(scores))
    return Misfits(texts, count, below / max(1, len(scores)), p_value)


def excess_p_value(count: int, texts: int, below: int, training: int) -> float:
    """Return the probability that at least `count` of `texts` lie below the threshold.

    P(X >= count) for X ~ Binomial(texts, s), where s is the upper bound of the one-sided 95%
    Clopper-Pearson interval of the share `below` / `training`.

    Examples
    --------
    >>> excess_p_value(5, 100, 50, 1000) > 0.5, excess_p_value(20, 100, 50, 1000) < 0.001
    (True, True)
    """
    from scipy.special import bdtrc, betaincinv

    if count == 0 or below >= training:  # all training texts lie below it, or there are none
        return 1.0
    share = betaincinv(below + 1, training - below, CONFIDENCE)
    return float(bdtrc(count - 1, texts, share))
