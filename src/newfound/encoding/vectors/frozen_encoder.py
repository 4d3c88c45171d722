"""Frozen encoders: what gives one vector per text and is never trained.

A frozen encoder stands where an `Encoder` stands, but it has no layers of ours: the methods train a
head on its vectors. The vectors of a user are the simplest one, which cannot encode new texts.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import torch

from newfound.encoding.batching import Ragged
from newfound.encoding.loading import Encoder
from newfound.encoding.vectors.word_tokens import word_tokens
from newfound.errors import DamagedFileError, InputError
from newfound.progress import Advance

NEEDS_VECTORS = (
    "this model was fitted on vectors that you computed, and it cannot compute them from texts; "
    "give the vectors of these texts, from the same embedding model (embeddings, --vectors, "
    "--vector-column)"
)


class FrozenEncoder(Protocol):
    """An encoder of texts that is never trained.

    Attributes
    ----------
    name : str
        What a user reads; also in run.json.
    """

    name: str
    device: torch.device  # on which to encode; set by `VectorEncoder.to`

    @property
    def left_out(self) -> str | None:
        """What the backbone of this package leaves out when it trains the encoder.

        None if the backbone cannot run it.
        """

    @property
    def width(self) -> int | None:
        """Dimensions of a vector; None if they are not known yet."""

    @property
    def fingerprint(self) -> str:
        """Changes whenever the vectors of texts may change."""

    def encode(self, texts: Sequence[str], advance: Advance | None = None) -> np.ndarray:
        """Return the vectors [N, width] of texts, float32, in their order."""

    def to_dict(self) -> dict[str, Any]:
        """Return what `newfound.encoding.vectors.choice.from_dict` needs; no credentials."""

    def notes(self) -> list[str]:
        """Return what the user should know about the texts encoded so far."""


class VectorEncoder:
    """A frozen encoder on a device, in the place of an `Encoder`.

    Parameters
    ----------
    source : FrozenEncoder

    Attributes
    ----------
    layers : int
        0: no layer can be trained.
    mask_id : None
        There is no mask token.
    """

    layers = 0
    mask_id = None

    def __init__(self, source: FrozenEncoder) -> None:
        self.source = source

    def to(self, device: torch.device) -> "VectorEncoder":
        """Encode on this device from now on."""
        self.source.device = device
        return self

    def trust_remote_code(self) -> None:
        """Let code that comes with the encoder run."""
        if hasattr(self.source, "trust_remote_code"):
            self.source.trust_remote_code = True

    @property
    def device(self) -> torch.device:
        """Device on which texts are encoded and heads are trained."""
        return self.source.device

    @property
    def name(self) -> str:
        """What a user reads."""
        return self.source.name

    @property
    def fingerprint(self) -> str:
        """Changes whenever the vectors of texts may change."""
        return self.source.fingerprint

    def tokens(self, texts: Sequence[str]) -> Ragged:
        """Return the words of texts, for features that compare words."""
        return word_tokens(texts)


AnyEncoder = Encoder | VectorEncoder


GIVEN = "vectors of the user"  # how the encoder is called in records


class GivenVectors:
    """Vectors that the user computed; new texts cannot be encoded.

    Parameters
    ----------
    width : int
        Dimensions of a vector.
    """

    kind = "given"
    fingerprint = "given"  # the vectors themselves are part of a run's fingerprint
    device = torch.device("cpu")
    left_out = None

    def __init__(self, width: int) -> None:
        self.width = width
        self.name = f"{GIVEN} ({width:,} dimensions)"

    def encode(self, texts: Sequence[str], advance: Advance | None = None) -> np.ndarray:
        """Raise InputError: texts alone are not enough."""
        raise InputError(NEEDS_VECTORS)

    def to_dict(self) -> dict[str, Any]:
        """Return what `from_dict` needs."""
        return {"kind": self.kind, "width": self.width}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> "GivenVectors":
        """Return the vectors that `to_dict` describes."""
        width = value.get("width")
        if type(width) is not int or width < 1:
            raise DamagedFileError(f"vectors.json: 'width' cannot be {str(width)[:40]!r}")
        return cls(width)

    def notes(self) -> list[str]:
        """Return no notes: nothing is encoded."""
        return []
