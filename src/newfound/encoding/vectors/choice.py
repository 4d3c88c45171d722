"""Choose the frozen encoder that a user names, or that a saved model was fitted with."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from newfound.config import RunConfig
from newfound.encoding.loading import SHORT_NAMES, find_folder
from newfound.encoding.vectors.address import is_address, parse_address
from newfound.encoding.vectors.frozen_encoder import FrozenEncoder, GivenVectors
from newfound.encoding.vectors.sentence_folder import read_folder
from newfound.errors import DamagedFileError


def find_frozen(config: RunConfig, vectors: np.ndarray | None) -> FrozenEncoder | None:
    """Return the frozen encoder of a run, None if the backbone of this package runs the encoder.

    Parameters
    ----------
    config : RunConfig
        Names the encoder.
    vectors : ndarray of shape (N, d) or None
        Vectors that the user computed, if any; no encoder runs then.

    Returns
    -------
    FrozenEncoder or None
    """
    if vectors is not None:
        return GivenVectors(vectors.shape[1])
    if is_address(config.encoder):
        from newfound.encoding.vectors.service import ServiceEncoder

        return ServiceEncoder(parse_address(config.encoder), prompt=config.prompt)
    if config.prompt is None and not config.trust_remote_code and config.encoder in SHORT_NAMES:
        return None
    folder = read_folder(find_folder(config.encoder))
    plain = folder.own_family and not folder.foreign_modules and not folder.prompt(config.prompt)[0]
    if plain or not (folder.family or folder.modules):  # what is wrong is reported on loading
        return None
    from newfound.encoding.vectors.sentence_encoder import SentenceEncoder

    return SentenceEncoder(
        config.encoder,
        prompt=config.prompt,
        max_tokens=config.max_tokens,
        trust_remote_code=config.trust_remote_code,
    )


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
    if value.get("kind") == "sentence-transformers":
        from newfound.encoding.vectors.sentence_encoder import SentenceEncoder

        return SentenceEncoder.from_dict(value, fingerprint)
    raise DamagedFileError(f"vectors.json: the kind {str(value.get('kind'))[:40]!r} does not exist")
