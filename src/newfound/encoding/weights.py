"""Load stored weights into a module, with a check that they are its own."""

from collections.abc import Mapping

from torch import Tensor, nn

from newfound.errors import DamagedFileError


def load_weights(module: nn.Module, weights: Mapping[str, Tensor], where: str) -> None:
    """Load the weights, or raise DamagedFileError where names or shapes are not the module's.

    torch reports the same as a RuntimeError, which cannot be told from a failure of our own.
    """
    expected = module.state_dict()
    missing, more = sorted(expected.keys() - weights.keys()), sorted(weights.keys() - expected)
    if missing or more:
        what = f"has no {missing[0]!r}" if missing else f"has {more[0]!r}, which has no place"
        raise DamagedFileError(f"{where} {what}")
    for name, value in expected.items():
        if value.shape != weights[name].shape:
            found, wanted = tuple(weights[name].shape), tuple(value.shape)
            raise DamagedFileError(f"{where}: {name} has shape {found}, not {wanted}")
    module.load_state_dict(weights)
