"""The feature map on vectors of a frozen encoder: a head and, for some methods, logits.

Every vector is scaled to the same length and rounded to half precision, in fitting and in
prediction, so that equal vectors give equal features and the head learns at the same pace for any
embedding model.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from newfound.encoding.batching import Cells
from newfound.encoding.heads import HEADS, HeadFeatures
from newfound.encoding.vectors.choice import from_dict
from newfound.encoding.vectors.frozen_encoder import GivenVectors, VectorEncoder
from newfound.encoding.vectors.scaling import encode_scaled, scaled
from newfound.encoding.weights import load_weights, parse_tensors
from newfound.errors import DamagedFileError
from newfound.files import CheckedFolder, check_fields, write_atomically, write_json
from newfound.progress import Advance

BLOCK = 8192  # vectors that pass through the head at a time
WIDEST = 1_000_000  # dimensions of a vector
# Fields of vectors.json.
SAVED: dict[str, type | tuple[type, ...]] = {
    "encoder": dict,
    "fingerprint": str,
    "width": int,
    "head": str,
    "normalise": bool,
}


class VectorFeatures(HeadFeatures):
    """A feature map of a frozen encoder's vectors, a head and, for some methods, logits.

    Where it takes texts, it also takes their vectors [N, width] as an array.

    Parameters
    ----------
    encoder : VectorEncoder
    width : int
        Dimensions of a vector.
    head : {"none", "tanh", "residual", "small-residual"}
        Layer on the vector.
    normalise : bool
        Whether features are scaled to unit length.
    logits : int, optional
        Number of logits on the head, which are then the features.
    """

    kind = "vectors"
    noise = 1e-4  # relative; the features of a text vary by far less between batches
    layers = frozen_layers = 0
    pooled = True

    def __init__(
        self,
        encoder: VectorEncoder,
        width: int,
        *,
        head: str = "none",
        normalise: bool = True,
        logits: int | None = None,
    ) -> None:
        super().__init__()
        self.encoder, self.width = encoder, width
        self.set_head(head, normalise, logits)
        self.place: Tensor  # tells the device, also if there is no weight
        self.register_buffer("place", torch.empty(0), persistent=False)

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return self.place.device

    @property
    def takes_vectors(self) -> bool:
        """Whether the user has to compute the vectors of new texts."""
        return isinstance(self.encoder.source, GivenVectors)

    def notes(self) -> list[str]:
        """Return what the user should know about the texts encoded so far."""
        return self.encoder.source.notes()

    def freeze(self, frozen_layers: int) -> None:
        """Make the head trainable; `frozen_layers` can only be 0."""
        assert frozen_layers == 0
        self.requires_grad_(True)

    def from_states(self, states: Tensor, where: Tensor | Cells | None = None) -> Tensor:
        """Return raw features [B, width], which `finish` completes, of scaled vectors."""
        return self.head(states.float())

    def __call__(
        self, texts: Sequence[str] | np.ndarray, advance: Advance | None = None
    ) -> np.ndarray:
        """Features of texts, or of their vectors, float32 [N, outputs]."""
        return self.with_frozen(texts, advance)[0]

    @torch.inference_mode()
    def with_frozen(
        self, texts: Sequence[str] | np.ndarray, advance: Advance | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Features, and the scaled vectors [N, width], of texts or of their vectors."""
        if isinstance(texts, np.ndarray):
            states = scaled(texts)
        else:
            distinct = list(dict.fromkeys(texts))
            place = {text: i for i, text in enumerate(distinct)}
            found = encode_scaled(self.encoder.source, distinct, self.width, advance)
            states = found[[place[text] for text in texts]]
        self.eval()
        features = np.empty((len(states), self.outputs), np.float32)
        for start in range(0, len(states), BLOCK):
            part = torch.from_numpy(states[start : start + BLOCK]).to(self.device)
            features[start : start + BLOCK] = self.from_pooled(part).cpu().numpy()
        return features, states.astype(np.float32)

    # --- files ---------------------------------------------------------------------------------

    def save(self, folder: Path) -> None:
        """Write the head and what names the frozen encoder, whose weights are not copied."""
        weights = {key: value.cpu().contiguous() for key, value in self.state_dict().items()}
        with write_atomically(folder / "head.safetensors") as temporary:
            save_file(weights, temporary)
        settings = {
            "encoder": self.encoder.source.to_dict(),
            "fingerprint": self.encoder.fingerprint,
            "width": self.width,
            "head": self.head_name,
            "normalise": self.normalise,
            "logits": None if self.logits is None else self.outputs,
        }
        write_json(folder / "vectors.json", settings)

    @classmethod
    def load(cls, files: CheckedFolder) -> "VectorFeatures":
        """Load a feature map from a folder that `save` has written."""
        settings = files.json("vectors.json", dict)
        check_fields(settings, SAVED, "vectors.json")
        if settings["head"] not in HEADS:
            raise DamagedFileError("vectors.json names a head that does not exist")
        weights = parse_tensors(files.read("head.safetensors"), "head.safetensors")
        width, logits = settings["width"], settings.get("logits")
        _check_sizes(width, logits, settings["head"], weights)
        source = from_dict(settings["encoder"], settings["fingerprint"])
        features = cls(
            VectorEncoder(source),
            width,
            head=settings["head"],
            normalise=settings["normalise"],
            logits=logits,
        )
        load_weights(features, weights, "head.safetensors")
        return features.eval()


def _check_sizes(width: int, logits: object, head: str, weights: dict[str, Tensor]) -> None:
    """Raise DamagedFileError if vectors.json would allocate other sizes than are stored."""
    first = {"none": None, "tanh": "head.dense.weight"}.get(head, "head.up.weight")
    stored = None if first is None else weights.get(first)
    if first is not None and (stored is None or stored.shape[-1:] != (width,)):
        raise DamagedFileError(f"head.safetensors does not fit vectors.json ({first})")
    if not 1 <= width <= WIDEST:
        raise DamagedFileError(f"vectors.json: 'width' cannot be {width}")
    last = weights.get("logits.weight")
    if (None if last is None else len(last)) != logits or isinstance(logits, bool):
        raise DamagedFileError(f"vectors.json: 'logits' cannot be {str(logits)[:40]!r}")
