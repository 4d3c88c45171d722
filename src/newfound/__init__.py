"""Find the known and the new categories in a pile of texts."""

from typing import TYPE_CHECKING, Any

from newfound.errors import InputError
from newfound.versions import __version__

if TYPE_CHECKING:
    from newfound.estimator import CategoryDiscoverer
    from newfound.prediction import Predictor

__all__ = ["CategoryDiscoverer", "InputError", "Predictor", "__version__"]


def __getattr__(name: str) -> Any:
    # They import torch or numpy, which takes seconds: only when they are asked for.
    if name == "CategoryDiscoverer":
        from newfound.estimator import CategoryDiscoverer

        return CategoryDiscoverer
    if name == "Predictor":
        from newfound.prediction import Predictor

        return Predictor
    raise AttributeError(f"module 'newfound' has no attribute {name!r}")
