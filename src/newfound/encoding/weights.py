"""Load saved weights into a module after checking their names and shapes."""

from collections.abc import Mapping

from torch import Tensor, nn

from newfound.errors import DamagedFileError


def load_weights(module: nn.Module, weights: Mapping[str, Tensor], where: str) -> None:
    """Load weights, or raise DamagedFileError if names or shapes do not match the module.

    torch raises a RuntimeError instead, which cannot be distinguished from a bug of this package.
    """
    expected = module.state_dict()
    missing, more = sorted(expected.keys() - weights.keys()), sorted(weights.keys() - expected)
    if missing or more:
        what = f"has no {missing[0]!r}" if missing else f"has {more[0]!r}, which is not expected"
        raise DamagedFileError(f"{where} {what}")
    for name, value in expected.items():
        if value.shape != weights[name].shape:
            found, wanted = tuple(weights[name].shape), tuple(value.shape)
            raise DamagedFileError(f"{where}: {name} has shape {found}, not {wanted}")
    module.load_state_dict(weights)
