"""Static int8 by OpenVINO: a CPU encodes several times as fast; off unless it is asked for.

The backbone and the pooling are converted and calibrated on the user's own texts. The head, the
normalisation and the prototypes stay in full precision. Needs the extra `openvino`.
"""

import hashlib
import importlib
import io
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from newfound.encoding.batching import Ragged, plan_batches, tokenize
from newfound.encoding.feature_maps import EncoderFeatures, FeatureMap, pool
from newfound.errors import DamagedFileError, InputError, reason
from newfound.files import check_fields, read_json, write_folder, write_json
from newfound.progress import Advance
from newfound.wording import plural

Categories = Callable[[np.ndarray], np.ndarray]  # features [N, d] to category ids [N]
BUDGET = 1024  # tokens per batch
FORMAT = 1
# What int8.json says of the agreement.
AGREEMENT: dict[str, type | tuple[type, ...]] = {
    "texts": int,
    "cosine": (int, float),
    "same": (int, float),
}
CALIBRATION = 300  # texts that the ranges of activations are read from
COMPARED = 300  # other texts on which int8 is compared with full precision
GOAL = 0.998  # mean cosine to full precision


@dataclass(frozen=True)
class Agreement:
    """How near int8 came to full precision when it was calibrated."""

    texts: int
    cosine: float  # mean over texts, of the features
    same: float  # share of texts that get the same category

    def __str__(self) -> str:
        told = (
            f"int8: mean cosine to full precision {self.cosine:.4f}, the same category for "
            f"{self.same:.1%} of {plural(self.texts, 'text')}"
        )
        low = f"; that is below {GOAL}: leave int8 out where answers matter"
        return told + (low if self.cosine < GOAL else "")


class Int8Features:
    """The feature map of an encoder whose backbone runs in int8."""

    kind = EncoderFeatures.kind

    def __init__(self, plain: EncoderFeatures, model: Any) -> None:
        self.plain = plain
        openvino = _openvino()
        self._compiled = openvino.Core().compile_model(
            model, "CPU", {"PERFORMANCE_HINT": "THROUGHPUT", "INFERENCE_PRECISION_HINT": "f32"}
        )
        self._queue = openvino.AsyncInferQueue(self._compiled)

    def __call__(self, texts: Sequence[str], advance: Advance | None = None) -> np.ndarray:
        """Features of texts, float32 [N, width]; a repeated text is encoded once."""
        return self.with_frozen(texts, advance)[0]

    @torch.inference_mode()
    def with_frozen(
        self, texts: Sequence[str], advance: Advance | None = None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Features, and the encoder's pooled vectors [N, width]; None if some layers learnt."""
        distinct = list(dict.fromkeys(texts))
        encoder = self.plain.encoder
        tokens = tokenize(encoder.tokenizer, distinct, encoder.max_tokens)
        pooled = np.empty((len(distinct), self.plain.backbone.shape.width), np.float32)

        def store(request: Any, rows: np.ndarray) -> None:
            pooled[rows] = request.get_output_tensor(0).data

        self._queue.set_callback(store)
        for rows, ids, mask in _batches(tokens, BUDGET):
            self._queue.start_async([ids, mask], rows)
            if advance:
                advance(len(rows))
        self._queue.wait_all()
        features = self.plain.finish(self.plain.head(torch.from_numpy(pooled))).numpy()
        place = {text: i for i, text in enumerate(distinct)}
        order = [place[text] for text in texts]
        return features[order], pooled[order] if self.plain.pooled else None

    def save(self, folder: Path) -> None:
        """Write the full-precision encoder: int8 is made from it again where it is wanted."""
        self.plain.save(folder)


def int8_features(
    features: FeatureMap,
    categories_of: Categories,
    texts: Sequence[str],
    folder: Path | None = None,
) -> tuple[Int8Features, Agreement]:
    """Convert a feature map to int8, calibrated on texts.

    Parameters
    ----------
    features : FeatureMap
        An encoder's, on a CPU; it stays as it is.
    categories_of : callable
        Gives the category ids [N] of features [N, d], to compare the two maps by.
    texts : sequence of str
        Texts to calibrate with, like those to come.
    folder : Path, optional
        Where the converted model is kept; if it is there already it is read.

    Returns
    -------
    features : Int8Features
    agreement : Agreement
    """
    plain = features.plain if isinstance(features, Int8Features) else features
    if not isinstance(plain, EncoderFeatures):
        raise InputError(
            "int8 is for methods that read texts with an encoder; this model's does without one: "
            "leave int8 out"
        )
    if plain.device.type != "cpu":
        raise InputError("int8 is for encoders on a CPU; choose the device cpu or leave int8 out")
    key = _key(plain)
    kept = _read(plain, folder, key) if folder is not None else None
    if kept is not None:
        return kept
    chosen = _draw(texts, CALIBRATION + COMPARED)
    # With few texts the same ones have to do for both.
    calibration = chosen[:CALIBRATION]
    compared = chosen[CALIBRATION:] or calibration
    model = quantise(plain, calibration)
    converted = Int8Features(plain, model)
    agreement = compare(plain, converted, categories_of, compared)
    if folder is not None:
        with suppress(InputError):  # it only saves the next run the conversion
            _write(folder, key, model, agreement)
    return converted, agreement


def quantise(plain: EncoderFeatures, texts: Sequence[str]) -> Any:
    """Convert backbone and pooling to an OpenVINO model in int8, calibrated on `texts`."""
    openvino, nncf = _openvino(), _nncf()
    plain.eval()
    tokens = tokenize(plain.encoder.tokenizer, texts, plain.encoder.max_tokens)
    # One text at a time: padding must not stretch the ranges.
    samples = [(ids, mask) for _, ids, mask in _batches(tokens, 1)]
    example = next((torch.from_numpy(i), torch.from_numpy(m)) for _, i, m in _batches(tokens, 64))
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of the converter's own use of torch
        model = openvino.convert_model(
            _Pooled(plain.backbone, plain.encoder.pooling).eval(), example_input=example
        )
    with redirect_stdout(io.StringIO()):  # its progress bars must not mix with our output
        return nncf.quantize(
            model,
            nncf.Dataset(samples),
            model_type=nncf.ModelType.TRANSFORMER,
            subset_size=len(samples),
        )


def compare(
    plain: EncoderFeatures,
    quantised: Int8Features,
    categories_of: Categories,
    texts: Sequence[str],
) -> Agreement:
    """Return how int8 and full precision agree on `texts`."""
    before, after = plain(texts), quantised(texts)
    lengths = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
    cosine = (before * after).sum(1) / np.maximum(lengths, 1e-12)
    same = categories_of(before) == categories_of(after)
    return Agreement(len(texts), float(cosine.mean()), float(same.mean()))


class _Pooled(nn.Module):
    """Token ids to one vector per text: what is converted."""

    def __init__(self, backbone: nn.Module, pooling: str) -> None:
        super().__init__()
        self.backbone, self.pooling = backbone, pooling

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        return pool(self.backbone(ids, mask), mask, self.pooling)


def _batches(tokens: Ragged, budget: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(rows, ids, mask) of batches of texts of similar length."""
    for rows in plan_batches(tokens.lengths, budget):
        ids, mask = tokens.padded(torch.from_numpy(rows), int(tokens.lengths[rows].max()))
        yield rows, ids.numpy(), mask.numpy()


def _draw(texts: Sequence[str], count: int) -> list[str]:
    """Up to `count` of the distinct texts, the same ones every time."""
    distinct = list(dict.fromkeys(text for text in texts if text.strip()))
    if not distinct:
        raise InputError(
            "int8 needs texts to calibrate with; give some that are like those to come"
        )
    order = np.random.default_rng(0).permutation(len(distinct))[:count]
    return [distinct[i] for i in order]


# --- the kept model ----------------------------------------------------------------------------


def _read(plain: EncoderFeatures, folder: Path, key: str) -> tuple[Int8Features, Agreement] | None:
    """The model kept in `folder`; None if there is none of this encoder."""
    if not (folder / "int8.json").is_file():
        return None
    try:
        about = read_json(folder / "int8.json", dict)
        if about.get("format") != FORMAT or about.get("key") != key:
            return None
        check_fields(about, {"agreement": dict}, "int8.json")
        check_fields(about["agreement"], AGREEMENT, "int8.json, agreement")
        agreement = Agreement(**{name: about["agreement"][name] for name in AGREEMENT})
        model = _openvino().Core().read_model(folder / "int8.xml")
    except (DamagedFileError, RuntimeError) as error:  # RuntimeError: OpenVINO's reader
        raise InputError(
            f"the int8 model in {folder} is damaged ({reason(error)}); delete that folder, it is "
            "made again"
        ) from error
    return Int8Features(plain, model), agreement


def _write(folder: Path, key: str, model: Any, agreement: Agreement) -> None:
    about = {"format": FORMAT, "key": key, "agreement": asdict(agreement)}
    with write_folder(folder, "int8.json") as temporary:
        _openvino().save_model(model, temporary / "int8.xml", compress_to_fp16=False)
        write_json(temporary / "int8.json", about)


def _key(plain: EncoderFeatures) -> str:
    """A hash of what is converted: the backbone's weights and the pooling."""
    digest = hashlib.sha256(plain.encoder.pooling.encode())
    for weight in plain.backbone.state_dict().values():
        digest.update(weight.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:32]


# --- the packages ------------------------------------------------------------------------------


def _openvino() -> Any:
    # Some virtual machines advertise AMX and then die of it; a cap below it costs little here.
    os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
    return _import("openvino")


def _nncf() -> Any:
    nncf = _import("nncf")
    nncf.set_log_level(logging.ERROR)
    return nncf


def _import(name: str) -> Any:
    """Import a package of the extra, without the usage reports that it would send."""
    # A module that is None cannot be imported: both packages then do without telemetry.
    hidden = "openvino_telemetry" not in sys.modules
    if hidden:
        sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InputError(
            f"int8 needs {name}, which cannot be imported ({reason(error)}): install "
            "newfound[openvino]"
        ) from error
    finally:
        if hidden:
            del sys.modules["openvino_telemetry"]
