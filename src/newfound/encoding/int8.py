"""Static int8 quantisation with OpenVINO, optional: a CPU encodes several times as fast.

Backbone and pooling are converted and calibrated on the user's texts. Head, normalisation and
prototypes stay in full precision. This needs the extra `openvino`.
"""

import hashlib
import importlib.util
import io
import logging
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from newfound.encoding.batching import Ragged, plan_batches, tokenize
from newfound.encoding.feature_maps import EncoderFeatures, FeatureMap, pool
from newfound.errors import DamagedFileError, InputError, reason
from newfound.files import CheckedFolder, check_fields, read_json, write_folder, write_json
from newfound.files.manifest import sha256_of
from newfound.progress import Advance
from newfound.wording import plural

Categories = Callable[[np.ndarray], np.ndarray]  # features [N, d] to category ids [N]
BUDGET = 1024  # tokens per batch
# Shapes of batches whose kernels are kept. OpenVINO's own number, 5,000, let memory grow by some
# gigabytes over 100,000 texts, and was no faster.
KEPT_SHAPES = 64
FORMAT = 3
MODEL_FILES = ("int8.bin", "int8.xml")
# Fields of the agreement in int8.json.
AGREEMENT: dict[str, type | tuple[type, ...]] = {
    "texts": int,
    "cosine": (int, float),
    "same": (int, float),
    "speed": (int, float),
}
CALIBRATION_TEXTS = 300  # for the ranges of activations
COMPARISON_TEXTS = 300  # other texts, on which int8 is compared with full precision
MIN_COSINE = 0.998  # mean cosine to full precision below which the user is warned
# Below these, int8 is used only if the user asks for it.
MIN_SAME = 0.99  # share of texts with the same category
MIN_SPEED = 1.2  # texts per second, relative to full precision


@dataclass(frozen=True)
class Agreement:
    """How well int8, or another faster form of an encoder, agrees with full precision.

    Attributes
    ----------
    texts : int
        Number of texts compared.
    cosine : float
        Mean cosine of the features.
    same : float
        Share of texts that get the same category.
    speed : float
        Texts per second, relative to full precision, on the machine of the comparison.
    name : str
        "int8" or "static".
    """

    texts: int
    cosine: float
    same: float
    speed: float
    name: str = "int8"

    @property
    def suffices(self) -> bool:
        """Whether int8 is used by default: it agrees with full precision and is faster."""
        agrees = self.cosine >= MIN_COSINE and self.same >= MIN_SAME
        return agrees and self.speed >= MIN_SPEED

    def __str__(self) -> str:
        message = (
            f"{self.name}: mean cosine to full precision {self.cosine:.4f}, same category for "
            f"{self.same:.1%} of {plural(self.texts, 'text')}, {self.speed:.1f} times its speed"
        )
        warning = f"; a cosine below {MIN_COSINE}: do not use {self.name} if accuracy matters"
        return message + (warning if self.cosine < MIN_COSINE else "")


class Int8Features:
    """A feature map of an encoder whose backbone runs in int8.

    Parameters
    ----------
    original : EncoderFeatures
        The same feature map in full precision.
    model : openvino.Model
        Its backbone and pooling in int8.
    """

    kind = EncoderFeatures.kind
    precision = "int8"

    def __init__(self, original: EncoderFeatures, model: Any) -> None:
        self.original = original
        openvino = _openvino()
        options = {
            "PERFORMANCE_HINT": "THROUGHPUT",
            "INFERENCE_PRECISION_HINT": "f32",
            "CPU_RUNTIME_CACHE_CAPACITY": str(KEPT_SHAPES),
        }
        threads = os.environ.get("OMP_NUM_THREADS", "")  # which OpenVINO does not read
        if threads.isdecimal():
            options["INFERENCE_NUM_THREADS"] = threads
        self._compiled = openvino.Core().compile_model(model, "CPU", options)
        self._queue = openvino.AsyncInferQueue(self._compiled)
        self._lock = Lock()  # several threads may encode

    def __call__(self, texts: Sequence[str], advance: Advance | None = None) -> np.ndarray:
        """Features of texts, float32 [N, width]; a repeated text is encoded once."""
        return self.with_frozen(texts, advance)[0]

    @torch.inference_mode()
    def with_frozen(
        self, texts: Sequence[str], advance: Advance | None = None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Features, and the encoder's pooled vectors [N, width]; None if some layers learnt."""
        distinct = list(dict.fromkeys(texts))
        tokens = self.original.encoder.tokens(distinct)
        pooled = np.empty((len(tokens), self.original.backbone.shape.width), np.float32)

        def store(request: Any, rows: np.ndarray) -> None:
            pooled[rows] = request.get_output_tensor(0).data

        if advance is not None and tokens.parts is not None:
            advance = tokens.parts.counting_texts(advance)
        with self._lock:
            self._queue.set_callback(store)
            for rows, ids, mask in _batches(tokens, BUDGET):
                self._queue.start_async([ids, mask], rows)
                if advance:
                    advance(len(rows))
            self._queue.wait_all()
        if tokens.parts is not None:
            pooled = tokens.parts.mean(torch.from_numpy(pooled)).numpy()
        features = self.original.from_pooled(torch.from_numpy(pooled)).numpy()
        place = {text: i for i, text in enumerate(distinct)}
        order = [place[text] for text in texts]
        return features[order], pooled[order] if self.original.pooled else None

    def save(self, folder: Path) -> None:
        """Write the full-precision encoder, from which int8 can be converted again."""
        self.original.save(folder)


def int8_features(
    features: FeatureMap,
    categories_of: Categories,
    texts: Sequence[str],
    folder: Path | None = None,
) -> tuple[Int8Features, Agreement]:
    """Convert the feature map of an encoder to int8.

    Parameters
    ----------
    features : FeatureMap
        Feature map of an encoder on a CPU; it is not changed.
    categories_of : callable
        Returns the categories [N] of features [N, d], by which the two maps are compared.
    texts : sequence of str
        Texts to calibrate with, similar to those that will be predicted.
    folder : Path, optional
        Folder that caches the converted model.

    Returns
    -------
    features : Int8Features
    agreement : Agreement
    """
    original = original_of(features, "int8")
    key = _key(original)
    kept = _read(original, folder, key) if folder is not None else None
    if kept is not None:
        return kept
    chosen = draw(texts, CALIBRATION_TEXTS + COMPARISON_TEXTS, "int8")
    # With few texts the same ones serve for both.
    calibration = chosen[:CALIBRATION_TEXTS]
    compared = chosen[CALIBRATION_TEXTS:] or calibration
    model = quantise(original, calibration)
    converted = Int8Features(original, model)
    agreement = compare(original, converted, categories_of, compared)
    if folder is not None:
        with suppress(InputError):  # the cache is optional
            _write(folder, key, model, agreement)
    return converted, agreement


def original_of(features: FeatureMap, name: str) -> EncoderFeatures:
    """Return the full encoder of a feature map on a CPU, or raise InputError."""
    original = getattr(features, "original", features)
    if not isinstance(original, EncoderFeatures):
        raise InputError(
            f"{name} needs an encoder that newfound runs itself, and this model has none: leave "
            f"{name} out"
        )
    if original.device.type != "cpu":
        raise InputError(f"{name} runs on a CPU only; choose the device cpu or leave {name} out")
    return original


def kept_int8(features: FeatureMap, folder: Path) -> tuple[Int8Features, Agreement] | None:
    """Return the int8 model of a feature map that `int8_features` has kept in a folder.

    Parameters
    ----------
    features : FeatureMap
    folder : Path

    Returns
    -------
    tuple of Int8Features and Agreement, or None
        None if none is kept, if the features are not computed on a CPU, and without OpenVINO.
    """
    if not (folder / "int8.json").is_file() or not importlib.util.find_spec("openvino"):
        return None
    if not isinstance(features, EncoderFeatures) or features.device.type != "cpu":
        return None
    return _read(features, folder, _key(features))


def quantise(original: EncoderFeatures, texts: Sequence[str]) -> Any:
    """Convert backbone and pooling to an OpenVINO model in int8, calibrated on `texts`."""
    openvino, nncf = _openvino(), _nncf()
    original.eval()
    encoder = original.encoder
    tokens = tokenize(encoder.tokenizer, texts, encoder.max_tokens)  # the first part is enough
    # One text per sample, because padding would widen the ranges of activations.
    samples = [(ids, mask) for _, ids, mask in _batches(tokens, 1)]
    example = next((torch.from_numpy(i), torch.from_numpy(m)) for _, i, m in _batches(tokens, 64))
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # from the converter's use of torch
        model = openvino.convert_model(
            _Pooled(original.backbone, original.encoder.pooling).eval(), example_input=example
        )
    with redirect_stdout(io.StringIO()):  # nncf prints progress bars
        return nncf.quantize(
            model,
            nncf.Dataset(samples),
            model_type=nncf.ModelType.TRANSFORMER,
            subset_size=len(samples),
        )


def compare(
    original: EncoderFeatures,
    quantised: FeatureMap,
    categories_of: Categories,
    texts: Sequence[str],
    name: str = "int8",
) -> Agreement:
    """Compare features, categories and speed of a converted encoder with full precision."""
    quantised(texts)  # its first call takes longer
    seconds = [time.perf_counter()]
    before = original(texts)
    seconds.append(time.perf_counter())
    after = quantised(texts)
    seconds.append(time.perf_counter())
    speed = (seconds[1] - seconds[0]) / (seconds[2] - seconds[1])
    lengths = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
    cosine = (before * after).sum(1) / np.maximum(lengths, 1e-12)
    same = categories_of(before) == categories_of(after)
    return Agreement(len(texts), float(cosine.mean()), float(same.mean()), round(speed, 2), name)


class _Pooled(nn.Module):
    """Backbone and pooling: the part that is converted."""

    def __init__(self, backbone: nn.Module, pooling: str) -> None:
        super().__init__()
        self.backbone, self.pooling = backbone, pooling

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        return pool(self.backbone(ids, mask), mask, self.pooling)


def _batches(tokens: Ragged, budget: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield (rows, ids, mask) of batches of texts of the same length."""
    for rows in plan_batches(tokens.lengths, budget, torch.device("cpu")):
        ids, mask = tokens.padded(torch.from_numpy(rows), int(tokens.lengths[rows].max()))
        yield rows, ids.numpy(), mask.numpy()


def draw(texts: Sequence[str], count: int, name: str) -> list[str]:
    """Return up to `count` distinct texts, the same ones in every call."""
    distinct = list(dict.fromkeys(text for text in texts if text.strip()))
    if not distinct:
        raise InputError(
            f"{name} needs texts to calibrate with; give texts similar to those to predict"
        )
    order = np.random.default_rng(0).permutation(len(distinct))[:count]
    return [distinct[i] for i in order]


# --- the cached model --------------------------------------------------------------------------


def _read(
    original: EncoderFeatures, folder: Path, key: str
) -> tuple[Int8Features, Agreement] | None:
    """Return the cached model, None if there is none of this encoder."""
    if not (folder / "int8.json").is_file():
        return None
    try:
        about = read_json(folder / "int8.json", dict)
        if about.get("format") != FORMAT or about.get("key") != key:
            return None
        check_fields(about, {"agreement": dict, "sha256": dict}, "int8.json")
        with CheckedFolder(folder, about["sha256"]) as files:
            for name in MODEL_FILES:
                files.read(name)
        check_fields(about["agreement"], AGREEMENT, "int8.json, agreement")
        agreement = Agreement(**{name: about["agreement"][name] for name in AGREEMENT})
        model = _openvino().Core().read_model(folder / "int8.xml")
    except (DamagedFileError, RuntimeError) as error:  # RuntimeError: OpenVINO's reader
        raise InputError(
            f"the int8 model in {folder} is damaged ({reason(error)}); delete that folder to "
            "convert the encoder again"
        ) from error
    return Int8Features(original, model), agreement


def _write(folder: Path, key: str, model: Any, agreement: Agreement) -> None:
    """Write the converted model to the cache."""
    about = {"format": FORMAT, "key": key, "agreement": asdict(agreement)}
    with write_folder(folder, "int8.json") as temporary:
        _openvino().save_model(model, temporary / "int8.xml", compress_to_fp16=False)
        digests = sha256_of(temporary, MODEL_FILES)
        write_json(temporary / "int8.json", {**about, "sha256": digests})


def _key(original: EncoderFeatures) -> str:
    """Return a hash of the converted part: the backbone's weights and the pooling."""
    digest = hashlib.sha256(original.encoder.pooling.encode())
    for weight in original.backbone.state_dict().values():
        digest.update(weight.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:32]


# --- optional packages -------------------------------------------------------------------------


def _openvino() -> Any:
    """Import OpenVINO."""
    # Some virtual machines report AMX but crash when it is used; to exclude it costs little.
    os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
    return _import("openvino")


def _nncf() -> Any:
    """Import NNCF, without its log messages."""
    nncf = _import("nncf")
    nncf.set_log_level(logging.ERROR)
    return nncf


def _import(name: str) -> Any:
    """Import a package of the extra `openvino`, without telemetry."""
    # A module that is None cannot be imported, and both packages work without telemetry.
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
