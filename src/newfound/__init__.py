"""Find the known and the new categories in a pile of texts."""

from typing import TYPE_CHECKING, Any

from newfound.errors import InputError

if TYPE_CHECKING:
    from newfound.discoverer import CategoryDiscoverer

__all__ = ["CategoryDiscoverer", "InputError", "__version__"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # The discoverer imports torch, which takes seconds: only when it is asked for.
    if name == "CategoryDiscoverer":
        from newfound.discoverer import CategoryDiscoverer

        return CategoryDiscoverer
    raise AttributeError(f"module 'newfound' has no attribute {name!r}")
