"""Choose the frozen encoder that a user names, or that a saved model was fitted with."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from newfound.encoding.vectors.address import is_address, parse_address
from newfound.encoding.vectors.frozen_encoder import FrozenEncoder, GivenVectors
from newfound.errors import DamagedFileError


def find_frozen(name: str, vectors: np.ndarray | None) -> FrozenEncoder | None:
    """Return the frozen encoder of a run, None if the backbone of this package runs the encoder.

    Parameters
    ----------
    name : str
        Encoder, as the user named it.
    vectors : ndarray of shape (N, d) or None
        Vectors that the user computed, if any; no encoder runs then.

    Returns
    -------
    FrozenEncoder or None
    """
    if vectors is not None:
        return GivenVectors(vectors.shape[1])
    if is_address(name):
        from newfound.encoding.vectors.service import ServiceEncoder

        return ServiceEncoder(parse_address(name))
    return None


def from_dict(value: Mapping[str, Any], fingerprint: str) -> FrozenEncoder:
    """Return the frozen encoder of a saved model; it loads what it needs when it encodes.

    Parameters
    ----------
    value : mapping
        What its `to_dict` returned.
    fingerprint : str
        Its fingerprint when the model was fitted.

    Returns
    -------
    FrozenEncoder
    """
    if value.get("kind") == GivenVectors.kind:
        return GivenVectors.from_dict(value)
    if value.get("kind") == "service":
        from newfound.encoding.vectors.service import ServiceEncoder

        return ServiceEncoder.from_dict(value)
    raise DamagedFileError(f"vectors.json: the kind {str(value.get('kind'))[:40]!r} does not exist")
