"""Find the known and the new categories in a pile of texts."""

from typing import TYPE_CHECKING, Any

from newfound.errors import InputError
from newfound.versions import __version__

if TYPE_CHECKING:
    from newfound.estimator import CategoryDiscoverer

__all__ = ["CategoryDiscoverer", "InputError", "__version__"]


def __getattr__(name: str) -> Any:
    # The estimator imports torch, which takes seconds: only when it is asked for.
    if name == "CategoryDiscoverer":
        from newfound.estimator import CategoryDiscoverer

        return CategoryDiscoverer
    raise AttributeError(f"module 'newfound' has no attribute {name!r}")
